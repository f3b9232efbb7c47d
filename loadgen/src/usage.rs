//! CPU and memory of processes of this machine, as the kernel counts them.

use config::chain::ProcessMatch;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The processes of one component: those named, and their children.
#[derive(Debug, Clone, Default)]
pub(crate) struct Component {
    pids: Vec<u32>,
    matches: Vec<ProcessMatch>,
    base: PathBuf,
}

impl Component {
    /// Processes by id; where there are none, by what the chain's file says.
    pub(crate) fn new(pids: &[u32], matches: &[ProcessMatch], base: &Path) -> Self {
        let matches = if pids.is_empty() {
            matches.to_vec()
        } else {
            Vec::new()
        };
        Self {
            pids: pids.to_vec(),
            matches,
            base: base.to_owned(),
        }
    }

    /// The processes that are there now, children included.
    pub(crate) fn tree(&self) -> BTreeSet<u32> {
        let all = processes();
        let mut found: BTreeSet<u32> = self
            .pids
            .iter()
            .copied()
            .filter(|p| all.contains_key(p))
            .collect();
        for wanted in &self.matches {
            match wanted {
                ProcessMatch::PidFile(path) => {
                    let text = fs::read_to_string(self.base.join(path)).unwrap_or_default();
                    found.extend(
                        text.trim()
                            .parse::<u32>()
                            .ok()
                            .filter(|p| all.contains_key(p)),
                    );
                }
                ProcessMatch::CommandMatch(text) => {
                    found.extend(all.keys().copied().filter(|p| command(*p).contains(text)));
                }
                ProcessMatch::Cgroup(path) => {
                    let list = Path::new("/sys/fs/cgroup").join(path).join("cgroup.procs");
                    let text = fs::read_to_string(list).unwrap_or_default();
                    found.extend(text.lines().filter_map(|l| l.trim().parse::<u32>().ok()));
                }
            }
        }
        // A child of a child comes into the set by its parent: at most as many rounds as levels.
        loop {
            let before = found.len();
            found.extend(
                all.iter()
                    .filter(|(_, parent)| found.contains(parent))
                    .map(|(p, _)| *p)
                    .collect::<Vec<_>>(),
            );
            if found.len() == before {
                return found;
            }
        }
    }

    /// CPU seconds so far; `None` where no process is there.
    pub(crate) fn cpu(&self) -> Option<f64> {
        let tree = self.tree();
        (!tree.is_empty()).then(|| tree.iter().filter_map(|p| cpu_of(*p)).sum())
    }

    /// What a second of the series says of it: one look at the list of processes for all of it.
    pub(crate) fn look(&self) -> Usage {
        let tree = self.tree();
        if tree.is_empty() {
            return Usage::default();
        }
        Usage {
            cpu: Some(tree.iter().filter_map(|p| cpu_of(*p)).sum()),
            resident: Some(tree.iter().filter_map(|p| rss_of(*p)).sum()),
            descriptors: tree.iter().map(|p| descriptors_of(*p)).sum(),
        }
    }

    /// Memory now (PSS), bytes; `None` where no process is there.
    pub(crate) fn memory(&self) -> Option<u64> {
        let tree = self.tree();
        (!tree.is_empty()).then(|| tree.iter().filter_map(|p| pss_of(*p)).sum())
    }
}

/// What a component uses; absent where no process is there.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Usage {
    /// CPU seconds so far.
    pub(crate) cpu: Option<f64>,
    /// Resident memory (RSS summed), bytes.
    pub(crate) resident: Option<u64>,
    /// Open file descriptors; absent where any of the processes may not be looked into, too.
    pub(crate) descriptors: Option<u64>,
}

/// Every process and its parent.
fn processes() -> BTreeMap<u32, u32> {
    let entries = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    let pids = entries.filter_map(|e| e.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in brackets may hold anything: fields count from behind it.
        let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
        Some((pid, parent))
    })
    .collect()
}

fn command(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

fn rss_of(pid: u32) -> Option<u64> {
    kib_of(&format!("/proc/{pid}/status"), "VmRSS:")
}

/// Open file descriptors of a process; `None` where it may not be looked into: another user's.
fn descriptors_of(pid: u32) -> Option<u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd")).ok()?;
    Some(entries.count() as u64)
}

/// CPU seconds of a process' threads by the scheduler's own count (`schedstat`, nanoseconds): the
/// ticks of `stat` are too coarse for a cell of a second. Threads that ended are not in it.
pub(crate) fn cpu_of(pid: u32) -> Option<f64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let nanos = tasks.filter_map(Result::ok).filter_map(|task| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    Some(nanos.sum::<u64>() as f64 / 1e9)
}

/// Whether any two of the groups of processes may run on one CPU. A group without a process is one
/// that nobody named: it may run anywhere.
pub(crate) fn shared(groups: &[Vec<u32>]) -> bool {
    let mut taken = BTreeSet::new();
    groups.iter().any(|group| {
        let allowed: BTreeSet<u32> = group
            .iter()
            .filter_map(|pid| cpus_of(*pid))
            .flatten()
            .collect();
        let clash = allowed.is_empty() || !taken.is_disjoint(&allowed);
        taken.extend(allowed);
        clash
    })
}

/// The CPUs that a process may run on.
fn cpus_of(pid: u32) -> Option<BTreeSet<u32>> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let list = status
        .lines()
        .find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?;
    parse_list(list.trim())
}

/// A list as the kernel writes it: `0-1,4`.
fn parse_list(list: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for part in list.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        cpus.extend(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?);
    }
    Some(cpus)
}

fn pss_of(pid: u32) -> Option<u64> {
    kib_of(&format!("/proc/{pid}/smaps_rollup"), "Pss:")
}

/// A line of a file of the kernel that counts in kB, as bytes.
fn kib_of(path: &str, field: &str) -> Option<u64> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(field))?;
    line.split_whitespace()
        .next()?
        .parse::<u64>()
        .ok()
        .map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_shared_where_groups_overlap_or_are_not_named() {
        assert_eq!(parse_list("0-1,4"), Some(BTreeSet::from([0, 1, 4])));
        assert_eq!(parse_list("x"), None);
        let own = vec![std::process::id()];
        assert!(!shared(std::slice::from_ref(&own)));
        assert!(shared(&[own.clone(), own.clone()]));
        assert!(shared(&[own, Vec::new()]));
    }

    #[test]
    fn this_process_is_found_by_id_and_uses_cpu_and_memory() {
        let own = Component::new(&[std::process::id()], &[], Path::new("."));
        let before = own.cpu().unwrap();
        let begin = std::time::Instant::now();
        while begin.elapsed().as_millis() < 60 {
            std::hint::spin_loop();
        }
        assert!(own.cpu().unwrap() - before > 0.02);
        assert!(own.memory().unwrap() > 500_000);
        let look = own.look();
        assert!(look.resident.unwrap() >= own.memory().unwrap() / 2);
        assert!(look.cpu.unwrap() > 0.0);
        // Other tests of this process open and close files meanwhile: many of ours show through.
        let files: Vec<fs::File> = (0..400)
            .map(|_| fs::File::open("/dev/null").unwrap())
            .collect();
        let more = own.look().descriptors.unwrap();
        assert!(
            more >= look.descriptors.unwrap() + 200,
            "{look:?}, then {more}"
        );
        drop(files);
        let none = Component::new(
            &[],
            &[ProcessMatch::CommandMatch(
                "no such program \u{1F980}".to_owned(),
            )],
            Path::new("."),
        );
        assert_eq!((none.cpu(), none.memory()), (None, None));
        assert_eq!(none.look(), Usage::default());
    }
}
