//! What a run tells while it goes on.

mod json;
mod terminal;

pub use json::Json;
pub use terminal::{Style, Terminal};

use serde::Serialize;
use std::time::Duration;

/// What the run is at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// One short call per chain.
    Preflight,
    /// What is tried with tenants' keys.
    Probes,
    /// The search for a chain's capacity.
    Capacity,
    /// The cells of a block.
    Block {
        /// Its number, from 1.
        number: u32,
        /// How many there are.
        of: u32,
    },
    /// The taps' records are gathered.
    Gather,
    /// Everything is written.
    Done,
}

/// The state of a run, about once a second and at every change of cell. Of the last second where
/// a rate or percentile is meant; `None` where nothing was there to measure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Update {
    /// What the run is at.
    pub phase: Phase,
    /// The chain under load.
    pub chain: String,
    /// The cell, in words: `open 12.5/s`, `closed 50`.
    pub cell: String,
    /// Calls a second that were due.
    pub asked: f64,
    /// Calls a second that were answered in full.
    pub achieved: f64,
    /// Calls in flight.
    pub in_flight: u64,
    /// Median TTFT of the last second, nanoseconds.
    pub ttft_p50: Option<u64>,
    /// 99th percentile of it.
    pub ttft_p99: Option<u64>,
    /// Calls of the cell that failed in any way.
    pub errors: u64,
    /// 99th percentile of the schedule lag of the last second, nanoseconds.
    pub lag_p99: Option<u64>,
    /// Cells done.
    pub done: u32,
    /// Cells in all, as far as is known.
    pub total: u32,
    /// Time left, by the pace so far. Seconds where it is written down.
    #[serde(serialize_with = "seconds")]
    pub left: Option<Duration>,
    /// Something a person should read: a capacity found, a warning.
    pub note: Option<String>,
}

impl Update {
    /// Something to read before the first cell.
    pub(crate) fn note(text: String) -> Self {
        Self {
            phase: Phase::Preflight,
            chain: String::new(),
            cell: String::new(),
            asked: 0.0,
            achieved: 0.0,
            in_flight: 0,
            ttft_p50: None,
            ttft_p99: None,
            errors: 0,
            lag_p99: None,
            done: 0,
            total: 0,
            left: None,
            note: Some(text),
        }
    }
}

fn seconds<S: serde::Serializer>(left: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    left.map(|left| left.as_secs_f64()).serialize(to)
}

/// Receives updates. Called from the recorder's thread: it must return soon.
pub trait Progress: Send + Sync {
    /// Takes one update.
    fn update(&self, update: &Update);
}

/// Tells nobody.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn update(&self, _: &Update) {}
}
