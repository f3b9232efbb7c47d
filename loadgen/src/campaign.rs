//! A run from its first call to its verdict.

mod close;
mod preflight;

use crate::capacity::{Step, search};
use crate::cell::{Order, Ran, Stage, Way, run as run_cell};
use crate::lanes::Lanes;
use crate::progress::Phase;
use crate::prompt::Vocabulary;
use crate::recorder::{Recorder, quantile};
use crate::seed::derive;
use crate::target::Target;
use crate::usage::{Component, cpu_of};
use crate::{LoadError, Plan, PlannedChain, Progress, Stop, taps};
use config::ChainKind;
use config::scenario::{Arrivals, CellLength};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use record::client::{CallOutcome, ClientCall};
use record::clock::{Nanos, now};
use record::manifest::{Capacity, Cell, Drive};
use record::rundir::RunDir;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Makes the run.
pub(crate) fn run(
    plan: &Plan,
    progress: Arc<dyn Progress>,
    stop: &Stop,
) -> Result<RunDir, LoadError> {
    plan.check()?;
    crate::lanes::raise_file_limit();
    let lanes = Lanes::start(plan.lanes.get())?;
    let vocabulary = Arc::new(Vocabulary::load(plan.scenario.workload.tokenizer)?);
    let targets: Vec<Arc<Target>> = plan
        .chains
        .iter()
        .map(|c| Target::of(c, &plan.scenario.timeouts).map(Arc::new))
        .collect::<Result<_, _>>()?;
    preflight::check(plan, &targets, &lanes, &vocabulary)?;
    let run = RunDir::create(&plan.out)?;
    let recorder = Recorder::start(&run, progress, stop.clone())?;
    let stage = Stage {
        scenario: &plan.scenario,
        lanes: &lanes,
        recorder: &recorder,
        vocabulary,
        stop,
        seed: plan.seed,
        run: &plan.name,
        ignore_eos: plan.ignore_eos,
    };
    let mut campaign = Campaign {
        plan,
        stage,
        targets,
        components: plan.chains.iter().map(component).collect(),
        cells: Vec::new(),
        calls: Vec::new(),
        capacities: HashMap::new(),
        began: now(),
        run: &run,
        started: record::host::now_rfc3339(),
    };
    campaign.write_manifest(None, &[])?;
    let measured = campaign.measure();
    let closed = campaign.close();
    recorder.end()?;
    measured.and(closed)?;
    Ok(run)
}

fn component(chain: &PlannedChain) -> Component {
    let named = chain
        .chain
        .gateway
        .as_ref()
        .map_or(&[][..], |g| g.processes.as_slice());
    Component::new(&chain.pids, named, &chain.base)
}

/// What goes on during a run.
pub(crate) struct Campaign<'a> {
    plan: &'a Plan,
    stage: Stage<'a>,
    targets: Vec<Arc<Target>>,
    components: Vec<Component>,
    cells: Vec<Cell>,
    calls: Vec<ClientCall>,
    capacities: HashMap<String, Capacity>,
    began: Nanos,
    run: &'a RunDir,
    started: String,
}

/// One cell of a block before it runs.
#[derive(Clone)]
struct Planned {
    chain: usize,
    drive: Drive,
    length: CellLength,
}

