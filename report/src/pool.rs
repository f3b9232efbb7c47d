//! Quantiles of the values of several blocks, taken together: each block once, or as often as a resample has it.
//!
//! Blocks are sorted once. A quantile is then found by bisection, so that a thousand resamples of millions of values
//! take no sort at all.

/// The values of blocks. No value is NaN.
pub(crate) struct Pool {
    /// All of them, rising.
    all: Vec<f64>,
    blocks: Vec<Sorted>,
    /// Each value counts as one; else by its weight.
    single: bool,
}

/// The values of one block, rising.
struct Sorted {
    values: Vec<f64>,
    /// The weight of each value and of all before it; empty where each counts as one.
    sums: Vec<f64>,
    /// Calls that are only known to be larger than any value they reached.
    lost: usize,
}

impl Sorted {
    /// What lies at or below `value`: a count, or a weight.
    fn up_to(&self, value: f64) -> f64 {
        let count = self.values.partition_point(|v| *v <= value);
        match (self.sums.is_empty(), count.checked_sub(1)) {
            (true, _) => count as f64,
            (false, last) => last
                .and_then(|at| self.sums.get(at))
                .copied()
                .unwrap_or(0.0),
        }
    }

    fn whole(&self) -> f64 {
        let own = self.sums.last().copied();
        own.unwrap_or(self.values.len() as f64) + self.lost as f64
    }
}

impl Pool {
    /// Of blocks of values, each with how many calls were lost.
    pub(crate) fn new(blocks: Vec<(Vec<f64>, usize)>) -> Self {
        let sorted = blocks.into_iter().map(|(mut values, lost)| {
            crate::quantile::sort(&mut values);
            Sorted {
                values,
                sums: Vec::new(),
                lost,
            }
        });
        Self::of(sorted.collect(), true)
    }

    /// Of blocks of values with weights, each with how many calls, of weight one, were lost.
    pub(crate) fn weighted(blocks: Vec<(Vec<(f64, f64)>, usize)>) -> Self {
        let sorted = blocks.into_iter().map(|(mut values, lost)| {
            values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            let sums = values.iter().scan(0.0, |sum, (_, weight)| {
                *sum += weight;
                Some(*sum)
            });
            let sums = sums.collect();
            Sorted {
                values: values.into_iter().map(|(value, _)| value).collect(),
                sums,
                lost,
            }
        });
        Self::of(sorted.collect(), false)
    }

    fn of(blocks: Vec<Sorted>, single: bool) -> Self {
        let mut all: Vec<f64> = blocks.iter().flat_map(|b| &b.values).copied().collect();
        crate::quantile::sort(&mut all);
        Self {
            all,
            blocks,
            single,
        }
    }

    /// The largest value.
    pub(crate) fn largest(&self) -> Option<&f64> {
        self.all.last()
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Values below zero.
    pub(crate) fn negative(&self) -> usize {
        self.all.partition_point(|value| *value < 0.0)
    }

    /// Each block once.
    pub(crate) fn once(&self) -> Vec<u32> {
        vec![1; self.blocks.len()]
    }

    /// The quantile `q` with each block so many `times`; `None` where it falls on a lost call, or nothing is there.
    /// Where each value counts as one it lies between two of them (R's type 7), else it is the smallest at which the
    /// weight reaches `q`.
    pub(crate) fn at(&self, q: f64, times: &[u32]) -> Option<f64> {
        let whole: f64 = self.sum(times, Sorted::whole);
        if !self.single {
            // A hair of rounding is no missing weight.
            return self.first(times, |below| below + 1e-9 >= q * whole);
        }
        if whole < 1.0 {
            return None;
        }
        let rank = q * (whole - 1.0);
        let low = self.first(times, |below| below > rank.floor())?;
        let part = rank - rank.floor();
        if part == 0.0 {
            return Some(low);
        }
        let high = self.first(times, |below| below > rank.floor() + 1.0)?;
        Some(low + (high - low) * part)
    }

    /// The smallest value for which what lies at or below it is `enough`.
    fn first(&self, times: &[u32], enough: impl Fn(f64) -> bool) -> Option<f64> {
        let below = |value: f64| self.sum(times, |block| block.up_to(value));
        let at = self.all.partition_point(|value| !enough(below(*value)));
        self.all.get(at).copied()
    }

    fn sum(&self, times: &[u32], of: impl Fn(&Sorted) -> f64) -> f64 {
        let blocks = self.blocks.iter().zip(times);
        blocks
            .map(|(block, times)| f64::from(*times) * of(block))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantile::{ranked, sort};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    /// The same by writing each block out as often as it counts.
    fn written_out(blocks: &[(Vec<f64>, usize)], times: &[u32], q: f64) -> Option<f64> {
        let mut all = Vec::new();
        let mut total = 0;
        for ((values, lost), times) in blocks.iter().zip(times) {
            for _ in 0..*times {
                all.extend(values);
                total += values.len() + lost;
            }
        }
        sort(&mut all);
        ranked(&all, total, q)
    }

    proptest! {
        #[test]
        fn it_is_the_quantile_of_the_blocks_written_out(
            blocks in proptest::collection::vec((proptest::collection::vec(-9_i8..9, 0..12), 0_usize..3, 0_u32..4), 1..6),
            q in 0.0_f64..=1.0) {
            let times: Vec<u32> = blocks.iter().map(|b| b.2).collect();
            let blocks: Vec<(Vec<f64>, usize)> = blocks.into_iter()
                .map(|(values, lost, _)| (values.into_iter().map(f64::from).collect(), lost))
                .collect();
            let found = Pool::new(blocks.clone()).at(q, &times);
            match (found, written_out(&blocks, &times, q)) {
                (Some(a), Some(b)) => prop_assert!((a - b).abs() < 1e-9, "{a} {b}"),
                (a, b) => prop_assert_eq!(a, b),
            }
        }
    }

    #[test]
    fn weights_make_calls_equal() {
        // One call of 1000 quick tokens, two calls of one slow token each.
        let mut all: Vec<(f64, f64)> = (0..1_000).map(|_| (1.0, 0.001)).collect();
        all.extend([(9.0, 1.0), (9.0, 1.0)]);
        assert_eq!(
            Pool::weighted(vec![(all.clone(), 0)]).at(0.5, &[1]),
            Some(9.0)
        );
        let beyond = Pool::weighted(vec![(all, 4)]).at(0.5, &[1]);
        assert_eq!(beyond, None, "beyond what was seen");
    }
}
