//! Which cells measured queueing and not overhead.

use super::Campaign;
use crate::recorder::quantile;
use record::client::{CallOutcome, ClientCall};
use record::manifest::{Cell, Drive};
use std::collections::HashMap;

impl Campaign<'_> {
    /// Driven beyond the capacity found? A closed loop is, where it is answered about as fast as
    /// the chain can at all; [`Self::mark_queues`] finds the others. Unknown where the chain's
    /// capacity is.
    pub(super) fn saturated(&self, cell: &Cell, calls: &[ClientCall]) -> Option<bool> {
        let chain = self.plan.find(&cell.chain)?;
        let measured = chain.chain.control_of.as_ref().unwrap_or(&cell.chain);
        let met = self.capacities.get(measured)?.met;
        match cell.drive {
            Drive::Open { rate, .. } | Drive::Capacity { rate } => Some(rate > met),
            Drive::Agent { .. } => Some(false),
            // Overload is what these may be for.
            Drive::Profile { .. }
            | Drive::Trace { .. }
            | Drive::Tenant { .. }
            | Drive::Experiment { .. } => None,
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
    pub(super) fn mark_queues(&mut self) {
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
}
