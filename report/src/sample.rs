//! One call of each cell, drawn in full: its text as it passed the taps.

use crate::model::{Passing, SampledCall};
use record::client::{CallOutcome, ClientCall};
use record::exchange::Exchange;
use record::pairing::Call;
use std::collections::{HashMap, HashSet};

/// Points kept of a hop: a drawing shows no more.
const POINTS: usize = 200;

/// Of each cell the complete call, warm-up apart, whose TTFT has half of the others below it.
pub(crate) fn middle_calls(calls: &[ClientCall]) -> HashSet<(u32, u64)> {
    let mut by_cell: HashMap<u32, Vec<(u64, u64)>> = HashMap::new();
    let complete = |call: &&ClientCall| call.outcome == CallOutcome::Complete && !call.warmup;
    for call in calls.iter().filter(complete) {
        if let Some(ttft) = call.ttft() {
            let own = by_cell.entry(call.cell).or_default();
            own.push((ttft, call.seq));
        }
    }
    let middle = by_cell.into_iter().filter_map(|(cell, mut all)| {
        let at = all.len() / 2;
        if at >= all.len() {
            return None;
        }
        let (_, (_, seq), _) = all.select_nth_unstable(at);
        Some((cell, *seq))
    });
    middle.collect()
}

/// The text of `call` at each tap that saw it.
pub(crate) fn sampled(call: &Call) -> Option<SampledCall> {
    let from = call.outer.marks.request?.arrival.at;
    let passings = |exchange: &Exchange| {
        let line = &exchange.stream.timeline;
        let mut bytes = HashMap::new();
        let every = line.texts.len().div_ceil(POINTS).max(1);
        let mut found = Vec::new();
        for (at, mark) in line.texts.iter().enumerate() {
            bytes.insert(mark.track, mark.end);
            let last = at + 1 == line.texts.len();
            if let Some(passage) = line.passage(mark)
                && (at % every == 0 || last)
            {
                found.push(Passing {
                    since: passage.arrival.at as f64 - from as f64,
                    bytes: bytes.values().sum(),
                });
            }
        }
        found
    };
    let outer = passings(&call.outer);
    (!outer.is_empty()).then(|| SampledCall {
        key: call.outer.keys.client.clone().unwrap_or_default(),
        outer,
        inner: call.served_by().map(passings).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_call_of_a_cell_has_half_of_the_others_below_it() {
        let call = |cell, seq, ttft: u64, outcome| ClientCall {
            sent: Some(1_000),
            first_text: Some(1_000 + ttft),
            outcome,
            ..ClientCall::unanswered(cell, seq, 0, 0)
        };
        let mut calls: Vec<ClientCall> = [50, 10, 40, 20, 30]
            .into_iter()
            .enumerate()
            .map(|(seq, ttft)| call(1, seq as u64, ttft, CallOutcome::Complete))
            .collect();
        calls.push(call(2, 9, 5, CallOutcome::CutOff));
        assert_eq!(middle_calls(&calls), HashSet::from([(1, 4)]));
    }
}
