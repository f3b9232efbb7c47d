//! The executive summary: what the answers say for the managed service, and what for building.

use crate::key::Key;
use crate::model::{Answer, Point, Summary, Verdict};
use crate::show::verdict as word;
use crate::view::View;

/// For whom a verdict speaks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    Managed,
    Own,
    Both,
}

/// By question: for whom a yes speaks; a no speaks for the other. Limits (3) and gateways (9) decide nothing between them.
fn yes_speaks_for(question: u8) -> Option<For> {
    match question {
        1 | 2 | 5 | 7 | 8 => Some(For::Managed),
        4 | 6 | 10 => Some(For::Own),
        _ => None,
    }
}

fn speaks_for(question: u8, verdict: Verdict) -> Option<For> {
    let yes = yes_speaks_for(question);
    match (verdict, yes) {
        (Verdict::Unanswered, _) => None,
        (Verdict::Depends, _) | (_, None) => Some(For::Both),
        (Verdict::Yes, _) => yes,
        (Verdict::No, Some(For::Managed)) => Some(For::Own),
        (Verdict::No, _) => Some(For::Managed),
    }
}

pub(crate) fn summary(view: &View<'_>, answers: &[Answer]) -> Summary {
    let mut found = Summary {
        rests_on: rests_on(view),
        managed: Vec::new(),
        own: Vec::new(),
        open: Vec::new(),
    };
    for answer in answers {
        let simulated = answer.were_stand_ins_real.is_some();
        let verdict = answer.were_stand_ins_real.unwrap_or(answer.verdict);
        let said = format!("{} {}", answer.question, word(&view.words, verdict));
        let point = |text: &str| Point {
            text: text.to_owned(),
            question: answer.number,
            simulated,
        };
        let said = said.as_str();
        match speaks_for(answer.number, verdict) {
            Some(For::Managed) => found.managed.push(point(said)),
            Some(For::Own) => found.own.push(point(said)),
            Some(For::Both) => {
                // A gateway is chosen where one builds; the limits are the managed service's.
                match answer.number {
                    3 => found.managed.push(point(said)),
                    9 => found.own.push(point(said)),
                    _ => {
                        found.managed.push(point(said));
                        found.own.push(point(said));
                    }
                }
            }
            None => {}
        }
        if answer.verdict == Verdict::Unanswered {
            found.open.push(point(&answer.question));
        }
    }
    found
}

fn rests_on(view: &View<'_>) -> String {
    let runs = &view.given.report.runs;
    let valid: Vec<_> = runs.iter().filter(|run| view.valid(&run.name)).collect();
    // The arms of measured chains, not the probes beside them.
    let real = |run: &str| {
        let mut arms = view.given.report.arms.iter();
        arms.any(|arm| arm.run == run && !arm.simulated)
    };
    let values = [
        ("runs", runs.len().to_string()),
        ("valid", valid.len().to_string()),
        (
            "real",
            valid
                .iter()
                .filter(|run| real(&run.name))
                .count()
                .to_string(),
        ),
    ];
    view.say(Key::SummaryRuns, &values)
}
