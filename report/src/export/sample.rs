//! The statistics that the forms have in common.

use crate::model::Reading;
use crate::quantile::{Rules, plain, quantile, sort, too_lossy};
use hdrhistogram::Histogram;

/// The values of one figure, and how many calls have none because they did not end well.
pub(super) struct Sample {
    sorted: Vec<f64>,
    lost: usize,
}

impl Sample {
    pub(super) fn of(values: impl Iterator<Item = f64>, lost: usize) -> Self {
        let mut sorted: Vec<f64> = values.collect();
        sort(&mut sorted);
        Self { sorted, lost }
    }

    pub(super) fn mean(&self) -> Option<f64> {
        let count = self.sorted.len() as f64;
        (count > 0.0).then(|| self.sorted.iter().sum::<f64>() / count)
    }

    /// Standard deviation of the values themselves (divided by n), as NumPy's default has it.
    pub(super) fn deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        let squares: f64 = self.sorted.iter().map(|v| (v - mean).powi(2)).sum();
        Some((squares / self.sorted.len() as f64).sqrt())
    }

    pub(super) fn smallest(&self) -> Option<f64> {
        self.sorted.first().copied()
    }

    pub(super) fn largest(&self) -> Option<f64> {
        self.sorted.last().copied()
    }

    pub(super) fn sum(&self) -> Option<f64> {
        (!self.sorted.is_empty()).then(|| self.sorted.iter().sum())
    }

    /// The quantile of the values alone, interpolated as NumPy does; `None` where our rules print none.
    pub(super) fn at(&self, q: f64, rules: &Rules) -> Option<f64> {
        let printed = |lost, q| {
            matches!(
                quantile(&self.sorted, lost, q, rules),
                Reading::Value { .. }
            )
        };
        // A low quantile rests on the values below it, as a high one does on those above.
        let supported = printed(self.lost, q) && (q >= 0.5 || printed(0, 1.0 - q));
        supported.then(|| plain(&self.sorted, q)).flatten()
    }
}

/// The quantile of a histogram, `lost` of whose `calls` are not whole in it; by the same rules.
pub(super) fn at(
    gaps: &Histogram<u64>,
    (lost, calls): (usize, usize),
    q: f64,
    rules: &Rules,
) -> Option<f64> {
    let tail = (1.0 - q.max(1.0 - q)) * gaps.len() as f64;
    let least = if q == 0.5 { 1.5 } else { rules.beyond };
    let printed = tail + 1e-6 >= least && too_lossy(lost, calls.max(1), q, rules).is_none();
    printed.then(|| gaps.value_at_quantile(q) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_those_of_numpy_and_a_tail_needs_samples() {
        let sample = Sample::of([4.0, 1.0, 3.0, 2.0].into_iter(), 0);
        let rules = Rules::default();
        assert_eq!((sample.mean(), sample.sum()), (Some(2.5), Some(10.0)));
        assert_eq!(sample.at(0.5, &rules), Some(2.5));
        assert!((sample.deviation().unwrap() - 1.25_f64.sqrt()).abs() < 1e-12);
        assert_eq!(
            (sample.at(0.99, &rules), sample.at(0.01, &rules)),
            (None, None)
        );
        let many = || (0..10_001).map(f64::from);
        assert_eq!(Sample::of(many(), 0).at(0.99, &rules), Some(9_900.0));
        assert_eq!(
            Sample::of(many(), 500).at(0.99, &rules),
            None,
            "too many lost"
        );
        let none = Sample::of(std::iter::empty(), 3);
        assert_eq!((none.mean(), none.at(0.5, &rules)), (None, None));
    }
}
