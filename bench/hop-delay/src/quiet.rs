//! How quiet the machine was: CPU that neither the harness nor the subject used.

use std::fs;

use anyhow::{Context, Result, anyhow};

use crate::clock::SECOND;

/// A reading of the kernel's counters, in nanoseconds since boot, summed over all CPUs.
#[derive(Clone, Copy)]
pub(crate) struct Reading {
    busy: u64,
    steal: u64,
    own: u64,
}

/// CPU time that others took during a block, in nanoseconds.
#[derive(Clone, Copy, Default)]
pub(crate) struct Others {
    /// Other processes of this machine (counted in ticks of 10 ms).
    pub(crate) busy: u64,
    /// The hypervisor's other guests.
    pub(crate) steal: u64,
}

impl Reading {
    /// Reads the counters.
    ///
    /// # Errors
    /// When /proc does not hold them.
    pub(crate) fn take() -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat").context("no /proc/stat")?;
        let ticks: Vec<u64> = stat
            .lines()
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .skip(1)
            .map_while(|word| word.parse().ok())
            .collect();
        // user nice system idle iowait irq softirq steal …
        let [user, nice, system, _, _, irq, softirq, steal, ..] = ticks[..] else {
            return Err(anyhow!("/proc/stat has no line of eight counters"));
        };
        let tick = SECOND / rustix::param::clock_ticks_per_second();
        let own = fs::read_to_string("/proc/self/schedstat").context("no /proc/self/schedstat")?;
        let own = own.split(' ').next().and_then(|n| n.parse().ok());
        Ok(Self {
            busy: (user + nice + system + irq + softirq) * tick,
            steal: steal * tick,
            own: own.ok_or_else(|| anyhow!("/proc/self/schedstat holds no number"))?,
        })
    }

    /// What others used since `before`, the subject's own time taken off.
    pub(crate) fn others_since(self, before: Self, subject: u64) -> Others {
        let ours = self.own - before.own + subject;
        Others {
            busy: (self.busy - before.busy).saturating_sub(ours),
            steal: self.steal - before.steal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_use_is_not_others() {
        let before = Reading {
            busy: 100,
            steal: 5,
            own: 10,
        };
        let after = Reading {
            busy: 190,
            steal: 8,
            own: 60,
        };
        let others = after.others_since(before, 30);
        assert_eq!((others.busy, others.steal), (10, 3));
        assert!(Reading::take().unwrap().busy > 0);
    }
}
