//! What a run was: `manifest.json` of the run directory.

use crate::agent::ToolFilter;
use crate::clock::Nanos;
use crate::experiment::{Experiment, Setup};
use crate::scrape::Scraped;
use crate::token_probe::TokenProbe;
use crate::verdict::Verdict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the run directory's layout. A reader refuses a newer one.
pub const FORMAT: u32 = 2;

/// The machine that a process ran on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Host name.
    pub name: String,
    /// CPU model as the kernel names it.
    pub cpu: Option<String>,
    /// CPUs that the process may use.
    pub cpus: u32,
    /// Memory, bytes.
    pub memory: Option<u64>,
    /// Kernel release.
    pub kernel: Option<String>,
}

/// What a cell of the run drove, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Drive {
    /// So many calls in flight, each worker sends the next when its last has ended.
    Closed {
        /// Calls in flight.
        concurrency: u32,
    },
    /// Poisson arrivals at a rate, whatever the answers do.
    Open {
        /// Calls a second.
        rate: f64,
        /// The share of the component's own capacity that the rate is, where it was chosen so.
        share: Option<f64>,
    },
    /// A step of the capacity search.
    Capacity {
        /// Calls a second.
        rate: f64,
    },
    /// A course of load: phases at rates, one after the other.
    Profile {
        /// The phases, in order; the first begins where the cell does.
        phases: Vec<Phase>,
    },
    /// The replay of a recorded course of calls.
    Trace {
        /// Its file.
        file: String,
        /// How much faster than the trace.
        speed: f64,
        /// Calls of it, whoever sends them.
        calls: u64,
    },
    /// One tenant of several.
    Tenant {
        /// Its name.
        tenant: String,
        /// Its calls a second.
        rate: f64,
        /// Who else was there.
        company: Company,
    },
    /// Agent tasks: turns in sequence.
    Agent {
        /// Calls of one task, one after the other.
        turns: u16,
        /// Tasks in flight.
        concurrency: u32,
        /// The agent is a black box: a task is one request to it, whatever it does behind.
        #[serde(default)]
        whole: bool,
    },
    /// An experiment of operation: a steady probe while something happens to the chain.
    Experiment {
        /// How it is made.
        setup: Setup,
    },
}

/// Who else drove the chain beside a tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Company {
    /// Nobody.
    Alone,
    /// All tenants at their rates.
    Together,
    /// All tenants, of which one floods.
    Flooded,
}

impl Company {
    /// The word used in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Alone => "alone",
            Self::Together => "together",
            Self::Flooded => "flooded",
        }
    }
}

/// A phase of a course of load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// Calls a second at its begin.
    pub rate: f64,
    /// Calls a second at its end.
    pub to: f64,
    /// How long it lasts, nanoseconds.
    pub lasts: Nanos,
}

/// One cell: one chain, one way of driving it, one block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Its number, which its calls name. No two cells of a run have the same.
    pub id: u32,
    /// The chain.
    pub chain: String,
    /// How it was driven.
    pub drive: Drive,
    /// Which repetition; arms of one block are interleaved in random order.
    pub block: u32,
    /// When the measured window opened: where the last warm-up call was due.
    pub from: Nanos,
    /// When it closed: its duration was over, or the last call was due (open loop) or had ended.
    pub to: Nanos,
    /// Calls that the schedule asked for, warm-up apart; `None` where time and not a count ends it.
    pub scheduled: Option<u64>,
    /// Calls sent, warm-up apart.
    pub sent: u64,
    /// Over which CPU was counted: the whole cell, warm-up and the last answers included.
    #[serde(default)]
    pub counted: Counted,
    /// CPU seconds of the load generator over that time.
    pub generator_cpu: Option<f64>,
    /// CPU seconds of the tap processes over that time.
    pub tap_cpu: Option<f64>,
    /// CPU seconds of the gateway (its process tree) over that time.
    pub gateway_cpu: Option<f64>,
    /// Memory of the gateway at the cell's end (PSS of its process tree), bytes.
    pub gateway_memory: Option<u64>,
    /// Beyond the chain's capacity: what is measured is queueing. `None` where capacity is unknown.
    pub saturated: Option<bool>,
    /// Answers in which another tenant's secret stood; `None` where none was looked for.
    #[serde(default)]
    pub leaked: Option<u64>,
    /// The run was stopped or killed while it ran: it is shorter than was asked for.
    #[serde(default)]
    pub cut: bool,
    /// How much of its course of load an earlier cell had driven before the run was cut: this one
    /// went on from there. Nanoseconds; 0 elsewhere.
    #[serde(default)]
    pub skipped: Nanos,
    /// The `relay` probe's own cell, that ran beside this one on the same tap threads.
    pub floor_cell: Option<u32>,
}

