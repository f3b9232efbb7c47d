//! Whether two arms did the same work: only then may their times be compared.

use crate::gather::Gathered;
use record::client::{CallOutcome, ClientCall};
use record::manifest::Cell;

/// Mean token counts that differ by more are not the same work.
const SAME_WORK: f64 = 0.01;

/// The calls of a cell that were answered in full.
pub(super) fn complete<'a>(run: &'a Gathered, cell: &Cell) -> Vec<&'a ClientCall> {
    let calls = run.calls_of(cell.id).iter().map(|j| &j.client);
    calls
        .filter(|c| c.outcome == CallOutcome::Complete)
        .collect()
}

/// Why the two arms may not be compared: they did different work by the servers' counts, or nobody knows.
pub(super) fn other_work(tapped: &[&ClientCall], untapped: &[&ClientCall]) -> Option<String> {
    type Count = (&'static str, fn(&ClientCall) -> Option<u32>);
    let counts: [Count; 2] = [
        ("prompt", |c| c.usage_prompt),
        ("completion", |c| c.usage_completion),
    ];
    counts.into_iter().find_map(|(what, pick)| {
        let silent = |calls: &[&ClientCall]| calls.iter().filter(|c| pick(c).is_none()).count();
        let lacking = silent(tapped) + silent(untapped);
        if lacking > 0 {
            return Some(format!(
                "not known whether the arms did the same work: {lacking} of {} complete calls state no {what} tokens",
                tapped.len() + untapped.len()
            ));
        }
        let mean = |calls: &[&ClientCall]| {
            let all = calls.iter().filter_map(|c| pick(c));
            all.map(f64::from).sum::<f64>() / calls.len() as f64
        };
        let (a, b) = (mean(tapped), mean(untapped));
        ((a - b).abs() > SAME_WORK * a.max(b)).then(|| {
            format!("the arms did different work: {a:.1} and {b:.1} {what} tokens a call")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(count: u64, prompt: Option<u32>, completion: Option<u32>) -> Vec<ClientCall> {
        let one = |seq| ClientCall {
            usage_prompt: prompt,
            usage_completion: completion,
            outcome: CallOutcome::Complete,
            ..ClientCall::unanswered(0, seq, 0, 0)
        };
        (0..count).map(one).collect()
    }

    fn refused(tapped: &[ClientCall], untapped: &[ClientCall]) -> String {
        let (tapped, untapped): (Vec<_>, Vec<_>) =
            (tapped.iter().collect(), untapped.iter().collect());
        other_work(&tapped, &untapped).unwrap_or_default()
    }

    #[test]
    fn arms_are_compared_only_where_both_counts_agree_and_are_known() {
        let usual = calls(10, Some(100), Some(16));
        assert_eq!(refused(&usual, &usual), "");
        assert_eq!(
            refused(&usual, &calls(10, Some(104), Some(16))),
            "the arms did different work: 100.0 and 104.0 prompt tokens a call"
        );
        // The median call is as long in both; two of ten are not.
        let mut shorter = usual.clone();
        shorter[..2].clone_from_slice(&calls(2, Some(100), Some(4)));
        let why = refused(&usual, &shorter);
        assert!(
            why.ends_with("16.0 and 13.6 completion tokens a call"),
            "{why}"
        );
        let why = refused(&usual, &calls(10, None, Some(16)));
        assert!(
            why.contains("10 of 20 complete calls state no prompt tokens"),
            "{why}"
        );
        let mut one = usual.clone();
        one[3].usage_completion = None;
        assert!(refused(&one, &usual).contains("1 of 20"));
    }
}
