//! The response id: given once, and compared with what later chunks say.

use twox_hash::XxHash3_64;

use crate::decoder::Counts;
use crate::event::StreamEvent;

/// A longer response id is compared and given by its first 256 bytes.
const MAX_ID_BYTES: usize = 256;

/// Hash of the first response id that is not empty.
#[derive(Debug, Default)]
pub(crate) struct ResponseId(Option<u64>);

impl ResponseId {
    /// The event of the first id; another one later is counted.
    pub(crate) fn take<'e>(&mut self, id: &'e str, counts: &mut Counts) -> Option<StreamEvent<'e>> {
        if id.is_empty() {
            return None;
        }
        let id = &id[..id.floor_char_boundary(MAX_ID_BYTES)];
        let hash = XxHash3_64::oneshot(id.as_bytes());
        match self.0 {
            None => {
                self.0 = Some(hash);
                return Some(StreamEvent::Id(id));
            }
            Some(first) => counts.foreign_ids += u64::from(first != hash),
        }
        None
    }
}
