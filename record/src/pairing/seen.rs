//! Response ids that were seen lately.

use std::collections::{HashSet, VecDeque};

/// Response ids remembered to recognise an answer that came from a cache.
const KEPT: usize = 65_536;

/// The last [`KEPT`] response ids, shortened. All room is taken at the beginning, some two megabytes,
/// so that a process does not grow with its first calls.
pub(super) struct Seen {
    ids: HashSet<u64>,
    order: VecDeque<u64>,
}

impl Default for Seen {
    fn default() -> Self {
        Self {
            // One more than is kept is in it for a moment.
            ids: HashSet::with_capacity(KEPT + 1),
            order: VecDeque::with_capacity(KEPT + 1),
        }
    }
}

impl Seen {
    pub(super) fn insert(&mut self, id: u64) {
        if !self.ids.insert(id) {
            return;
        }
        self.order.push_back(id);
        if self.order.len() > KEPT
            && let Some(old) = self.order.pop_front()
        {
            self.ids.remove(&old);
        }
    }

    pub(super) fn contains(&self, id: u64) -> bool {
        self.ids.contains(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ids_are_kept_and_no_room_is_taken_later() {
        let mut seen = Seen::default();
        let room = (seen.ids.capacity(), seen.order.capacity());
        for id in 0..4 * KEPT as u64 {
            seen.insert(id);
            seen.insert(id / 2);
        }
        assert!(seen.contains(4 * KEPT as u64 - 1));
        assert!(!seen.contains(0));
        assert!(seen.order.len() <= KEPT && seen.ids.len() == seen.order.len());
        assert!(seen.ids.capacity() <= room.0 && seen.order.capacity() == room.1);
    }
}
