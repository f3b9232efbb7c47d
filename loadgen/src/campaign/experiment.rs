//! An experiment of operation: a steady probe, something that happens to the chain, and a watch that ends
//! the probe when there is nothing left to wait for.

use super::plan::{describe, words};
use super::{Campaign, counted};
use crate::cell::{Order, RUN_UP, Ran, Stage, Way, run as run_cell};
use crate::trigger::{LOGS, Running};
use crate::{LoadError, pacer};
use config::Period;
use config::scenario::{
    Action, Arrivals, CellLength, Experiment as Wanted, ExperimentKind, Profile, ProfilePhase,
};
use record::client::{CallOutcome, ClientCall};
use record::clock::{Nanos, now};
use record::experiment::{
    Experiment, Found, Kind, Measure, Probe, Raised, Setup, Triggered, Watched, measure,
};
use record::manifest::Drive;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// From the decision to begin to the schedule's begin: time to make ready.
const AHEAD: Nanos = 100_000_000;
/// A watch looks no more and no less often than so.
const LOOK: (Nanos, Nanos) = (50_000_000, 1_000_000_000);
/// The schedule goes on for as long behind the last instant that the watch needs: the watch ends the probe.
const SLACK: Period = Period::secs(60);

/// What the watch saw.
struct Seen {
    event: Nanos,
    trigger: Option<Triggered>,
    /// Everything that was looked for, where it was there before the limit.
    measures: Option<Vec<Measure>>,
    failed: Option<LoadError>,
}

impl Campaign<'_> {
    /// Makes the scenario's experiment once on a chain.
    pub(super) fn trial(&mut self, chain: usize, block: u32) -> Result<(), LoadError> {
        let plan = self.plan;
        let Some(wanted) = &plan.scenario.experiment else {
            return Ok(());
        };
        let id = self.number(1);
        let drive = Drive::Experiment {
            setup: setup(wanted),
        };
        self.stage.recorder.at(|c| {
            c.chain.clone_from(&plan.chains[chain].chain.name);
            c.component = self.components[chain].clone();
            c.cell = words(&drive);
            c.asked = wanted.rate;
        });
        self.make_ready(wanted, id)?;
        let order = self.probe_order(wanted, (id, chain), block)?;
        self.begin(vec![describe(&order, &drive, block, Ran::default())])?;
        self.stage.recorder.watch(id);
        let (began, before) = (now(), (self.own_cpu(), self.components[chain].cpu()));
        let setup = setup(wanted);
        let watch = Watch {
            stage: &self.stage,
            setup: &setup,
            trigger: wanted.trigger.as_ref(),
            cell: id,
            start: order.begin.unwrap_or_else(now) + RUN_UP,
            log: self.log(&format!("cell-{id}.log")),
        };
        let (over, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        let (ran, seen) = std::thread::scope(|scope| {
            let watching = scope.spawn(|| {
                let seen = watch.until_met(&ended);
                over.store(true, Ordering::Relaxed);
                seen
            });
            let ran = run_cell(&self.stage, &order, &over);
            ended.store(true, Ordering::Relaxed);
            (ran, watching.join())
        });
        let seen = seen.map_err(|_| LoadError::Start {
            what: "the watch of an experiment",
            source: std::io::Error::other("it ended with a panic"),
        })?;
        let mut cell = describe(&order, &drive, block, ran?);
        let component = &self.components[chain];
        (cell.generator_cpu, cell.tap_cpu) = self.own_cpu_since(before.0);
        cell.gateway_cpu = component.cpu_since(before.1.as_ref());
        cell.gateway_memory = component.memory();
        let tally = self.stage.recorder.cell(id)?;
        let calls = self.stage.recorder.watched(id);
        cell.counted = counted(&cell, began, now(), &tally);
        // Half an experiment is none: it is made anew.
        cell.cut = self.stage.stop.requested() || seen.failed.is_some();
        let triggered = seen.trigger.as_ref().and_then(|trigger| trigger.end);
        let measures = seen
            .measures
            .unwrap_or_else(|| watch.at_the_end(seen.event, triggered, &calls));
        self.experiments.push(Experiment {
            cell: id,
            chain: cell.chain.clone(),
            block,
            event: seen.event,
            trigger: seen.trigger,
            measures: if cell.cut { Vec::new() } else { measures },
            outcomes: outcomes(&calls, seen.event),
            setup,
        });
        self.cells.push(cell);
        self.under_way.clear();
        seen.failed.map_or(Ok(()), Err)
    }

    fn log(&self, name: &str) -> PathBuf {
        self.run.root().join(LOGS).join(name)
    }

    /// Brings the chain into the state from which the experiment begins.
    fn make_ready(&self, wanted: &Wanted, id: u32) -> Result<(), LoadError> {
        let stop = self.stage.stop;
        let go_on = || !stop.requested();
        if let Some(action) = &wanted.prepare {
            let log = self.log(&format!("cell-{id}-prepare.log"));
            let mut running = Running::start(action, &log, wanted.limit.get())?;
            let until = running.begin.saturating_add(wanted.limit.nanos());
            while running.ended().is_none() {
                if now() > until {
                    return Err(running.late(wanted.limit.get()));
                }
                if !pacer::sleep_while(now() + LOOK.0, go_on) {
                    return Err(LoadError::Stopped);
                }
            }
            if let Some(error) = running.error() {
                return Err(error);
            }
        }
        match pacer::sleep_while(now().saturating_add(wanted.idle.nanos()), go_on) {
            true => Ok(()),
            false => Err(LoadError::Stopped),
        }
    }

    fn probe_order(
        &self,
        wanted: &Wanted,
        (id, chain): (u32, usize),
        block: u32,
    ) -> Result<Order, LoadError> {
        let profile = profile(wanted);
        let lasts = Period::sum(profile.phases.iter().map(|phase| phase.duration));
        let own = &self.plan.chains[chain].chain.model;
        let target = match &wanted.model {
            Some(model) => Arc::new(self.targets[chain].asking(model)?),
            None => self.targets[chain].clone(),
        };
        Ok(Order {
            id,
            target,
            model: wanted.model.as_ref().unwrap_or(own).clone(),
            block,
            way: Way::Profile {
                profile,
                skipped: 0,
            },
            length: CellLength {
                duration: Some(lasts),
                calls: None,
            },
            warmup: CellLength::default(),
            begin: Some(now() + AHEAD),
            draw: Vec::new(),
            seat: None,
        })
    }
}

