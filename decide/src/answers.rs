//! The ten answers, one module a question.
//!
//! Only valid runs of the real thing answer. What stand-ins show is said as what it would be if they were real.

mod compared;
mod q01_objective;
mod q02_import;
mod q03_limits;
mod q04_break_even;
mod q05_agents;
mod q06_cache_routing;
mod q07_burst;
mod q08_tenants;
mod q09_overhead;
mod q10_stability;

pub(crate) use compared::{Compared, compare, figure, told};
pub(crate) use q09_overhead::gateways;

use crate::key::Key;
use crate::model::{Answer, Evidence, Row, Verdict};
use crate::view::View;

/// All of them, in their order.
pub(crate) fn answers(view: &View<'_>, table: &[Row]) -> Vec<Answer> {
    vec![
        q01_objective::answer(view),
        q02_import::answer(view),
        q03_limits::answer(view),
        q04_break_even::answer(view),
        q05_agents::answer(view),
        q06_cache_routing::answer(view, table),
        q07_burst::answer(view),
        q08_tenants::answer(view),
        q09_overhead::answer(view),
        q10_stability::answer(view),
    ]
}

/// An answer in the making.
struct Draft {
    number: u8,
    question: Key,
    scenarios: &'static [u8],
    said: Vec<String>,
    evidence: Vec<Evidence>,
    thresholds: Vec<String>,
    would_change: Vec<String>,
}

impl Draft {
    fn new(number: u8, question: Key, scenarios: &'static [u8]) -> Self {
        Self {
            number,
            question,
            scenarios,
            said: Vec::new(),
            evidence: Vec::new(),
            thresholds: Vec::new(),
            would_change: Vec::new(),
        }
    }

    fn see(&mut self, text: String, cell: Option<String>, run: Option<&str>, simulated: bool) {
        self.evidence.push(Evidence {
            text,
            cell,
            run: run.map(str::to_owned),
            simulated,
        });
    }

    /// Closes it with what was found; `None`: nothing that may answer.
    fn settle(mut self, view: &View<'_>, found: Option<Verdict>) -> Answer {
        let simulated = self.evidence.iter().any(|one| one.simulated);
        let (verdict, were_stand_ins_real) = match found {
            None => (Verdict::Unanswered, None),
            Some(found) if simulated => (Verdict::Unanswered, Some(found)),
            Some(found) => (found, None),
        };
        if found.is_none() && self.said.is_empty() {
            self.said.push(view.get(Key::NothingValid));
        }
        if were_stand_ins_real.is_some() {
            self.said.push(view.get(Key::StandInsDoNotAnswer));
        }
        Answer {
            number: self.number,
            question: view.get(self.question),
            scenarios: self.scenarios.to_vec(),
            verdict,
            were_stand_ins_real,
            said: self.said,
            evidence: self.evidence,
            thresholds: self.thresholds,
            would_change: self.would_change,
        }
    }

    /// Leaves it open: what would answer it is a run of its scenarios over `chains`.
    fn open(mut self, view: &View<'_>, chains: &[&str]) -> Answer {
        for scenario in self.scenarios {
            let command = view.command(*scenario, chains);
            self.would_change
                .push(view.say(Key::RunThis, &[("command", command)]));
        }
        self.settle(view, None)
    }
}
