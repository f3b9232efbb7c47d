//! What a run found, in the form that is written to disk.

use anyhow::Result;
use serde::Serialize;

use crate::clock::MILLISECOND;
use crate::machine::{Machine, Placement};
use crate::samples::{Arm, Block, Estimate};

/// The name of the control: client and server without anything between.
pub(crate) const DIRECT: &str = "direct";

/// Share of one CPU that other processes may take in a block.
pub(crate) const OTHERS_LIMIT: f64 = 0.05;
/// How late the p99 token of a block may be written, in nanoseconds.
const LAG_LIMIT: f64 = MILLISECOND as f64;

/// A whole run. Durations are nanoseconds.
#[derive(Serialize)]
pub(crate) struct Outcome {
    pub(crate) started_unix_seconds: u64,
    pub(crate) notes: Vec<String>,
    pub(crate) machine: Machine,
    pub(crate) placement: Placement,
    pub(crate) parameters: Parameters,
    pub(crate) reference: String,
    /// Blocks run again because other processes disturbed them.
    pub(crate) repeated_blocks: usize,
    /// Why the numbers are not to be trusted; empty when they are.
    pub(crate) verdict: Vec<String>,
    pub(crate) levels: Vec<Level>,
}

/// What was asked for.
#[derive(Serialize)]
pub(crate) struct Parameters {
    pub(crate) rounds: usize,
    pub(crate) window_ns: u64,
    pub(crate) gap_ns: u64,
    pub(crate) phases: String,
    pub(crate) seed: u64,
    pub(crate) commands: Vec<String>,
}

/// All arms at one number of streams.
#[derive(Serialize)]
pub(crate) struct Level {
    pub(crate) streams: usize,
    pub(crate) arms: Vec<ArmOutcome>,
}

/// One arm at one number of streams.
#[derive(Serialize)]
pub(crate) struct ArmOutcome {
    pub(crate) name: String,
    pub(crate) events: u64,
    /// Share of events that came in one read with an earlier event of their stream.
    pub(crate) joined_share: f64,
    pub(crate) delay_p50: Option<Estimate>,
    pub(crate) delay_p99: Option<Estimate>,
    /// This arm's quantile less the control's.
    pub(crate) added_p50: Option<Estimate>,
    pub(crate) added_p99: Option<Estimate>,
    pub(crate) cpu_ns_per_event: Option<Estimate>,
    /// CPU time over wall time in the windows: near 1 is saturated with one CPU.
    pub(crate) cpu_share: Option<f64>,
    pub(crate) memory_bytes: Option<u64>,
    /// The reference's figure over this arm's: below 1 the reference is the better one.
    pub(crate) reference_ratio: Ratios,
    pub(crate) blocks: Vec<BlockOutcome>,
}

/// The reference's figures over an arm's.
#[derive(Default, Serialize)]
pub(crate) struct Ratios {
    pub(crate) added_p50: Option<Estimate>,
    pub(crate) added_p99: Option<Estimate>,
    pub(crate) cpu: Option<Estimate>,
}

/// One block, for those who want to compute on their own.
#[derive(Serialize)]
pub(crate) struct BlockOutcome {
    round: usize,
    events: u64,
    p50_ns: Option<f64>,
    p99_ns: Option<f64>,
    max_ns: u64,
    cpu_ns: Option<u64>,
    others_cpu_ns: u64,
    steal_ns: u64,
    schedule_lag_p99_ns: Option<f64>,
    schedule_lag_max_ns: u64,
    turn_p99_ns: Option<f64>,
    turn_max_ns: u64,
}

impl Outcome {
    /// The same with its verdict.
    pub(crate) fn judged(mut self) -> Self {
        let limit = OTHERS_LIMIT * self.parameters.window_ns as f64;
        for level in &self.levels {
            let blocks = || level.arms.iter().flat_map(|arm| &arm.blocks);
            let (all, streams) = (blocks().count(), level.streams);
            let disturbed = blocks().filter(|b| b.others_cpu_ns as f64 > limit).count();
            if disturbed > 0 {
                self.verdict.push(format!(
                    "at {streams} streams other processes took over {:.0} % of a CPU in \
                     {disturbed} of {all} blocks",
                    OTHERS_LIMIT * 100.0
                ));
            }
            let is_late = |b: &&BlockOutcome| b.schedule_lag_p99_ns.is_some_and(|l| l > LAG_LIMIT);
            let late = blocks().filter(is_late).count();
            // In step all streams are due at one instant and are written one after the other.
            if late > 0 && self.parameters.phases != "step" {
                self.verdict.push(format!(
                    "at {streams} streams the harness wrote its p99 token over 1 ms late in \
                     {late} of {all} blocks"
                ));
            }
        }
        self
    }

