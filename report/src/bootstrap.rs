//! Intervals by resampling whole blocks: calls of one block are not independent, blocks are.

/// Resamples of one interval.
const ROUNDS: usize = 1_000;

/// splitmix64 (Steele, Lea, Flood 2014): small, seeded, good enough to pick blocks.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        // Bounds are block counts: the bias of a remainder is far below the interval's own error.
        (z % bound.max(1) as u64) as usize
    }
}

/// The 95 % interval of `statistic` over so many `blocks`, told how often a resample has each; `None` with fewer than
/// two blocks, or where a resample has no statistic. A statistic may be infinite, where it is only known to be larger than all
/// that was seen: so is the upper end then, and where the lower end would be, nothing is known.
pub(crate) fn over_blocks(
    blocks: usize,
    statistic: impl Fn(&[u32]) -> Option<f64>,
) -> Option<(f64, f64)> {
    if blocks < 2 {
        return None;
    }
    let mut random = Random(blocks as u64);
    let mut found = Vec::with_capacity(ROUNDS);
    let mut times = vec![0; blocks];
    for _ in 0..ROUNDS {
        times.fill(0);
        for _ in 0..blocks {
            if let Some(times) = times.get_mut(random.below(blocks)) {
                *times += 1;
            }
        }
        found.push(statistic(&times)?);
    }
    crate::quantile::sort(&mut found);
    let low = crate::quantile::plain(&found, 0.025)?;
    let high = crate::quantile::plain(&found, 0.975)?;
    low.is_finite().then_some((low, high))
}

/// The same of a statistic of the blocks that a resample has.
pub(crate) fn interval<T>(
    blocks: &[T],
    statistic: impl Fn(&[&T]) -> Option<f64>,
) -> Option<(f64, f64)> {
    over_blocks(blocks.len(), |times| {
        let blocks = blocks.iter().zip(times);
        let sample: Vec<&T> = blocks
            .flat_map(|(block, times)| std::iter::repeat_n(block, *times as usize))
            .collect();
        statistic(&sample)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(sample: &[&f64]) -> Option<f64> {
        Some(sample.iter().copied().sum::<f64>() / sample.len() as f64)
    }

    #[test]
    fn one_block_has_no_interval_and_equal_blocks_have_none_to_speak_of() {
        assert_eq!(interval(&[1.0], mean), None);
        assert_eq!(interval(&[2.0; 10], mean), Some((2.0, 2.0)));
    }

    #[test]
    fn an_end_among_infinite_statistics_is_open() {
        let largest = |sample: &[&f64]| sample.iter().copied().copied().reduce(f64::max);
        let mut blocks = [1.0; 10];
        blocks[0] = f64::INFINITY;
        assert_eq!(interval(&blocks, largest), Some((1.0, f64::INFINITY)));
        assert_eq!(interval(&[f64::INFINITY; 3], largest), None);
    }

    #[test]
    fn the_interval_holds_the_mean_of_spread_blocks() {
        let blocks: Vec<f64> = (0..20).map(f64::from).collect();
        let (low, high) = interval(&blocks, mean).unwrap();
        assert!(
            low < 9.5 && 9.5 < high && low > 4.0 && high < 15.0,
            "{low} {high}"
        );
    }
}
