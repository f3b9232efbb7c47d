//! The measured arms.

use super::super::words::{self, leg, maybe, range, reading, time};
use super::{figure, server};
use crate::chart;
use crate::model::{Arm, LegRow, Reading, Report};
use maud::{Markup, html as page};
use record::manifest::Drive;

fn gateways(report: &Report) -> Vec<&Arm> {
    report.arms.iter().filter(|a| a.kind == "gateway").collect()
}

fn cell(row: Option<&LegRow>, pick: fn(&LegRow) -> &Reading) -> String {
    row.map_or_else(|| "–".to_owned(), |r| reading(pick(r)))
}

pub(super) fn headline(report: &Report) -> Markup {
    page! {
        h2 { "What each gateway adds" }
        div.box role="group" tabindex="0" aria-label="table" { table {
            thead { tr {
                th { "gateway" } th.word { "driven" } th { "added TTFT p50" } th { "p95" } th { "p99" } th { "interval of p50" }
                th { "bounds of p50" } th { "floor" } th { "added E2E p50" } th { "p95" } th { "calls" }
            } }
            tbody { @for arm in gateways(report) {
                @let ttft = leg(arm, "added TTFT");
                @let e2e = leg(arm, "added E2E (text)").or_else(|| leg(arm, "added E2E (end)"));
                tr {
                    td { (words::marked(&arm.chain, arm.simulated)) }
                    td.word { (arm.label) @if arm.saturated { span.badge { "saturated: queueing" } } }
                    td { b { (cell(ttft, |r| &r.p50)) } } td { (cell(ttft, |r| &r.p95)) } td { (cell(ttft, |r| &r.p99)) }
                    td { (range(ttft.and_then(|r| r.interval))) } td { (range(ttft.and_then(|r| r.bounds))) }
                    td { (maybe(ttft.and_then(|r| r.floor))) }
                    td { b { (cell(e2e, |r| &r.p50)) } } td { (cell(e2e, |r| &r.p95)) }
                    td { (ttft.map_or(0, |r| r.calls)) }
                }
            } }
        } }
        p.soft { "The floor is what two hops and a wake-up cost without a gateway, in the same blocks; it is in every figure and never subtracted." }
    }
}

/// Added TTFT over the closed-loop sweep, and the legs' means stacked below capacity.
pub(super) fn charts(report: &Report) -> Markup {
    let arms = gateways(report);
    let mut levels: Vec<u32> = arms.iter().filter_map(|a| concurrency(a)).collect();
    levels.sort_unstable();
    levels.dedup();
    let mut names: Vec<String> = Vec::new();
    let mut series: Vec<chart::Series> = Vec::new();
    for arm in &arms {
        for (quantile, pick) in [
            ("p50", (|r| &r.p50) as fn(&LegRow) -> &Reading),
            ("p95", |r| &r.p95),
        ] {
            let name = words::marked(&format!("{} {quantile}", arm.chain), arm.simulated);
            let point = concurrency(arm)
                .and_then(|n| levels.iter().position(|l| *l == n))
                .zip(leg(arm, "added TTFT").and_then(|r| pick(r).value()));
            let Some((x, ns)) = point else { continue };
            match series.iter_mut().find(|(n, _)| *n == name) {
                Some((_, points)) => points.push((x, ns / 1e6)),
                None => {
                    names.push(name.clone());
                    series.push((name, vec![(x, ns / 1e6)]));
                }
            }
        }
    }
    let steps = levels
        .iter()
        .enumerate()
        .map(|(n, l)| format!("{} = {l}", n + 1))
        .collect::<Vec<_>>()
        .join(", ");
    let open: Vec<&Arm> = arms
        .iter()
        .copied()
        .filter(|a| matches!(a.drive, Drive::Open { .. }) && !a.saturated)
        .collect();
    let bars = open
        .iter()
        .enumerate()
        .map(|(n, a)| format!("{} = {}", n + 1, words::arm(a)))
        .collect::<Vec<_>>()
        .join("; ");
    page! {
        (figure(chart::lines(&series, levels.len()), &format!("Added TTFT by calls at once ({steps}); logarithmic"), &names))
        (figure(chart::stacked(&open), &format!("Mean added E2E below capacity, by leg: {bars}"), &["request".to_owned(), "last token".to_owned()]))
    }
}

fn concurrency(arm: &Arm) -> Option<u32> {
    if let Drive::Closed { concurrency } = arm.drive {
        Some(concurrency)
    } else {
        None
    }
}

