//! The table of an engine's variants.

use super::super::words::{rate, reading};
use crate::model::{Report, VariantSeen};
use maud::{Markup, html as page};

pub(super) fn table(report: &Report) -> Markup {
    page! {
        @if !report.variants.is_empty() {
            h2 { "Quantisation and engine controls" }
            div.box role="group" tabindex="0" aria-label="table" { table {
                thead { tr {
                    th { "variant" } th.word { "kind" } th.word { "sets" } th.word { "on" } th.word { "driven" }
                    th { "TTFT p50" } th { "TPOT p50" } th { "tokens/s" }
                } }
                tbody { @for row in &report.variants { tr {
                    td { (row.variant) } td.word { (row.kind) } td.word { (row.sets) } td.word { (row.on) }
                    @match &row.seen {
                        VariantSeen::Measured { label, simulated, ttft_p50, tpot_p50, tokens_rate } => {
                            td.word { (label) @if *simulated { span.badge { "simulated" } } }
                            td { (reading(ttft_p50)) } td { (reading(tpot_p50)) } td { (rate(*tokens_rate)) }
                        }
                        VariantSeen::NotMeasured { command } => { td.word colspan="4" { "not measured: " code { (command) } } }
                        VariantSeen::NotOffered(why) => { td.word colspan="4" { "not offered: " (why) } }
                    }
                } } }
            } }
        }
    }
}
