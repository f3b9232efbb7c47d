//! Going on with a run that was stopped or killed.
//!
//! What it finished is kept. A cell that it was cut in is driven anew under a number of its own, since half
//! a cell is no repetition of a whole one; a course of load, which may have run for hours, goes on where it
//! was cut. A call that was in flight then is written down as cut off: its times are lower bounds.

use super::Campaign;
use super::plan::{Job, Planned};
use crate::cell::Way;
use crate::{LoadError, Plan};
use record::client::{CallOutcome, ClientCall};
use record::clock::Nanos;
use record::manifest::{Cell, Drive, Manifest};
use record::rundir::RunDir;
use record::token_probe::TokenProbe;
use std::collections::{BTreeMap, HashSet};

/// What an earlier process left of the run.
pub(super) struct Earlier {
    manifest: Manifest,
    /// When the first of its calls was due; `None` of none.
    first: Option<Nanos>,
    /// The last cell of which there is a call.
    last_cell: Option<u32>,
    /// The courses of load that it was cut in.
    courses: BTreeMap<u32, Driven>,
}

/// What is known of a course of load whose driver was killed.
#[derive(Default)]
struct Driven {
    /// One of its calls; `None` where none had ended.
    one: Option<ClientCall>,
    /// When the last one ended.
    end: Nanos,
    /// How many there are.
    count: u64,
    /// A bit for each number: whether that call is known.
    told: Vec<u64>,
}

impl Driven {
    fn take(&mut self, call: ClientCall) {
        self.end = call.end.max(self.end);
        self.count += 1;
        let Ok(word) = usize::try_from(call.seq / 64) else {
            return;
        };
        if self.told.len() <= word {
            self.told.resize(word + 1, 0);
        }
        self.told[word] |= 1 << (call.seq % 64);
        self.one.get_or_insert(call);
    }

    fn knows(&self, seq: u64) -> bool {
        let word = usize::try_from(seq / 64)
            .ok()
            .and_then(|at| self.told.get(at));
        word.is_some_and(|word| word >> (seq % 64) & 1 == 1)
    }
}

fn is_course(cell: &Cell) -> bool {
    matches!(cell.drive, Drive::Profile { .. })
}

impl Earlier {
    /// What its usage probe found.
    pub(super) fn token_probes(&self) -> &[TokenProbe] {
        &self.manifest.token_probes
    }

    /// Reads the run in the plan's directory, and checks that the plan is still its own.
    pub(super) fn read(plan: &Plan) -> Result<Self, LoadError> {
        let run = RunDir::open(&plan.out)?;
        let manifest = run.manifest()?;
        if let Some(what) = differs(plan, &manifest) {
            return Err(LoadError::Plan(format!(
                "{}: cannot be resumed: {what}; name another --out, and show both directories in one report",
                plan.out.display()
            )));
        }
        let courses = manifest.under_way.iter().filter(|cell| is_course(cell));
        let mut earlier = Self {
            first: None,
            last_cell: None,
            courses: courses.map(|cell| (cell.id, Driven::default())).collect(),
            manifest,
        };
        let mut calls = run.stream_calls()?;
        for call in calls.by_ref() {
            let first = earlier.first.unwrap_or(call.intended);
            earlier.first = Some(first.min(call.intended));
            earlier.last_cell = earlier.last_cell.max(Some(call.cell));
            if let Some(course) = earlier.courses.get_mut(&call.cell) {
                course.take(call);
            }
        }
        for loss in calls.losses() {
            // A kill tears the last frame, at most a second old.
            tracing::warn!(%loss, "while resuming");
        }
        Ok(earlier)
    }
}

/// Why what the plan wants is not what the run is of.
fn differs(plan: &Plan, manifest: &Manifest) -> Option<String> {
    if manifest.boot != record::host::boot() {
        return Some("the machine was started anew since, and its clock with it".to_owned());
    }
    if manifest.version != env!("CARGO_PKG_VERSION") {
        return Some(format!(
            "version {} of hopscope began it, and this is {}",
            manifest.version,
            env!("CARGO_PKG_VERSION")
        ));
    }
    if manifest.seed != Some(plan.seed) || manifest.run != plan.name {
        return Some(format!(
            "it is the run {} with the seed {:?}, and {} with the seed {} was asked for",
            manifest.run, manifest.seed, plan.name, plan.seed
        ));
    }
    let wanted = plan.texts();
    if manifest.config == wanted {
        return None;
    }
    let keys: HashSet<&String> = manifest.config.keys().chain(wanted.keys()).collect();
    let mut other: Vec<&str> = keys
        .into_iter()
        .filter(|key| manifest.config.get(*key) != wanted.get(*key))
        .map(String::as_str)
        .collect();
    other.sort_unstable();
    Some(format!(
        "the files of it have changed since ({})",
        other.join(", ")
    ))
}

