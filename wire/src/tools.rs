//! Tool calls counted among themselves, in dialects that count them among other blocks.

use smallvec::SmallVec;

/// The blocks that are tool calls, in their order.
#[derive(Debug, Default)]
pub(crate) struct Tools(SmallVec<[u64; 4]>);

impl Tools {
    /// Which tool call a block is.
    pub(crate) fn of(&mut self, block: u64) -> u16 {
        let known = self.0.iter().position(|known| *known == block);
        let at = known.unwrap_or_else(|| {
            self.0.push(block);
            self.0.len() - 1
        });
        u16::try_from(at).unwrap_or(u16::MAX)
    }

    /// The tool call after all others, in a body whose blocks have no index.
    pub(crate) fn another(&mut self) -> u16 {
        self.of(self.0.len() as u64)
    }
}
