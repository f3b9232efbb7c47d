//! Scenarios, arrivals, clients and probes: what drives a chain.
//!
//! [`run`] takes a [`Plan`] (a scenario, the chains, where the taps record) and leaves a run
//! directory. Before anything is measured, one short call per chain shows that each answers. Then
//! each gateway's capacity is searched, and blocks of cells follow in random order, every chain
//! and control interleaved.
//!
//! | part | what it does |
//! |---|---|
//! | [`arrival`] | when calls are due: seeded, absolute, never re-anchored |
//! | `trace` | when they are due and what they ask, by a recorded course |
//! | [`prompt`] | what they ask: exact token counts, unique texts of one length |
//! | `lanes`, `pacer` | threads that carry streams, and the one that keeps the schedule |
//! | `api` | what a chain speaks: OpenAI's chat completions, Bedrock's Converse, an agent's own |
//! | `client` | one call: one connection, every read stamped |
//! | `cell` | open loop, closed loop, agents, the floor probe |
//! | `agent` | the tools of agents over MCP, and the check of a tool filter |
//! | `trigger` | what is done to a chain in an experiment of operation |
//! | `probe` | what limits let through, what caches tell, what guardrails do |
//! | `capacity` | the search for the highest rate that holds |
//! | `campaign` | which cells, in which order, and what of them is kept |
//! | `scrape` | what the components' own metrics say meanwhile |
//! | `recorder`, `taps`, `judge` | rows, series, histograms, shards, and the verdict |

mod agent;
mod api;
pub mod arrival;
mod campaign;
mod capacity;
mod cell;
mod client;
mod error;
mod judge;
mod lanes;
mod merge;
mod pacer;
mod plan;
mod probe;
pub mod progress;
pub mod prompt;
mod recorder;
mod scrape;
mod seed;
mod shard;
mod stop;
mod tables;
mod taps;
mod target;
#[cfg(test)]
mod testbed;
mod trace;
mod trigger;
mod usage;

pub use error::{LoadError, PreflightFailure};
pub use merge::merge;
pub use plan::{Plan, PlannedChain, PlannedTap};
pub use progress::{Progress, Update};
pub use shard::Shard;
pub use stop::Stop;

use record::rundir::RunDir;
use std::sync::Arc;

/// Makes the whole run and returns its directory. Blocks; starts threads of its own and ends
/// them. Must not be called on a thread of an asynchronous runtime.
///
/// # Errors
/// The plan contradicts itself, a chain does not answer, or the run directory cannot be written.
/// What was measured before an error is kept.
pub fn run(plan: &Plan, progress: Arc<dyn Progress>, stop: &Stop) -> Result<RunDir, LoadError> {
    campaign::run(plan, progress, stop)
}
