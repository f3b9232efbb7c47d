//! Child processes of this very program: stand-ins and taps that share a machine with the load,
//! not a thread. All of them end with the one that started them.

use anyhow::Context as _;
use rustix::process::{Pid, Signal, getppid, kill_process, set_parent_process_death_signal};
use std::fs::File;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Set in the environment of every child: it asks the kernel to end with its parent.
const TIED: &str = "HOPSCOPE_ENDS_WITH_PARENT";
/// How long a child may take to end when asked.
const PATIENCE: Duration = Duration::from_secs(10);

/// To be called first thing in every process: a child that was started here ends with its parent,
/// also where that is killed and cannot clean up.
pub fn end_with_parent_if_asked() {
    if std::env::var_os(TIED).is_none() {
        return;
    }
    if let Err(error) = set_parent_process_death_signal(Some(Signal::TERM)) {
        tracing::warn!(%error, "this process may outlive the one that started it");
    }
    // The parent may have ended before the request was made.
    if getppid().is_none_or(|parent| parent.is_init()) {
        std::process::exit(0);
    }
}

struct Running {
    name: String,
    child: Child,
    log: PathBuf,
}

/// The children. Dropping it ends them all.
pub struct Children {
    logs: PathBuf,
    running: Vec<Running>,
}

impl Children {
    /// Children whose standard error goes to files in `logs`.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn new(logs: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(logs)
            .with_context(|| format!("{}: cannot be made", logs.display()))?;
        Ok(Self {
            logs: logs.to_owned(),
            running: Vec::new(),
        })
    }

    /// Starts this program with `arguments` and gives its process id. Call it from the thread that
    /// lives as long as the children should: the kernel ties them to it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&mut self, name: &str, arguments: &[String]) -> anyhow::Result<u32> {
        let program = std::env::current_exe().context("cannot tell which program this is")?;
        let log = self.logs.join(format!("{name}.log"));
        let file =
            File::create(&log).with_context(|| format!("{}: cannot be written", log.display()))?;
        let child = Command::new(&program)
            .args(arguments)
            .env(TIED, "1")
            // What it says is read from a file, and by people.
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .with_context(|| format!("cannot start {name} ({})", program.display()))?;
        let pid = child.id();
        self.running.push(Running {
            name: name.to_owned(),
            child,
            log,
        });
        Ok(pid)
    }

    /// Waits until something listens on `address`.
    ///
    /// # Errors
    /// A child ended meanwhile, or nothing listens within ten seconds.
    pub fn wait_for(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect_timeout(&address, Duration::from_millis(200)).is_err() {
            self.check()?;
            anyhow::ensure!(
                Instant::now() < until,
                "nothing listens on {address} after {PATIENCE:?}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        self.check()
    }

    /// Checks that every child still runs.
    ///
    /// # Errors
    /// One has ended; says which, and the last it said.
    pub fn check(&mut self) -> anyhow::Result<()> {
        for running in &mut self.running {
            if let Some(status) = running.child.try_wait()? {
                let said = std::fs::read_to_string(&running.log).unwrap_or_default();
                let last: Vec<&str> = said.lines().rev().take(5).collect();
                let last: Vec<&str> = last.into_iter().rev().collect();
                anyhow::bail!("{} ended with {status}: {}", running.name, last.join("; "));
            }
        }
        Ok(())
    }

    /// Ends the child called `name`, if it runs, and waits for it.
    pub fn stop(&mut self, name: &str) {
        let (those, others) = std::mem::take(&mut self.running)
            .into_iter()
            .partition(|r| r.name == name);
        self.running = others;
        end(those);
    }

    /// Ends all children and waits for them: gracefully, so that they write down what they have.
    pub fn stop_all(&mut self) {
        end(std::mem::take(&mut self.running));
    }
}

fn end(mut children: Vec<Running>) {
    for running in &children {
        if let Some(pid) = i32::try_from(running.child.id())
            .ok()
            .and_then(Pid::from_raw)
        {
            // An error is a child that has ended already.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
    let until = Instant::now() + PATIENCE;
    for running in &mut children {
        while matches!(running.child.try_wait(), Ok(None)) {
            if Instant::now() >= until {
                tracing::warn!(name = running.name, "did not end when asked; killed");
                let _ = running.child.kill();
                let _ = running.child.wait();
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.stop_all();
    }
}
