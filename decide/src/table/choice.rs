//! Which of several arms of a configuration a cell shows: one that is valid, of the real thing, below saturation, and
//! driven as near to the objective as any.

use std::cmp::Ordering;

use record::manifest::Drive;
use report::Arm;

use crate::view::View;

/// Callers at once at which the objective must hold, or the next higher number, then the next lower one.
/// Before all that: by the scenarios of a configuration's own speed (1 and 2), since others have other prompts.
pub(crate) fn by_callers(view: &View<'_>, arm: &Arm) -> f64 {
    let wanted = f64::from(view.given.objectives.serving.concurrency);
    let other = match view.scenario(&arm.run) {
        Some(1 | 2) => 0.0,
        _ => 1e7,
    };
    other
        + match &arm.drive {
            Drive::Closed { concurrency } if f64::from(*concurrency) >= wanted => {
                f64::from(*concurrency) - wanted
            }
            Drive::Closed { concurrency } => 1e6 + wanted - f64::from(*concurrency),
            Drive::Open {
                share: Some(share), ..
            } => 2e6 + (share - 0.5).abs(),
            // A rate that is no share of anything says nothing of load: the one with most calls.
            Drive::Open { share: None, .. } => 2e6 + 1.0 + 1.0 / (1.0 + arm.strata.sent as f64),
            Drive::Profile { .. } | Drive::Trace { .. } => 3e6,
            _ => f64::INFINITY,
        }
}

/// Half of the component's own capacity, where overhead is overhead and no queue; then few callers at once.
pub(crate) fn by_load(arm: &Arm) -> f64 {
    match &arm.drive {
        Drive::Open {
            share: Some(share), ..
        } => (share - 0.5).abs(),
        Drive::Open { .. } => 1e3,
        Drive::Closed { concurrency } => 1e6 + f64::from(*concurrency),
        _ => f64::INFINITY,
    }
}

/// The best of `arms` by `distance`; none that is infinitely far.
pub(crate) fn best<'a>(
    view: &View<'_>,
    arms: impl Iterator<Item = &'a Arm>,
    distance: impl Fn(&Arm) -> f64,
) -> Option<&'a Arm> {
    let flaws = |arm: &Arm| (!view.valid(&arm.run), arm.simulated, arm.saturated);
    let started = |arm: &Arm| view.run(&arm.run).map(|run| run.started.clone());
    arms.filter(|arm| distance(arm).is_finite())
        .min_by(|a, b| -> Ordering {
            flaws(a)
                .cmp(&flaws(b))
                .then(distance(a).total_cmp(&distance(b)))
                // Of two alike the later.
                .then(started(b).cmp(&started(a)))
        })
}
