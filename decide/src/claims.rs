//! What gateways and their makers claim, beside what was measured of them.

use config::facts::FactRow;
use cost::Configuration::{self, A1, A2, B1, B2};
use report::Arm;

use crate::key::Key;
use crate::model::{Cell, Claim, Row};
use crate::number;
use crate::statements::placed;
use crate::table::{added_by, cell_of};
use crate::view::View;

pub(crate) fn claims(view: &View<'_>, table: &[Row]) -> Vec<Claim> {
    let mut found = Vec::new();
    for of in [A1, A2, B1, B2] {
        let Some(measured) = cell_of(table, "added-p50", of) else {
            continue;
        };
        if let Some(fact) = placed(view, of, FactRow::ClaimedOverhead) {
            found.push(Claim {
                chain: of.id().to_owned(),
                claimed: fact.text,
                covers: format!("{} ({})", fact.source, fact.date),
                measured: measured.clone(),
            });
        }
        found.extend(of_header(view, of, added_by(view, of), measured));
    }
    found
}

/// What the gateway says of itself, call by call, in the arm that the metrics table shows.
fn of_header(
    view: &View<'_>,
    of: Configuration,
    arm: Option<&Arm>,
    measured: &Cell,
) -> Option<Claim> {
    let arm = arm?;
    let claimed = number::time(arm.claimed?);
    let mark = match arm.simulated {
        true => format!(" ({})", view.get(Key::Simulated)),
        false => String::new(),
    };
    Some(Claim {
        chain: of.id().to_owned(),
        claimed: format!("{claimed}: {}{mark}", view.get(Key::ClaimOfHeader)),
        covers: view.get(Key::ClaimCovers),
        measured: measured.clone(),
    })
}
