//! One row of statistics over blocks.

use crate::bootstrap::interval;
use crate::model::{LegRow, Reading};
use crate::quantile::{Rules, plain, quantile, sort, too_lossy, weighted};
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
        self.censored += 1;
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

    fn weighted(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let weight = |at: usize| {
            self.weights
                .as_ref()
                .and_then(|w| w.get(at).copied())
                .unwrap_or(1.0)
        };
        self.values
            .iter()
            .enumerate()
            .map(move |(at, v)| (*v, weight(at)))
    }
}

fn median(blocks: &[&Block]) -> Option<f64> {
    let mut all: Vec<(f64, f64)> = blocks.iter().flat_map(|b| b.weighted()).collect();
    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    if blocks.iter().all(|b| b.weights.is_none()) {
        let values: Vec<f64> = all.into_iter().map(|(v, _)| v).collect();
        return plain(&values, 0.5);
    }
    weighted(&all, 0.0, 0.5)
}

/// The row of a leg over its blocks.
pub(super) fn row(leg: &'static str, blocks: &[Block], rules: &Rules) -> LegRow {
    let refs: Vec<&Block> = blocks.iter().collect();
    let mut all: Vec<(f64, f64)> = refs.iter().flat_map(|b| b.weighted()).collect();
    all.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let values: Vec<f64> = all.iter().map(|(v, _)| *v).collect();
    let censored = blocks.iter().map(|b| b.censored).sum();
    let per_call = blocks.iter().all(|b| b.weights.is_none());
    let calls: usize = blocks.iter().map(|b| b.calls).sum();
    // Where calls hold many values, values lie beyond a quantile and calls are lost.
    let read = |q: f64| {
        if per_call {
            return quantile(&values, censored, q, rules);
        }
        if let Some(refused) = too_lossy(censored, calls + censored, q, rules) {
            return refused;
        }
        match quantile(&values, 0, q, rules) {
            Reading::Value { few, .. } => weighted(&all, censored as f64, q).map_or_else(
                || {
                    values
                        .last()
                        .map_or(Reading::NotMeasured, |v| Reading::AtLeast(*v))
                },
                |value| Reading::Value { value, few },
            ),
            other => other,
        }
    };
    let weight: f64 = all.iter().map(|(_, w)| w).sum();
    let bound = |pick: fn(&Block) -> &Vec<f64>| {
        let mut bounds: Vec<f64> = blocks
            .iter()
            .flat_map(|b| pick(b).iter().copied())
            .collect();
        sort(&mut bounds);
        plain(&bounds, 0.5)
    };
    let filled: Vec<&Block> = blocks.iter().filter(|b| !b.values.is_empty()).collect();
    LegRow {
        leg,
        calls,
        samples: values.len(),
        p50: read(0.5),
        p95: read(0.95),
        p99: read(0.99),
        mean: (weight > 0.0).then(|| all.iter().map(|(v, w)| v * w).sum::<f64>() / weight),
        bounds: bound(|b| &b.lows).zip(bound(|b| &b.highs)),
        interval: interval(&filled, |sample| {
            median(&sample.iter().map(|b| **b).collect::<Vec<_>>())
        }),
        floor: None,
        negative: values.iter().filter(|v| **v < 0.0).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
