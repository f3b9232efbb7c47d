//! Does Bifrost with llm-d run stably?

use cost::Configuration::B2;
use report::{Arm, LeakFinding};

use super::Draft;
use crate::key::Key;
use crate::model::{Answer, Verdict};
use crate::number;
use crate::view::{Holds, View, error_share};

/// A trend as clear as this is none by chance once in twenty times.
const CLEAR: f64 = 0.05;

pub(super) fn answer(view: &View<'_>) -> Answer {
    let objective = &view.given.objectives.stability;
    let mut draft = Draft::new(10, Key::Question10, &[4, 8]);
    draft.thresholds.push(view.say(
        Key::StabilityThresholds,
        &[
            ("errors", number::share(objective.error_share)),
            ("calls", objective.calls.to_string()),
        ],
    ));
    draft.would_change.push(view.get(Key::ChangeStability));
    // Beyond its capacity nothing runs stably.
    let mut arms = view.usable(B2);
    arms.retain(|arm| !arm.saturated && arm.agent.is_none());
    let calls: usize = arms.iter().map(|arm| arm.strata.sent).sum();
    let Some(first) = arms.first().filter(|_| calls as u64 >= objective.calls) else {
        if calls > 0 {
            draft
                .said
                .push(view.say(Key::TooFewCalls, &[("calls", calls.to_string())]));
        }
        return draft.open(view, &["b2"]);
    };
    let due = |arm: &Arm| Some(arm.strata.sent as f64 + arm.strata.unsent? as f64);
    let failed: Option<f64> = arms
        .iter()
        .map(|arm| Some(error_share(arm)? * due(arm)?))
        .sum();
    let all_due: Option<f64> = arms.iter().map(|arm| due(arm)).sum();
    let share = failed.zip(all_due).map(|(failed, due)| failed / due);
    let simulated = arms.iter().any(|arm| arm.simulated);
    let mut all = vec![share.map_or(Holds::Unknown, |share| {
        Holds::of(share <= objective.error_share)
    })];
    draft.see(
        view.say(
            Key::StabilitySeen,
            &[
                ("calls", calls.to_string()),
                (
                    "errors",
                    share.map_or_else(|| view.get(Key::NotTold), number::share),
                ),
            ],
        ),
        None,
        Some(&first.run),
        simulated,
    );
    let report = view.given.report;
    let mut courses = 0;
    for drift in report
        .drifts
        .iter()
        .filter(|d| d.chain.ends_with(B2.id()) && view.valid(&d.run))
    {
        courses += 1;
        let worse = drift.p < CLEAR && drift.s > 0;
        all.push(Holds::of(!worse));
        if worse {
            let values = [
                ("figure", drift.figure.to_owned()),
                ("p", number::digits(drift.p)),
            ];
            draft.see(
                view.say(Key::DriftSeen, &values),
                None,
                Some(&drift.run),
                drift.simulated,
            );
        }
    }
    for leak in report
        .leaks
        .iter()
        .filter(|l| l.chain.ends_with(B2.id()) && view.valid(&l.run))
    {
        courses += 1;
        all.push(match leak.finding {
            LeakFinding::Grows => Holds::No,
            LeakFinding::TooShort => Holds::Unknown,
            LeakFinding::Shrinks | LeakFinding::NoneShown => Holds::Yes,
        });
        if leak.finding == LeakFinding::Grows {
            let values = [
                ("figure", leak.figure.to_owned()),
                ("hours", number::digits(leak.hours)),
            ];
            draft.see(
                view.say(Key::LeakSeen, &values),
                None,
                Some(&leak.run),
                leak.simulated,
            );
        }
    }
    let verdict = match Holds::all(all) {
        Holds::No => Some(Verdict::No),
        Holds::Yes if courses > 0 => Some(Verdict::Yes),
        // Short runs show no drift, and no leak either.
        Holds::Yes => Some(Verdict::Depends),
        Holds::Unknown => None,
    };
    draft.said.push(view.get(match verdict {
        Some(Verdict::Yes) => Key::Stable,
        Some(Verdict::No) => Key::Unstable,
        Some(_) => Key::StableShort,
        None => Key::StabilityUnknown,
    }));
    draft.settle(view, verdict)
}
