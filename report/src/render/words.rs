//! Numbers and findings as a person reads them. Durations are microseconds below 10 ms, else
//! milliseconds.

pub(super) mod experiment;

use crate::model::{Arm, Drift, LegRow, Reading, Report, Strata};
use record::agent::ToolFilter;
use record::manifest::{Company, Drive, Workload};
use record::verdict::{Check, Finding};

/// Shown where a value was never measured. Never a 0.
pub(super) const ABSENT: &str = "not measured";

/// How a drift was looked for.
pub(super) const DRIFT: &str = "Theil–Sen slope and Mann–Kendall test over the phases in which the figure could be read: p is the chance of as \
clear a trend where there is none, its variance widened for the likeness of neighbours (Hamed and Rao 1998). Over few phases such a likeness does \
not show, and p holds for independent ones.";

/// A duration of `ns`.
pub(super) fn time(ns: f64) -> String {
    let abs = ns.abs();
    if abs < 10e6 {
        format!("{:.*} µs", usize::from(abs < 10e3), ns / 1e3)
    } else if abs < 10e9 {
        format!("{:.1} ms", ns / 1e6)
    } else {
        format!("{:.1} s", ns / 1e9)
    }
}

/// A duration that may be absent.
pub(super) fn maybe(ns: Option<f64>) -> String {
    ns.map_or_else(|| "–".to_owned(), time)
}

/// Two durations, the second of which may be open.
pub(super) fn range(pair: Option<(f64, f64)>) -> String {
    match pair {
        None => "–".to_owned(),
        Some((low, high)) if high.is_infinite() => format!("{} … open", time(low)),
        Some((low, high)) => format!("{} … {}", time(low), time(high)),
    }
}

/// A statistic.
pub(super) fn reading(reading: &Reading) -> String {
    match reading {
        Reading::Value { value, few: false } => time(*value),
        Reading::Value { value, few: true } => format!("{} *", time(*value)),
        Reading::AtLeast(value) => format!("> {}", time(*value)),
        Reading::Refused(_) => "too few".to_owned(),
        Reading::NotMeasured => "–".to_owned(),
    }
}

/// A share in percent.
pub(super) fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| ABSENT.to_owned(), |s| format!("{:.2} %", s * 100.0))
}

/// Cached prompt tokens, and how many calls say so where not all do.
pub(crate) fn cached(arm: &Arm) -> String {
    let share = percent(arm.cached_share);
    let sent = arm.strata.sent as u64;
    match arm.cached_share {
        Some(_) if arm.cached_stated < sent => {
            format!("{share} ({} of {sent} calls state it)", arm.cached_stated)
        }
        _ => share,
    }
}

/// How many calls were sent, and of how many where not all that were due.
pub(crate) fn sent(strata: &Strata) -> String {
    let sent = strata.sent;
    match strata.unsent {
        Some(0) => sent.to_string(),
        Some(unsent) => format!("sent {sent} of {} scheduled", sent as u64 + unsent),
        None => format!("{sent} (more were due)"),
    }
}

/// Phases that a figure could be read in, and of how many where not in all.
pub(super) fn phases(drift: &Drift) -> String {
    match drift.phases == drift.of {
        true => drift.of.to_string(),
        false => format!("{} of {}", drift.phases, drift.of),
    }
}

/// The name of a chain, or of one of its figures, with a mark where a part of the chain is a stand-in.
pub(super) fn marked(name: &str, simulated: bool) -> String {
    match simulated {
        true => format!("{name} · simulated"),
        false => name.to_owned(),
    }
}

/// The rows of an agent's turns and tasks; none of an arm of single calls.
pub(super) fn agent(arm: &Arm) -> impl Iterator<Item = &LegRow> {
    arm.agent.iter().flat_map(|agent| {
        [
            agent.turn.as_ref(),
            Some(&agent.task),
            agent.model.as_ref(),
            agent.tool.as_ref(),
        ]
        .into_iter()
        .flatten()
        .chain(&agent.sessions)
    })
}