/// The stretch over which CPU was counted, and the calls that were answered in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Seconds.
    pub seconds: f64,
    /// Of these, the seconds until the cell's window closed: behind it, calls in flight are waited for, and
    /// there is little to do. `None` in runs of earlier versions.
    #[serde(default)]
    pub driven: Option<f64>,
    /// Calls answered in full, warm-up included: what the CPU was spent on.
    pub answered: u64,
    /// Their median E2E, warm-up left out, nanoseconds; `None` where none was answered, or it was not asked for.
    #[serde(default)]
    pub e2e_p50: Option<u64>,
}

/// A chain of the run, as its file describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChainInfo {
    /// Name.
    pub name: String,
    /// `gateway`, `untapped`, `direct`, `loop` or `relay`.
    pub kind: String,
    /// A part of it is a stand-in.
    pub simulated: bool,
    /// The component between outer and inner tap, with its version.
    pub gateway: Option<String>,
    /// Replicas of the engine behind it, as its file states them; a capacity is that of so many.
    #[serde(default)]
    pub replicas: Option<u32>,
    /// Capacity found; `None` where none was looked for.
    pub capacity: Option<Capacity>,
    /// What was injected into a stand-in, in words; `None` for a real component.
    pub injected: Option<String>,
}

/// The result of a capacity search: how many calls a second a chain serves within an objective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// The rate that is handed on, calls a second: the highest at which a fresh run held, or, where none did
    /// (`confirmed` is false), the lower end of the fit's interval. `None`: the objective did not hold at the lowest
    /// rate that was tried.
    #[serde(alias = "met")]
    pub rate: Option<f64>,
    /// The objective held at `rate` in a fresh run, which the fit does not know.
    pub confirmed: bool,
    /// Where a monotone fit of the shares attained falls below the objective. `None` in runs of earlier versions.
    #[serde(default)]
    pub fit: Option<Fit>,
    /// The lowest rate of the search whose run did not hold; `None` where it ended at its highest rate, and the chain
    /// serves that or more.
    pub missed: Option<f64>,
    /// Calls that were due in the shortest of its runs: so many are its shares of. `None` in runs of
    /// earlier versions.
    #[serde(default)]
    pub calls: Option<u64>,
    /// Its runs, in the order in which they were made.
    #[serde(default)]
    pub steps: Vec<CapacityStep>,
}

/// The rate at which an objective just holds, calls a second, with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// The rate; 0 where the objective did not hold at the lowest rate that was tried.
    pub rate: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// One run of a capacity search.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapacityStep {
    /// Calls a second.
    pub rate: f64,
    /// Calls that were due.
    pub calls: u64,
    /// What it attained of each part of the objective.
    pub attained: Vec<Attained>,
    /// Every part attained what is wanted.
    pub held: bool,
    /// Made after the fit, to confirm it.
    pub fresh: bool,
}

/// The share of calls that met a part of an objective.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attained {
    /// The part: `TTFT`, `added TTFT`, `TPOT` or `answered`.
    pub part: String,
    /// Of the calls that were due; `None` where there was none.
    pub share: Option<f64>,
    /// The share that the objective wants.
    pub wanted: f64,
}

/// One leg's instrument error as `hopscope calibrate` found it. Nanoseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CalibrationLine {
    /// Leg: `request`, `first token`, `token`, `finish`, `terminal`, `end`.
    pub leg: String,
    /// Streams at once.
    pub streams: u32,
    /// Mode of the stand-in: `pass`, `reserialise`, `merge`.
    pub mode: String,
    /// Samples.
    pub samples: u64,
    /// Median and 99th percentile of measured less true.
    pub raw: (f64, f64),
    /// The largest of them; `None` in files that an earlier version wrote.
    #[serde(default)]
    pub raw_max: Option<f64>,
    /// Median and 99th percentile of the floor: a relay with as many streams in the same blocks.
    pub floor: (f64, f64),
    /// Their difference: the instrument's error.
    pub error: (f64, f64),
    /// Interval of the median error over blocks (95 %); `None` with fewer than two blocks.
    pub interval: Option<(f64, f64)>,
}

/// A calibration, as it travels in each manifest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// When, RFC 3339.
    pub at: String,
    /// The machine.
    pub host: Host,
    /// Stamp class.
    pub class: String,
    /// Within the bounds of its configuration.
    pub passed: bool,
    /// Line by line.
    pub lines: Vec<CalibrationLine>,
    /// Slope of measured against injected delay, with its 95 % interval.
    pub slope: Option<(f64, f64, f64)>,
    /// Intercept, nanoseconds.
    pub intercept: Option<f64>,
    /// Pairing rate.
    pub pairing: Option<f64>,
    /// Largest error of the merge ratio.
    pub merge_error: Option<f64>,
    /// Lower and upper bound of a plausible floor (median of the request leg), nanoseconds.
    pub floor_range: Option<(f64, f64)>,
}

