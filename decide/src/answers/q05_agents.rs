//! Can AgentCore handle complex agent workflows?

use cost::Configuration::{Baseline, BaselinePlus};
use report::Arm;

use super::Draft;
use crate::drive::driven;
use crate::key::Key;
use crate::model::{Answer, Verdict};
use crate::number;
use crate::view::{Holds, View, at_most, error_share, real_first};

pub(super) fn answer(view: &View<'_>) -> Answer {
    let objective = &view.given.objectives.agent;
    let mut draft = Draft::new(5, Key::Question5, &[5]);
    draft.thresholds.push(view.say(
        Key::AgentThresholds,
        &[
            ("task", number::time(objective.task_p50.nanos() as f64)),
            ("errors", number::share(objective.error_share)),
        ],
    ));
    let managed = [Baseline, BaselinePlus]
        .into_iter()
        .flat_map(|of| view.usable(of));
    let arms: Vec<&Arm> = managed.filter(|arm| arm.agent.is_some()).collect();
    let arms = real_first(arms, |arm| arm.simulated);
    let mut all = Vec::new();
    for arm in &arms {
        let Some(agent) = &arm.agent else { continue };
        let errors = error_share(arm);
        let known = errors.map_or(Holds::Unknown, |e| Holds::of(e <= objective.error_share));
        all.push(Holds::all([
            at_most(&agent.task.p50, objective.task_p50.nanos() as f64),
            known,
        ]));
        let unknown = || view.get(Key::NotTold);
        let task = agent.task.p50.value().map_or_else(unknown, number::time);
        draft.see(
            view.say(
                Key::AgentSeen,
                &[
                    ("chain", arm.chain.clone()),
                    ("label", driven(view, &arm.drive)),
                    ("task", task),
                    ("errors", errors.map_or_else(unknown, number::share)),
                ],
            ),
            None,
            Some(&arm.run),
            arm.simulated,
        );
    }
    draft.would_change.push(view.get(Key::ChangeAgent));
    if all.is_empty() {
        return draft.open(view, &["baseline"]);
    }
    let verdict = match (all.contains(&Holds::Yes), Holds::all(all.iter().copied())) {
        (_, Holds::Yes) => Some(Verdict::Yes),
        (true, Holds::No) => Some(Verdict::Depends),
        (false, Holds::No) => Some(Verdict::No),
        (_, Holds::Unknown) => None,
    };
    let key = match verdict {
        Some(Verdict::Yes) => Key::AgentHolds,
        Some(Verdict::Depends) => Key::AgentPartly,
        Some(_) => Key::AgentMissed,
        None => Key::AgentUnknown,
    };
    draft.said.push(view.get(key));
    draft.settle(view, verdict)
}
