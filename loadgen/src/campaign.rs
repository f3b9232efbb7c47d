//! A run from its first call to its verdict.

mod capacity;
mod close;
mod experiment;
mod plan;
mod preflight;
mod probe;
mod queue;
mod resume;
mod tenants;

use crate::cell::{Order, Ran, Stage, Way, run as run_cell};
use crate::lanes::Lanes;
use crate::progress::Phase;
use crate::prompt::Vocabulary;
use crate::recorder::{Recorder, Tally};
use crate::scrape::Scraper;
use crate::seed::derive;
use crate::shard::{Share, Slots, slot};
use crate::target::Target;
use crate::trace::Trace;
use crate::usage::{Component, cpu_of};
use crate::{LoadError, Plan, PlannedChain, Progress, Stop, pacer, taps};
use config::ChainKind;
use config::scenario::CellLength;
use plan::{Job, Planned, describe, rate_of, rate_of_way, words};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use record::agent::ToolFilter;
use record::clock::{Nanos, now};
use record::experiment::Experiment;
use record::manifest::{Capacity, Cell, Counted, Drive};
use record::rundir::RunDir;
use record::token_probe::TokenProbe;
use resume::Earlier;
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
    let trace = plan.scenario.trace.as_ref();
    let trace = trace.map(Trace::open).transpose()?.map(Arc::new);
    let vocabulary = Arc::new(Vocabulary::load(&plan.scenario.workload.tokenizer)?);
    let targets: Vec<Arc<Target>> = plan
        .chains
        .iter()
        .map(|c| {
            Target::of(c, &plan.scenario.timeouts, plan.scenario.workload.stream).map(Arc::new)
        })
        .collect::<Result<_, _>>()?;
    crate::probe::check_keys(plan, &targets)?;
    let asking = (&lanes, &*vocabulary);
    preflight::check(plan, &targets, asking, (&*progress, stop))?;
    let tool_filter = crate::agent::check_filter(&plan.scenario, &lanes)?;
    let earlier = match plan.resume {
        true => Some(Earlier::read(plan)?),
        false => None,
    };
    let asked = (&targets[..], &lanes, &*vocabulary);
    let token_probes = probe::found(plan, earlier.as_ref(), asked, &*progress)?;
    let run = match plan.resume {
        true => RunDir::open(&plan.out)?,
        false => RunDir::create(&plan.out)?,
    };
    // The components count what reached them from all parts of a run: one part looks.
    let share = Share::of(plan.shard.as_ref());
    let looked_at = if share.leads() { &plan.chains[..] } else { &[] };
    let scraper = Scraper::start(looked_at, &run)?;
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
        share,
        lengths: probe::lengths(plan, &token_probes),
    };
    let mut campaign = Campaign {
        plan,
        stage,
        targets,
        components: plan
            .chains
            .iter()
            .map(|chain| component(chain, plan))
            .collect(),
        cells: Vec::new(),
        under_way: Vec::new(),
        next: 0,
        resumed: Vec::new(),
        slots: plan.shard.as_ref().map(Slots::begin).transpose()?,
        capacities: HashMap::new(),
        began: now(),
        run: &run,
        started: record::host::now_rfc3339(),
        tool_filter,
        token_probes,
        trace,
        experiments: Vec::new(),
        scraper,
    };
    let fresh = match earlier {
        Some(earlier) => campaign.take_up(earlier)?,
        None => true,
    };
    campaign.write_manifest(None, &[])?;
    crate::probe::run(plan, &campaign.stage, &campaign.targets, &run)?;
    if fresh {
        // What the taps saw of the preflight and of probes is no part of the run.
        campaign.began = now();
    }
    let measured = campaign.measure();
    let closed = campaign.close();
    recorder.end()?;
    measured.and(closed)?;
    Ok(run)
}

fn component(chain: &PlannedChain, plan: &Plan) -> Component {
    let named = chain
        .chain
        .gateway
        .as_ref()
        .map_or(&[][..], |g| g.processes.as_slice());
    let taps = plan.taps.iter().filter_map(|tap| tap.pid);
    Component::new(&chain.pids, named, &chain.base, taps)
}

/// What goes on during a run.
pub(crate) struct Campaign<'a> {
    plan: &'a Plan,
    stage: Stage<'a>,
    targets: Vec<Arc<Target>>,
    components: Vec<Component>,
    cells: Vec<Cell>,
    /// Cells that are being driven.
    under_way: Vec<Cell>,
    /// The number of the next cell.
    next: u32,
    /// When the run was taken up again.
    resumed: Vec<String>,
    /// When cells begin, where several generators drive the run together.
    slots: Option<Slots>,
    capacities: HashMap<String, Capacity>,
    began: Nanos,
    run: &'a RunDir,
    started: String,
    tool_filter: Option<ToolFilter>,
    token_probes: Vec<TokenProbe>,
    trace: Option<Arc<Trace>>,
    experiments: Vec<Experiment>,
    scraper: Scraper,
}

