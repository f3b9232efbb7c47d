//! Is AgentCore's isolation enough for multi-tenancy?

use cost::Configuration::Baseline;
use record::manifest::{Company, Drive};
use report::Arm;

use super::Draft;
use crate::key::Key;
use crate::model::{Answer, Verdict};
use crate::number;
use crate::table::{cell_id, limit};
use crate::view::{Holds, View};

pub(super) fn answer(view: &View<'_>) -> Answer {
    let objectives = view.given.objectives;
    let mut draft = Draft::new(8, Key::Question8, &[6]);
    draft.thresholds.push(view.say(
        Key::TenantThresholds,
        &[
            ("beyond", number::share(objectives.tenants.beyond_share)),
            ("ratio", number::digits(objectives.burst.ttft_ratio)),
        ],
    ));
    let arms = view.usable(Baseline);
    let mut all = Vec::new();
    all.extend(leaks(view, &mut draft, &arms));
    all.extend(neighbours(view, &mut draft, &arms));
    if let Some((run, simulated, limit)) = limit(view, Baseline).filter(|(run, ..)| view.valid(run))
    {
        all.push(Holds::of(
            limit.beyond_share <= objectives.tenants.beyond_share,
        ));
        let values = [
            ("probe", limit.probe.clone()),
            ("beyond", number::share(limit.beyond_share)),
        ];
        let cell = Some(cell_id("limit-precision", Baseline));
        draft.see(
            view.say(Key::LimitSeen, &values),
            cell,
            Some(run),
            simulated,
        );
    }
    draft.would_change.push(view.get(Key::ChangeTenants));
    if all.is_empty() {
        return draft.open(view, &["baseline"]);
    }
    let (key, verdict) = match Holds::all(all) {
        Holds::Yes => (Key::TenantsHold, Some(Verdict::Yes)),
        Holds::No => (Key::TenantsMissed, Some(Verdict::No)),
        Holds::Unknown => (Key::TenantsUnknown, None),
    };
    draft.said.push(view.get(key));
    draft.settle(view, verdict)
}

/// Answers in which another tenant's secret stood.
fn leaks(view: &View<'_>, draft: &mut Draft, arms: &[&Arm]) -> Option<Holds> {
    let looked: Vec<&&Arm> = arms.iter().filter(|arm| arm.leaked.is_some()).collect();
    let first = looked.first()?;
    let leaked: u64 = looked.iter().filter_map(|arm| arm.leaked).sum();
    let sent: usize = looked.iter().map(|arm| arm.strata.sent).sum();
    let values = [("leaked", leaked.to_string()), ("sent", sent.to_string())];
    draft.see(
        view.say(Key::LeaksSeen, &values),
        Some(cell_id("isolation", Baseline)),
        Some(&first.run),
        looked.iter().any(|arm| arm.simulated),
    );
    Some(Holds::of(leaked == 0))
}

/// What one tenant's flood does to the others: their median TTFT beside that of the same tenant alone.
fn neighbours(view: &View<'_>, draft: &mut Draft, arms: &[&Arm]) -> Vec<Holds> {
    let most = view.given.objectives.burst.ttft_ratio;
    let tenant = |arm: &Arm| match &arm.drive {
        Drive::Tenant {
            tenant,
            company,
            rate,
        } => Some((tenant.clone(), *company, *rate)),
        _ => None,
    };
    let mut found = Vec::new();
    for flooded in arms {
        let Some((name, Company::Flooded, rate)) = tenant(flooded) else {
            continue;
        };
        let alone = arms.iter().find(|arm| {
            arm.run == flooded.run
                && tenant(arm)
                    .is_some_and(|(n, c, r)| n == name && c == Company::Alone && r >= rate)
        });
        let Some(alone) = alone else { continue };
        // The one that floods has another rate when it is alone.
        let same = tenant(alone).is_some_and(|(_, _, r)| r.total_cmp(&rate).is_eq());
        if !same {
            continue;
        }
        let ttft = alone.ttft.p50.value().zip(flooded.ttft.p50.value());
        let Some((one, other)) = ttft.filter(|(one, _)| *one > 0.0) else {
            found.push(Holds::Unknown);
            continue;
        };
        found.push(Holds::of(other / one <= most));
        let values = [
            ("tenant", name),
            ("alone", number::time(one)),
            ("flooded", number::time(other)),
        ];
        draft.see(
            view.say(Key::NeighbourSeen, &values),
            None,
            Some(&flooded.run),
            flooded.simulated,
        );
    }
    found
}