    /// All blocks.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &BlockOutcome> {
        let arms = self.levels.iter().flat_map(|level| &level.arms);
        arms.flat_map(|arm| &arm.blocks)
    }
}

impl BlockOutcome {
    /// CPU that other processes and other guests took, in nanoseconds.
    pub(crate) fn others(&self) -> (u64, u64) {
        (self.others_cpu_ns, self.steal_ns)
    }

    /// p99 of the schedule's lag and of the loop's turn, in nanoseconds.
    pub(crate) fn lag_and_turn_p99(&self) -> (Option<f64>, Option<f64>) {
        (self.schedule_lag_p99_ns, self.turn_p99_ns)
    }
}

/// Blocks of one arm at one level, by round.
pub(crate) type Blocks = Vec<Block>;

/// Puts one level together: `names[n]` ran `blocks[n]`; the control is among them.
///
/// # Errors
/// When histograms do not add up, which the same precision excludes.
pub(crate) fn level(
    streams: usize,
    names: &[String],
    blocks: &[Blocks],
    reference: &str,
    window: u64,
) -> Result<Level> {
    let arms: Vec<Arm> = blocks.iter().map(|b| Arm::of(b)).collect::<Result<_>>()?;
    let find = |name: &str| names.iter().position(|n| n == name).map(|n| &arms[n]);
    let (direct, reference) = (find(DIRECT), find(reference));
    let outcomes = names
        .iter()
        .zip(&arms)
        .zip(blocks)
        .map(|((name, arm), blocks)| {
            let control = direct.filter(|_| name != DIRECT);
            let events: u64 = blocks.iter().map(|b| b.delays.len()).sum();
            let joined: u64 = blocks.iter().map(|b| b.joined).sum();
            let cpu: Option<u64> = blocks.iter().map(|b| b.cpu).sum();
            let wall = window as f64 * blocks.len() as f64;
            ArmOutcome {
                name: name.clone(),
                events,
                joined_share: joined as f64 / events.max(1) as f64,
                delay_p50: Estimate::of([arm], |[a]| a.p50),
                delay_p99: Estimate::of([arm], |[a]| a.p99),
                added_p50: control
                    .and_then(|c| Estimate::of([arm, c], |[a, c]| Some(a.p50? - c.p50?))),
                added_p99: control
                    .and_then(|c| Estimate::of([arm, c], |[a, c]| Some(a.p99? - c.p99?))),
                cpu_ns_per_event: Estimate::of([arm], |[a]| a.cpu),
                cpu_share: cpu.map(|cpu| cpu as f64 / wall),
                memory_bytes: blocks.iter().filter_map(|b| b.memory).max(),
                reference_ratio: ratios(reference, arm, control),
                blocks: blocks.iter().enumerate().map(block).collect(),
            }
        });
    Ok(Level {
        streams,
        arms: outcomes.collect(),
    })
}

fn ratios(reference: Option<&Arm>, arm: &Arm, control: Option<&Arm>) -> Ratios {
    let (Some(reference), Some(control)) = (reference, control) else {
        return Ratios::default();
    };
    // A ratio to something that is not above zero says nothing.
    let over = |a: f64, b: f64| (b > 0.0).then(|| a / b);
    Ratios {
        added_p50: Estimate::of([reference, arm, control], |[r, a, c]| {
            over(r.p50? - c.p50?, a.p50? - c.p50?)
        }),
        added_p99: Estimate::of([reference, arm, control], |[r, a, c]| {
            over(r.p99? - c.p99?, a.p99? - c.p99?)
        }),
        cpu: Estimate::of([reference, arm], |[r, a]| over(r.cpu?, a.cpu?)),
    }
}

fn block((round, block): (usize, &Block)) -> BlockOutcome {
    BlockOutcome {
        round,
        events: block.delays.len(),
        p50_ns: block.delays.quantile(0.5),
        p99_ns: block.delays.quantile(0.99),
        max_ns: block.delays.max(),
        cpu_ns: block.cpu,
        others_cpu_ns: block.others.busy,
        steal_ns: block.others.steal,
        schedule_lag_p99_ns: block.lag.0,
        schedule_lag_max_ns: block.lag.1,
        turn_p99_ns: block.turn.0,
        turn_max_ns: block.turn.1,
    }
}