/// What a client sees of every arm: the figures by which services are compared end to end.
pub(super) fn clients(report: &Report) -> Markup {
    page! {
        h2 { "What the client sees" }
        div.box role="group" tabindex="0" aria-label="table" { table {
            thead { tr {
                th { "arm" } th { "calls" } th { "answered/s" } th { "goodput/s" } th { "tokens/s" }
                th { "TTFT p50" } th { "p95" } th { "p99" } th { "interval of p50" } th { "TPOT p50" } th { "p95" }
                th { "E2E p50" } th { "p95" } th { "p99" } th { "cached prompt tokens" } th.word { "outcomes" }
            } }
            tbody { @for arm in &report.arms { tr {
                td { (words::arm(arm)) } td { (words::sent(&arm.strata)) } td { (words::rate(arm.rate)) } td { (words::rate(arm.goodput)) } td { (words::rate(arm.tokens_rate)) }
                td { b { (reading(&arm.ttft.p50)) } } td { (reading(&arm.ttft.p95)) } td { (reading(&arm.ttft.p99)) } td { (range(arm.ttft.interval)) }
                td { (reading(&arm.tpot.p50)) } td { (reading(&arm.tpot.p95)) }
                td { (reading(&arm.e2e.p50)) } td { (reading(&arm.e2e.p95)) } td { (reading(&arm.e2e.p99)) }
                td { (words::cached(arm)) } td.word { (words::counts(&arm.strata.outcomes)) }
            } } }
        } }
    }
}

/// Tenants side by side: what company does to each, and whether a secret came out elsewhere.
pub(super) fn tenants(report: &Report) -> Markup {
    let arms: Vec<&Arm> = report
        .arms
        .iter()
        .filter(|a| matches!(a.drive, Drive::Tenant { .. }))
        .collect();
    page! {
        @if !arms.is_empty() {
            h2 { "Tenants" }
            div.box role="group" tabindex="0" aria-label="table" { table {
                thead { tr {
                    th { "arm" } th { "calls" } th { "answered/s" } th { "TTFT p50" } th { "p95" } th { "p99" } th.word { "outcomes" }
                    th { "answers with another's secret" }
                } }
                tbody { @for arm in &arms { tr {
                    td { (words::arm(arm)) } td { (words::sent(&arm.strata)) } td { (words::rate(arm.rate)) }
                    td { (reading(&arm.ttft.p50)) } td { (reading(&arm.ttft.p95)) } td { (reading(&arm.ttft.p99)) }
                    td.word { (words::counts(&arm.strata.outcomes)) }
                    td { @match arm.leaked { Some(0) => "0", Some(n) => b { (n) " leaked" }, None => "–" } }
                } } }
            } }
            p.soft { "Each tenant's system prompt holds a secret of its own; every answer is searched for those of the others." }
            @for (title, index, simulated) in words::fairness(&arms) {
                p {
                    "Fairness of " (title) ": " (format!("{index:.3}")) " (Jain's index of answered ÷ asked: 1 is alike, 1/n is one taking all)"
                    @if simulated { span.badge { "simulated" } }
                }
            }
        }
    }
}

pub(super) fn drifts(report: &Report) -> Markup {
    page! {
        @if !report.drifts.is_empty() {
            h2 { "Drift over the course" }
            div.box role="group" tabindex="0" aria-label="table" { table {
                thead { tr { th { "chain" } th.word { "figure" } th { "phases" } th { "change an hour" } th { "p" } th.word { "finding" } } }
                tbody { @for drift in &report.drifts { tr {
                    td { (words::marked(&drift.chain, drift.simulated)) } td.word { (drift.figure) } td { (words::phases(drift)) } td { (words::slope(drift)) } td { (format!("{:.3}", drift.p)) }
                    td.word { (words::trend(drift)) }
                } } }
            } }
            p.soft { (words::DRIFT) }
        }
    }
}

pub(super) fn resources(report: &Report) -> Markup {
    page! {
        h2 { "CPU, memory, errors, tokens merged" }
        div.box role="group" tabindex="0" aria-label="table" { table {
            thead { tr {
                th { "arm" } th { "answered/s" } th { "CPU a call" } th { "calls/s a core" } th { "memory" } th { "merge ratio" }
                th { "joined by the tap" } th { "pairing" } th.word { "outcomes" } th.word { "classes" }
            } }
            tbody { @for arm in &report.arms { tr {
                td { (words::arm(arm)) }
                td { (words::rate(arm.rate)) }
                td { (maybe(arm.gateway_cpu.map(|s| s * 1e9))) }
                td { (arm.gateway_cpu.filter(|s| *s > 0.0).map_or_else(|| "–".to_owned(), |s| format!("{:.0}", 1.0 / s))) }
                td { (arm.gateway_memory.map_or_else(|| "–".to_owned(), |b| format!("{:.0} MB", b as f64 / 1e6))) }
                td { (arm.merge_ratio.map_or_else(|| "–".to_owned(), |r| format!("{r:.3}"))) }
                td { (arm.joined_percent.map_or_else(|| "–".to_owned(), |p| format!("{p:.2} %"))) }
                td { (arm.strata.pairing.map_or_else(|| "–".to_owned(), |share| words::percent(Some(share)))) }
                td.word { (words::counts(&arm.strata.outcomes)) }
                td.word { (words::counts(&arm.strata.classes)) }
            } } }
        } }
    }
}

