//! Does AgentCore's default model meet a production objective?

use cost::Configuration;
use report::Arm;

use super::Draft;
use crate::key::Key;
use crate::model::{Answer, Verdict};
use crate::number;
use crate::table::cell_id;
use crate::view::{Holds, View, at_most, concurrency, error_share};

pub(super) fn answer(view: &View<'_>) -> Answer {
    let objective = &view.given.objectives.serving;
    let mut draft = Draft::new(1, Key::Question1, &[1]);
    draft.thresholds.push(view.say(
        Key::ServingThresholds,
        &[
            ("callers", objective.concurrency.to_string()),
            ("ttft", number::time(objective.ttft_p95.nanos() as f64)),
            ("speed", number::digits(objective.tokens_per_second)),
            ("errors", number::share(objective.error_share)),
        ],
    ));
    let of = Configuration::Baseline;
    let mut arms: Vec<(u32, &Arm)> = view
        .usable(of)
        .into_iter()
        .filter_map(|arm| Some((concurrency(arm)?, arm)))
        .collect();
    arms.sort_by_key(|(callers, _)| *callers);
    if arms.is_empty() {
        return draft.open(view, &["baseline"]);
    }
    for (callers, arm) in &arms {
        draft.see(
            seen(view, *callers, arm),
            Some(cell_id("ttft-p95", of)),
            Some(&arm.run),
            arm.simulated,
        );
    }
    let at = arms
        .iter()
        .position(|(callers, _)| *callers >= objective.concurrency);
    let Some((callers, arm)) = at.and_then(|at| arms.get(at)) else {
        draft.said.push(view.say(
            Key::NotDrivenThere,
            &[("callers", objective.concurrency.to_string())],
        ));
        return draft.open(view, &["baseline"]);
    };
    let callers_said = ("callers", callers.to_string());
    let verdict = match holds(view, arm) {
        Holds::Yes => {
            draft
                .said
                .push(view.say(Key::ObjectiveHolds, &[callers_said]));
            Some(Verdict::Yes)
        }
        Holds::Unknown => {
            draft
                .said
                .push(view.say(Key::ObjectiveUnknown, &[callers_said]));
            None
        }
        Holds::No => {
            draft
                .said
                .push(view.say(Key::ObjectiveMissed, &[callers_said]));
            let fewer = arms
                .iter()
                .rev()
                .find(|(n, arm)| n < callers && holds(view, arm) == Holds::Yes);
            match fewer {
                Some((fewer, _)) => {
                    draft
                        .said
                        .push(view.say(Key::ObjectiveUpTo, &[("callers", fewer.to_string())]));
                    Some(Verdict::Depends)
                }
                None => Some(Verdict::No),
            }
        }
    };
    draft.would_change.push(view.get(Key::ChangeThresholds));
    draft.settle(view, verdict)
}

fn speed(arm: &Arm) -> Option<f64> {
    let tpot = arm.tpot.p50.value()?;
    (tpot > 0.0).then(|| 1e9 / tpot)
}

fn holds(view: &View<'_>, arm: &Arm) -> Holds {
    let objective = &view.given.objectives.serving;
    let known = |holds: Option<bool>| holds.map_or(Holds::Unknown, Holds::of);
    Holds::all([
        at_most(&arm.ttft.p95, objective.ttft_p95.nanos() as f64),
        known(speed(arm).map(|speed| speed >= objective.tokens_per_second)),
        known(error_share(arm).map(|share| share <= objective.error_share)),
    ])
}

fn seen(view: &View<'_>, callers: u32, arm: &Arm) -> String {
    let unknown = || view.get(Key::NotTold);
    view.say(
        Key::ServingSeen,
        &[
            ("callers", callers.to_string()),
            (
                "ttft",
                arm.ttft.p95.value().map_or_else(unknown, number::time),
            ),
            ("speed", speed(arm).map_or_else(unknown, number::digits)),
            (
                "errors",
                error_share(arm).map_or_else(unknown, number::share),
            ),
        ],
    )
}
