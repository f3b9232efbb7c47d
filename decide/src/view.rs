//! What a decision is made from, with the questions that its parts ask of it.

use std::collections::BTreeMap;

use config::{Facts, Objectives, Plan, Workload};
use cost::{Capacity, Configuration, Study};
use record::manifest::{Drive, Phase};
use report::{Arm, Contrast, Reading, Report, RunInfo};

use crate::key::Key;
use crate::language::Words;

/// All that is given.
#[derive(Debug, Clone, Copy)]
pub struct Given<'a> {
    /// What was measured.
    pub report: &'a Report,
    /// An earlier campaign, to compare with.
    pub against: Option<&'a Report>,
    /// Bills by the plan's traffic, at the plan's rates and at the workload's.
    pub study: &'a Study,
    /// Bills at many rates, for the curves.
    pub curves: &'a Study,
    /// What each configuration serves.
    pub capacities: &'a BTreeMap<Configuration, Capacity>,
    /// The plan behind the bills.
    pub plan: &'a Plan,
    /// Thresholds.
    pub objectives: &'a Objectives,
    /// What is stated.
    pub facts: &'a Facts,
    /// What the user wants to serve.
    pub workload: Option<&'a Workload>,
}

/// The same with the words of a language.
pub(crate) struct View<'a> {
    pub(crate) given: Given<'a>,
    pub(crate) words: Words,
}

impl<'a> View<'a> {
    /// The same of another report.
    pub(crate) fn of(&self, report: &'a Report) -> Self {
        Self {
            given: Given {
                report,
                ..self.given
            },
            words: Words::of(self.words.language()),
        }
    }

    pub(crate) fn say(&self, key: Key, values: &[(&str, String)]) -> String {
        self.words.say(key, values)
    }

    pub(crate) fn get(&self, key: Key) -> String {
        self.words.get(key).to_owned()
    }

    pub(crate) fn run(&self, name: &str) -> Option<&'a RunInfo> {
        self.given.report.runs.iter().find(|run| run.name == name)
    }

    /// By its own verdict.
    pub(crate) fn valid(&self, run: &str) -> bool {
        let verdict = self.run(run).and_then(|run| run.verdict.as_ref());
        verdict.is_some_and(record::verdict::Verdict::valid)
    }

    pub(crate) fn scenario(&self, run: &str) -> Option<u8> {
        Some(self.run(run)?.scenario.as_ref()?.number)
    }

    /// The arms of a configuration that made a call: its chain has its name.
    pub(crate) fn arms(&self, of: Configuration) -> impl Iterator<Item = &'a Arm> {
        let arms = self.given.report.arms.iter();
        arms.filter(move |arm| arm.chain == of.id() && arm.strata.sent > 0)
    }

    /// What a configuration's bill rests on: `None` of prices alone. Tokens have no capacity of one's own.
    pub(crate) fn behind(&self, of: Configuration) -> Option<&'a Capacity> {
        let capacity = self.given.capacities.get(&of);
        capacity.filter(|_| of != Configuration::Baseline)
    }

    /// A bill of one of them rests on a stand-in.
    pub(crate) fn on_stand_ins(&self, all: &[Configuration]) -> bool {
        let capacities = all.iter().filter_map(|of| self.behind(*of));
        capacities.into_iter().any(|one| one.simulated)
    }

    /// A bill of one of them rests on what a plan expects.
    pub(crate) fn on_guesses(&self, all: &[Configuration]) -> bool {
        let capacities = all.iter().filter_map(|of| self.behind(*of));
        capacities.into_iter().any(|one| !one.measured)
    }

    /// Those that may answer a question: of valid runs, and of the real thing where any is.
    pub(crate) fn usable(&self, of: Configuration) -> Vec<&'a Arm> {
        let valid: Vec<&Arm> = self.arms(of).filter(|arm| self.valid(&arm.run)).collect();
        real_first(valid, |arm| arm.simulated)
    }

    /// The contrasts of two configurations, in valid runs, of the real thing where any is.
    pub(crate) fn contrasts(&self, a: Configuration, b: Configuration) -> Vec<&'a Contrast> {
        let all = self.given.report.contrasts.iter();
        let pair = |c: &&Contrast| c.a == a.id() && c.b == b.id();
        let valid = all.filter(pair).filter(|c| self.valid(&c.run)).collect();
        real_first(valid, |c: &&Contrast| c.simulated)
    }

    /// The command that would measure `chains`, in one run, by a scenario.
    pub(crate) fn command(&self, scenario: u8, chains: &[&str]) -> String {
        let named: Vec<String> = chains
            .iter()
            .map(|chain| format!("--chain {chain}"))
            .collect();
        let (named, all) = (named.join(" "), chains.join("-"));
        format!("hopscope load --scenario {scenario} {named} --out runs/{scenario}-{all}")
    }
}

/// Only what is no stand-in's, where there is any.
pub(crate) fn real_first<T>(all: Vec<T>, simulated: impl Fn(&T) -> bool) -> Vec<T> {
    match all.iter().any(|one| !simulated(one)) {
        true => all.into_iter().filter(|one| !simulated(one)).collect(),
        false => all,
    }
}

/// The one phase of an arm that shows a phase alone.
pub(crate) fn phase(arm: &Arm) -> Option<&Phase> {
    match &arm.drive {
        Drive::Profile { phases } => match phases.as_slice() {
            [one] => Some(one),
            _ => None,
        },
        _ => None,
    }
}

/// Callers at once; `None` of other ways of driving.
pub(crate) fn concurrency(arm: &Arm) -> Option<u32> {
    match arm.drive {
        Drive::Closed { concurrency } => Some(concurrency),
        _ => None,
    }
}

/// Share of the calls sent, or due, that had no complete answer; `None` of no calls, and where it is not known how many
/// were due.
pub(crate) fn error_share(arm: &Arm) -> Option<f64> {
    let due = arm.strata.sent as f64 + arm.strata.unsent? as f64;
    let complete = arm
        .strata
        .outcomes
        .iter()
        .find(|(name, _)| name == "complete");
    let complete = complete.map_or(0, |(_, count)| *count) as f64;
    (due > 0.0).then(|| 1.0 - complete / due)
}

/// What a reading says of a bound from above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Yes,
    No,
    Unknown,
}

impl Holds {
    pub(crate) fn of(holds: bool) -> Self {
        match holds {
            true => Self::Yes,
            false => Self::No,
        }
    }

    /// All of them: one that does not decides, then one that is not known.
    pub(crate) fn all(parts: impl IntoIterator<Item = Self>) -> Self {
        parts
            .into_iter()
            .fold(Self::Yes, |sum, one| match (sum, one) {
                (Self::No, _) | (_, Self::No) => Self::No,
                (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
                _ => Self::Yes,
            })
    }
}

/// Whether a reading is at most `bound`.
pub(crate) fn at_most(reading: &Reading, bound: f64) -> Holds {
    match reading {
        Reading::Value { value, .. } => Holds::of(*value <= bound),
        Reading::AtLeast(least) if *least > bound => Holds::No,
        _ => Holds::Unknown,
    }
}
