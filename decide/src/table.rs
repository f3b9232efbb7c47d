//! The metrics table: every metric of the plan by every configuration.

mod choice;
mod cost;
mod measured;
mod stated;

pub(crate) use self::cost::month_id;
pub(crate) use choice::{best, by_callers, by_load};
pub(crate) use measured::{Quantile, added_by, reading};
pub(crate) use stated::{experiment, limit};

use ::cost::Configuration;

use crate::key::Key;
use crate::model::{Cell, Row};
use crate::view::View;

/// The rows, in the order of the plan.
pub(crate) fn rows(view: &View<'_>) -> Vec<Row> {
    let mut rows = measured::performance(view);
    rows.extend(measured::gateway(view));
    rows.extend(measured::cache(view));
    rows.extend(cost::rows(view));
    rows.extend(stated::governance(view));
    rows.extend(stated::operations(view));
    rows
}

/// The name of a cell, to which evidence links.
pub(crate) fn cell_id(row: &str, of: Configuration) -> String {
    format!("{row}-{of}")
}

/// A cell by its row and configuration.
pub(crate) fn cell_of<'a>(table: &'a [Row], row: &str, of: Configuration) -> Option<&'a Cell> {
    let row = table.iter().find(|one| one.id == row)?;
    let at = Configuration::ALL.iter().position(|one| *one == of)?;
    row.cells.get(at)
}

fn row(
    view: &View<'_>,
    id: &str,
    (category, metric): (Key, String),
    cell: impl Fn(Configuration) -> Cell,
) -> Row {
    Row {
        id: id.to_owned(),
        category: view.get(category),
        metric,
        cells: Configuration::ALL.map(cell).into(),
    }
}
