//! Bills, crossings and tornado together.

use std::collections::BTreeMap;

use config::plan::{Plan, Traffic};
use config::prices::PriceBook;

use crate::bill::bill;
use crate::crossing::pair;
use crate::inputs::{End, Ends, Inputs};
use crate::model::{Capacity, Configuration, Range, Study, TornadoBar};
use crate::tariff::Tariff;

/// Crossings are looked for up to so many times the highest rate for which bills are made.
const BEYOND: f64 = 10.0;

/// The study of `plan` by these prices and capacities, for this traffic.
#[must_use]
pub fn study(
    prices: &PriceBook,
    plan: &Plan,
    capacities: &BTreeMap<Configuration, Capacity>,
    traffic: &Traffic,
) -> Study {
    let given = Inputs {
        plan,
        book: prices,
        capacities,
        traffic,
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
        rates: plan.rates.clone(),
        bills,
        idle,
        pairs,
        tornado: tornado(given),
        gaps,
    }
}

/// What each inexact input does to each total at the traffic's own rate.
fn tornado(given: Inputs<'_>) -> Vec<TornadoBar> {
    let rate = given.traffic.rate;
    let mut bars = Vec::new();
    for of in Configuration::ALL {
        let plain = Tariff::of(of, given, &Ends::new());
        if !plain.gaps.is_empty() {
            continue;
        }
        for input in &plain.inputs {
            let at = |end| Tariff::of(of, given, &Ends::from([(input.clone(), end)])).at(rate);
            bars.push(TornadoBar {
                input: input.clone(),
                of,
                at_low: at(End::Low),
                at_high: at(End::High),
                base: plain.at(rate),
            });
        }
    }
    bars.sort_by(|a, b| b.span().total_cmp(&a.span()));
    bars
}