/// What calls asked for.
pub(super) fn workload(workload: &Workload) -> String {
    let mut text = format!(
        "{} prompt tokens and {} completion tokens a call ({})",
        workload.input_tokens, workload.output_tokens, workload.tokenizer
    );
    if let Some(trace) = &workload.trace {
        text.push_str(&format!(
            "; in the replay of {}, {} calls with {} prompt tokens and {} completion tokens in all",
            trace.file, trace.calls, trace.input_tokens, trace.output_tokens
        ));
        if trace.empty > 0 {
            text.push_str(&format!(
                " ({} of them had no completion token, and one is asked for)",
                trace.empty
            ));
        }
    }
    text
}

/// What the check of a tool filter found.
pub(super) fn filter(filter: &ToolFilter) -> String {
    let list = |names: &[String]| names.join(", ");
    let saw = match filter.seen {
        Some(seen) => format!("saw {seen} of {} tools", filter.offered),
        None => format!("saw none of {} tools: it was not let in", filter.offered),
    };
    let mut text = format!(
        "Tool filter of {} {}: a key that may not use {} {saw}",
        filter.server,
        if filter.holds() { "holds" } else { "FAILS" },
        list(&filter.may_not),
    );
    for (what, names) in [
        ("forbidden and listed", &filter.listed),
        ("forbidden and run by name", &filter.ran),
        ("not tried by name", &filter.untried),
    ] {
        if !names.is_empty() {
            text.push_str(&format!("; {what}: {}", list(names)));
        }
    }
    text
}

/// What the report is of.
pub(super) fn title(report: &Report) -> &'static str {
    if report.arms.iter().any(|arm| arm.kind == "gateway") {
        "Gateway overhead"
    } else {
        "Load run"
    }
}

/// The change of a figure an hour.
pub(super) fn slope(drift: &Drift) -> String {
    if drift.figure.starts_with("share") {
        format!("{:+.4} %", drift.slope_per_hour * 100.0)
    } else {
        time(drift.slope_per_hour)
    }
}

/// What a drift's test says.
pub(super) fn trend(drift: &Drift) -> &'static str {
    match drift.p {
        p if p >= 0.05 => "no drift shown",
        // Not by the slope: where most pairs are tied it is 0 all the same.
        _ if drift.s > 0 => "rises",
        _ => "falls",
    }
}

/// So many a second.
pub(super) fn rate(rate: Option<f64>) -> String {
    rate.map_or_else(|| ABSENT.to_owned(), |r| format!("{r:.1}"))
}

