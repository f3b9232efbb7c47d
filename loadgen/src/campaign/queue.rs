//! Which cells measured queueing and not overhead.

use super::Campaign;
use record::manifest::{Cell, Drive};
use std::collections::HashMap;

impl Campaign<'_> {
    /// Driven beyond the capacity found, with so many measured calls answered? A closed loop is, where it is answered about as fast as
    /// the chain can at all; [`Self::mark_queues`] finds the others. Unknown where the chain's
    /// capacity is.
    pub(super) fn saturated(&self, cell: &Cell, answered: u64) -> Option<bool> {
        let chain = self.plan.find(&cell.chain)?;
        let measured = chain.chain.control_of.as_ref().unwrap_or(&cell.chain);
        let met = self.capacities.get(measured)?.rate?;
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
                (seconds > 0.0).then(|| answered as f64 / seconds >= 0.9 * met)
            }
        }
    }

    /// Marks closed loops whose callers wait for each other: they are answered at less than half
    /// the rate that as many callers would be if each were alone.
    pub(super) fn mark_queues(&mut self) {
        let mut alone: HashMap<String, u64> = HashMap::new();
        let mut taken: HashMap<u32, u64> = HashMap::new();
        for cell in &self.cells {
            if let (Drive::Closed { concurrency }, Some(time)) = (&cell.drive, cell.counted.e2e_p50)
            {
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
