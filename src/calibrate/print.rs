//! A calibration as a table for a person.

use super::Outcome;
use record::manifest::CalibrationLine;
use std::fmt::Write as _;

/// The table, the remarks and what is beyond its bound.
#[must_use]
pub fn print(outcome: &Outcome) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, outcome);
    out
}

fn two((a, b): (f64, f64)) -> String {
    format!("{:.1}/{:.1}", a / 1e3, b / 1e3)
}

fn table_line(out: &mut String, line: &CalibrationLine) -> std::fmt::Result {
    let interval = line.interval.map_or_else(
        || "one block".to_owned(),
        |(low, high)| format!("{:.1} … {:.1}", low / 1e3, high / 1e3),
    );
    let max = line
        .raw_max
        .map_or_else(|| "-".to_owned(), |max| format!("{:.1}", max / 1e3));
    writeln!(
        out,
        "{:<12} {:>7} {:<11} {:>8} {:>24} {:>16} {:>16} {:>16}",
        line.leg,
        line.streams,
        line.mode,
        line.samples,
        format!("{}/{max}", two(line.raw)),
        two(line.floor),
        two(line.error),
        interval
    )
}

fn write(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let found = &outcome.calibration;
    writeln!(
        out,
        "Instrument error against the stand-ins' own stamps (simulated), class {}, µs:",
        found.class
    )?;
    writeln!(
        out,
        "{:<12} {:>7} {:<11} {:>8} {:>24} {:>16} {:>16} {:>16}",
        "leg",
        "streams",
        "mode",
        "values",
        "raw p50/p99/max",
        "floor p50/p99",
        "error p50/p99",
        "p50 within"
    )?;
    for line in &found.lines {
        table_line(out, line)?;
    }
    writeln!(
        out,
        "error = raw less the floor of a relay with as many streams, block by block; its interval holds 95 % over blocks."
    )?;
    if let Some((slope, low, high)) = found.slope {
        let intercept = found.intercept.map_or_else(
            || "not measured".to_owned(),
            |i| format!("{:.1} µs", i / 1e3),
        );
        writeln!(
            out,
            "slope {slope:.5} ({low:.5} … {high:.5}), intercept {intercept}"
        )?;
    }
    let share = |s: Option<f64>| {
        s.map_or_else(
            || "not measured".to_owned(),
            |s| format!("{:.3} %", s * 100.0),
        )
    };
    writeln!(
        out,
        "pairing {}, largest error of the merge ratio {}",
        share(found.pairing),
        share(found.merge_error)
    )?;
    for remark in &outcome.remarks {
        writeln!(out, "{remark}")?;
    }
    for line in &outcome.beyond {
        writeln!(out, "BEYOND ITS BOUND: {line}")?;
    }
    Ok(())
}