impl Campaign<'_> {
    /// Makes what an earlier process measured part of this campaign; tells whether nothing of it is kept.
    pub(super) fn take_up(&mut self, earlier: Earlier) -> Result<bool, LoadError> {
        let Earlier {
            manifest,
            first,
            last_cell,
            courses,
        } = earlier;
        if manifest.workload.trace != self.trace.as_ref().map(|trace| trace.info.clone()) {
            return Err(LoadError::Plan(format!(
                "{}: cannot be resumed: its trace has changed since; name another --out",
                self.plan.out.display()
            )));
        }
        let numbers = manifest.cells.iter().chain(&manifest.under_way);
        let numbers = numbers.map(|c| c.id).chain(last_cell);
        // A probe runs beside a cell, under the number after it.
        self.next = numbers.max().map_or(0, |last| last.saturating_add(2));
        self.started = manifest.started;
        self.resumed = manifest.resumed;
        self.resumed.push(record::host::now_rfc3339());
        for chain in manifest.chains {
            if let Some(capacity) = chain.capacity {
                self.capacities.insert(chain.name, capacity);
            }
        }
        self.began = self.began.min(first.unwrap_or(self.began));
        self.cells = manifest.cells;
        self.cells.retain(|cell| !cell.cut || is_course(cell));
        for cell in manifest.under_way.into_iter().filter(is_course) {
            let salvaged = courses
                .get(&cell.id)
                .and_then(|known| self.salvage(cell, known));
            if let Some((cell, lost)) = salvaged {
                self.stage.recorder.keep(&lost)?;
                self.cells.push(cell);
            }
        }
        self.experiments = manifest.experiments;
        let cells = &self.cells;
        self.experiments
            .retain(|one| cells.iter().any(|cell| cell.id == one.cell));
        Ok(self.cells.is_empty())
    }

    /// The part of a course that a kill left, and the calls that were due in it and of which nothing is
    /// known: they were in flight, or ended in the last moment. `None` where no call is known.
    fn salvage(&self, mut cell: Cell, known: &Driven) -> Option<(Cell, Vec<ClientCall>)> {
        let profile = self.plan.scenario.profile.as_ref()?;
        let due = || {
            let course = self.stage.course(profile, &cell.chain, cell.block);
            course.filter_map(|due| due.checked_sub(cell.skipped))
        };
        let one = known.one.as_ref()?;
        let at = due().nth(usize::try_from(one.seq).ok()?)?;
        let (from, to) = (one.intended.saturating_sub(at), known.end);
        let lost: Vec<ClientCall> = (0..)
            .zip(due())
            .map(|(seq, due)| (seq, from.saturating_add(due)))
            .take_while(|(_, due)| *due < to)
            .filter(|(seq, _)| !known.knows(*seq))
            .map(|(seq, due)| lost(one, seq, due, to))
            .collect();
        (cell.from, cell.to, cell.cut) = (from, to, true);
        cell.sent = known.count + lost.len() as u64;
        cell.scheduled = Some(cell.sent);
        Some((cell, lost))
    }

    /// What is left to do of a job in `block`; `None` where all of it is done.
    pub(super) fn left_of(&self, job: Job, block: u32) -> Option<Job> {
        let driven = |chain: usize, drive: &Drive| {
            let chain = &self.plan.chains[chain].chain.name;
            let same = move |c: &&Cell| c.chain == *chain && c.block == block && c.drive == *drive;
            self.cells.iter().filter(same).collect::<Vec<_>>()
        };
        match job {
            Job::Party(party) => {
                let tenants = self.plan.scenario.tenants.as_ref()?;
                let drives = party.drives(tenants);
                let done = drives.iter().all(|d| !driven(party.chain, d).is_empty());
                (!done).then_some(Job::Party(party))
            }
            Job::Trial(chain) => {
                let name = &self.plan.chains[chain].chain.name;
                let same = |c: &Cell| {
                    let experiment = matches!(c.drive, Drive::Experiment { .. });
                    c.chain == *name && c.block == block && experiment
                };
                (!self.cells.iter().any(same)).then_some(Job::Trial(chain))
            }
            Job::Cell(planned) => {
                let parts = driven(planned.chain, &planned.drive);
                let Some(last) = parts.last() else {
                    return Some(Job::Cell(planned));
                };
                if !last.cut {
                    return None;
                }
                let spent = last.skipped + last.to.saturating_sub(last.from);
                Some(Job::Cell(rest_of(planned, spent)))
            }
        }
    }
}

/// A course of load from `spent` nanoseconds after its beginning on.
fn rest_of(mut planned: Planned, spent: Nanos) -> Planned {
    if let Way::Profile { skipped, .. } = &mut planned.way {
        *skipped = spent;
    }
    planned
}

/// A call that was due and whose end nobody wrote down.
fn lost(like: &ClientCall, seq: u64, due: Nanos, cut: Nanos) -> ClientCall {
    ClientCall {
        end: cut,
        outcome: CallOutcome::CutOff,
        fault: Some("the run was killed".to_owned()),
        prompt_tokens: like.prompt_tokens,
        ..ClientCall::unanswered(like.cell, seq, due, due)
    }
}
