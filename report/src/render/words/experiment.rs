//! Experiments of operation as a person reads them.

use super::time;
use crate::model::ExperimentRow;
use record::experiment::{Found, Kind, Setup};

/// What the table's columns are.
pub(in crate::render) const NOTE: &str = "“Between”: the probe looks only so often; the truth lies between two of its calls. \
“>”: not over when the experiment ended. “<”: the probe saw nothing of it. Over repetitions: smallest … largest, which hold the true \
median with the probability beside them.";

/// The chain, with its run where there are several.
pub(in crate::render) fn chain(row: &ExperimentRow, several: bool) -> String {
    match several {
        true => format!("{}: {}", row.run, row.chain),
        false => row.chain.clone(),
    }
}

/// How it was made.
pub(in crate::render) fn setup(setup: &Setup) -> String {
    let mut text = format!("{}, probe {}/s", setup.looks_for.name(), setup.rate);
    if let Some(raised) = setup.raised {
        text += &format!(", raised to {}/s", raised.rate);
        if let Some(lasts) = raised.lasts {
            text += &format!(" for {}", time(lasts as f64));
        }
    }
    if setup.looks_for != Kind::ColdStart {
        text += &format!(", settle {}", time(setup.settle as f64));
    }
    if setup.before > 0 {
        text += &format!(", TTFT within ×{}", setup.ttft_within);
    }
    text
}

/// What happened to the chain.
pub(in crate::render) fn event(row: &ExperimentRow) -> String {
    match (&row.trigger, row.setup.looks_for) {
        (Some(what), _) => what.clone(),
        (None, Kind::QueueDrain) => "end of the burst".to_owned(),
        (None, Kind::ScaleOut) => "step in load".to_owned(),
        (None, _) => "first call".to_owned(),
    }
}

/// A finding, without its bounds.
pub(in crate::render) fn found(found: &Found) -> String {
    match found {
        Found::Value { value, .. } => time(*value as f64),
        Found::LongerThan(bound) => format!("> {}", time(*bound as f64)),
        Found::ShorterThan(bound) => format!("none seen, < {}", time(*bound as f64)),
        Found::NotMeasured(why) => format!("not measured: {why}"),
    }
}

/// Between what it lies.
pub(in crate::render) fn bounds(found: &Found) -> String {
    match found {
        Found::Value { low, high, .. } => {
            format!("{} … {}", time(*low as f64), time(*high as f64))
        }
        _ => "–".to_owned(),
    }
}

/// Its interval over repetitions.
pub(in crate::render) fn repetitions(row: &ExperimentRow) -> String {
    let untold = match row.repetitions - row.told {
        0 => String::new(),
        n => format!("; {n} not measured"),
    };
    match (&row.range, row.coverage) {
        (Some((low, high)), Some(coverage)) => format!(
            "{} … {} of {} ({:.0} %){untold}",
            found(low),
            found(high),
            row.told,
            coverage * 100.0
        ),
        _ => format!("one repetition: no interval{untold}"),
    }
}

/// How the calls from the event on ended.
pub(in crate::render) fn outcomes(row: &ExperimentRow) -> String {
    let all = row.outcomes.iter().map(|(name, n)| format!("{name} {n}"));
    all.collect::<Vec<_>>().join(", ")
}
