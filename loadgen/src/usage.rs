//! CPU and memory of processes of this machine, as the kernel counts them.

use config::chain::ProcessMatch;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The processes of one component: those named, and their children.
#[derive(Debug, Clone, Default)]
pub(crate) struct Component {
    pids: Vec<u32>,
    matches: Vec<ProcessMatch>,
    base: PathBuf,
    /// Never found by a text in their commands: they may have the component's name in theirs.
    apart: BTreeSet<u32>,
}

impl Component {
    /// Processes by id; where there are none, by what the chain's file says. `taps` and whoever started this
    /// process are none of them, though the files that their commands name may be called like it.
    pub(crate) fn new(
        pids: &[u32],
        matches: &[ProcessMatch],
        base: &Path,
        taps: impl Iterator<Item = u32>,
    ) -> Self {
        let matches = if pids.is_empty() {
            matches.to_vec()
        } else {
            Vec::new()
        };
        let all = processes();
        let own = std::iter::successors(Some(std::process::id()), |pid| all.get(pid).copied());
        Self {
            pids: pids.to_vec(),
            matches,
            base: base.to_owned(),
            apart: own.chain(taps).collect(),
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
                    let others = all.keys().copied().filter(|p| !self.apart.contains(p));
                    found.extend(others.filter(|p| command(*p).contains(text)));
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

    /// CPU so far; `None` where no process is there, or one may not be looked into.
    pub(crate) fn cpu(&self) -> Option<Cpu> {
        Cpu::of(self.tree())
    }

    /// CPU seconds since it was `before`; see [`Cpu::since`].
    pub(crate) fn cpu_since(&self, before: Option<&Cpu>) -> Option<f64> {
        self.cpu()?.since(before?)
    }

    /// What a second of the series says of it: one look at the list of processes for all of it.
    pub(crate) fn look(&self) -> Usage {
        let tree = self.tree();
        Usage {
            resident: total(&tree, rss_of),
            descriptors: total(&tree, descriptors_of),
            cpu: Cpu::of(tree),
        }
    }

    /// Memory now (PSS), bytes; `None` where no process is there, or one may not be looked into.
    pub(crate) fn memory(&self) -> Option<u64> {
        total(&self.tree(), pss_of)
    }
}

/// CPU that processes have used so far.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cpu {
    seconds: f64,
    of: BTreeSet<u32>,
}

impl Cpu {
    fn of(tree: BTreeSet<u32>) -> Option<Self> {
        let seconds = total(&tree, cpu_of)?;
        Some(Self { seconds, of: tree })
    }

    /// Seconds since it was `before`; `None` where a process has ended since, for what it used is known to
    /// nobody.
    pub(crate) fn since(&self, before: &Self) -> Option<f64> {
        let all = before.of.is_subset(&self.of);
        // The count falls back by a tick where a thread has ended (see `cpu_of`).
        all.then(|| (self.seconds - before.seconds).max(0.0))
    }
}

/// The sum over the processes that are still there; `None` where none is, or one may not be looked into:
/// a sum of some would be too low.
fn total<T: std::iter::Sum>(tree: &BTreeSet<u32>, of: impl Fn(u32) -> io::Result<T>) -> Option<T> {
    let there = |found: &io::Result<T>| !found.as_ref().is_err_and(gone);
    let mut found = tree.iter().map(|pid| of(*pid)).filter(there).peekable();
    found.peek()?;
    found.sum::<io::Result<T>>().ok()
}

/// A process ended between two looks.
fn gone(error: &io::Error) -> bool {
    const NO_SUCH_PROCESS: i32 = 3;
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(NO_SUCH_PROCESS)
}

/// What a component uses; absent where no process is there, or one of them may not be looked into.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Usage {
    /// CPU so far.
    pub(crate) cpu: Option<Cpu>,
    /// Resident memory (RSS summed), bytes.
    pub(crate) resident: Option<u64>,
    /// Open file descriptors.
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

fn rss_of(pid: u32) -> io::Result<u64> {
    kib_of(&format!("/proc/{pid}/status"), "VmRSS:")
}

/// Open file descriptors of a process; an error where it may not be looked into: another user's.
fn descriptors_of(pid: u32) -> io::Result<u64> {
    let entries = fs::read_dir(format!("/proc/{pid}/fd"))?;
    Ok(entries.count() as u64)
}

/// CPU seconds of a process by the scheduler's own count for each of its threads (`schedstat`, nanoseconds):
/// the ticks of `stat` are too coarse for a cell of a second. But only they count the threads that ended: the
/// larger of both.
pub(crate) fn cpu_of(pid: u32) -> io::Result<f64> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task"))?;
    let nanos = tasks.filter_map(Result::ok).filter_map(|task| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    });
    let alive = nanos.sum::<u64>() as f64 / 1e9;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // proc_pid_stat(5): utime and stime are fields 14 and 15; the name in brackets is the second.
    let fields = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
    let ticks = fields.split(' ').skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    Ok(alive.max(ticks as f64 / TICKS_A_SECOND))
}

