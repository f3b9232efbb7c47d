//! One cell: one chain, driven one way, with the floor probe beside it.

mod agents;
mod closed;
mod open;

pub(crate) use open::RUN_UP;

use crate::arrival::Offsets;
use crate::client::{Ask, Client, Cut};
use crate::lanes::Lanes;
use crate::prompt::{Body, Lengths, Recipe, Systems, Vocabulary};
use crate::recorder::Recorder;
use crate::seed::derive;
use crate::shard::Share;
use crate::target::Target;
use crate::trace::Trace;
use crate::{LoadError, Stop};
use config::scenario::{Agent, Arrivals, CellLength, Profile, Prompts, Scenario};
use record::clock::{Nanos, now};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// How long calls in flight may end by themselves once a cell's time is over.
const DRAIN: Duration = Duration::from_secs(60);
const NO_END: Nanos = Nanos::MAX;

/// What all cells of a run share.
pub(crate) struct Stage<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) lanes: &'a Lanes,
    pub(crate) recorder: &'a Recorder,
    pub(crate) vocabulary: Arc<Vocabulary>,
    pub(crate) stop: &'a Stop,
    pub(crate) seed: u64,
    pub(crate) run: &'a str,
    pub(crate) ignore_eos: bool,
    /// Which calls of each schedule are sent from here.
    pub(crate) share: Share,
    /// The lengths of each chain's prompts, by its name.
    pub(crate) lengths: HashMap<String, Lengths>,
}

impl Stage<'_> {
    /// How long the prompts of `chain` are.
    fn lengths(&self, chain: &str) -> Lengths {
        let known = self.lengths.get(chain).copied();
        known.unwrap_or_else(|| Lengths::asked(&self.scenario.workload))
    }

    /// Differs between chains, blocks and draws.
    fn arrival_seed(&self, chain: &str, block: u32, draw: &[u8]) -> u64 {
        derive(self.seed, &[chain.as_bytes(), &block.to_le_bytes(), draw])
    }

    /// When the calls of a whole course of load are due.
    pub(crate) fn course(&self, profile: &Profile, chain: &str, block: u32) -> Offsets {
        let seed = self.arrival_seed(chain, block, b"profile");
        Offsets::along(&profile.phases, profile.arrivals, seed)
    }
}

/// How a cell is driven.
#[derive(Debug, Clone)]
pub(crate) enum Way {
    Open {
        rate: f64,
        arrivals: Arrivals,
        in_flight: u64,
    },
    /// A course of load, from `skipped` nanoseconds after its beginning on.
    Profile {
        profile: Profile,
        skipped: Nanos,
    },
    Trace {
        trace: Arc<Trace>,
        in_flight: u64,
    },
    Closed {
        concurrency: u32,
        think: Duration,
    },
    Agent(Agent),
}

/// One tenant of several: what it says first, and what it must never hear.
#[derive(Debug)]
pub(crate) struct Seat {
    /// Its system prompt, with its secret.
    pub(crate) system: String,
    pub(crate) system_tokens: u32,
    /// The secrets of the others.
    pub(crate) others: Vec<String>,
}

/// A cell before it runs.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    pub(crate) id: u32,
    pub(crate) target: Arc<Target>,
    pub(crate) model: String,
    pub(crate) block: u32,
    pub(crate) way: Way,
    pub(crate) length: CellLength,
    pub(crate) warmup: CellLength,
    /// When its slot begins; `None`: now.
    pub(crate) begin: Option<Nanos>,
    /// What the gaps between its calls are drawn by, beside chain and block: who differs in it does not send
    /// when the other sends.
    pub(crate) draw: Vec<u8>,
    /// The tenant that asks; `None` where there is but one.
    pub(crate) seat: Option<Arc<Seat>>,
}

/// What the driver knows of a cell that ran.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ran {
    /// The measured window opened.
    pub(crate) from: Nanos,
    /// It closed: its duration was over, or the last call was due or had ended.
    pub(crate) to: Nanos,
    /// Calls that were due, warm-up apart; `None` where time ends a cell and not a schedule.
    pub(crate) scheduled: Option<u64>,
    pub(crate) sent: u64,
    /// Answers with another tenant's secret; `None` where none was looked for.
    pub(crate) leaked: Option<u64>,
}

/// Counts of a cell under way.
#[derive(Default)]
struct Counts {
    sent: AtomicU64,
    measured: AtomicU64,
    in_flight: AtomicU64,
    /// The first measured call was intended; 0 until then.
    from: AtomicU64,
    leaked: AtomicU64,
}

struct Driver<'a, 'b> {
    stage: &'a Stage<'b>,
    order: &'a Order,
    client: Arc<Client>,
    cut: Cut,
    counts: Arc<Counts>,
}

