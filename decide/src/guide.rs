//! From a workload to a configuration, by the rules of the plan and by what was measured.

mod turns;

use crate::key::Key;
use crate::model::{Guide, Step, Turn};
use crate::number;
use crate::view::View;

/// A question: its name, what is asked, where a yes leads and where a no.
type Rule = (&'static str, Key, &'static str, &'static str);

/// The rules, in the order in which they are drawn. What leads to no other rule leads to a configuration.
const RULES: [Rule; 11] = [
    ("sovereignty", Key::StepSovereignty, "repetition", "engine"),
    ("engine", Key::StepEngine, "repetition", "newest"),
    ("newest", Key::StepNewest, "repetition", "governance"),
    ("governance", Key::StepGovernance, "repetition", "cost"),
    ("cost", Key::StepCost, "repetition", "own-model"),
    ("own-model", Key::StepOwnModel, "baseline-plus", "near"),
    ("near", Key::StepNear, "provisioned", "baseline"),
    ("repetition", Key::StepRepetition, "routing", "gateway"),
    ("routing", Key::StepRouting, "gateway-routed", "gateway"),
    ("gateway", Key::StepGatewayPlain, "a2", "a1"),
    ("gateway-routed", Key::StepGatewayRouted, "b2", "b1"),
];

/// What was found of a question.
struct Found {
    turn: Turn,
    why: String,
    /// It rests on stand-ins or on what a plan expects.
    provisional: bool,
}

/// The name of what a path leads to; `None` of a step.
pub(crate) fn destination(view: &View<'_>, id: &str) -> Option<String> {
    let key = match id {
        "baseline" => Key::NameBaseline,
        "provisioned" => Key::NameProvisioned,
        "baseline-plus" => Key::NameBaselinePlus,
        "a1" => Key::NameA1,
        "a2" => Key::NameA2,
        "b1" => Key::NameB1,
        "b2" => Key::NameB2,
        _ => return None,
    };
    Some(view.get(key))
}

pub(crate) fn guide(view: &View<'_>) -> Guide {
    let mut guide = Guide {
        workload: None,
        steps: RULES
            .map(|(id, asked, yes, no)| Step {
                id,
                asked: view.get(asked),
                yes,
                no,
                turn: None,
                why: None,
                provisional: false,
            })
            .into(),
        reached: None,
        said: view.get(Key::GuideNoWorkload),
        provisional: false,
    };
    let Some(workload) = view.given.workload else {
        return guide;
    };
    guide.workload = Some(view.say(
        Key::WorkloadIs,
        &[
            ("rate", number::rate(workload.rate)),
            ("share", number::share(workload.repeated_prompt_share)),
            ("tenants", workload.tenants.to_string()),
        ],
    ));
    let mut at = RULES[0].0;
    // Each rule leads to a later one, so the path ends.
    while let Some(step) = guide.steps.iter_mut().find(|step| step.id == at) {
        let found = turns::turn(view, workload, at);
        (step.turn, step.why) = (Some(found.turn), Some(found.why.clone()));
        step.provisional = found.provisional;
        guide.provisional |= found.provisional;
        at = match found.turn {
            Turn::Yes => step.yes,
            Turn::No => step.no,
            Turn::Unknown => {
                let values = [("asked", step.asked.clone()), ("why", found.why)];
                guide.said = told(view, view.say(Key::GuideEnds, &values), guide.provisional);
                return guide;
            }
        };
    }
    let name = destination(view, at).unwrap_or_default();
    let said = view.say(Key::GuideReached, &[("id", at.to_owned()), ("name", name)]);
    guide.said = told(view, said, guide.provisional);
    guide.reached = Some(at.to_owned());
    guide
}

/// Where the path leads is never said without how far it can be trusted.
fn told(view: &View<'_>, said: String, provisional: bool) -> String {
    match provisional {
        true => format!("{said} {}", view.get(Key::GuideProvisional)),
        false => said,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_leads_to_a_later_rule_or_to_a_configuration() {
        let place = |id: &str| RULES.iter().position(|rule| rule.0 == id);
        let ends = [
            "baseline",
            "provisioned",
            "baseline-plus",
            "a1",
            "a2",
            "b1",
            "b2",
        ];
        let mut reached = Vec::new();
        for (at, rule) in RULES.iter().enumerate() {
            for next in [rule.2, rule.3] {
                match place(next) {
                    Some(later) => assert!(later > at, "{} leads back to {next}", rule.0),
                    None => assert!(ends.contains(&next), "{next} is nothing"),
                }
                reached.push(next);
            }
        }
        for end in ends {
            assert!(reached.contains(&end), "nothing leads to {end}");
        }
        for rule in &RULES[1..] {
            assert!(reached.contains(&rule.0), "nothing leads to {}", rule.0);
        }
    }
}