impl Campaign<'_> {
    fn measure(&mut self) -> Result<(), LoadError> {
        self.capacities()?;
        let blocks = self.plan.scenario.blocks;
        let mut done = 0_u32;
        let planned = self.jobs();
        let total = u32::try_from(planned.len())
            .unwrap_or(u32::MAX)
            .saturating_mul(blocks);
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
                let left = self.left_of(one, block);
                let driven = match &left {
                    Some(Job::Cell(one)) => self.cell(one, block).map(|_| ()),
                    Some(Job::Party(party)) => self.party(party, block),
                    Some(Job::Trial(chain)) => self.trial(*chain, block),
                    None => Ok(()),
                };
                match driven {
                    // While it waited for a slot.
                    Err(LoadError::Stopped) => return Ok(()),
                    other => other?,
                }
                done += 1;
                self.write_manifest(None, &[])?;
            }
        }
        Ok(())
    }

    /// Runs one cell, and the floor probe beside it; returns its id, and what its calls came to.
    fn cell(&mut self, one: &Planned, block: u32) -> Result<(u32, Tally), LoadError> {
        let id = self.number(2);
        let probe = match one.drive {
            Drive::Capacity { .. } => None,
            _ => self.probe(one.chain, id + 1, block),
        };
        self.scraper.begin(one.chain, id, 1);
        let mut order = self.order(id, one, block);
        order.begin = self.slot(&order.way, &order.length)?;
        self.begin(vec![describe(&order, &one.drive, block, Ran::default())])?;
        self.stage.recorder.at(|c| {
            c.chain.clone_from(&order.target.chain);
            c.component = self.components[one.chain].clone();
            c.cell = words(&one.drive);
            c.asked = rate_of(&one.drive).unwrap_or(0.0);
        });
        let component = &self.components[one.chain];
        let began = now();
        let before = (self.own_cpu(), component.cpu());
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
        let mut cell = describe(&order, &one.drive, block, ran);
        if self.stage.stop.requested() {
            cell.cut = true;
            // Its last call was due within it: one who goes on must not send it again.
            cell.to += 1;
        }
        (cell.generator_cpu, cell.tap_cpu) = self.own_cpu_since(before.0);
        cell.gateway_cpu = component.cpu_since(before.1.as_ref());
        cell.gateway_memory = component.memory();
        let ended = now();
        self.scraper.end();
        let tally = self.stage.recorder.cell(id)?;
        cell.counted = counted(&cell, began, ended, &tally);
        cell.saturated = self.saturated(&cell, tally.complete);
        self.under_way.clear();
        if let Some((order, beside)) = probe.zip(beside) {
            cell.floor_cell = Some(order.id);
            self.cells.push(cell);
            self.floor(&order, block, beside?)?;
        } else {
            self.cells.push(cell);
        }
        Ok((id, tally))
    }

    /// The first of `many` numbers for new cells.
    fn number(&mut self, many: u32) -> u32 {
        let first = self.next;
        self.next = first.saturating_add(many);
        first
    }

    /// Waits for the slot of a cell, where there are slots, and tells its begin.
    fn slot(&mut self, way: &Way, length: &CellLength) -> Result<Option<Nanos>, LoadError> {
        let Some(slots) = &mut self.slots else {
            return Ok(None);
        };
        let begin = slots.take(slot(&self.plan.scenario, way, length));
        let stop = self.stage.stop;
        match pacer::sleep_while(begin, || !stop.requested()) {
            true => Ok(Some(begin)),
            false => Err(LoadError::Stopped),
        }
    }

    /// Writes down which cells begin, for one who goes on after a kill.
    fn begin(&mut self, cells: Vec<Cell>) -> Result<(), LoadError> {
        self.under_way = cells;
        self.write_manifest(None, &[])
    }

    /// Keeps what the floor probe did beside a cell.
    fn floor(&mut self, order: &Order, block: u32, ran: Ran) -> Result<(), LoadError> {
        let drive = Drive::Open {
            rate: rate_of_way(&order.way),
            share: None,
        };
        self.cells.push(describe(order, &drive, block, ran));
        self.stage.recorder.cell(order.id).map(|_| ())
    }

    /// CPU seconds of the generator and of the taps so far.
    fn own_cpu(&self) -> (Option<f64>, Option<f64>) {
        let taps = self.plan.taps.iter().map(|t| cpu_of(t.pid?).ok());
        let taps = taps.sum::<Option<f64>>();
        (
            cpu_of(std::process::id()).ok(),
            taps.filter(|_| !self.plan.taps.is_empty()),
        )
    }

    /// The same since it was `before`.
    fn own_cpu_since(&self, before: (Option<f64>, Option<f64>)) -> (Option<f64>, Option<f64>) {
        let after = self.own_cpu();
        (spent(before.0, after.0), spent(before.1, after.1))
    }

    /// Chains with legs, of those that `pick` takes. What an experiment tells is of the client alone.
    fn legged(&self, pick: impl Fn(ChainKind) -> bool) -> HashSet<String> {
        if self.plan.scenario.experiment.is_some() {
            return HashSet::new();
        }
        let chains = self.plan.chains.iter();
        chains
            .filter(|c| c.has_legs() && pick(c.chain.kind))
            .map(|c| c.chain.name.clone())
            .collect()
    }
}

/// What was counted of `cell` from `began` to `ended`.
fn counted(cell: &Cell, began: Nanos, ended: Nanos, tally: &Tally) -> Counted {
    let until = |at: Nanos| at.saturating_sub(began) as f64 / 1e9;
    Counted {
        seconds: until(ended),
        driven: Some(until(cell.to)),
        answered: tally.answered,
        e2e_p50: tally.e2e_p50(),
    }
}

fn spent(before: Option<f64>, after: Option<f64>) -> Option<f64> {
    before.zip(after).map(|(b, a)| (a - b).max(0.0))
}

/// Nothing but its own length ends a measured cell.
fn stage_never() -> &'static AtomicBool {
    static NEVER: AtomicBool = AtomicBool::new(false);
    &NEVER
}
