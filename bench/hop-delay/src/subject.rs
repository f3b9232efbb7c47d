//! A proxy under test: started by a command line, paused while others are measured.

use std::collections::HashMap;
use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// How long a subject may take to end before it is killed.
const STOP_LIMIT: Duration = Duration::from_secs(5);

/// NAME=COMMAND, with {port}, {upstream} (host:port) and {work} (a folder) to be filled in.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    pub(crate) name: String,
    pub(crate) command: String,
}

impl FromStr for Recipe {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (name, command) = text
            .split_once('=')
            .ok_or_else(|| anyhow!("a subject is NAME=COMMAND"))?;
        for place in ["{port}", "{upstream}"] {
            if !command.contains(place) {
                bail!("the command of {name} does not say where {place} goes");
            }
        }
        Ok(Self {
            name: name.to_owned(),
            command: command.to_owned(),
        })
    }
}

/// A running proxy. Dropping it ends its processes.
pub(crate) struct Subject {
    pub(crate) recipe: Recipe,
    pub(crate) address: SocketAddr,
    child: Child,
    group: Pid,
}

impl Subject {
    /// Starts the command on a free port; on the CPU given, if any.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(
        recipe: &Recipe,
        upstream: SocketAddr,
        work: &Path,
        cpu: Option<usize>,
    ) -> Result<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let folder = work.join(&recipe.name);
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
        let line = recipe
            .command
            .replace("{port}", &address.port().to_string())
            .replace("{upstream}", &upstream.to_string())
            .replace("{work}", &folder.to_string_lossy());
        let shell = format!("exec {line}");
        let mut command = match cpu {
            Some(cpu) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &cpu.to_string(), "sh", "-c", &shell]);
                command
            }
            None => {
                let mut command = Command::new("sh");
                command.args(["-c", &shell]);
                command
            }
        };
        let log = fs::File::create(folder.join("log.txt"))?;
        let child = command
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}: {line}", recipe.name))?;
        let group = Pid::from_child(&child);
        Ok(Self {
            recipe: recipe.clone(),
            address,
            child,
            group,
        })
    }

    /// Fails once the subject's first process has ended.
    ///
    /// # Errors
    /// Then, with the way it ended.
    pub(crate) fn is_alive(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            Some(status) => bail!("{} ended by itself: {status}", self.recipe.name),
            None => Ok(()),
        }
    }

    /// Stops it from running while others are measured.
    ///
    /// # Errors
    /// When it is gone.
    pub(crate) fn pause(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// Lets it run again.
    ///
    /// # Errors
    /// When it is gone.
    pub(crate) fn resume(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        for pid in self.processes()?.0 {
            if let Some(pid) = Pid::from_raw(pid) {
                kill_process(pid, signal)
                    .with_context(|| format!("{} is gone", self.recipe.name))?;
            }
        }
        Ok(())
    }

    /// All processes that descend from the command.
    ///
    /// # Errors
    /// When /proc cannot be read.
    pub(crate) fn processes(&self) -> Result<Processes> {
        let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
        for entry in fs::read_dir("/proc")? {
            let name = entry?.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // A process that ended meanwhile is no child of anyone.
            let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
                continue;
            };
            let parent = stat
                .rsplit_once(')')
                .and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
            children.entry(parent.unwrap_or(0)).or_default().push(pid);
        }
        let mut all = vec![self.group.as_raw_nonzero().get()];
        let mut next = 0;
        while let Some(pid) = all.get(next) {
            all.extend(children.get(pid).into_iter().flatten().copied());
            next += 1;
        }
        Ok(Processes(all))
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // A paused process takes no signal but the one that kills it.
        let _ = self.resume();
        let _ = kill_process_group(self.group, Signal::TERM);
        let limit = Instant::now() + STOP_LIMIT;
        while Instant::now() < limit {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            sleep(Duration::from_millis(20));
        }
        let _ = kill_process_group(self.group, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// The processes of a subject at one time.
pub(crate) struct Processes(Vec<i32>);

impl Processes {
    /// CPU time of all their threads, in nanoseconds (the scheduler's own count, which is finer
    /// than the ticks of /proc/PID/stat).
    ///
    /// # Errors
    /// When the kernel does not keep it, or a process has ended.
    pub(crate) fn cpu(&self) -> Result<u64> {
        let mut sum = 0;
        for pid in &self.0 {
            for task in fs::read_dir(format!("/proc/{pid}/task"))? {
                let path = task?.path().join("schedstat");
                let text = fs::read_to_string(&path)
                    .with_context(|| format!("no CPU time in {}", path.display()))?;
                let spent = text.split(' ').next().and_then(|n| n.parse::<u64>().ok());
                sum += spent.ok_or_else(|| anyhow!("{} is not a schedstat", path.display()))?;
            }
        }
        Ok(sum)
    }

    /// Memory in proportion to its sharers (PSS), in bytes.
    ///
    /// # Errors
    /// When the kernel does not tell it.
    pub(crate) fn memory(&self) -> Result<u64> {
        let mut sum = 0;
        for pid in &self.0 {
            let path = format!("/proc/{pid}/smaps_rollup");
            let text = fs::read_to_string(&path).with_context(|| format!("no memory in {path}"))?;
            let kilobytes = text
                .lines()
                .find_map(|line| line.strip_prefix("Pss:"))
                .and_then(|rest| rest.trim().trim_end_matches(" kB").parse::<u64>().ok());
            sum += kilobytes.ok_or_else(|| anyhow!("no Pss in {path}"))? * 1024;
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_names_its_places() {
        assert!("x=proxy {port} {upstream}".parse::<Recipe>().is_ok());
        assert!("x=proxy {port}".parse::<Recipe>().is_err());
        assert!("proxy {port} {upstream}".parse::<Recipe>().is_err());
    }

    #[test]
    fn cpu_time_grows_with_work_and_children_are_counted() {
        // The command is a shell whose child does the work.
        let recipe: Recipe = "busy=sh -c 'while :; do :; done & wait; : {port} {upstream}'"
            .parse()
            .unwrap();
        let work = std::env::temp_dir().join(format!("hop-delay-{}", std::process::id()));
        let subject = Subject::start(&recipe, "127.0.0.1:1".parse().unwrap(), &work, None).unwrap();
        sleep(Duration::from_millis(200));
        let processes = subject.processes().unwrap();
        assert!(processes.0.len() >= 2, "{:?}", processes.0);
        let before = processes.cpu().unwrap();
        sleep(Duration::from_millis(300));
        assert!(processes.cpu().unwrap() > before + 10_000_000);
        subject.pause().unwrap();
        sleep(Duration::from_millis(50));
        let paused = processes.cpu().unwrap();
        sleep(Duration::from_millis(200));
        assert!(processes.cpu().unwrap() < paused + 5_000_000);
        drop(subject);
        std::fs::remove_dir_all(work).unwrap();
    }
}
