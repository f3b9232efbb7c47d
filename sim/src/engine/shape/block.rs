//! The content blocks of a streamed message, one after another.

use crate::truth::Field;

/// Which block is open.
#[derive(Default)]
pub(super) struct OpenBlock {
    open: Option<(Field, u16)>,
    index: u64,
}

impl OpenBlock {
    pub(super) fn index(&self) -> u64 {
        self.index
    }

    /// Whether a text of this kind and tool needs a block of its own.
    pub(super) fn needs_another(&self, kind: (Field, u16)) -> bool {
        self.open != Some(kind)
    }

    pub(super) fn open(&mut self, kind: (Field, u16)) {
        self.open = Some(kind);
    }

    /// Closes the block that is open, if one is, and tells its index.
    pub(super) fn close(&mut self) -> Option<u64> {
        self.open.take()?;
        self.index += 1;
        Some(self.index - 1)
    }
}
