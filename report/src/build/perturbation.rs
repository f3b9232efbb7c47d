//! What inserting the taps did to the work: tapped − untapped, block by block, against what the
//! taps account for.

use crate::bootstrap::interval;
use crate::gather::{Gathered, Joined};
use crate::model::{Arm, Estimate, Perturbation};
use crate::quantile::{plain, sort};
use record::client::CallOutcome;
use record::manifest::Cell;

/// The suffix by which a control is named after its chain.
const UNTAPPED: &str = "-untapped";
/// Prompt lengths that differ by more are not the same work.
const SAME_WORK: f64 = 0.01;

/// E2E of one block: tapped, untapped.
type Pair = (Vec<f64>, Vec<f64>);

pub(super) fn all(run: &Gathered, groups: &[Vec<&Cell>], arms: &[Arm]) -> Vec<Perturbation> {
    let mut found = Vec::new();
    for (cells, arm) in groups.iter().zip(arms).filter(|(_, a)| a.kind == "gateway") {
        let control = format!("{}{UNTAPPED}", arm.chain);
        let twin = groups
            .iter()
            .zip(arms)
            .find(|(_, a)| a.chain == control && a.label == arm.label);
        if let Some((untapped, other)) = twin {
            found.push(one(run, (cells, arm), (untapped, other)));
        }
    }
    found
}

fn one(
    run: &Gathered,
    (cells, arm): (&[&Cell], &Arm),
    (untapped, other): (&[&Cell], &Arm),
) -> Perturbation {
    let mut result = Perturbation {
        chain: arm.chain.clone(),
        run: arm.run.clone(),
        label: arm.label.clone(),
        difference: None,
        expected: None,
        excess: None,
        refused: None,
    };
    if let (Some(a), Some(b)) = (arm.prompt_tokens, other.prompt_tokens)
        && (a - b).abs() > SAME_WORK * a.max(b)
    {
        result.refused = Some(format!(
            "the arms did different work: {a:.0} and {b:.0} prompt tokens"
        ));
        return result;
    }
    let pairs: Vec<Pair> = cells
        .iter()
        .filter_map(|cell| {
            let twin = untapped.iter().find(|c| c.block == cell.block)?;
            Some((e2e(run.calls_of(cell.id)), e2e(run.calls_of(twin.id))))
        })
        .filter(|(a, b)| !a.is_empty() && !b.is_empty())
        .collect();
    let difference = |sample: &[&Pair]| {
        let pooled = |pick: fn(&Pair) -> &Vec<f64>| {
            let mut all: Vec<f64> = sample
                .iter()
                .flat_map(|p| pick(p).iter().copied())
                .collect();
            sort(&mut all);
            plain(&all, 0.5)
        };
        Some(pooled(|p| &p.0)? - pooled(|p| &p.1)?)
    };
    let point = difference(&pairs.iter().collect::<Vec<_>>());
    result.difference = point.map(|value| Estimate {
        value,
        interval: interval(&pairs, difference),
    });
    result.expected = expected(run, cells);
    result.excess = point.zip(result.expected).map(|(d, e)| d - e);
    if point.is_none() {
        result.refused = Some("no block has complete calls of both arms".to_owned());
    }
    result
}

fn e2e(calls: &[Joined]) -> Vec<f64> {
    let complete = calls
        .iter()
        .filter(|j| j.client.outcome == CallOutcome::Complete);
    complete
        .filter_map(|j| j.client.e2e().map(|n| n as f64))
        .collect()
}

/// Both taps' own delays, and the floor of the request and of the last text.
fn expected(run: &Gathered, cells: &[&Cell]) -> Option<f64> {
    let median = |values: Vec<f64>| {
        let mut values = values;
        sort(&mut values);
        plain(&values, 0.5)
    };
    let calls = || cells.iter().flat_map(|c| run.calls_of(c.id));
    let own = median(calls().filter_map(|j| j.taps.as_ref()?.own_delay).collect())?;
    let floors = cells
        .iter()
        .filter_map(|c| c.floor_cell)
        .filter_map(|id| run.cell(id));
    let floor: Vec<f64> = floors
        .flat_map(|c| run.calls_of(c.id))
        .filter_map(|j| Some(j.taps.as_ref()?.legs.as_ref()?.added_text?.value as f64))
        .collect();
    Some(own + median(floor)?)
}
