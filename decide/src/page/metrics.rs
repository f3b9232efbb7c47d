//! The metrics table, with heads that stay in sight.

use maud::{Markup, html};

use super::{Page, badges};
use crate::key::Key;
use crate::model::{Cell, Figure, Row};
use crate::show::{basis, headline, interval, marks};

pub(super) fn table(page: &Page<'_>) -> Markup {
    let rows = &page.decision.table;
    let first = |at: usize| at == 0 || rows[at - 1].category != rows[at].category;
    html! {
        div.box.metrics role="group" tabindex="0" aria-label=(page.get(Key::SectionTable)) {
            table {
                thead { tr {
                    th scope="col" { (page.get(Key::HeadMetric)) }
                    @for name in crate::configurations() { th scope="col" { (name) } }
                } }
                tbody {
                    @for (at, row) in rows.iter().enumerate() {
                        @if first(at) {
                            tr.group { th colspan="7" scope="colgroup" { (row.category) } }
                        }
                        (line(page, row))
                    }
                }
            }
        }
    }
}

fn line(page: &Page<'_>, row: &Row) -> Markup {
    html! {
        tr {
            th scope="row" { (row.metric) }
            @for (of, cell) in crate::configurations().iter().zip(&row.cells) {
                td id=(format!("{}-{of}", row.id)) { (self::cell(page, cell)) }
            }
        }
    }
}

/// A cell with all that says how far it can be trusted.
pub(super) fn cell(page: &Page<'_>, cell: &Cell) -> Markup {
    match cell {
        Cell::NotApplicable => html! { span.soft title=(page.get(Key::NotApplicable)) { "–" } },
        Cell::NotMeasured { command } => html! {
            span.soft { (page.get(Key::NotMeasured)) }
            small { code { (command) } }
        },
        Cell::Withheld { why, run } => html! {
            span.soft { (page.get(Key::Withheld)) }
            small { (why) @if let Some(run) = run { " [" (run) "]" } }
        },
        Cell::Value(figure) => value(page, figure),
        Cell::Stated {
            text,
            source,
            date,
            basis: known,
        } => html! {
            (text)
            small { (page.get(Key::Stated)) " (" (basis(&page.words, known)) "): " (source) ", " (date) }
        },
    }
}

fn value(page: &Page<'_>, figure: &Figure) -> Markup {
    html! {
        b { (headline(figure)) }
        (badges(&marks(&page.words, figure)))
        small {
            @if let Some(range) = interval(figure) { (range) br; }
            @if let Some(samples) = figure.samples { "n = " (samples) " · " }
            (figure.label)
            @if let Some(run) = &figure.run { " [" (run) "]" }
        }
    }
}
