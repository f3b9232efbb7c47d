//! One row of statistics over blocks.

use crate::bootstrap::interval;
use crate::model::LegRow;
use crate::quantile::{Rules, ranked, reading, rests_on_few, weighted};
use record::span::Span;

/// The values of one leg in one block, call by call.
#[derive(Default)]
pub(super) struct Block {
    values: Vec<f64>,
    lows: Vec<f64>,
    highs: Vec<f64>,
    /// Weights, where calls hold several values each.
    weights: Option<Vec<f64>>,
    calls: usize,
    censored: usize,
}

impl Block {
    /// A value of one call.
    pub(super) fn value(&mut self, value: f64) {
        self.values.push(value);
        self.calls += 1;
    }

    /// A call whose end was not seen.
    pub(super) fn censor(&mut self) {
        self.censor_all(1);
    }

    /// So many of them.
    pub(super) fn censor_all(&mut self, calls: usize) {
        self.censored += calls;
    }

    /// A leg of one call.
    pub(super) fn span(&mut self, span: Span) {
        self.value(span.value as f64);
        self.lows.push(span.low as f64);
        self.highs.push(span.high as f64);
    }

    /// The token legs of one call: together they weigh as much as any other call's.
    pub(super) fn spans(&mut self, spans: &[Span]) {
        if spans.is_empty() {
            return;
        }
        let weights = self.weights.get_or_insert_default();
        for span in spans {
            self.values.push(span.value as f64);
            self.lows.push(span.low as f64);
            self.highs.push(span.high as f64);
            weights.push(1.0 / spans.len() as f64);
        }
        self.calls += 1;
    }

    /// What `pick` takes, each with its weight.
    fn weighted(&self, pick: Pick) -> impl Iterator<Item = (f64, f64)> + '_ {
        let weight = |at: usize| {
            self.weights
                .as_ref()
                .and_then(|w| w.get(at).copied())
                .unwrap_or(1.0)
        };
        pick(self)
            .iter()
            .enumerate()
            .map(move |(at, v)| (*v, weight(at)))
    }
}

/// The values of a block, or their lower or upper bounds.
type Pick = fn(&Block) -> &[f64];

/// What `pick` takes of `blocks`, in rising order, and their lost calls, which rank above all of it.
struct Ranked {
    sorted: Vec<(f64, f64)>,
    lost: usize,
    /// One value a call.
    single: bool,
}

impl Ranked {
    fn of(blocks: &[&Block], pick: Pick) -> Self {
        let mut sorted: Vec<(f64, f64)> = blocks.iter().flat_map(|b| b.weighted(pick)).collect();
        sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        Self {
            sorted,
            lost: blocks.iter().map(|b| b.censored).sum(),
            single: blocks.iter().all(|b| b.weights.is_none()),
        }
    }

    fn values(&self) -> Vec<f64> {
        self.sorted.iter().map(|(v, _)| *v).collect()
    }

    /// The quantile `q`; `None` where it falls on a lost call, or nothing is there.
    fn at(&self, q: f64) -> Option<f64> {
        if self.single {
            return ranked(&self.values(), self.sorted.len() + self.lost, q);
        }
        weighted(&self.sorted, self.lost as f64, q)
    }

    fn mean(&self) -> Option<f64> {
        let weight: f64 = self.sorted.iter().map(|(_, w)| w).sum();
        (weight > 0.0).then(|| self.sorted.iter().map(|(v, w)| v * w).sum::<f64>() / weight)
    }
}

