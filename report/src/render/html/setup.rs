//! What was run, what is wrong with it, and the calibration it rests on.

use super::super::capacity;
use super::super::words::{self, ABSENT, maybe, range, time};
use crate::model::Report;
use maud::{Markup, html as page};

pub(super) fn findings(report: &Report) -> Markup {
    page! {
        ul {
            @for run in &report.runs {
                @for check in run.verdict.iter().flat_map(record::verdict::Verdict::broken) {
                    li { b { (words::check(check)) } " " span.soft { (run.name) } }
                }
            }
            @for loss in &report.losses { li { "Left out: " (loss) } }
        }
    }
}

pub(super) fn runs(report: &Report) -> Markup {
    page! {
        h2 { "What was run" }
        @for run in &report.runs {
            p {
                b { (run.name) } ", " (run.started) ", hopscope " (run.version) ", on " (run.host.cpus) " CPUs of "
                (run.host.cpu.as_deref().unwrap_or(ABSENT)) ", kernel " (run.host.kernel.as_deref().unwrap_or(ABSENT))
                @if run.shared_cpu { span.badge { "shared CPU" } }
                br;
                (words::workload(&run.workload)) @if run.workload.stream { ", streamed" }
            }
            @for probe in &run.token_probes { p { (probe.words(&run.workload.tokenizer)) "." } }
            div.box role="group" tabindex="0" aria-label="table" { table {
                thead { tr { th { "chain" } th.word { "kind" } th.word { "component" } th { "capacity, calls/s" } th.word { "injected" } } }
                tbody {
                    @for chain in &run.chains { tr {
                        td { (chain.name) @if chain.simulated { span.badge { "simulated" } } }
                        td.word { (chain.kind) }
                        td.word { (chain.gateway.as_deref().unwrap_or("–")) }
                        td { @match &chain.capacity { Some(c) => (capacity::rate(c)), None => "–" } }
                        td.word { (chain.injected.as_deref().unwrap_or("–")) }
                    } }
                }
            } }
            @if let Some(cpu) = run.scrape_cpu { p.soft { "Reading the components' metrics took " (time(cpu * 1e9)) " of CPU." } }
            @if let Some(filter) = &run.tool_filter { p { (words::filter(filter)) "." } }
            @if let Some(verdict) = &run.verdict {
                details {
                    summary { "All checks of the verdict" }
                    div.box role="group" tabindex="0" aria-label="table" { table {
                        thead { tr { th { "check" } th { "measured" } th { "limit" } th.word { "finding" } th.word { "where" } } }
                        tbody { @for check in &verdict.checks { tr {
                            td { (check.name) }
                            td { (check.measured.map_or_else(|| ABSENT.to_owned(), words::number)) " " (check.unit) }
                            td { @if check.at_least { "≥ " } @else { "≤ " } (words::number(check.limit)) }
                            td.word { (format!("{:?}", check.finding)) }
                            td.word { (check.detail) }
                        } } }
                    } }
                }
            }
        }
    }
}

pub(super) fn calibration(report: &Report) -> Markup {
    page! {
        h2 { "Calibration of the instrument" }
        @for run in &report.runs {
            @match &run.calibration {
                None => p { (run.name) ": none was made on this machine; `hopscope calibrate` makes one." }
                Some(c) => {
                    p {
                        (run.name) ": " (c.at) ", class " (c.class) ", "
                        @if c.passed { "within its bounds" } @else { b { "beyond its bounds" } }
                        "; pairing " (words::percent(c.pairing))
                        @if let Some((slope, low, high)) = c.slope { "; slope " (words::number(slope)) " (" (words::number(low)) " … " (words::number(high)) ")" }
                        "; intercept " (maybe(c.intercept)) "; largest error of the merge ratio "
                        (c.merge_error.map_or_else(|| ABSENT.to_owned(), words::number)) ". Truth: the stand-ins' own stamps (simulated)."
                    }
                    div.box role="group" tabindex="0" aria-label="table" { table {
                        thead { tr {
                            th { "leg" } th { "streams" } th.word { "mode" } th { "samples" } th { "raw p50" } th { "raw p99" }
                            th { "floor p50" } th { "floor p99" } th { "error p50" } th { "error p99" } th { "interval of p50" }
                        } }
                        tbody { @for line in &c.lines { tr {
                            td { (line.leg) } td { (line.streams) } td.word { (line.mode) } td { (line.samples) }
                            td { (time(line.raw.0)) } td { (time(line.raw.1)) }
                            td { (time(line.floor.0)) } td { (time(line.floor.1)) }
                            td { (time(line.error.0)) } td { (time(line.error.1)) }
                            td { (range(line.interval)) }
                        } } }
                    } }
                }
            }
        }
    }
}
