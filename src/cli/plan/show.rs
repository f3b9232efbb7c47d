//! A judged plan as text: findings, what measuring costs, predicted bills and where they cross.

use super::{Judged, Placed};
use cost::findings::dollars;
use cost::{Bill, Configuration, Crossing, NoCrossing, Pair, Range};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// The whole text.
pub(super) fn text(judged: &Judged) -> String {
    let mut out = format!("{}, judged on {}\n", judged.plan, judged.today);
    for set in &judged.set {
        line(&mut out, &format!("what if: {set}"));
    }
    out.push('\n');
    for placed in &judged.findings {
        finding(&mut out, placed);
    }
    if judged.findings.is_empty() {
        line(&mut out, "nothing found");
    }
    campaign(&mut out, judged);
    bills(&mut out, judged);
    crossings(&mut out, judged);
    tornado(&mut out, judged);
    out
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

fn finding(out: &mut String, placed: &Placed) {
    let one = &placed.finding;
    let severity = one.severity.as_str();
    line(
        out,
        &format!("{severity} [{}] {}: {}", one.id, placed.place, one.what),
    );
    for rests in &one.evidence {
        line(out, &format!("    by: {} ({})", rests.says, rests.source));
    }
    line(out, &format!("    do: {}", one.remedy));
}

fn campaign(out: &mut String, judged: &Judged) {
    line(out, "\nMeasuring it, estimated from the matrix:");
    if let Some(gap) = &judged.campaign_gap {
        line(out, &format!("    not estimated: {gap}"));
    }
    let Some(all) = &judged.campaign else {
        return;
    };
    line(
        out,
        &format!(
            "    about {:.1} days without a pause, {:.0} calls of the default model",
            all.days, all.calls
        ),
    );
    for (what, amount) in [
        ("tokens of the default model", all.tokens_usd),
        ("the imported model's windows", all.import_usd),
        ("machines, kept up for all of it", all.machines_usd),
    ] {
        let amount = amount.map_or_else(|| "not told, a price is missing".to_owned(), dollars);
        line(out, &format!("    {what}: {amount}"));
    }
}

/// One column a rate, one row a configuration.
fn bills(out: &mut String, judged: &Judged) {
    let study = &judged.study;
    line(
        out,
        "\nUS dollars a month, predicted. In brackets the least and the most. What a capacity rests on is said below.",
    );
    let mut rows = vec![vec!["calls/s".to_owned()]];
    rows.extend(Configuration::ALL.iter().map(|of| vec![of.id().to_owned()]));
    for rate in &study.rates {
        let mut column = vec![format!("{rate}")];
        for of in Configuration::ALL {
            let bill = study
                .bills
                .iter()
                .find(|bill| bill.configuration == of && bill.rate == *rate);
            column.push(bill.map_or_else(String::new, cell));
        }
        for (row, text) in rows.iter_mut().zip(column) {
            row.push(text);
        }
    }
    table(out, &rows);
    remarks(out, judged);
}

fn cell(bill: &Bill) -> String {
    let Some(total) = &bill.total else {
        return "not told".to_owned();
    };
    let sign = if bill.at_least { "≥ " } else { "" };
    format!("{sign}{}", range(total))
}

/// Configurations whose bills are the least that they can be.
fn at_least(study: &cost::Study) -> BTreeSet<Configuration> {
    let bills = study.bills.iter().filter(|bill| bill.at_least);
    bills.map(|bill| bill.configuration).collect()
}

fn range(range: &Range) -> String {
    let value = dollars(range.value);
    let low = dollars(range.low);
    let high = range.high.map_or_else(|| "no most".to_owned(), dollars);
    if low == value && high == value {
        return value;
    }
    format!("{value} [{low} to {high}]")
}

fn table(out: &mut String, rows: &[Vec<String>]) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at));
        cells.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for row in rows {
        out.push_str("   ");
        for (at, (text, width)) in row.iter().zip(&widths).enumerate() {
            // Writing to a string cannot fail.
            let _ = match at {
                0 => write!(out, " {text:<width$}"),
                _ => write!(out, "  {text:>width$}"),
            };
        }
        out.push('\n');
    }
}

