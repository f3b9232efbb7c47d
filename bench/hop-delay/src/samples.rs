//! Delays of one block, and what is said of many blocks: quantiles and their intervals.

use anyhow::Result;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::quiet::Others;

/// Resamplings behind every interval.
const DRAWS: usize = 1000;
/// Fewest blocks for an interval: fewer say nothing about each other.
const BLOCKS_FOR_INTERVAL: usize = 10;
/// Samples that must lie beyond a quantile before it is told.
const BEYOND: f64 = 10.0;

/// A histogram of delays in nanoseconds, exact to 0.1 %.
pub(crate) struct Delays(Histogram<u32>);

impl Delays {
    /// An empty one.
    ///
    /// # Errors
    /// Never with the precision used here.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self(Histogram::new(3)?))
    }

    pub(crate) fn add(&mut self, nanoseconds: u64) {
        // The histogram resizes to any value, so recording cannot fail.
        let _ = self.0.record(nanoseconds);
    }

    pub(crate) fn clear(&mut self) {
        self.0.reset();
    }

    pub(crate) fn len(&self) -> u64 {
        self.0.len()
    }

    pub(crate) fn max(&self) -> u64 {
        self.0.max()
    }

    /// The quantile, if at least ten samples lie beyond it.
    pub(crate) fn quantile(&self, q: f64) -> Option<f64> {
        // A count of samples is far below 2^52.
        let beyond = self.0.len() as f64 * (1.0 - q);
        (beyond >= BEYOND - 1e-9).then(|| self.0.value_at_quantile(q) as f64)
    }
}

/// What one block of one arm gave.
pub(crate) struct Block {
    pub(crate) delays: Delays,
    pub(crate) joined: u64,
    /// CPU time of the subject's processes in the window, in nanoseconds; none without a subject.
    pub(crate) cpu: Option<u64>,
    /// Memory of the subject's processes at the window's end (PSS), in bytes.
    pub(crate) memory: Option<u64>,
    /// CPU that others took in the window.
    pub(crate) others: Others,
    /// p99 and maximum of how late tokens were written, in nanoseconds.
    pub(crate) lag: (Option<f64>, u64),
    /// p99 and maximum of one turn of the harness's loop, in nanoseconds.
    pub(crate) turn: (Option<f64>, u64),
}

/// Figures of some blocks taken together.
#[derive(Clone, Copy, Default)]
pub(crate) struct Figures {
    /// Median delay, in nanoseconds.
    pub(crate) p50: Option<f64>,
    /// 99th percentile of the delay, in nanoseconds.
    pub(crate) p99: Option<f64>,
    /// CPU nanoseconds per event.
    pub(crate) cpu: Option<f64>,
}

fn figures<'a>(blocks: impl Iterator<Item = &'a Block>) -> Result<Figures> {
    let mut pool = Delays::new()?;
    let (mut cpu, mut has_cpu) = (0, false);
    for block in blocks {
        pool.0.add(&block.delays.0)?;
        cpu += block.cpu.unwrap_or(0);
        has_cpu |= block.cpu.is_some();
    }
    Ok(Figures {
        p50: pool.quantile(0.5),
        p99: pool.quantile(0.99),
        cpu: (has_cpu && pool.len() > 0).then(|| cpu as f64 / pool.len() as f64),
    })
}

/// An arm's figures over all blocks, and over each resampling of them. Resampling n takes the
/// same rounds in every arm, so that differences and ratios of arms keep their pairing.
pub(crate) struct Arm {
    point: Figures,
    draws: Vec<Figures>,
}

impl Arm {
    /// Resamples the blocks of one arm, in the order of their rounds.
    ///
    /// # Errors
    /// When histograms do not add up, which the same precision excludes.
    pub(crate) fn of(blocks: &[Block]) -> Result<Self> {
        let mut random = fastrand::Rng::with_seed(1);
        let mut draws = Vec::new();
        if blocks.len() >= BLOCKS_FOR_INTERVAL {
            for _ in 0..DRAWS {
                let drawn = (0..blocks.len()).map(|_| &blocks[random.usize(0..blocks.len())]);
                draws.push(figures(drawn)?);
            }
        }
        Ok(Self {
            point: figures(blocks.iter())?,
            draws,
        })
    }
}

/// A value with its 95 % interval over blocks; no interval below ten blocks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Estimate {
    pub(crate) value: f64,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

impl Estimate {
    /// A function of several arms, told with its interval; none where it has no value.
    pub(crate) fn of<const N: usize>(
        arms: [&Arm; N],
        f: impl Fn([Figures; N]) -> Option<f64>,
    ) -> Option<Self> {
        let value = f(arms.map(|arm| arm.point))?;
        let count = arms.iter().map(|arm| arm.draws.len()).min().unwrap_or(0);
        let drawn: Option<Vec<f64>> = (0..count).map(|n| f(arms.map(|a| a.draws[n]))).collect();
        let mut drawn = drawn.unwrap_or_default();
        drawn.sort_by(f64::total_cmp);
        let at = |q: f64| drawn.get((q * drawn.len() as f64) as usize).copied();
        Some(Self {
            value,
            low: at(0.025),
            high: at(0.975),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(delay: u64, cpu: u64) -> Block {
        let mut delays = Delays::new().unwrap();
        for n in 0..1000 {
            delays.add(delay + n);
        }
        Block {
            delays,
            joined: 0,
            cpu: Some(cpu),
            memory: None,
            others: Others::default(),
            lag: (None, 0),
            turn: (None, 0),
        }
    }

    #[test]
    fn no_quantile_without_samples_beyond_it() {
        let mut delays = Delays::new().unwrap();
        (0..999).for_each(|n| delays.add(n));
        assert_eq!(delays.quantile(0.99), None);
        delays.add(5);
        assert!(delays.quantile(0.99).is_some());
    }

    #[test]
    fn difference_and_interval_hold_the_truth() {
        let direct: Vec<_> = (0..12).map(|n| block(10_000 + n * 100, 0)).collect();
        let proxy: Vec<_> = (0..12)
            .map(|n| block(40_000 + n * 100, 5_000_000))
            .collect();
        let arms = [&Arm::of(&direct).unwrap(), &Arm::of(&proxy).unwrap()];
        let added = Estimate::of(arms, |[d, p]| Some(p.p50? - d.p50?)).unwrap();
        assert!((added.value - 30_000.0).abs() < 100.0, "{added:?}");
        // Paired rounds cancel what drifts in both arms.
        assert!(added.low.unwrap() > 29_900.0 && added.high.unwrap() < 30_100.0);
        let cpu = Estimate::of([arms[1]], |[p]| p.cpu).unwrap();
        assert!((cpu.value - 5_000.0).abs() < 1.0, "{cpu:?}");
    }

    #[test]
    fn nine_blocks_have_no_interval() {
        let blocks: Vec<_> = (0..9).map(|_| block(1_000, 1)).collect();
        let estimate = Estimate::of([&Arm::of(&blocks).unwrap()], |[f]| f.p50).unwrap();
        assert_eq!((estimate.low, estimate.high), (None, None));
    }
}
