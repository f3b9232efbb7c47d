//! The page: one file, nothing loaded from anywhere.

mod arms;
mod experiments;
mod server;
mod setup;
mod variants;

use super::probes::Table;
use super::words;
use crate::model::Report;
use crate::{DEFINITIONS, chart};
use maud::{DOCTYPE, Markup, PreEscaped, html as page};

const STYLE: &str = include_str!("style.css");

/// The report as a page.
#[must_use]
pub fn html(report: &Report) -> String {
    let (valid, verdict) = words::verdict(report);
    page! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "hopscope: " (words::title(report)) @if report.simulated { " (simulated)" } }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main {
                    h1 { (words::title(report)) @if report.simulated { span.badge { "simulated" } } }
                    p.verdict.valid[valid] { (verdict) }
                    (setup::findings(report))
                    @if report.simulated {
                        p { "Parts of these chains are stand-ins. Their figures show that the instrument works; they say nothing about any product." }
                    }
                    (setup::runs(report))
                    @if report.arms.iter().any(|a| a.kind == "gateway") {
                        (arms::headline(report))
                        (arms::charts(report))
                    }
                    (tables(&super::contrasts::tables(report)))
                    (tables(&super::capacity::tables(report)))
                    (experiments::table(report))
                    (variants::table(report))
                    @if !report.arms.is_empty() { (measured(report)) }
                    (setup::calibration(report))
                    (definitions())
                }
            }
        }
    }
    .into_string()
}

/// What was measured of the arms.
fn measured(report: &Report) -> Markup {
    page! {
        (arms::clients(report))
        (arms::tenants(report))
        (tables(&super::probes::tables(report)))
        (arms::drifts(report))
        (server::leaks(report))
        (arms::resources(report))
        (arms::claims(report))
        (arms::perturbations(report))
        h2 { "Every arm" }
        p.soft { "* rests on fewer than a hundred samples beyond the quantile. “too few”: not printed, since its samples or losses do not support it." }
        @for arm in &report.arms { (arms::arm(arm)) }
    }
}

fn definitions() -> Markup {
    page! {
        h2 { "Definitions" }
        dl {
            @for definition in DEFINITIONS {
                dt { (definition.name) }
                dd { (definition.meaning) }
            }
        }
    }
}

fn tables(tables: &[Table]) -> Markup {
    page! {
        @for table in tables {
            h2 { (table.title) }
            div.box role="group" tabindex="0" aria-label="table" { table {
                thead { tr { @for name in table.head { th.word { (name) } } } }
                tbody { @for row in &table.rows { tr { @for cell in row { td.word { (cell) } } } } }
            } }
            p.soft { (table.note) }
        }
    }
}

/// A chart with the names of its series.
pub(super) fn figure(svg: Option<String>, caption: &str, names: &[String]) -> Markup {
    page! {
        @if let Some(svg) = svg {
            figure aria-label=(caption) {
                (PreEscaped(svg))
                figcaption {
                    (caption)
                    @for (at, name) in names.iter().enumerate() {
                        span.key style=(format!("background:{}", chart::colour(at))) {} (name)
                    }
                }
            }
        }
    }
}