/// The experiment as the manifest keeps it.
pub(super) fn setup(wanted: &Wanted) -> Setup {
    Setup {
        looks_for: match wanted.kind {
            ExperimentKind::ColdStart => Kind::ColdStart,
            ExperimentKind::ModelUpdate => Kind::ModelUpdate,
            ExperimentKind::Recovery => Kind::Recovery,
            ExperimentKind::ScaleOut => Kind::ScaleOut,
            ExperimentKind::QueueDrain => Kind::QueueDrain,
        },
        rate: wanted.rate,
        before: wanted.before.map_or(0, Period::nanos),
        raised: wanted.raised.map(|raised| Raised {
            rate: raised.rate,
            lasts: raised.duration.map(Period::nanos),
        }),
        renamed: wanted.model.is_some(),
        settle: wanted.settle.nanos(),
        window: wanted.window.nanos(),
        ttft_within: wanted.ttft_within,
        limit: wanted.limit.nanos(),
    }
}

/// Steady load, what is more than that, and the probe for as long as the experiment can take.
fn profile(wanted: &Wanted) -> Profile {
    let phase = |name: &str, rate: f64, duration: Period| ProfilePhase {
        name: name.to_owned(),
        rate,
        to: None,
        duration,
    };
    let rest = Period::sum([wanted.limit, wanted.settle, wanted.window, SLACK].into_iter());
    let mut phases: Vec<ProfilePhase> = wanted
        .before
        .map(|before| phase("before", wanted.rate, before))
        .into_iter()
        .collect();
    let mut rate = wanted.rate;
    if let Some(raised) = wanted.raised {
        match raised.duration {
            Some(duration) => phases.push(phase("raised", raised.rate, duration)),
            None => rate = raised.rate,
        }
    }
    phases.push(phase("after", rate, rest));
    Profile {
        phases,
        arrivals: Arrivals::Uniform,
        in_flight_max: wanted.in_flight_max,
    }
}

