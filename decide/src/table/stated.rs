//! Governance and operations: partly probed, partly by experiment, partly stated.

use config::facts::FactRow;
use cost::Configuration;
use record::experiment::Found;
use report::{LimitFinding, LimitVerdict};

use super::row;
use crate::key::Key;
use crate::model::{Cell, Figure, Row, Unit};
use crate::statements::placed;
use crate::view::View;

pub(super) fn governance(view: &View<'_>) -> Vec<Row> {
    let isolation = (Key::CategoryGovernance, view.get(Key::MetricIsolation));
    let precision = (Key::CategoryGovernance, view.get(Key::MetricPrecision));
    vec![
        row(view, "isolation", isolation, |of| {
            stated(view, of, FactRow::TenantIsolation)
        }),
        row(view, "limit-precision", precision, |of| {
            match limit(view, of) {
                Some((run, simulated, limit)) => Cell::Value(Figure {
                    value: limit.beyond_share,
                    unit: Unit::Share,
                    // What is not known to have been refused may have passed.
                    at_least: limit.without_usage > 0,
                    low: None,
                    high: None,
                    samples: Some(limit.admitted),
                    few: false,
                    run: Some(run.to_owned()),
                    label: limit.probe.clone(),
                    simulated,
                    valid: view.valid(run),
                }),
                None => Cell::NotMeasured {
                    command: view.command(6, &[of.id()]),
                },
            }
        }),
    ]
}

/// The limit of a configuration that let most through beyond it, of valid runs and of the real thing where any is.
pub(crate) fn limit<'a>(
    view: &View<'a>,
    of: Configuration,
) -> Option<(&'a str, bool, &'a LimitFinding)> {
    let told = |limit: &&LimitFinding| {
        limit.chain == of.id() && matches!(limit.verdict, LimitVerdict::Beyond | LimitVerdict::Held)
    };
    let runs = view.given.report.runs.iter();
    let all = runs.flat_map(|run| {
        let simulated = run.chains.iter().any(|c| c.name == of.id() && c.simulated);
        let probes = run.probes.iter().flat_map(|probes| &probes.limits);
        probes
            .filter(told)
            .map(move |limit| (run.name.as_str(), simulated, limit))
    });
    all.min_by(|a, b| {
        let flaws = |one: &(&str, bool, &LimitFinding)| (!view.valid(one.0), one.1);
        let most = b.2.beyond_share.total_cmp(&a.2.beyond_share);
        flaws(a).cmp(&flaws(b)).then(most)
    })
}

pub(super) fn operations(view: &View<'_>) -> Vec<Row> {
    let of = |key| (Key::CategoryOperations, view.get(key));
    vec![
        row(view, "build-time", of(Key::MetricBuild), |of| {
            stated(view, of, FactRow::BuildTime)
        }),
        row(view, "recovery", of(Key::MetricRecovery), |of| {
            let command = format!(
                "hopscope load --scenario config/experiments/recovery.yaml --chain {of} --out runs/recovery-{of}"
            );
            experiment(view, of, "time to steady").unwrap_or(Cell::NotMeasured { command })
        }),
        row(view, "skills", of(Key::MetricSkills), |of| {
            stated(view, of, FactRow::Skills)
        }),
    ]
}

/// The median of an experiment's quantity, of a valid run and of the real thing where there is one.
pub(crate) fn experiment(view: &View<'_>, of: Configuration, quantity: &str) -> Option<Cell> {
    let rows = view.given.report.experiments.iter();
    let own = rows.filter(|row| row.chain == of.id() && row.quantity == quantity);
    let row = own.min_by_key(|row| (!view.valid(&row.run), row.simulated))?;
    let figure = |value: f64, at_least, own: (Option<f64>, Option<f64>)| {
        // The range of the repetitions, and of a single one how closely the probe looked.
        let (low, high) = match &row.range {
            Some((low, high)) => (bounds(low).0, bounds(high).1),
            None => own,
        };
        Cell::Value(Figure {
            value,
            unit: Unit::Nanoseconds,
            at_least,
            low,
            high,
            samples: Some(row.told as u64),
            few: row.told < 10,
            run: Some(row.run.clone()),
            label: view.get(Key::MedianOfRepetitions),
            simulated: row.simulated,
            valid: view.valid(&row.run),
        })
    };
    let own = bounds(&row.median);
    Some(match &row.median {
        Found::Value { value, .. } => figure(*value as f64, false, own),
        Found::LongerThan(value) => figure(*value as f64, true, own),
        // Below what the probe can see: the upper end is all that is known.
        Found::ShorterThan(most) => figure(*most as f64, false, own),
        Found::NotMeasured(why) => Cell::Withheld {
            why: why.clone(),
            run: Some(row.run.clone()),
        },
    })
}

/// Between what a finding lies.
fn bounds(found: &Found) -> (Option<f64>, Option<f64>) {
    match found {
        Found::Value { low, high, .. } => (Some(*low as f64), Some(*high as f64)),
        Found::LongerThan(least) => (Some(*least as f64), None),
        Found::ShorterThan(most) => (Some(0.0), Some(*most as f64)),
        Found::NotMeasured(_) => (None, None),
    }
}

fn stated(view: &View<'_>, of: Configuration, row: FactRow) -> Cell {
    match placed(view, of, row) {
        Some(one) => Cell::Stated {
            text: one.text,
            source: one.source,
            date: one.date,
            basis: one.basis,
        },
        None => Cell::Withheld {
            why: view.get(Key::NoFact),
            run: None,
        },
    }
}