/// Jain's index of the tenants' answered ÷ asked rates, for each chain and company of several
/// (Jain, Chiu, Hawe, DEC-TR-301, 1984); and whether a part of the chain is a stand-in.
pub(super) fn fairness(arms: &[&Arm]) -> Vec<(String, f64, bool)> {
    let mut groups: Vec<(String, bool, Vec<f64>)> = Vec::new();
    for arm in arms {
        if let Drive::Tenant { rate, company, .. } = &arm.drive
            && *company != Company::Alone
            && let Some(answered) = arm.rate
        {
            let title = format!("{}, {}", arm.chain, company.name());
            let share = answered / rate;
            match groups.iter_mut().find(|(name, ..)| *name == title) {
                Some((.., shares)) => shares.push(share),
                None => groups.push((title, arm.simulated, vec![share])),
            }
        }
    }
    let index = |shares: Vec<f64>| {
        let sum: f64 = shares.iter().sum();
        let squares: f64 = shares.iter().map(|s| s * s).sum();
        (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
    };
    groups
        .into_iter()
        .filter_map(|(title, simulated, shares)| Some((title, index(shares)?, simulated)))
        .collect()
}

/// The title of an arm.
pub(super) fn arm(arm: &Arm) -> String {
    let saturated = if arm.saturated {
        " · saturated: queueing"
    } else {
        ""
    };
    let name = marked(&format!("{} · {}", arm.chain, arm.label), arm.simulated);
    format!("{name}{saturated}")
}

/// Counts by name in a line.
pub(super) fn counts(counts: &[(String, usize)]) -> String {
    if counts.is_empty() {
        return "–".to_owned();
    }
    counts
        .iter()
        .map(|(name, n)| format!("{n} {name}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// A check in a line.
pub(super) fn check(check: &Check) -> String {
    let measured = check.measured.map_or_else(
        || ABSENT.to_owned(),
        |m| format!("{} {}", number(m), check.unit),
    );
    let bound = if check.at_least {
        "at least"
    } else {
        "at most"
    };
    let detail = if check.detail.is_empty() {
        String::new()
    } else {
        format!(" ({})", check.detail)
    };
    format!(
        "{}: {measured}, {bound} {} {}{detail}",
        check.name,
        number(check.limit),
        check.unit
    )
}

/// A number with as many digits as it needs.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The verdict's headline for all runs.
pub(super) fn verdict(report: &Report) -> (bool, String) {
    let valid = report.runs.iter().all(|r| {
        r.verdict
            .as_ref()
            .is_some_and(record::verdict::Verdict::valid)
    });
    let fails: usize = count(report, Finding::Fails);
    let unknown: usize = count(report, Finding::NotMeasured);
    let text = if valid {
        "Valid: every check of the verdict holds.".to_owned()
    } else if report.runs.iter().any(|r| r.verdict.is_none()) {
        "Not valid: a run has no verdict; it did not come to its end.".to_owned()
    } else {
        format!("Not shown to be valid: {fails} checks fail, {unknown} could not be measured.")
    };
    (valid, text)
}

fn count(report: &Report, finding: Finding) -> usize {
    let checks = report
        .runs
        .iter()
        .filter_map(|r| r.verdict.as_ref())
        .flat_map(|v| &v.checks);
    checks.filter(|c| c.finding == finding).count()
}

/// The leg called `name`.
pub(super) fn leg<'a>(arm: &'a Arm, name: &str) -> Option<&'a LegRow> {
    arm.legs.iter().find(|l| l.leg == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_fit_the_size_and_nothing_absent_reads_as_zero() {
        assert_eq!(time(8_432.0), "8.4 µs");
        assert_eq!(time(1_234_567.0), "1235 µs");
        assert_eq!(time(-52_000_000.0), "-52.0 ms");
        assert_eq!(maybe(None), "–");
        assert_eq!(percent(None), ABSENT);
        assert_eq!(number(0.999), "0.999");
        assert_eq!(number(20.0), "20");
        assert_eq!(range(Some((1e6, f64::INFINITY))), "1000 µs … open");
    }

    #[test]
    fn a_trend_goes_where_its_pairs_go_and_names_the_phases_that_it_is_of() {
        let mut drift = Drift {
            run: "r".to_owned(),
            chain: "c".to_owned(),
            simulated: false,
            figure: "TTFT p50",
            phases: 23,
            of: 24,
            slope_per_hour: 0.0,
            s: 95,
            p: 0.01,
        };
        assert_eq!(
            (trend(&drift), phases(&drift)),
            ("rises", "23 of 24".to_owned())
        );
        (drift.s, drift.phases) = (-95, 24);
        assert_eq!((trend(&drift), phases(&drift)), ("falls", "24".to_owned()));
        drift.p = 0.05;
        assert_eq!(trend(&drift), "no drift shown");
    }

    #[test]
    fn calls_that_were_due_and_not_sent_are_told() {
        let of = |unsent| {
            sent(&Strata {
                sent: 412,
                unsent,
                ..Strata::default()
            })
        };
        assert_eq!(of(Some(0)), "412");
        assert_eq!(of(Some(38)), "sent 412 of 450 scheduled");
        assert_eq!(of(None), "412 (more were due)");
    }
}
