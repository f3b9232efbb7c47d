//! Where a run took place.

use std::fs;

use anyhow::{Context, Result, bail};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde::Serialize;

/// The machine, as far as it bears on the numbers.
#[derive(Serialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cpus: usize,
    pub(crate) kernel: String,
    memory_bytes: u64,
}

/// Which CPUs harness and subjects run on.
#[derive(Clone, Copy, Serialize)]
pub(crate) struct Placement {
    /// The harness's own CPU, if pinned.
    pub(crate) harness_cpu: Option<usize>,
    /// The CPU of every subject alike, if pinned.
    pub(crate) subject_cpu: Option<usize>,
}

impl Machine {
    /// Describes this machine.
    ///
    /// # Errors
    /// When /proc is missing.
    pub(crate) fn here() -> Result<Self> {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").context("no /proc/cpuinfo")?;
        let cpu = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map_or("unknown", |(_, name)| name.trim());
        let meminfo = fs::read_to_string("/proc/meminfo").context("no /proc/meminfo")?;
        let kilobytes = meminfo
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB"))
            .and_then(|number| number.parse::<u64>().ok())
            .unwrap_or(0);
        Ok(Self {
            cpu: cpu.to_owned(),
            cpus: allowed()?.len(),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")?
                .trim()
                .to_owned(),
            memory_bytes: kilobytes * 1024,
        })
    }
}

fn allowed() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|n| set.is_set(*n)).collect())
}

/// Puts the harness on the first CPU and names the second for every subject; or nothing anywhere.
///
/// # Errors
/// With fewer than two CPUs: the harness never sleeps and would starve the subject.
pub(crate) fn place(pin: bool) -> Result<Placement> {
    let cpus = allowed()?;
    let [first, second, ..] = cpus[..] else {
        bail!("this benchmark needs two CPUs: its own loop takes one whole");
    };
    if !pin {
        return Ok(Placement {
            harness_cpu: None,
            subject_cpu: None,
        });
    }
    let mut set = CpuSet::new();
    set.set(first);
    sched_setaffinity(None, &set)?;
    Ok(Placement {
        harness_cpu: Some(first),
        subject_cpu: Some(second),
    })
}