fn remarks(out: &mut String, judged: &Judged) {
    for (of, capacity) in &judged.capacities {
        let low = capacity.low.unwrap_or(capacity.rate);
        let high = match capacity.or_more {
            true => "more, the search ended there".to_owned(),
            false => capacity.high.unwrap_or(capacity.rate).to_string(),
        };
        line(
            out,
            &format!(
                "    {of}: {} calls/s [{low} to {high}] by {} replicas, {}",
                capacity.rate, capacity.replicas, capacity.run
            ),
        );
    }
    if let Some(gap) = judged.expected_gap {
        line(
            out,
            &format!("    what the plan expects is not used: {gap}"),
        );
    }
    for unused in &judged.unused_runs {
        line(out, &format!("    not used: {unused}"));
    }
    for of in at_least(&judged.study) {
        line(
            out,
            &format!(
                "    {of}: at least, for the plan's copies at every rate: what a copy serves is not measured (scenario 2)"
            ),
        );
    }
    if !judged.assumed_prices.is_empty() {
        line(
            out,
            &format!(
                "    assumed prices in these bills: {}",
                judged.assumed_prices.join(", ")
            ),
        );
    }
    for gap in &judged.study.gaps {
        line(out, &format!("    not told: {gap}"));
    }
}

fn crossings(out: &mut String, judged: &Judged) {
    line(out, "\nWhere they change places:");
    for of in at_least(&judged.study) {
        line(
            out,
            &format!("    not told for {of}: its bill is the least that it can be"),
        );
    }
    for pair in &judged.study.pairs {
        for crossing in &pair.crossings {
            line(out, &format!("    {}", crossed(crossing)));
        }
        if let Some(none) = uncrossed(pair) {
            line(out, &format!("    {none}"));
        }
    }
}

/// Bars that are shown of each configuration.
const BARS: usize = 3;

fn tornado(out: &mut String, judged: &Judged) {
    let rate = judged.study.traffic.rate;
    line(out, &format!("\nWhat moves a bill most at {rate} calls/s:"));
    let end = |total: Option<f64>| total.map_or_else(|| "no bound".to_owned(), dollars);
    for of in Configuration::ALL {
        let bars = judged.study.tornado.iter().filter(|bar| bar.of == of);
        for bar in bars.take(BARS) {
            let (low, is, high) = bar.input_values;
            let high = high.map_or_else(|| "more".to_owned(), |high| high.to_string());
            let what_if = if bar.what_if { " (what if)" } else { "" };
            line(
                out,
                &format!(
                    "    {of}: {} {low} … {is} … {high}{what_if}: {} … {} … {}",
                    bar.input,
                    end(bar.at_low),
                    dollars(bar.base),
                    end(bar.at_high)
                ),
            );
        }
    }
}

fn crossed(at: &Crossing) -> String {
    let other = if at.cheaper_above == at.a { at.b } else { at.a };
    let high = at
        .high
        .map_or_else(|| "no upper end".to_owned(), |high| format!("{high:.3}"));
    let step = if at.on_step { ", by a jump" } else { "" };
    format!(
        "above {:.3} calls/s [{:.3} to {high}] {} is cheaper than {other}{step}",
        at.rate, at.low, at.cheaper_above
    )
}

/// In words, where two do not change places and both have bills.
fn uncrossed(pair: &Pair) -> Option<String> {
    let (a, b) = (pair.a, pair.b);
    match pair.no_crossing.as_ref()? {
        NoCrossing::Cheaper(one, to) => {
            let other = if *one == a { b } else { a };
            Some(format!(
                "{one} is cheaper than {other} at every rate to {to} calls/s"
            ))
        }
        NoCrossing::Same(to) => Some(format!("{a} and {b} cost the same to {to} calls/s")),
        // Said above, or by the table and its remarks.
        NoCrossing::AtLeast(_) | NoCrossing::Missing(..) => None,
    }
}