/// Looks at the probe's calls while they end.
struct Watch<'a> {
    stage: &'a Stage<'a>,
    setup: &'a Setup,
    trigger: Option<&'a Action>,
    cell: u32,
    start: Nanos,
    log: PathBuf,
}

impl Watch<'_> {
    /// When the event is due.
    fn event(&self) -> Nanos {
        let setup = self.setup;
        let burst = setup.raised.and_then(|raised| raised.lasts).unwrap_or(0);
        // Evenly spaced calls begin half a spacing behind their schedule.
        let first = match (setup.looks_for, self.trigger) {
            (Kind::ColdStart, None) => (0.5e9 / setup.rate) as Nanos,
            _ => 0,
        };
        self.start + setup.before + burst + first
    }

    /// Makes the event, and waits until everything that is looked for was seen, or the limit is over.
    fn until_met(&self, ended: &AtomicBool) -> Seen {
        let stop = self.stage.stop;
        let go_on = || !stop.requested() && !ended.load(Ordering::Relaxed);
        let event = self.event();
        let reached = pacer::sleep_while(event, go_on);
        let patience = std::time::Duration::from_nanos(self.setup.limit);
        let mut running = match self.trigger.filter(|_| reached) {
            Some(action) => match Running::start(action, &self.log, patience) {
                Ok(running) => Some(running),
                Err(error) => return seen(event, None, None, Some(error)),
            },
            None => None,
        };
        let event = running.as_ref().map_or(event, |running| running.begin);
        let setup = self.setup;
        let rest = setup.limit + setup.settle + setup.window + (2e9 / setup.rate) as Nanos;
        let until = event.saturating_add(rest);
        let look = (setup.settle / 10).clamp(LOOK.0, LOOK.1);
        while reached && now() < until {
            if !pacer::sleep_while(now() + look, go_on) {
                break;
            }
            let triggered = running.as_mut().map(Running::ended);
            if let Some(error) = running.as_ref().and_then(Running::error) {
                return seen(event, running, None, Some(error));
            }
            let probes = whole(self.stage.recorder.so_far(self.cell));
            let measures = measure(&Watched {
                setup,
                start: self.start,
                event,
                triggered: triggered.flatten(),
                over: false,
                probes: &probes,
            });
            let open = |m: &Measure| matches!(m.found, Found::LongerThan(_));
            if triggered != Some(None) && !measures.iter().any(open) {
                return seen(event, running, Some(measures), None);
            }
        }
        seen(event, running, None, None)
    }

    /// What can be told of an experiment that was not over at its limit.
    fn at_the_end(
        &self,
        event: Nanos,
        triggered: Option<Nanos>,
        calls: &[ClientCall],
    ) -> Vec<Measure> {
        let mut probes: Vec<Probe> = calls.iter().map(Probe::of).collect();
        probes.sort_unstable_by_key(|probe| probe.intended);
        measure(&Watched {
            setup: self.setup,
            start: self.start,
            event,
            triggered,
            over: true,
            probes: &probes,
        })
    }
}

fn seen(
    event: Nanos,
    running: Option<Running>,
    measures: Option<Vec<Measure>>,
    failed: Option<LoadError>,
) -> Seen {
    Seen {
        event,
        trigger: running.map(Running::close),
        measures,
        failed,
    }
}

/// The calls up to the first one that has not ended.
fn whole(mut probes: Vec<Probe>) -> Vec<Probe> {
    probes.sort_unstable_by_key(|probe| probe.seq);
    let known = (0..)
        .zip(&probes)
        .take_while(|(seq, probe)| *seq == probe.seq);
    let known = known.count();
    probes.truncate(known);
    probes
}

/// How the calls due from `event` on ended.
fn outcomes(calls: &[ClientCall], event: Nanos) -> Vec<(String, u64)> {
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    for call in calls.iter().filter(|call| call.intended >= event) {
        let name = match (call.outcome, call.status) {
            (CallOutcome::Status, Some(status)) => format!("status {status}"),
            (outcome, _) => outcome.name().to_owned(),
        };
        *counts.entry(name).or_default() += 1;
    }
    counts.into_iter().collect()
}
