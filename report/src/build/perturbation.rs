//! What inserting the taps did to the work: tapped − untapped, block by block, against what the
//! taps account for.

use super::alike;
use crate::bootstrap::interval;
use crate::gather::Gathered;
use crate::model::{Arm, Estimate, Perturbation};
use crate::quantile::{plain, sort};
use record::client::{CallOutcome, ClientCall};
use record::manifest::Cell;

/// The suffix by which a control is named after its chain.
const UNTAPPED: &str = "-untapped";
/// Mean token counts that differ by more are not the same work.
const SAME_WORK: f64 = 0.01;

/// Calls of one block that were answered in full: tapped, untapped.
type Pair<'a> = (Vec<&'a ClientCall>, Vec<&'a ClientCall>);

pub(super) fn all(run: &Gathered, groups: &[Vec<&Cell>], arms: &[Arm]) -> Vec<Perturbation> {
    let mut found = Vec::new();
    for (cells, arm) in groups.iter().zip(arms).filter(|(_, a)| a.kind == "gateway") {
        let control = format!("{}{UNTAPPED}", arm.chain);
        let twin = groups
            .iter()
            .zip(arms)
            .find(|(_, a)| a.chain == control && alike(&a.drive, &arm.drive));
        if let Some((untapped, _)) = twin {
            found.push(one(run, arm, cells, untapped));
        }
    }
    found
}

fn one(run: &Gathered, arm: &Arm, cells: &[&Cell], untapped: &[&Cell]) -> Perturbation {
    let mut result = Perturbation {
        chain: arm.chain.clone(),
        simulated: arm.simulated,
        run: arm.run.clone(),
        label: arm.label.clone(),
        difference: None,
        expected: None,
        excess: None,
        refused: None,
    };
    let pairs: Vec<Pair<'_>> = cells
        .iter()
        .filter_map(|cell| {
            let twin = untapped.iter().find(|c| c.block == cell.block)?;
            Some((complete(run, cell), complete(run, twin)))
        })
        .filter(|(a, b)| !a.is_empty() && !b.is_empty())
        .collect();
    let (tapped, bare): (Vec<_>, Vec<_>) = pairs.iter().cloned().unzip();
    result.refused = match pairs.is_empty() {
        true => Some("no block has complete calls of both arms".to_owned()),
        false => other_work(&tapped.concat(), &bare.concat()),
    };
    if result.refused.is_some() {
        return result;
    }
    let difference = |sample: &[&Pair<'_>]| {
        let e2e = |call: &&ClientCall| Some(call.e2e()? as f64);
        let tapped = sample.iter().flat_map(|pair| &pair.0);
        let bare = sample.iter().flat_map(|pair| &pair.1);
        Some(median(tapped.filter_map(e2e))? - median(bare.filter_map(e2e))?)
    };
    let point = difference(&pairs.iter().collect::<Vec<_>>());
    result.difference = point.map(|value| Estimate {
        value,
        interval: interval(&pairs, difference),
    });
    result.expected = expected(run, cells);
    result.excess = point.zip(result.expected).map(|(d, e)| d - e);
    result
}

/// The calls of a cell that were answered in full.
fn complete<'a>(run: &'a Gathered, cell: &Cell) -> Vec<&'a ClientCall> {
    let calls = run.calls_of(cell.id).iter().map(|j| &j.client);
    calls
        .filter(|c| c.outcome == CallOutcome::Complete)
        .collect()
}

/// Why the two arms may not be compared: they did different work by the servers' counts, or nobody knows.
fn other_work(tapped: &[&ClientCall], untapped: &[&ClientCall]) -> Option<String> {
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

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    sort(&mut values);
    plain(&values, 0.5)
}

/// Both taps' own delays, and the floor of the request and of the last text.
fn expected(run: &Gathered, cells: &[&Cell]) -> Option<f64> {
    let calls = cells.iter().flat_map(|c| run.calls_of(c.id));
    let own = calls.filter_map(|j| j.taps.as_ref()?.own_delay);
    let floors = cells
        .iter()
        .filter_map(|c| c.floor_cell)
        .filter_map(|id| run.cell(id));
    let floor = floors
        .flat_map(|c| run.calls_of(c.id))
        .filter_map(|j| Some(j.taps.as_ref()?.legs.as_ref()?.added_text?.value as f64));
    Some(median(own)? + median(floor)?)
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
