//! The prompt cache.

use std::collections::{HashMap, VecDeque};

use super::ManagedOptions;
use crate::prompt::BLOCK_TOKENS;

/// Most blocks that are kept; the oldest goes first.
const MAX_BLOCKS: usize = 262_144;

/// Blocks of earlier prompts and until when they are kept, ns.
#[derive(Default)]
pub(super) struct Prefixes {
    until: HashMap<u64, u64>,
    order: VecDeque<u64>,
}

impl Prefixes {
    /// The cached tokens of a prompt with these blocks at `at` ns. Its own blocks are kept from then on.
    pub(super) fn look(&mut self, options: &ManagedOptions, hashes: &[u64], at: u64) -> u64 {
        let live = |hash: &u64| self.until.get(hash).is_some_and(|until| *until > at);
        // A hash names all blocks before it too.
        let found = hashes
            .iter()
            .rposition(live)
            .map_or(0, |last| last as u64 + 1);
        let tokens = found * BLOCK_TOKENS;
        if hashes.len() as u64 * BLOCK_TOKENS >= options.cache_min_tokens {
            let until = at + options.cache_ttl_ms * 1_000_000;
            hashes.iter().for_each(|hash| self.keep(*hash, until));
        }
        if tokens < options.cache_min_tokens {
            0
        } else {
            tokens
        }
    }

    fn keep(&mut self, hash: u64, until: u64) {
        if self.until.insert(hash, until).is_some() {
            return;
        }
        self.order.push_back(hash);
        if self.order.len() > MAX_BLOCKS
            && let Some(oldest) = self.order.pop_front()
        {
            self.until.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_found_while_they_are_kept_and_long_enough() {
        let options = ManagedOptions {
            cache_min_tokens: 48,
            cache_ttl_ms: 1,
            ..ManagedOptions::default()
        };
        let mut cache = Prefixes::default();
        let mut look = |hashes: &[u64], at| cache.look(&options, hashes, at);
        assert_eq!(look(&[1, 2], 0), 0);
        assert_eq!(look(&[1, 2], 0), 0, "too short to be kept");
        assert_eq!(look(&[1, 2, 3, 4], 0), 0);
        assert_eq!(look(&[1, 2, 3, 5], 0), 48);
        assert_eq!(look(&[1, 2, 6, 7], 0), 0, "too short to be found");
        assert_eq!(look(&[1, 2, 3, 4], 999_999), 64);
        assert_eq!(look(&[1, 2, 3, 4], 1_999_998), 64, "a use keeps it");
        assert_eq!(look(&[1, 2, 3, 4], 2_999_998), 0);
    }

    #[test]
    fn the_cache_is_bounded() {
        let options = ManagedOptions {
            cache_min_tokens: 0,
            ..ManagedOptions::default()
        };
        let mut cache = Prefixes::default();
        for hash in 0..MAX_BLOCKS as u64 + 5 {
            cache.look(&options, &[hash], 0);
        }
        assert_eq!(
            (cache.until.len(), cache.order.len()),
            (MAX_BLOCKS, MAX_BLOCKS)
        );
    }
}
