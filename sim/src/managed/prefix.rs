//! The prompt cache.

use std::collections::{HashMap, VecDeque};

use super::ManagedOptions;
use crate::prompt::{BLOCK_TOKENS, Point};

/// Most blocks that are kept; the oldest goes first.
const MAX_BLOCKS: usize = 262_144;

/// What of a prompt may be kept and found.
pub(crate) enum Reusable {
    /// Every beginning: the hashes of its blocks.
    Blocks(Vec<u64>),
    /// The beginnings that the request marks with cache points, and nothing else.
    Points(Vec<Point>),
}

/// Tokens of a prompt that were read from the cache and written to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Reuse {
    pub(crate) read: u64,
    pub(crate) written: u64,
}

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

    /// The tokens of the longest beginning that is known, and how many more are kept from then on.
    pub(super) fn look_at_points(
        &mut self,
        options: &ManagedOptions,
        points: &[Point],
        at: u64,
    ) -> Reuse {
        let long_enough = |point: &&Point| point.tokens >= options.cache_min_tokens;
        let live = |point: &&Point| self.until.get(&point.hash).is_some_and(|until| *until > at);
        let longest = |points: &mut dyn Iterator<Item = &Point>| {
            points.map(|point| point.tokens).max().unwrap_or(0)
        };
        let read = longest(&mut points.iter().filter(long_enough).filter(live));
        let kept = longest(&mut points.iter().filter(long_enough));
        let until = at + options.cache_ttl_ms * 1_000_000;
        for point in points.iter().filter(long_enough) {
            self.keep(point.hash, until);
        }
        Reuse {
            read,
            written: kept - read,
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
    fn only_what_ends_at_a_cache_point_is_kept_and_the_longest_is_found() {
        let options = ManagedOptions {
            cache_min_tokens: 100,
            cache_ttl_ms: 1,
            ..ManagedOptions::default()
        };
        let point = |hash, tokens| Point { hash, tokens };
        let mut cache = Prefixes::default();
        let mut look = |points: &[Point], at| {
            let found = cache.look_at_points(&options, points, at);
            (found.read, found.written)
        };
        assert_eq!(look(&[], 0), (0, 0));
        assert_eq!(look(&[point(1, 99)], 0), (0, 0), "too short");
        assert_eq!(look(&[point(2, 101), point(3, 150)], 0), (0, 150));
        assert_eq!(look(&[point(2, 101), point(4, 170)], 0), (101, 69));
        assert_eq!(look(&[point(2, 101), point(3, 150)], 0), (150, 0));
        assert_eq!(look(&[point(2, 101)], 999_999), (101, 0));
        assert_eq!(look(&[point(3, 150)], 1_000_000), (0, 150), "too old");
        assert_eq!(
            look(&[point(2, 101)], 1_000_000),
            (101, 0),
            "a use keeps it"
        );
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
