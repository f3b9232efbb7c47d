//! The table of an engine's variants, its cells filled by the arms of the runs that measured them.

use crate::model::{Report, VariantRow, VariantSeen};
use config::Variants;
use config::variants::VariantCell;

/// The cells of `table`, in its order, with what `report` has of each. A chain that several arms drove has one
/// line for each of them.
#[must_use]
pub fn variants(report: &Report, table: &Variants) -> Vec<VariantRow> {
    let mut rows = Vec::new();
    for variant in &table.variants {
        for cell in &variant.cells {
            for seen in seen(report, table, cell) {
                rows.push(VariantRow {
                    variant: variant.name.clone(),
                    kind: variant.kind.as_str(),
                    sets: variant.sets.clone(),
                    on: cell.on.clone(),
                    seen,
                });
            }
        }
    }
    rows
}

fn seen(report: &Report, table: &Variants, cell: &VariantCell) -> Vec<VariantSeen> {
    let Some(chain) = &cell.chain else {
        let why = cell.not_offered.clone().unwrap_or_default();
        return vec![VariantSeen::NotOffered(why)];
    };
    let measured: Vec<VariantSeen> = report
        .arms
        .iter()
        .filter(|arm| arm.chain == *chain)
        .map(|arm| VariantSeen::Measured {
            label: arm.label.clone(),
            simulated: arm.simulated,
            ttft_p50: arm.ttft.p50.clone(),
            tpot_p50: arm.tpot.p50.clone(),
            tokens_rate: arm.tokens_rate,
        })
        .collect();
    if measured.is_empty() {
        return vec![VariantSeen::NotMeasured {
            command: format!(
                "hopscope load --scenario {} --chain {chain} --out runs/{chain}",
                table.scenario
            ),
        }];
    }
    measured
}
