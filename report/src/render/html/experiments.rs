//! Experiments of operation.

use super::super::words::experiment as words;
use crate::model::Report;
use maud::{Markup, html as page};

pub(super) fn table(report: &Report) -> Markup {
    page! {
        @if !report.experiments.is_empty() {
            h2 { "Experiments of operation" }
            div.box role="group" tabindex="0" aria-label="table" { table {
                thead { tr {
                    th { "chain" } th.word { "experiment" } th.word { "event" } th.word { "measured" } th { "median" } th { "between" }
                    th.word { "over repetitions" } th.word { "calls from the event on" }
                } }
                tbody { @for row in &report.experiments { tr {
                    td { (words::chain(row, report.runs.len() > 1)) @if row.simulated { span.badge { "simulated" } } }
                    td.word { (words::setup(&row.setup)) }
                    td.word { (words::event(row)) }
                    td.word { (row.quantity) }
                    td { (words::found(&row.median)) }
                    td { (words::bounds(&row.median)) }
                    td.word { (words::repetitions(row)) }
                    td.word { (words::outcomes(row)) }
                } } }
            } }
            p.soft { (words::NOTE) }
        }
    }
}