pub(super) fn claims(report: &Report) -> Markup {
    let claiming: Vec<&Arm> = gateways(report)
        .into_iter()
        .filter(|a| a.claimed.is_some())
        .collect();
    page! {
        @if !claiming.is_empty() {
            h2 { "What the gateway claims of itself" }
            p { "Its figure stops at the upstream's response head and begins in its handler; ours begins before its accept queue and ends when the token is out. The nearest of our legs is added TTFT." }
            div.box role="group" tabindex="0" aria-label="table" { table {
                thead { tr { th { "arm" } th { "claimed p50" } th { "measured added TTFT p50" } th { "measured ÷ claimed" } } }
                tbody { @for arm in claiming { tr {
                    @let measured = leg(arm, "added TTFT").and_then(|r| r.p50.value());
                    td { (words::arm(arm)) } td { (maybe(arm.claimed)) } td { (maybe(measured)) }
                    td { (measured.zip(arm.claimed.filter(|c| *c > 0.0)).map_or_else(|| "–".to_owned(), |(m, c)| format!("{:.2}", m / c))) }
                } } }
            } }
        }
    }
}

pub(super) fn perturbations(report: &Report) -> Markup {
    page! {
        @if !report.perturbations.is_empty() {
            h2 { "What inserting the taps did" }
            div.box role="group" tabindex="0" aria-label="table" { table {
                thead { tr { th { "arm" } th { "E2E tapped − untapped" } th { "interval" } th { "taps' own delay + floor" } th { "perturbation" } } }
                tbody { @for p in &report.perturbations { tr {
                    td { (words::marked(&format!("{} · {}", p.chain, p.label), p.simulated)) }
                    td { (maybe(p.difference.as_ref().map(|d| d.value))) }
                    td { (range(p.difference.as_ref().and_then(|d| d.interval))) }
                    td { (maybe(p.expected)) }
                    td { @match &p.refused { Some(why) => (why), None => (maybe(p.excess)) } }
                } } }
            } }
        }
    }
}

pub(super) fn arm(arm: &Arm) -> Markup {
    let strata = &arm.strata;
    page! {
        details open[arm.kind == "gateway"] {
            summary { b { (words::arm(arm)) } }
            p.soft {
                (words::sent(strata)) " calls, " (arm.blocks) " blocks" @if arm.blocks < 2 { " (no interval)" } ": " (words::counts(&strata.outcomes))
                "; fresh connections: " (strata.fresh)
                "; out of the legs: " (strata.resent) " sent again by a tap, " (strata.text_differs) " with changed text, "
                (strata.pressured) " text positions under back-pressure"
                @if strata.identity_broken > 0 { b { "; the identity of the legs is broken on " (strata.identity_broken) " calls: a fault of the instrument" } }
            }
            (lines(arm.legs.iter().chain(arm.task_added.as_ref()).chain(words::agent(arm)).chain([&arm.ttft, &arm.ttft_intended, &arm.tpot, &arm.e2e])))
            @for tool in arm.agent.iter().flat_map(|agent| &agent.tools) {
                p.soft { "Tool " b { (tool.tool) } ": " (words::counts(&tool.outcomes)) }
                (lines(std::iter::once(&tool.latency)))
            }
            @if !arm.recovered.is_empty() {
                p.soft { "Calls that took several attempts, in none of the legs above:" }
                (lines(arm.recovered.iter()))
            }
            (server::side(&arm.server))
        }
    }
}

fn lines<'a>(rows: impl Iterator<Item = &'a LegRow>) -> Markup {
    page! {
        div.box role="group" tabindex="0" aria-label="table" { table {
            thead { tr {
                th { "leg" } th { "calls" } th { "values" } th { "p50" } th { "p95" } th { "p99" } th { "mean" } th { "bounds of p50" }
                th { "interval of p50" } th { "floor" } th { "below 0" }
            } }
            tbody { @for row in rows { (line(row)) } }
        } }
    }
}

fn line(row: &LegRow) -> Markup {
    page! { tr {
        td { (row.leg) } td { (row.calls) } td { (row.samples) }
        td { (reading(&row.p50)) } td { (reading(&row.p95)) } td { (reading(&row.p99)) }
        td { (row.mean.map_or_else(|| "–".to_owned(), time)) }
        td { (range(row.bounds)) } td { (range(row.interval)) } td { (maybe(row.floor)) }
        td { (row.negative) }
    } }
}
