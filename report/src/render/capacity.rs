//! How many calls a second each chain serves within its objective, as tables of words.

use super::probes::Table;
use super::words::{ABSENT, marked, number, percent};
use crate::model::Report;
use record::manifest::{Capacity, CapacityStep, ChainInfo};

/// The tables of all runs; empty where no capacity was looked for.
pub(super) fn tables(report: &Report) -> Vec<Table> {
    let many = report.runs.len() > 1;
    let found: Vec<(String, &ChainInfo, &Capacity)> = report
        .runs
        .iter()
        .flat_map(|run| run.chains.iter().map(move |chain| (run, chain)))
        .filter_map(|(run, chain)| {
            let of = if many {
                format!("{}: ", run.name)
            } else {
                String::new()
            };
            let name = marked(&format!("{of}{}", chain.name), chain.simulated);
            Some((name, chain, chain.capacity.as_ref()?))
        })
        .collect();
    let steps = found
        .iter()
        .flat_map(|(name, _, capacity)| capacity.steps.iter().map(move |one| step(name, one)));
    let tables = [
        Table {
            title: "Capacity within the objective",
            head: &[
                "chain",
                "replicas",
                "calls/s",
                "held in a fresh run",
                "fit (95 % interval)",
                "did not hold at",
                "calls of the shortest run",
            ],
            rows: found
                .iter()
                .map(|(name, chain, capacity)| row(name, chain, capacity))
                .collect(),
            note: "Calls a second is what is handed on: the highest rate at which a fresh run held, else the lower end of the fit's interval. The fit is monotone over the shares attained at all rates that were tried; its interval resamples tenths of each run, so it holds what differs within runs and not between them. Capacity is of this workload, this objective and so many replicas.",
        },
        Table {
            title: "Runs of the search for capacity",
            head: &[
                "chain",
                "calls/s",
                "calls due",
                "attained (wanted)",
                "held",
                "fresh",
            ],
            rows: steps.collect(),
            note: "Attained: of the calls that were due, those that met each part of the objective; calls that were not answered, not sent or not paired met none.",
        },
    ];
    let shown = tables.into_iter().filter(|table| !table.rows.is_empty());
    shown.collect()
}

/// Calls a second in words.
pub(super) fn rate(capacity: &Capacity) -> String {
    match (capacity.rate, capacity.missed) {
        (None, Some(missed)) => format!("below {}", number(missed)),
        (None, None) => ABSENT.to_owned(),
        (Some(rate), Some(_)) => number(rate),
        (Some(rate), None) => format!("{} or more", number(rate)),
    }
}

fn row(name: &str, chain: &ChainInfo, capacity: &Capacity) -> Vec<String> {
    vec![
        name.to_owned(),
        chain
            .replicas
            .map_or_else(|| "not stated".to_owned(), |n| n.to_string()),
        rate(capacity),
        if capacity.confirmed { "yes" } else { "no" }.to_owned(),
        capacity.fit.map_or_else(
            || ABSENT.to_owned(),
            |fit| {
                format!(
                    "{} ({} … {})",
                    number(fit.rate),
                    number(fit.low),
                    number(fit.high)
                )
            },
        ),
        capacity.missed.map_or_else(|| "–".to_owned(), number),
        capacity
            .calls
            .map_or_else(|| ABSENT.to_owned(), |calls| calls.to_string()),
    ]
}

fn step(name: &str, step: &CapacityStep) -> Vec<String> {
    let attained = step.attained.iter().map(|part| {
        format!(
            "{} {} ({})",
            part.part,
            percent(part.share),
            percent(Some(part.wanted))
        )
    });
    let word = |yes| if yes { "yes" } else { "no" }.to_owned();
    vec![
        name.to_owned(),
        number(step.rate),
        step.calls.to_string(),
        attained.collect::<Vec<_>>().join(", "),
        word(step.held),
        word(step.fresh),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_handed_on_says_on_which_side_the_truth_lies() {
        let of = |found, missed| {
            rate(&Capacity {
                rate: found,
                confirmed: false,
                fit: None,
                missed,
                calls: None,
                steps: Vec::new(),
            })
        };
        assert_eq!(of(Some(4.0), Some(5.0)), "4");
        assert_eq!(of(Some(4.0), None), "4 or more");
        assert_eq!(of(None, Some(0.5)), "below 0.5");
        assert_eq!(of(None, None), ABSENT);
    }
}
