//! How does AgentCore respond to bursts?

use cost::Configuration::Baseline;
use record::manifest::Phase;
use report::Arm;

use super::Draft;
use crate::drive::driven;
use crate::key::Key;
use crate::model::{Answer, Verdict};
use crate::number;
use crate::view::{Holds, View, error_share, phase};

/// How much more than before a phase must bring to be a burst.
const BURST: f64 = 2.0;

pub(super) fn answer(view: &View<'_>) -> Answer {
    let objective = &view.given.objectives.burst;
    let mut draft = Draft::new(7, Key::Question7, &[9]);
    draft.thresholds.push(view.say(
        Key::BurstThresholds,
        &[
            ("errors", number::share(objective.error_share)),
            ("ratio", number::digits(objective.ttft_ratio)),
        ],
    ));
    let mut all = Vec::new();
    for (before, during) in bursts(&view.usable(Baseline)) {
        let errors = error_share(during);
        let ttft = before
            .ttft_intended
            .p50
            .value()
            .zip(during.ttft_intended.p50.value());
        let ratio = ttft.filter(|(before, _)| *before > 0.0).map(|(b, d)| d / b);
        let known = |holds: Option<bool>| holds.map_or(Holds::Unknown, Holds::of);
        all.push(Holds::all([
            known(errors.map(|share| share <= objective.error_share)),
            known(ratio.map(|ratio| ratio <= objective.ttft_ratio)),
        ]));
        let unknown = || view.get(Key::NotTold);
        let (one, other) = ttft.map_or_else(
            || (unknown(), unknown()),
            |(one, other)| (number::time(one), number::time(other)),
        );
        let simulated = before.simulated || during.simulated;
        draft.see(
            view.say(
                Key::BurstSeen,
                &[
                    ("before", one),
                    ("during", other),
                    ("label", driven(view, &during.drive)),
                    ("errors", errors.map_or_else(unknown, number::share)),
                ],
            ),
            None,
            Some(&during.run),
            simulated,
        );
    }
    draft.would_change.push(view.get(Key::ChangeQuota));
    if all.is_empty() {
        return draft.open(view, &["baseline"]);
    }
    let (key, verdict) = match Holds::all(all) {
        Holds::Yes => (Key::BurstHolds, Some(Verdict::Yes)),
        Holds::No => (Key::BurstMissed, Some(Verdict::No)),
        Holds::Unknown => (Key::BurstUnknown, None),
    };
    draft.said.push(view.get(key));
    draft.settle(view, verdict)
}

/// The first phase of each run and the one at the highest rate, where that is a burst.
fn bursts<'a>(arms: &[&'a Arm]) -> Vec<(&'a Arm, &'a Arm)> {
    let mut runs: Vec<&str> = arms.iter().map(|arm| arm.run.as_str()).collect();
    runs.dedup();
    let of_run = |run: &str| {
        let own: Vec<(&Phase, &'a Arm)> = arms
            .iter()
            .filter(|arm| arm.run == run)
            .filter_map(|arm| Some((phase(arm)?, *arm)))
            .collect();
        let (before, first) = *own.first()?;
        let most = own.iter().max_by(|a, b| a.0.rate.total_cmp(&b.0.rate))?;
        (most.0.rate >= BURST * before.rate).then_some((first, most.1))
    };
    runs.into_iter().filter_map(of_run).collect()
}
