//! Bills, crossings and tornado together.

use std::collections::BTreeMap;

use config::plan::{Plan, Traffic};
use config::prices::PriceBook;

use crate::bill::bill;
use crate::crossing::pair;
use crate::inputs::Inputs;
use crate::model::{Capacity, Configuration, Limit, Range, Study};
use crate::tornado::tornado;

/// Crossings are looked for up to so many times the highest rate for which bills are made.
const BEYOND: f64 = 10.0;

/// The study of `plan` by these prices and capacities, for this traffic. A rate above `limit`, which
/// [`crate::findings::quota_limit`] reads from the plan, has no bill of `baseline`.
#[must_use]
pub fn study(
    prices: &PriceBook,
    plan: &Plan,
    capacities: &BTreeMap<Configuration, Capacity>,
    traffic: &Traffic,
    limit: Option<&Limit>,
) -> Study {
    let given = Inputs {
        plan,
        book: prices,
        capacities,
        traffic,
        limit,
    };
    let bills: Vec<_> = plan
        .rates
        .iter()
        .flat_map(|rate| Configuration::ALL.map(|of| bill(of, given, *rate)))
        .collect();
    let idle: Vec<(Configuration, Range)> = Configuration::ALL
        .into_iter()
        .filter_map(|of| Some((of, bill(of, given, 0.0).total?)))
        .collect();
    let max = BEYOND * plan.rates.iter().copied().fold(0.0, f64::max);
    let mut pairs = Vec::new();
    for (at, a) in Configuration::ALL.into_iter().enumerate() {
        for b in Configuration::ALL.into_iter().skip(at + 1) {
            pairs.push(pair(a, b, given, max));
        }
    }
    let mut gaps: Vec<String> = Vec::new();
    for gap in bills.iter().flat_map(|bill| &bill.gaps) {
        if !gaps.contains(gap) {
            gaps.push(gap.clone());
        }
    }
    Study {
        simulated: bills.iter().any(|bill| bill.simulated),
        traffic: traffic.clone(),
        limit: limit.cloned(),
        rates: plan.rates.clone(),
        bills,
        idle,
        pairs,
        tornado: tornado(given),
        gaps,
    }
}
