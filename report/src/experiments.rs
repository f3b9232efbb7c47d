//! Experiments of operation over their repetitions.
//!
//! Few repetitions and lower bounds among them leave no mean: what is shown is the median and, as its
//! interval, the smallest and the largest of all, which hold the true median with probability 1 − 2^(1−n)
//! whatever the distribution is. What was not over when its experiment ended ranks above everything.

use crate::gather::Gathered;
use crate::model::ExperimentRow;
use record::experiment::{Experiment, Found, Quantity};
use record::manifest::Manifest;

/// The rows of one run, chain by chain, in the order in which quantities are measured.
pub(crate) fn rows(run: &Gathered) -> Vec<ExperimentRow> {
    of(&run.name, &run.manifest)
}

fn of(run: &str, manifest: &Manifest) -> Vec<ExperimentRow> {
    let mut rows: Vec<ExperimentRow> = Vec::new();
    for chain in &manifest.chains {
        let made = manifest.experiments.iter();
        let made: Vec<&Experiment> = made.filter(|e| e.chain == chain.name).collect();
        let mut quantities: Vec<Quantity> = Vec::new();
        for measure in made.iter().flat_map(|e| &e.measures) {
            if !quantities.contains(&measure.quantity) {
                quantities.push(measure.quantity);
            }
        }
        rows.extend(
            quantities
                .into_iter()
                .filter_map(|quantity| row(run, chain.simulated, &made, quantity)),
        );
    }
    rows
}

fn row(
    run: &str,
    simulated: bool,
    made: &[&Experiment],
    quantity: Quantity,
) -> Option<ExperimentRow> {
    let first = made.first()?;
    let mut found: Vec<Found> = made
        .iter()
        .flat_map(|e| &e.measures)
        .filter(|m| m.quantity == quantity)
        .map(|m| m.found.clone())
        .collect();
    found.sort_by_key(rank);
    let told: Vec<&Found> = found
        .iter()
        .filter(|f| !matches!(f, Found::NotMeasured(_)))
        .collect();
    let count = told.len();
    // Of an even number the larger of the two in the middle.
    let median = told.get(count / 2).copied().or(found.first())?.clone();
    let range = match (told.first(), told.last()) {
        (Some(low), Some(high)) if count > 1 => Some(((*low).clone(), (*high).clone())),
        _ => None,
    };
    let mut outcomes: Vec<(String, u64)> = Vec::new();
    for (name, n) in made.iter().flat_map(|e| &e.outcomes) {
        match outcomes.iter_mut().find(|(other, _)| other == name) {
            Some((_, sum)) => *sum += n,
            None => outcomes.push((name.clone(), *n)),
        }
    }
    Some(ExperimentRow {
        run: run.to_owned(),
        chain: first.chain.clone(),
        simulated,
        setup: first.setup.clone(),
        trigger: first.trigger.as_ref().map(|t| t.what.clone()),
        quantity: quantity.name(),
        repetitions: made.len(),
        told: count,
        median,
        coverage: range
            .as_ref()
            .map(|_| 1.0 - 2_f64.powi(1 - i32::try_from(count).unwrap_or(i32::MAX))),
        range,
        outcomes,
    })
}

/// What was not seen is the shortest, what was not over the longest, whatever its limit.
fn rank(found: &Found) -> (u8, u64) {
    match found {
        Found::ShorterThan(bound) => (0, *bound),
        Found::Value { value, .. } => (1, *value),
        Found::LongerThan(bound) => (2, *bound),
        Found::NotMeasured(_) => (3, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::experiment::{Kind, Measure, Setup};

    fn experiment(found: Found) -> Experiment {
        Experiment {
            cell: 0,
            chain: "a".to_owned(),
            block: 0,
            setup: Setup {
                looks_for: Kind::ColdStart,
                rate: 1.0,
                before: 0,
                raised: None,
                renamed: false,
                settle: 1,
                window: 1,
                ttft_within: 1.25,
                limit: 9,
            },
            event: 0,
            trigger: None,
            measures: vec![Measure {
                quantity: Quantity::ColdStart,
                found,
            }],
            outcomes: vec![("complete".to_owned(), 2)],
        }
    }

    fn value(value: u64) -> Found {
        Found::Value {
            value,
            low: value - 1,
            high: value,
        }
    }

    fn row_of(found: Vec<Found>) -> ExperimentRow {
        let made: Vec<Experiment> = found.into_iter().map(experiment).collect();
        let made: Vec<&Experiment> = made.iter().collect();
        row("run", true, &made, Quantity::ColdStart).unwrap()
    }

    #[test]
    fn one_repetition_has_no_interval_over_repetitions() {
        let row = row_of(vec![value(5)]);
        assert_eq!(
            (row.median, row.range, row.coverage),
            (value(5), None, None)
        );
    }

    #[test]
    fn the_extremes_hold_the_median_and_what_was_not_over_ranks_above_all() {
        let open = Found::LongerThan(3);
        let row = row_of(vec![value(7), open.clone(), value(5)]);
        assert_eq!(row.median, value(7));
        assert_eq!(row.range, Some((value(5), open.clone())));
        assert_eq!(row.coverage, Some(0.75));
        assert_eq!(row.outcomes, [("complete".to_owned(), 6)]);
        // Two of three were not over: there is no number for the median.
        let row = row_of(vec![open.clone(), value(7), open.clone()]);
        assert_eq!(row.median, open);
    }

    #[test]
    fn what_could_not_be_told_is_in_no_rank() {
        let why = Found::NotMeasured("why".to_owned());
        let row = row_of(vec![why.clone(), value(7)]);
        assert_eq!((row.median, row.repetitions, row.told), (value(7), 2, 1));
        assert_eq!(row_of(vec![why.clone()]).median, why);
    }
}
