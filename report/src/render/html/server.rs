//! What components say of themselves, and what they keep.

use super::super::server::{self, COMPONENTS, LEAKS, RATES};
use crate::model::{Report, ServerSide};
use maud::{Markup, html as page};

fn table<const N: usize>(columns: [&str; N], rows: impl Iterator<Item = [String; N]>) -> Markup {
    page! {
        div.box role="group" tabindex="0" aria-label="table" { table {
            thead { tr { @for column in columns { th.word { (column) } } } }
            tbody { @for row in rows { tr { @for cell in row { td.word { (cell) } } } } }
        } }
    }
}

/// One arm's.
pub(super) fn side(side: &ServerSide) -> Markup {
    page! {
        @if !side.rates.is_empty() {
            p.soft { "Caches:" }
            (table(RATES, side.rates.iter().map(server::rate)))
        }
        @if let Some(text) = server::repetition(side) { p.soft { (text) } }
        @if !side.components.is_empty() {
            p.soft { "By the components' own metrics:" }
            (table(COMPONENTS, side.components.iter().map(server::component)))
        }
        @if let Some(text) = server::company(side) { p.soft { (text) } }
    }
}

pub(super) fn leaks(report: &Report) -> Markup {
    page! {
        @if !report.leaks.is_empty() {
            h2 { "What the component keeps" }
            (table(LEAKS, report.leaks.iter().map(server::leak)))
            p.soft { "Theil–Sen slope of the medians of stretches, with its 95 % interval, widened for the likeness of neighbours; the first tenth of the course, in which pools and caches fill, is left out. Judged from an hour on." }
        }
    }
}