/// `USER_HZ` of every Linux that this is built for.
const TICKS_A_SECOND: f64 = 100.0;

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

fn pss_of(pid: u32) -> io::Result<u64> {
    kib_of(&format!("/proc/{pid}/smaps_rollup"), "Pss:")
}

/// A line of a file of the kernel that counts in kB, as bytes. A process that has ended and was not waited
/// for has no such line, and no memory.
fn kib_of(path: &str, field: &str) -> io::Result<u64> {
    let text = fs::read_to_string(path)?;
    let line = text.lines().find_map(|l| l.strip_prefix(field));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.map_or(0, |kib| kib * 1024))
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
        let own = named(&[std::process::id()], &[]);
        let before = own.cpu().unwrap();
        // A thread that ends takes its count with it.
        std::thread::spawn(|| burn(400)).join().unwrap();
        burn(60);
        assert!(own.cpu().unwrap().since(&before).unwrap() > 0.1);
        assert!(own.memory().unwrap() > 500_000);
        let look = own.look();
        assert!(look.resident.unwrap() >= own.memory().unwrap() / 2);
        assert!(look.cpu.as_ref().unwrap().since(&before).is_some());
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
        let none = named(&[], &["no such program \u{1F980}"]);
        assert_eq!((none.cpu(), none.memory()), (None, None));
        assert_eq!(none.look(), Usage::default());
    }

    fn burn(milliseconds: u128) {
        let begin = std::time::Instant::now();
        while begin.elapsed().as_millis() < milliseconds {
            std::hint::spin_loop();
        }
    }

    fn named(pids: &[u32], texts: &[&str]) -> Component {
        let texts = texts.iter().map(|text| (*text).to_owned());
        let matches: Vec<ProcessMatch> = texts.map(ProcessMatch::CommandMatch).collect();
        Component::new(pids, &matches, Path::new("."), std::iter::empty())
    }

    fn sleeper(name: &str) -> std::process::Child {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "read line; true", name]);
        shell.stdin(std::process::Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn neither_a_tap_nor_who_started_this_process_is_a_component_of_like_name() {
        let name = format!("component-of-{}", std::process::id());
        let mut children = [sleeper(&name), sleeper(&name)];
        let [gateway, tap] = [children[0].id(), children[1].id()];
        let matches = [ProcessMatch::CommandMatch(name)];
        let found = |taps: &[u32]| {
            Component::new(&[], &matches, Path::new("."), taps.iter().copied()).tree()
        };
        assert_eq!(found(&[]), BTreeSet::from([gateway, tap]));
        assert_eq!(found(&[tap]), BTreeSet::from([gateway]));
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        // Every process that waits for this one, the test runner and its shell, runs a program of this name.
        let own = command(std::process::id());
        let own = own.split(' ').next().unwrap();
        assert!(!named(&[], &[own]).tree().contains(&std::process::id()));
    }

    #[test]
    fn what_cannot_be_looked_into_is_no_zero_and_what_has_ended_is_none() {
        let two = BTreeSet::from([1, 2]);
        let denied = |pid: u32| match pid {
            1 => Ok(7_u64),
            _ => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
        };
        assert_eq!(total(&two, denied), None);
        let ended = |pid: u32| match pid {
            1 => Ok(7_u64),
            _ => Err(io::Error::from_raw_os_error(3)),
        };
        assert_eq!(total(&two, ended), Some(7));
        assert_eq!(total(&BTreeSet::from([2]), ended), None);
        let cpu = |seconds, of: &[u32]| Cpu {
            seconds,
            of: of.iter().copied().collect(),
        };
        let before = cpu(5.0, &[1, 2]);
        assert_eq!(cpu(9.0, &[1, 2, 3]).since(&before), Some(4.0));
        assert_eq!(
            cpu(1.0, &[1, 4]).since(&before),
            None,
            "one was started anew"
        );
    }
}
