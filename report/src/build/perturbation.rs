//! What inserting the taps did to the work: tapped − untapped, block by block, against what the
//! taps account for.

use super::alike;
use super::work::{complete, other_work};
use crate::bootstrap::interval;
use crate::gather::Gathered;
use crate::model::{Arm, Estimate, Perturbation};
use crate::quantile::{plain, sort};
use record::client::ClientCall;
use record::manifest::Cell;

/// The suffix by which a control is named after its chain.
const UNTAPPED: &str = "-untapped";

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