/// The run. Everything that a reader needs to know what the numbers are of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Layout version, [`FORMAT`].
    pub format: u32,
    /// Version of hopscope.
    pub version: String,
    /// Name of the run: also the salt of its prompts.
    pub run: String,
    /// When it began, RFC 3339.
    pub started: String,
    /// The machine of the load generator.
    pub host: Host,
    /// Taps, gateway, load and engine had no CPUs of their own.
    pub shared_cpu: bool,
    /// Some part of some chain is a stand-in: every figure is *simulated*.
    pub simulated: bool,
    /// The scenario file's text, and its chains' by name.
    pub config: BTreeMap<String, String>,
    /// The scenario that it was made by; `None` in runs of earlier versions.
    #[serde(default)]
    pub scenario: Option<ScenarioInfo>,
    /// The chains.
    pub chains: Vec<ChainInfo>,
    /// Tokens in and out that were asked for, and the tokenizer that counted them.
    pub workload: Workload,
    /// The cells, in the order in which they ran.
    pub cells: Vec<Cell>,
    /// Cells that are being driven now; of a run that was killed, those that it was killed in.
    #[serde(default)]
    pub under_way: Vec<Cell>,
    /// The part of the run's load that this process drove; `None`: all of it.
    #[serde(default)]
    pub shard: Option<Shard>,
    /// When the run was taken up again after it had been cut, RFC 3339.
    #[serde(default)]
    pub resumed: Vec<String>,
    /// Seeds arrivals, prompts and the order of cells.
    #[serde(default)]
    pub seed: Option<u64>,
    /// The boot of the machine whose monotonic clock all instants are of (the kernel's boot id).
    #[serde(default)]
    pub boot: Option<String>,
    /// The calibration that the figures rest on; `None`: none was made on this machine.
    pub calibration: Option<Calibration>,
    /// The verdict; `None` while the run goes on.
    pub verdict: Option<Verdict>,
    /// Reads and loss of the taps, by tap process.
    pub taps: Vec<TapHealth>,
    /// What the check of the tool filter found; `None` where none was asked for.
    #[serde(default)]
    pub tool_filter: Option<ToolFilter>,
    /// What the usage probe found, one for each reference; empty where none was asked for.
    #[serde(default)]
    pub token_probes: Vec<TokenProbe>,
    /// Experiments of operation, one a cell of theirs.
    #[serde(default)]
    pub experiments: Vec<Experiment>,
    /// The metrics endpoints of components that were looked at.
    #[serde(default)]
    pub scraped: Vec<Scraped>,
    /// CPU seconds of the load generator that looking at them took; `None` where none was named. They are in
    /// the cells' `generator_cpu`.
    #[serde(default)]
    pub scrape_cpu: Option<f64>,
}

/// Which scenario a run was made by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioInfo {
    /// Its number in the plan, 1 to 9.
    pub number: u8,
    /// Its name.
    pub name: String,
}

/// A part of a run's load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Which part, from 0.
    pub index: u32,
    /// Of how many.
    pub of: u32,
    /// Wall clock minus monotonic clock of its host, nanoseconds: what puts the instants of several
    /// hosts on one scale, as exactly as their clocks agree.
    pub wall_offset: i64,
    /// The most by which a cell began after its slot, nanoseconds.
    pub late: Nanos,
}

/// What the calls were.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workload {
    /// Prompt tokens a call under `tokenizer`.
    pub input_tokens: u32,
    /// Completion tokens asked for.
    pub output_tokens: u32,
    /// Name of the tokenizer.
    pub tokenizer: String,
    /// Streamed answers.
    pub stream: bool,
    /// The trace whose lengths its own cells have; `None` without one.
    #[serde(default)]
    pub trace: Option<TraceInfo>,
}

/// What a trace holds, of what is replayed of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceInfo {
    /// Its file.
    pub file: String,
    /// Calls.
    pub calls: u64,
    /// Prompt tokens of all of them.
    pub input_tokens: u64,
    /// Completion tokens of all of them that are asked for.
    pub output_tokens: u64,
    /// Calls whose answer had no token, and of which one is asked for: none cannot be.
    pub empty: u64,
    /// A hash (FNV-1a, 64 bits) of the lines that were read: the same trace has the same.
    pub fingerprint: u64,
}

/// A tap process' own account of itself since it started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TapHealth {
    /// Its name.
    pub instance: String,
    /// Exchange records that its meter could not hand on: each counts as unpaired.
    pub lost: u64,
    /// Lateness of its threads' wake-ups, nanoseconds: median, 99th percentile, largest.
    pub lateness: Option<(f64, f64, f64)>,
    /// Wall clock steps seen: kernel stamps around them are void.
    pub clock_steps: u64,
    /// CPUs it may use.
    pub cpus: u32,
    /// Which start of which machine its clock counts from; `None` of a tap that could not tell.
    #[serde(default)]
    pub boot: Option<String>,
}