impl Campaign<'_> {
    fn measure(&mut self) -> Result<(), LoadError> {
        self.capacities()?;
        let blocks = self.plan.scenario.blocks;
        let mut done = u32::try_from(self.cells.len()).unwrap_or(u32::MAX);
        let planned = self.planned();
        let total = done.saturating_add(
            u32::try_from(planned.len())
                .unwrap_or(u32::MAX)
                .saturating_mul(blocks),
        );
        for block in 0..blocks {
            let mut order = planned.clone();
            let seed = derive(self.plan.seed, &[b"order", &block.to_le_bytes()]);
            order.shuffle(&mut StdRng::seed_from_u64(seed));
            for one in order {
                if self.stage.stop.requested() {
                    return Ok(());
                }
                self.stage.recorder.at(|c| {
                    c.phase = Phase::Block {
                        number: block + 1,
                        of: blocks,
                    };
                    (c.done, c.total) = (done, total);
                });
                self.cell(&one, block)?;
                done += 1;
                self.write_manifest(None, &[])?;
            }
        }
        Ok(())
    }

    /// Each gateway's own capacity, before anything else.
    fn capacities(&mut self) -> Result<(), LoadError> {
        let Some(settings) = self.plan.scenario.capacity.clone() else {
            return Ok(());
        };
        for chain in 0..self.plan.chains.len() {
            if self.plan.chains[chain].chain.kind != ChainKind::Gateway {
                continue;
            }
            self.stage.recorder.at(|c| c.phase = Phase::Capacity);
            let length = CellLength {
                duration: Some(settings.hold),
                calls: None,
            };
            let found = search(&settings, |rate| {
                if self.stage.stop.requested() {
                    return Ok(None);
                }
                let one = Planned {
                    chain,
                    drive: Drive::Capacity { rate },
                    length: length.clone(),
                };
                let id = self.cell(&one, 0)?;
                let step = self.step(id)?;
                Ok::<_, LoadError>(Some(step.meets(&settings.slo)))
            })?;
            if let Some(found) = found {
                self.capacities
                    .insert(self.plan.chains[chain].chain.name.clone(), found);
            }
        }
        Ok(())
    }

    /// What a step of the search showed.
    fn step(&self, id: u32) -> Result<Step, LoadError> {
        let calls: Vec<&ClientCall> = self
            .calls
            .iter()
            .filter(|c| c.cell == id && !c.warmup)
            .collect();
        let complete = || calls.iter().filter(|c| c.outcome == CallOutcome::Complete);
        let cell = self.cells.iter().find(|c| c.id == id);
        let due = cell.and_then(|c| c.scheduled).unwrap_or(0).max(1);
        let failed = calls.len() - complete().count();
        let mut ttft: Vec<u64> = complete().filter_map(|c| c.ttft_intended()).collect();
        let mut tpot: Vec<f64> = complete().filter_map(|c| c.tpot()).collect();
        tpot.sort_unstable_by(f64::total_cmp);
        let needs_taps = self
            .plan
            .scenario
            .capacity
            .as_ref()
            .is_some_and(|c| c.slo.added_ttft_p95.is_some());
        let added_p95 = if needs_taps {
            self.added_p95(id, cell.map_or(self.began, |c| c.from))?
        } else {
            None
        };
        Ok(Step {
            ttft_p95: quantile(&mut ttft, 0.95),
            added_p95,
            tpot_p95: tpot
                .get((tpot.len() * 95 / 100).min(tpot.len().saturating_sub(1)))
                .copied(),
            error_share: failed as f64 / calls.len().max(1) as f64,
            answered: complete().count() as f64 / due as f64,
        })
    }

    fn added_p95(&self, id: u32, from: Nanos) -> Result<Option<u64>, LoadError> {
        std::thread::sleep(taps::SETTLE);
        // A call's exchange begins before its cell's first measured instant by no more than the run-up.
        let calls = taps::calls(&self.plan.taps, from.saturating_sub(1_000_000_000))?;
        let of_cell = |c: &&record::pairing::Call| {
            c.outer
                .keys
                .client
                .as_deref()
                .and_then(ClientCall::parse_key)
                .is_some_and(|(cell, _)| cell == id)
        };
        let mut added: Vec<u64> = calls
            .iter()
            .filter(of_cell)
            .filter_map(|c| Some(c.legs()?.added_ttft?.value.unsigned_abs()))
            .collect();
        Ok(quantile(&mut added, 0.95))
    }

    /// The cells of a block, each chain with its ways. An untapped control is driven as its gateway
    /// is; the other controls by the common rate and the sweep.
    fn planned(&self) -> Vec<Planned> {
        let scenario = &self.plan.scenario;
        let mut all = Vec::new();
        for (chain, planned) in self.plan.chains.iter().enumerate() {
            let kind = planned.chain.kind;
            if kind != ChainKind::Gateway && !scenario.controls.contains(&kind) {
                continue;
            }
            let measured = planned
                .chain
                .control_of
                .as_ref()
                .unwrap_or(&planned.chain.name);
            let capacity = self.capacities.get(measured);
            if let Some(open) = &scenario.open_loop {
                let shares = open
                    .shares
                    .iter()
                    .filter_map(|s| Some((capacity?.met * s, Some(*s))));
                let rates = shares.chain(open.common_rate.map(|r| (r, None)));
                all.extend(rates.map(|(rate, share)| Planned {
                    chain,
                    drive: Drive::Open { rate, share },
                    length: open.cell.clone(),
                }));
            }
            if let Some(closed) = &scenario.closed_loop {
                let levels = closed.concurrency.iter();
                all.extend(levels.map(|&concurrency| Planned {
                    chain,
                    drive: Drive::Closed { concurrency },
                    length: closed.cell.clone(),
                }));
            }
            if let Some(agent) = &scenario.agent
                && matches!(kind, ChainKind::Gateway | ChainKind::Untapped)
            {
                let turns = u16::try_from(agent.turns).unwrap_or(u16::MAX);
                let drive = Drive::Agent {
                    turns,
                    concurrency: agent.concurrency,
                };
                all.push(Planned {
                    chain,
                    drive,
                    length: CellLength::default(),
                });
            }
        }
        all
    }

    /// Runs one cell, and the floor probe beside it; returns its id.
    fn cell(&mut self, one: &Planned, block: u32) -> Result<u32, LoadError> {
        let id = u32::try_from(self.cells.len()).unwrap_or(u32::MAX);
        let probe = self.probe(one, id + 1, block);
        let order = self.order(id, one, block);
        self.stage.recorder.at(|c| {
            c.chain.clone_from(&order.target.chain);
            c.cell = words(&one.drive);
            c.asked = rate_of(&one.drive).unwrap_or(0.0);
        });
        let component = &self.components[one.chain];
        let tap_cpu = || {
            self.plan
                .taps
                .iter()
                .map(|t| cpu_of(t.pid?))
                .sum::<Option<f64>>()
                .filter(|_| !self.plan.taps.is_empty())
        };
        let before = (cpu_of(std::process::id()), tap_cpu(), component.cpu());
        let over = AtomicBool::new(false);
        let stage = &self.stage;
        let (ran, beside) = std::thread::scope(|scope| {
            let beside = probe
                .as_ref()
                .map(|order| scope.spawn(|| run_cell(stage, order, &over)));
            let ran = run_cell(stage, &order, stage_never());
            over.store(true, Ordering::Relaxed);
            (ran, beside.and_then(|b| b.join().ok()))
        });
        let ran = ran?;
        let spent = |before: Option<f64>, after: Option<f64>| {
            before.zip(after).map(|(b, a)| (a - b).max(0.0))
        };
        let mut cell = describe(&order, one, block, ran);
        cell.generator_cpu = spent(before.0, cpu_of(std::process::id()));
        cell.tap_cpu = spent(before.1, tap_cpu());
        cell.gateway_cpu = spent(before.2, component.cpu());
        cell.gateway_memory = component.memory();
        let calls = self.stage.recorder.cell(id);
        cell.saturated = self.saturated(&cell, &calls);
        self.calls.extend(calls);
        if let Some((order, beside)) = probe.zip(beside) {
            let drive = Drive::Open {
                rate: rate_of_way(&order.way),
                share: None,
            };
            let one = Planned {
                chain: one.chain,
                drive,
                length: CellLength::default(),
            };
            cell.floor_cell = Some(order.id);
            self.cells.push(cell);
            self.cells.push(describe(&order, &one, block, beside?));
            let floor = self.stage.recorder.cell(order.id);
            self.calls.extend(floor);
        } else {
            self.cells.push(cell);
        }
        Ok(id)
    }

    /// The relay at a low rate, on the same tap threads, for as long as the cell lasts.
    fn probe(&self, one: &Planned, id: u32, block: u32) -> Option<Order> {
        let probe = self.plan.scenario.floor_probe.as_ref()?;
        let chain = self
            .plan
            .chains
            .iter()
            .position(|c| c.chain.name == probe.chain)?;
        let own = &self.plan.chains[one.chain].chain;
        if chain == one.chain || own.taps.is_empty() || matches!(one.drive, Drive::Capacity { .. })
        {
            return None;
        }
        Some(Order {
            id,
            target: self.targets[chain].clone(),
            model: self.plan.chains[chain].chain.model.clone(),
            block,
            way: Way::Open {
                rate: probe.rate,
                arrivals: Arrivals::Poisson,
                in_flight: 64,
            },
            length: CellLength {
                duration: Some(config::Period::secs(86_400)),
                calls: None,
            },
            warmup: CellLength::default(),
        })
    }

    fn order(&self, id: u32, one: &Planned, block: u32) -> Order {
        let scenario = &self.plan.scenario;
        let open = scenario.open_loop.as_ref();
        let arrivals = open.map_or(Arrivals::Poisson, |o| o.arrivals);
        let in_flight = u64::from(open.map_or(10_000, |o| o.in_flight_max));
        let way = match &one.drive {
            Drive::Closed { concurrency } => Way::Closed {
                concurrency: *concurrency,
            },
            Drive::Open { rate, .. } | Drive::Capacity { rate } => Way::Open {
                rate: *rate,
                arrivals,
                in_flight,
            },
            Drive::Agent { .. } => {
                Way::Agent(scenario.agent.clone().unwrap_or(config::scenario::Agent {
                    turns: 1,
                    tasks: 1,
                    concurrency: 1,
                }))
            }
        };
        Order {
            id,
            target: self.targets[one.chain].clone(),
            model: self.plan.chains[one.chain].chain.model.clone(),
            block,
            way,
            length: one.length.clone(),
            warmup: scenario.warmup.clone(),
        }
    }

    /// Driven beyond the capacity found? A closed loop is, where it is answered about as fast as
    /// the chain can at all; [`Self::mark_queues`] finds the others. Unknown where the chain's
    /// capacity is.
    fn saturated(&self, cell: &Cell, calls: &[ClientCall]) -> Option<bool> {
        let chain = self.plan.find(&cell.chain)?;
        let measured = chain.chain.control_of.as_ref().unwrap_or(&cell.chain);
        let met = self.capacities.get(measured)?.met;
        match cell.drive {
            Drive::Open { rate, .. } | Drive::Capacity { rate } => Some(rate > met),
            Drive::Agent { .. } => Some(false),
            Drive::Closed { .. } => {
                let seconds = cell.to.saturating_sub(cell.from) as f64 / 1e9;
                let answered = calls
                    .iter()
                    .filter(|c| !c.warmup && c.outcome == CallOutcome::Complete)
                    .count();
                (seconds > 0.0).then(|| answered as f64 / seconds >= 0.9 * met)
            }
        }
    }

    /// Marks closed loops whose callers wait for each other: they are answered at less than half
    /// the rate that as many callers would be if each were alone.
    fn mark_queues(&mut self) {
        let median = |id: u32| {
            let calls = self
                .calls
                .iter()
                .filter(|c| c.cell == id && !c.warmup && c.outcome == CallOutcome::Complete);
            let mut times: Vec<u64> = calls.filter_map(|c| c.e2e()).collect();
            quantile(&mut times, 0.5)
        };
        let mut alone: HashMap<String, u64> = HashMap::new();
        let mut taken: HashMap<u32, u64> = HashMap::new();
        for cell in &self.cells {
            if let (Drive::Closed { concurrency }, Some(time)) = (&cell.drive, median(cell.id)) {
                taken.insert(cell.id, time);
                if *concurrency == 1 {
                    let least = alone.entry(cell.chain.clone()).or_insert(time);
                    *least = time.min(*least);
                }
            }
        }
        for cell in &mut self.cells {
            let queued = taken
                .get(&cell.id)
                .zip(alone.get(&cell.chain))
                .is_some_and(|(t, a)| *t > a.saturating_mul(2));
            if queued && cell.saturated.is_some() {
                cell.saturated = Some(true);
            }
        }
    }

    /// Chains with legs.
    fn legged(&self) -> HashSet<String> {
        self.plan
            .chains
            .iter()
            .filter(|c| c.has_legs())
            .map(|c| c.chain.name.clone())
            .collect()
    }
}

