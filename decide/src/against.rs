//! What changed from an earlier campaign: arms of the same scenario, chain and drive.

use record::manifest::Drive;
use report::{Arm, LegRow, Report};

use crate::drive::driven;
use crate::model::{Change, Figure};
use crate::table::{Quantile, reading};
use crate::view::View;

type Pick = fn(&Arm) -> &LegRow;

const FIGURES: [(&str, Pick); 3] = [
    ("TTFT p50", |arm| &arm.ttft),
    ("TPOT p50", |arm| &arm.tpot),
    ("E2E p50", |arm| &arm.e2e),
];

pub(crate) fn changes(view: &View<'_>) -> Vec<Change> {
    let Some(old) = view.given.against else {
        return Vec::new();
    };
    let earlier = view.of(old);
    let mut found = Vec::new();
    for now in &view.given.report.arms {
        // The latest of the earlier ones.
        let same = |before: &&Arm| alike(view, now, &earlier, before);
        let Some(before) = latest(old, same) else {
            continue;
        };
        for (figure, pick) in FIGURES {
            let both = reading(&earlier, before, pick(before), Quantile::P50)
                .and_then(|a| Ok((a, reading(view, now, pick(now), Quantile::P50)?)));
            // Where one side prints no median there is nothing to compare.
            let Ok((a, b)) = both else { continue };
            found.push(Change {
                chain: now.chain.clone(),
                label: driven(view, &now.drive),
                figure: figure.to_owned(),
                more_than_noise: apart(&a, &b),
                before: a,
                now: b,
            });
        }
    }
    found
}

fn latest(old: &Report, same: impl Fn(&&Arm) -> bool) -> Option<&Arm> {
    let started = |arm: &&Arm| {
        let mut runs = old.runs.iter();
        runs.find(|run| run.name == arm.run)
            .map(|run| run.started.clone())
    };
    old.arms.iter().filter(same).max_by_key(started)
}

fn alike(view: &View<'_>, now: &Arm, earlier: &View<'_>, before: &Arm) -> bool {
    let drives = match (&now.drive, &before.drive) {
        (Drive::Open { share: Some(a), .. }, Drive::Open { share: Some(b), .. }) => {
            a.total_cmp(b).is_eq()
        }
        (a, b) => a == b,
    };
    now.chain == before.chain
        && drives
        && now.simulated == before.simulated
        && view.scenario(&now.run) == earlier.scenario(&before.run)
}

/// The intervals do not meet; `None` where one has none. Not by an upper end without a bound.
fn apart(a: &Figure, b: &Figure) -> Option<bool> {
    let (a, b) = (
        (a.low?, a.high.unwrap_or(f64::INFINITY)),
        (b.low?, b.high.unwrap_or(f64::INFINITY)),
    );
    Some(a.1 < b.0 || b.1 < a.0)
}
