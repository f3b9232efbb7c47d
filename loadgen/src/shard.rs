//! A part of a run's load: one of several generators that drive the same run together.
//!
//! All of them know the whole schedule, by its seed, and each sends every n-th call of it: what they send
//! together is exactly the schedule of one generator, and no call is sent twice. Nobody coordinates them.
//! Each cell has a slot of the wall clock, counted from one agreed instant, so a slot must be long enough
//! by the scenario alone.

use crate::cell::Way;
use crate::{LoadError, Plan};
use config::scenario::{CellLength, Scenario};
use record::clock::{Nanos, now, pair};
use std::num::NonZeroU32;
use std::time::Duration;

/// What a cell's calls in flight may take beyond it, before the next slot.
const DRAIN: Duration = Duration::from_secs(60);
/// Between two slots, beyond that: for what is written down.
const REST: Duration = Duration::from_secs(2);

/// Which part of a run's load, and when the run begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which part, from 0.
    pub index: u32,
    /// Of how many.
    pub of: NonZeroU32,
    /// When the first cell begins, nanoseconds of the wall clock since the Unix epoch: the same for all
    /// parts. How well their clocks agree is how well they begin together.
    pub start: u64,
}

/// Which calls are this process' own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Share {
    pub(crate) index: u64,
    pub(crate) of: u64,
}

impl Share {
    /// Everything.
    pub(crate) const ALL: Self = Self { index: 0, of: 1 };

    pub(crate) fn of(shard: Option<&Shard>) -> Self {
        shard.map_or(Self::ALL, |shard| Self {
            index: u64::from(shard.index),
            of: u64::from(shard.of.get()),
        })
    }

    /// Whether number `number` of the whole is one of this part.
    pub(crate) fn has(self, number: u64) -> bool {
        number % self.of == self.index
    }

    /// Whether this part drives what only one may: the floor probe.
    pub(crate) fn leads(self) -> bool {
        self.index == 0
    }
}

/// When the next cell begins.
#[derive(Debug)]
pub(crate) struct Slots {
    next: Nanos,
    /// Wall less monotonic, nanoseconds.
    pub(crate) offset: i64,
    /// The most that a cell began after its slot.
    pub(crate) late: Nanos,
}

impl Slots {
    /// Slots from the shard's start on.
    ///
    /// # Errors
    /// That is over.
    pub(crate) fn begin(shard: &Shard) -> Result<Self, LoadError> {
        let offset = pair().offset;
        let next = u64::try_from(shard.start.cast_signed() - offset).unwrap_or(0);
        if next <= now() {
            return Err(LoadError::Plan(
                "the shards' start is over already; name a later instant, the same for all of them, that leaves time for every process to start"
                    .to_owned(),
            ));
        }
        Ok(Self {
            next,
            offset,
            late: 0,
        })
    }

    /// The begin of the next slot, which lasts `length`.
    pub(crate) fn take(&mut self, length: Nanos) -> Nanos {
        let begin = self.next;
        self.next = begin.saturating_add(length);
        self.late = self.late.max(now().saturating_sub(begin));
        begin
    }
}

fn nanos(duration: Duration) -> Nanos {
    u64::try_from(duration.as_nanos()).unwrap_or(Nanos::MAX)
}

/// How long the slot of a cell is.
pub(crate) fn slot(scenario: &Scenario, way: &Way, length: &CellLength) -> Nanos {
    let lasts = |length: &CellLength| length.duration.map_or(0, config::Period::nanos);
    let warmup = match way {
        Way::Profile { .. } | Way::Trace { .. } => 0,
        _ => lasts(&scenario.warmup),
    };
    let drain = scenario.timeouts.total.get().min(DRAIN) + REST;
    warmup + lasts(length) + nanos(drain)
}

/// What a scenario must be for its load to be driven in parts.
pub(crate) fn check(plan: &Plan, shard: &Shard) -> Result<(), LoadError> {
    let scenario = &plan.scenario;
    let wrong = |what: &str| Err(LoadError::Plan(format!("shards: {what}")));
    if shard.index >= shard.of.get() {
        return wrong(
            "they are numbered from 0; write --shard 0/2 and --shard 1/2 for two of them",
        );
    }
    if plan.resume {
        return wrong("a part of a run cannot be resumed: its slots are over; run all parts anew");
    }
    if scenario.capacity.is_some() {
        return wrong(
            "the search for the capacity decides by what it finds, which the parts do not tell each other; remove `capacity`",
        );
    }
    if scenario.agent.is_some() {
        return wrong("tasks of agents take as long as they take; remove `agent`");
    }
    if scenario.experiment.is_some() {
        return wrong(
            "an experiment takes as long as it takes, and its event comes once; remove `experiment`",
        );
    }
    let tenants = scenario.tenants.as_ref();
    if tenants.is_some_and(|tenants| tenants.probes.is_some()) {
        return wrong(
            "a probe of one key cannot be divided; remove `tenants.probes`, and make them in a run of their own",
        );
    }
    let open = scenario.open_loop.as_ref().map(|open| &open.cell);
    let closed = scenario.closed_loop.as_ref().map(|closed| &closed.cell);
    let tenants = tenants.map(|tenants| &tenants.cell);
    let lengths = [Some(&scenario.warmup), open, closed, tenants];
    let counted = |length: &&CellLength| length.calls.is_some() || length.duration.is_none();
    if lengths.into_iter().flatten().any(|length| counted(&length)) {
        return wrong(
            "each cell needs a slot of known length; give `warmup` and every `cell` a `duration`, and no `calls`",
        );
    }
    Ok(())
}