/// The row of a leg over its blocks.
pub(super) fn row(leg: &'static str, blocks: &[Block], rules: &Rules) -> LegRow {
    let seen: Vec<&Block> = blocks
        .iter()
        .filter(|b| !b.values.is_empty() || b.censored > 0)
        .collect();
    let all = Ranked::of(&seen, |b| &b.values);
    let calls: usize = seen.iter().map(|b| b.calls).sum();
    // Calls lie beyond a quantile, however many values each has: values of one call are alike.
    let read = |q: f64| match rests_on_few(calls + all.lost, all.lost, q, rules) {
        Ok(few) => reading(all.at(q), all.sorted.last().map(|(v, _)| v), few),
        Err(refused) => refused,
    };
    let p50 = read(0.5);
    let bound = |pick: Pick| Ranked::of(&seen, pick).at(0.5);
    let over_blocks = |sample: &[&&Block]| {
        let sample: Vec<&Block> = sample.iter().map(|b| **b).collect();
        let median = Ranked::of(&sample, |b| &b.values).at(0.5);
        // On a lost call: more than all that was seen.
        Some(median.unwrap_or(f64::INFINITY))
    };
    // Of no median there are neither bounds nor an interval.
    let shown = p50.value().is_some();
    LegRow {
        leg,
        calls,
        samples: all.sorted.len(),
        p95: read(0.95),
        p99: read(0.99),
        mean: all.mean(),
        bounds: bound(|b| &b.lows)
            .zip(bound(|b| &b.highs))
            .filter(|_| shown),
        interval: interval(&seen, over_blocks).filter(|_| shown),
        p50,
        floor: None,
        negative: all.sorted.iter().filter(|(v, _)| *v < 0.0).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Reading;

    #[test]
    fn a_long_call_weighs_no_more_than_a_short_one() {
        let span = |value| Span {
            value,
            low: value - 1,
            high: value + 1,
        };
        let mut block = Block::default();
        block.spans(&vec![span(10); 1_000]);
        block.spans(&[span(90)]);
        block.spans(&[span(90)]);
        let row = row("token", &[block], &Rules::default());
        assert!(
            matches!(row.p50, Reading::Value { value, .. } if value == 90.0),
            "{:?}",
            row.p50
        );
        assert_eq!(row.bounds, Some((89.0, 91.0)), "by the same weights");
        assert_eq!((row.calls, row.samples, row.interval), (3, 1_002, None));
        assert!((row.mean.unwrap() - (10.0 + 90.0 + 90.0) / 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_lost_call_is_no_quick_one() {
        let span = |value| Span {
            value,
            low: value,
            high: value,
        };
        let mut block = Block::default();
        for value in 0..200 {
            block.span(span(value));
        }
        block.censor();
        let tail = row("request", &[block], &Rules::default()).p95;
        assert!(
            matches!(tail, Reading::Value { value, .. } if value > 189.9),
            "{tail:?}"
        );
        let mut tokens = Block::default();
        tokens.spans(&vec![span(10); 1_000]);
        tokens.censor();
        assert!(
            matches!(
                row("token", &[tokens], &Rules::default()).p50,
                Reading::Refused(_)
            ),
            "half of the calls are lost"
        );
    }

    #[test]
    fn the_interval_of_a_median_is_of_the_same_statistic_as_the_median() {
        let lax = Rules {
            loss: 1.0,
            ..Rules::default()
        };
        // In each block 101 values, and 60 calls whose end was not seen: the median is the 81st.
        let block = || {
            let mut block = Block::default();
            for value in 1..=101 {
                block.value(f64::from(value));
            }
            block.censor_all(60);
            block
        };
        let mut blocks = vec![block(), block(), block()];
        let found = row("E2E", &blocks, &lax);
        assert_eq!(found.p50.value(), Some(81.0));
        assert_eq!(found.interval, Some((81.0, 81.0)));
        // One block of which nothing came back: in some resamples the median lies among the lost.
        let mut gone = Block::default();
        gone.censor_all(60);
        blocks.push(gone);
        let found = row("E2E", &blocks, &lax);
        let (low, high) = found.interval.unwrap();
        let point = found.p50.value().unwrap();
        assert!(low <= point && high.is_infinite(), "{low} {point} {high}");
    }

    #[test]
    fn the_interval_of_token_legs_counts_lost_calls_too() {
        let span = |value| Span {
            value,
            low: value,
            high: value,
        };
        let block = || {
            let mut block = Block::default();
            for value in 1..=40 {
                block.spans(&[span(value), span(value)]);
            }
            block.censor();
            block
        };
        let found = row("token", &[block(), block()], &Rules::default());
        assert_eq!(found.p50.value(), Some(21.0));
        assert_eq!(found.interval, Some((21.0, 21.0)));
    }

    #[test]
    fn no_quantile_means_neither_bounds_nor_interval() {
        let block = || {
            let mut block = Block::default();
            block.span(Span {
                value: 1,
                low: 0,
                high: 2,
            });
            block
        };
        let found = row("request", &[block(), block()], &Rules::default());
        assert!(matches!(found.p50, Reading::Refused(_)));
        assert_eq!((found.bounds, found.interval), (None, None));
    }

    #[test]
    fn tokens_of_few_calls_carry_no_tail() {
        let span = |value| Span {
            value,
            low: value,
            high: value,
        };
        let of = |calls: i64| {
            let mut block = Block::default();
            (0..calls).for_each(|n| block.spans(&vec![span(n); 1_000]));
            row("token", &[block], &Rules::default())
        };
        let few = of(20);
        assert!(
            matches!(few.p50, Reading::Value { few: true, .. }),
            "{few:?}"
        );
        assert!(matches!(few.p95, Reading::Refused(_)), "{few:?}");
        assert!(matches!(of(200).p95, Reading::Value { few: true, .. }));
    }

    #[test]
    fn bounds_and_negatives_are_shown() {
        let mut block = Block::default();
        for value in [-5, 10, 20] {
            block.span(Span {
                value,
                low: value - 3,
                high: value + 7,
            });
        }
        let row = row("request", &[block], &Rules::default());
        assert_eq!((row.bounds, row.negative), (Some((7.0, 17.0)), 1));
    }
}