/// Runs a cell to its end, its calls in flight included. `over` ends it early.
pub(crate) fn run(stage: &Stage<'_>, order: &Order, over: &AtomicBool) -> Result<Ran, LoadError> {
    let cut = Cut::default();
    let client = Arc::new(Client::new(
        order.target.clone(),
        stage.lanes.count(),
        cut.clone(),
    ));
    let driver = Driver {
        stage,
        order,
        client,
        cut,
        counts: Arc::default(),
    };
    let ran = match &order.way {
        Way::Open {
            rate,
            arrivals,
            in_flight,
        } => {
            let seed = stage.arrival_seed(&order.target.chain, order.block, &order.draw);
            let offsets = Offsets::new(*arrivals, *rate, seed);
            driver.open(offsets, *in_flight, over)?
        }
        Way::Profile { profile, skipped } => {
            let offsets = stage.course(profile, &order.target.chain, order.block);
            let left = offsets
                .filter(|due| due >= skipped)
                .map(|due| due - skipped);
            driver.open(left, u64::from(profile.in_flight_max), over)?
        }
        Way::Trace { trace, in_flight } => driver.replay(trace, *in_flight, over)?,
        Way::Closed { concurrency, think } => driver.closed(*concurrency, *think)?,
        Way::Agent(agent) => driver.agents(agent)?,
    };
    driver.drain();
    let leaked = order
        .seat
        .as_ref()
        .map(|_| driver.counts.leaked.load(Ordering::Acquire));
    Ok(Ran { leaked, ..ran })
}

impl Driver<'_, '_> {
    fn recipe(&self) -> Recipe {
        let (stage, order) = (self.stage, self.order);
        let workload = &stage.scenario.workload;
        let place = [order.block.to_le_bytes(), order.id.to_le_bytes()].concat();
        let salt = derive(
            stage.seed,
            &[stage.run.as_bytes(), order.target.chain.as_bytes(), &place],
        );
        Recipe {
            vocabulary: stage.vocabulary.clone(),
            body: Body {
                api: order.target.api,
                model: order.model.clone(),
                stream: workload.stream,
                max_tokens: workload.output_tokens,
                ignore_eos: stage.ignore_eos,
            },
            tokens: stage.lengths(&order.target.chain).user,
            systems: Arc::new(self.systems(salt)),
            salt: (workload.prompts == Prompts::Unique).then_some(salt),
            sampling: derive(stage.seed, &[&order.block.to_le_bytes()]),
        }
    }

    /// The system prompts of the cell: the tenant's own, or those of the workload.
    fn systems(&self, salt: u64) -> Systems {
        if let Some(seat) = &self.order.seat {
            return Systems::new(vec![seat.system.clone()], seat.system_tokens);
        }
        let Some(system) = &self.stage.scenario.workload.system else {
            return Systems::default();
        };
        let tokens = self.stage.lengths(&self.order.target.chain).system;
        let text = |n: u64| {
            let seed = derive(salt, &[b"system", &n.to_le_bytes()]);
            self.stage.vocabulary.text(tokens, seed)
        };
        Systems::new((0..u64::from(system.count)).map(text).collect(), tokens)
    }

    /// Sends one call on its lane.
    fn send(&self, ask: Ask) {
        begin(&self.counts, &self.stage.recorder.flight, &ask);
        let lane = self.stage.lanes.of(ask.seq);
        let (client, counts, reporter) = (
            self.client.clone(),
            self.counts.clone(),
            self.stage.recorder.reporter(),
        );
        let flight = self.stage.recorder.flight.clone();
        let seat = self.order.seat.clone();
        self.stage.lanes.spawn(lane, async move {
            let told = client.call(lane, ask).await;
            if seat.is_some_and(|seat| seat.others.iter().any(|s| told.text.contains(s))) {
                counts.leaked.fetch_add(1, Ordering::AcqRel);
            }
            reporter.told(told);
            end(&counts, &flight);
        });
    }

    fn ran(&self, from: Option<Nanos>, to: Nanos) -> Ran {
        Ran {
            from: from.unwrap_or(to),
            to,
            scheduled: None,
            leaked: None,
            sent: self.counts.measured.load(Ordering::Acquire),
        }
    }

    /// Waits for calls in flight, then cuts what is left: those are censored.
    fn drain(&self) {
        let until = now().saturating_add(u64::try_from(DRAIN.as_nanos()).unwrap_or(NO_END));
        while self.counts.in_flight.load(Ordering::Acquire) > 0 {
            if now() >= until || self.stage.stop.requested() {
                self.cut.now();
                // A cut call ends at once; a little patience lets it be recorded.
                std::thread::sleep(Duration::from_millis(50));
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn begin(counts: &Counts, flight: &crate::recorder::Flight, ask: &Ask) {
    counts.sent.fetch_add(1, Ordering::AcqRel);
    counts.in_flight.fetch_add(1, Ordering::AcqRel);
    flight.sent.fetch_add(1, Ordering::Relaxed);
    flight.in_flight.fetch_add(1, Ordering::Relaxed);
    if !ask.warmup {
        counts.measured.fetch_add(1, Ordering::AcqRel);
        // Only the first measured call sets it: the others find it set.
        let _ = counts
            .from
            .compare_exchange(0, ask.intended, Ordering::AcqRel, Ordering::Acquire);
    }
}

/// A call is over and told: who sees none in flight finds all of them with the recorder.
fn end(counts: &Counts, flight: &crate::recorder::Flight) {
    counts.in_flight.fetch_sub(1, Ordering::AcqRel);
    flight.in_flight.fetch_sub(1, Ordering::Relaxed);
}

/// Whether call `index`, `since` nanoseconds after the beginning, is still within `length`.
fn within(length: &CellLength, index: u64, since: Nanos) -> bool {
    let in_time = length.duration.is_none_or(|d| since < d.nanos());
    let in_count = length.calls.is_none_or(|n| index < n);
    let given = length.duration.is_some() || length.calls.is_some();
    given && in_time && in_count
}
