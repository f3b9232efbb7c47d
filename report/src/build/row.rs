//! One row of statistics over blocks.

use crate::bootstrap::over_blocks;
use crate::model::LegRow;
use crate::pool::Pool;
use crate::quantile::{Rules, reading, rests_on_few};
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
    fn weighted(&self, pick: Pick) -> Vec<(f64, f64)> {
        let weight = |at: usize| {
            let weights = self.weights.as_ref();
            weights.and_then(|w| w.get(at).copied()).unwrap_or(1.0)
        };
        let values = pick(self).iter().enumerate();
        values.map(|(at, value)| (*value, weight(at))).collect()
    }
}

/// The values of a block, or their lower or upper bounds.
type Pick = fn(&Block) -> &[f64];

/// What `pick` takes of `blocks`, and their lost calls, which rank above all of it.
fn pool(blocks: &[&Block], pick: Pick) -> Pool {
    let single = blocks.iter().all(|b| b.weights.is_none());
    let blocks = blocks.iter();
    match single {
        true => Pool::new(blocks.map(|b| (pick(b).to_vec(), b.censored)).collect()),
        false => Pool::weighted(blocks.map(|b| (b.weighted(pick), b.censored)).collect()),
    }
}

/// Their values, for what compares two arms.
pub(super) fn values(blocks: &[Block]) -> Pool {
    pool(&blocks.iter().collect::<Vec<_>>(), |b| &b.values)
}

/// Calls that `blocks` hold, and how many of them were lost.
pub(super) fn counted(blocks: &[&Block]) -> (usize, usize) {
    let lost: usize = blocks.iter().map(|b| b.censored).sum();
    let seen: usize = blocks.iter().map(|b| b.calls).sum();
    (seen + lost, lost)
}

/// The mean of all values by their weights.
fn mean(blocks: &[&Block]) -> Option<f64> {
    let all = blocks.iter().flat_map(|b| b.weighted(|b| &b.values));
    let (sum, weight) = all.fold((0.0, 0.0), |(sum, weight), (v, w)| {
        (sum + v * w, weight + w)
    });
    (weight > 0.0).then(|| sum / weight)
}

/// The row of a leg over its blocks.
pub(super) fn row(leg: &'static str, blocks: &[Block], rules: &Rules) -> LegRow {
    let seen: Vec<&Block> = blocks
        .iter()
        .filter(|b| !b.values.is_empty() || b.censored > 0)
        .collect();
    let all = pool(&seen, |b| &b.values);
    let once = all.once();
    // Calls lie beyond a quantile, however many values each has: values of one call are alike.
    let (calls, lost) = counted(&seen);
    let read = |q: f64| match rests_on_few(calls, lost, q, rules) {
        Ok(few) => reading(all.at(q, &once), all.largest(), few),
        Err(refused) => refused,
    };
    let p50 = read(0.5);
    let bound = |pick: Pick| pool(&seen, pick).at(0.5, &once);
    // On a lost call: more than all that was seen.
    let median = |times: &[u32]| Some(all.at(0.5, times).unwrap_or(f64::INFINITY));
    // Of no median there are neither bounds nor an interval.
    let shown = p50.value().is_some();
    LegRow {
        leg,
        calls: calls - lost,
        samples: all.len(),
        p95: read(0.95),
        p99: read(0.99),
        mean: mean(&seen),
        bounds: bound(|b| &b.lows)
            .zip(bound(|b| &b.highs))
            .filter(|_| shown),
        interval: match shown {
            true => over_blocks(seen.len(), median),
            false => None,
        },
        p50,
        floor: None,
        negative: all.negative(),
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