/// Nothing but its own length ends a measured cell.
fn stage_never() -> &'static AtomicBool {
    static NEVER: AtomicBool = AtomicBool::new(false);
    &NEVER
}

fn rate_of(drive: &Drive) -> Option<f64> {
    match drive {
        Drive::Open { rate, .. } | Drive::Capacity { rate } => Some(*rate),
        _ => None,
    }
}

fn rate_of_way(way: &Way) -> f64 {
    if let Way::Open { rate, .. } = way {
        *rate
    } else {
        0.0
    }
}

fn words(drive: &Drive) -> String {
    match drive {
        Drive::Open { rate, .. } => format!("open {rate:.1}/s"),
        Drive::Capacity { rate } => format!("capacity {rate:.1}/s"),
        Drive::Closed { concurrency } => format!("closed {concurrency}"),
        Drive::Agent { turns, .. } => format!("agent {turns} turns"),
    }
}

fn describe(order: &Order, one: &Planned, block: u32, ran: Ran) -> Cell {
    Cell {
        id: order.id,
        chain: order.target.chain.clone(),
        drive: one.drive.clone(),
        block,
        from: ran.from,
        to: ran.to,
        scheduled: ran.scheduled,
        sent: ran.sent,
        generator_cpu: None,
        tap_cpu: None,
        gateway_cpu: None,
        gateway_memory: None,
        saturated: None,
        floor_cell: None,
    }
}
