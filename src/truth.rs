//! What a gateway stand-in says it did, beside what the taps measured: medians, leg by leg.

use record::leg::Legs;
use record::pairing::Call;
use record::span::Span;
use sim::truth::{ExchangeTruth, Mark, Role};
use std::collections::HashMap;

/// One leg of one chain. Nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The leg.
    pub leg: &'static str,
    /// Calls (for tokens: positions) compared.
    pub samples: usize,
    /// Median of what the stand-in took by its own stamps: read returned → write began.
    pub truth: f64,
    /// Median of the leg of the same calls.
    pub measured: f64,
    /// Median of measured − true, call by call: two hops and a wake-up.
    pub residual: f64,
}

/// Compares the legs of `calls` with the truth of their gateway.
#[must_use]
pub fn compare(calls: &[Call], truths: &[ExchangeTruth]) -> Vec<Compared> {
    let by_call: HashMap<&str, &ExchangeTruth> = truths
        .iter()
        .filter_map(|t| Some((t.call.as_deref()?, t)))
        .collect();
    let mut pairs: HashMap<&'static str, Vec<(i64, i64)>> = HashMap::new();
    for call in calls {
        let truth = call
            .outer
            .keys
            .call
            .as_deref()
            .and_then(|id| by_call.get(id));
        if let (Some(truth), Some(legs)) = (truth, call.legs()) {
            for (leg, found, measured) in legs_of(truth, &legs) {
                if let (Some(found), Some(measured)) = (found, measured) {
                    pairs.entry(leg).or_default().push((found, measured));
                }
            }
        }
    }
    [
        "request",
        "first token",
        "last token",
        "finish",
        "terminal",
        "end",
    ]
    .into_iter()
    .filter_map(|leg| {
        let pairs = pairs.get(leg)?;
        let by = |pick: fn(&(i64, i64)) -> i64| median(pairs.iter().map(pick).collect());
        Some(Compared {
            leg,
            samples: pairs.len(),
            truth: by(|p| p.0)?,
            measured: by(|p| p.1)?,
            residual: by(|p| p.1 - p.0)?,
        })
    })
    .collect()
}

type LegPair = (&'static str, Option<i64>, Option<i64>);

fn minus(a: u64, b: u64) -> i64 {
    a.cast_signed() - b.cast_signed()
}

fn of_token(token: &sim::truth::TokenTruth) -> Option<i64> {
    Some(minus(token.write_begin, token.read_at?))
}

/// The legs of one value a call: what the stand-in took, and what was measured.
#[must_use]
pub fn legs_of(truth: &ExchangeTruth, legs: &Legs) -> [LegPair; 6] {
    let request = truth
        .mark(Mark::RequestBody)
        .and_then(|m| m.read_at)
        .and_then(|read| {
            let sent = match truth.role {
                Role::Gateway => truth.attempts.first()?.request_write_begin,
                _ => truth.mark(Mark::RequestBody)?.write_begin,
            };
            Some(minus(sent?, read))
        });
    let mark = |which| {
        truth
            .mark(which)
            .and_then(|m| Some(minus(m.write_begin?, m.read_at?)))
    };
    let value = |span: Option<Span>| span.map(|s| s.value);
    [
        ("request", request, value(legs.request)),
        (
            "first token",
            truth.first_token().and_then(of_token),
            value(legs.first_token),
        ),
        (
            "last token",
            truth.tokens.last().and_then(of_token),
            value(legs.last_token),
        ),
        ("finish", mark(Mark::Finish), value(legs.finish)),
        ("terminal", mark(Mark::Done), value(legs.terminal)),
        ("end", mark(Mark::End), value(legs.end)),
    ]
}

/// The later text positions, one by one; empty where some position was left out of the legs, so
/// that the two lists would not be of the same positions.
#[must_use]
pub fn tokens_of(truth: &ExchangeTruth, legs: &Legs) -> Vec<(i64, i64)> {
    let delays = &legs.tokens.delays;
    if legs.tokens.pressured > 0
        || legs.tokens.unmatched > 0
        || truth.tokens.len() != delays.len() + 1
    {
        return Vec::new();
    }
    let later = truth.tokens.iter().skip(1).zip(delays);
    later
        .filter_map(|(t, d)| Some((of_token(t)?, d.value)))
        .collect()
}

/// The middle one; `None` of none.
fn median(mut values: Vec<i64>) -> Option<f64> {
    values.sort_unstable();
    let middle = values.len() / 2;
    let upper = *values.get(middle)? as f64;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some((upper + *values.get(middle.checked_sub(1)?)? as f64) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_none_is_none() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3, 1, 2]), Some(2.0));
        assert_eq!(median(vec![1, 2, 3, 10]), Some(2.5));
    }
}
