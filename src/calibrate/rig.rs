//! The processes of a calibration: an engine, a gateway for each mode and delay, a relay, one tap
//! process around all of them. They share a machine with the client, not a thread.

use super::client::{Ask, Probe, Stream, slow};
use super::samples::{Account, Cell, Kind, Samples};
use crate::spawn::Children;
use crate::standin;
use anyhow::Context as _;
use config::Calibration as Settings;
use config::standin::{GatewayScript, StreamMode};
use record::rundir::{RunDir, read_health};
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::JoinSet;

/// The relay that the cells of the floor go through.
const FLOOR: &str = "floor";
/// The relay that one stream goes through beside every cell. It is a process of its own: a program
/// that carries one stream more sleeps less and wakes sooner, and the floor must not.
const PROBE: &str = "probe";
/// Between the starts of a cell's streams. Streams that start together queue for the stand-in's
/// one thread, before its first stamp: that is a gateway's queue, not an error of the instrument.
const STAGGER: Duration = Duration::from_millis(1);
/// Tokens of the check that a delay on each token does not add up.
pub(super) const LONG: u32 = 1_000;
/// Between the chunks that the slow client's engine sends. Nanoseconds.
pub(super) const SLOW_GAP: u64 = 2_000_000;

/// See the module.
pub(super) struct Rig {
    children: Children,
    runtime: tokio::runtime::Runtime,
    work: PathBuf,
    ports: Ports,
    /// Where the client enters, by chain.
    entries: HashMap<String, SocketAddr>,
    /// The relay's client: one connection for the whole calibration.
    probe: Option<Probe>,
}

fn chain_name(mode: StreamMode, delay: usize) -> String {
    format!("{}-{delay}", mode.as_str())
}

/// Free ports of loopback, no two alike: the kernel may offer one again before it is used. Another
/// program could take one before then; the start fails and says so.
#[derive(Default)]
struct Ports(HashSet<u16>);

impl Ports {
    fn free(&mut self) -> anyhow::Result<SocketAddr> {
        loop {
            let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
            if self.0.insert(address.port()) {
                return Ok(address);
            }
        }
    }
}

/// Makes the directory anew; refuses one that no earlier calibration made.
fn fresh(work: &Path) -> anyhow::Result<()> {
    const MARK: &str = ".hopscope-calibration";
    if work.exists() {
        anyhow::ensure!(
            work.join(MARK).exists() || std::fs::read_dir(work)?.next().is_none(),
            "{}: exists and is not of an earlier calibration; name another directory",
            work.display()
        );
        std::fs::remove_dir_all(work)
            .with_context(|| format!("{}: cannot be removed", work.display()))?;
    }
    std::fs::create_dir_all(work)
        .and_then(|()| std::fs::write(work.join(MARK), ""))
        .with_context(|| format!("{}: cannot be made", work.display()))
}

impl Rig {
    pub(super) fn start(settings: &Settings, work: &Path) -> anyhow::Result<Self> {
        fresh(work)?;
        let mut rig = Self {
            children: Children::new(&work.join("logs"))?,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?,
            work: work.to_owned(),
            ports: Ports::default(),
            entries: HashMap::new(),
            probe: None,
        };
        let engine = rig.ports.free()?;
        let line = standin::engine(&settings.engine, engine, &rig.truth("engine"));
        rig.run("engine", &line, engine)?;
        let mut chains = Vec::new();
        for &mode in &settings.modes {
            for (at, delay) in settings.delays.iter().enumerate() {
                let script = GatewayScript {
                    mode,
                    merge_every: Some(settings.merge_every),
                    request_delay: *delay,
                    token_delay: *delay,
                    ..GatewayScript::default()
                };
                let name = chain_name(mode, at);
                let (listen, inner) = (rig.ports.free()?, rig.ports.free()?);
                let line = standin::gateway(&script, listen, &inner.to_string(), &rig.truth(&name));
                rig.run(&name, &line, listen)?;
                chains.push(rig.chain(&name, "gateway", listen, (inner, engine))?);
            }
        }
        for name in [FLOOR, PROBE] {
            let (listen, inner) = (rig.ports.free()?, rig.ports.free()?);
            let line = standin::relay(listen, &inner.to_string(), &rig.truth(name));
            rig.run(name, &line, listen)?;
            chains.push(rig.chain(name, "relay", listen, (inner, engine))?);
        }
        rig.start_tap(&chains)?;
        Ok(rig)
    }

    fn truth(&self, name: &str) -> PathBuf {
        self.work.join(format!("{name}.truth"))
    }

    fn run(&mut self, name: &str, line: &[String], listen: SocketAddr) -> anyhow::Result<()> {
        self.children.start(name, line)?;
        self.children.wait_for(listen)
    }

    /// Writes a chain's file and notes its entry.
    fn chain(
        &mut self,
        name: &str,
        kind: &str,
        gateway: SocketAddr,
        (inner, engine): (SocketAddr, SocketAddr),
    ) -> anyhow::Result<PathBuf> {
        let outer = self.ports.free()?;
        let mut text = format!(
            "name: {name}\nkind: {kind}\nsimulated: true\nentry: http://{outer}\nmodel: m\n"
        );
        if kind == "gateway" {
            text.push_str("gateway: {name: stand-in}\nrecipe: {forward: header, tried: true, explain: a stand-in passes headers on}\n");
        }
        text.push_str("taps:\n");
        for (tap, listen, upstream) in [("outer", outer, gateway), ("inner", inner, engine)] {
            writeln!(
                text,
                "  - {{name: {tap}, position: {tap}, listen: \"{listen}\", upstream: {{addresses: [\"{upstream}\"]}}}}"
            )?;
        }
        let path = self.work.join(format!("{name}.yaml"));
        std::fs::write(&path, text)
            .with_context(|| format!("{}: cannot be written", path.display()))?;
        self.entries.insert(name.to_owned(), outer);
        Ok(path)
    }

    fn start_tap(&mut self, chains: &[PathBuf]) -> anyhow::Result<()> {
        let mut text = "chains:\n".to_owned();
        for chain in chains {
            writeln!(
                text,
                "  - {}",
                chain.file_name().unwrap_or_default().to_string_lossy()
            )?;
        }
        let path = self.work.join("tap.yaml");
        std::fs::write(&path, text)?;
        let records = self.work.join("taps").join("tap");
        let line = [
            "tap",
            "--config",
            &path.to_string_lossy(),
            "--record",
            &records.to_string_lossy(),
        ]
        .map(str::to_owned);
        self.children.start("tap", &line)?;
        for entry in self.entries.values() {
            self.children.wait_for(*entry)?;
        }
        Ok(())
    }

    fn entry(&self, chain: &str) -> anyhow::Result<SocketAddr> {
        self.entries
            .get(chain)
            .copied()
            .with_context(|| format!("no chain {chain}"))
    }

    /// Runs one cell: its streams through its chain, and the relay's probe beside them for as long.
    pub(super) fn drive(
        &mut self,
        settings: &Settings,
        id: u32,
        cell: &Cell,
    ) -> anyhow::Result<()> {
        let mut ask = ask_of(settings, cell.streams);
        if matches!(cell.kind, Kind::BackToBack { .. }) {
            ask.end_gap = 0;
        }
        let calls = settings
            .calls_per_stream
            .max(settings.calls_min.div_ceil(cell.streams));
        let floor = || self.entry(FLOOR);
        let entry = match cell.kind {
            Kind::Gateway { mode, delay } => self.entry(&chain_name(mode, delay)),
            Kind::BackToBack { relay: false } => self.mildest(settings),
            Kind::BackToBack { relay: true } | Kind::Floor | Kind::Check => floor(),
        }?;
        self.beside_relay(settings, id, (entry, ask), cell.streams, calls)
    }

    /// `streams` streams into `entry`, and calls through the relay, one after the other on one
    /// connection, until they have ended.
    fn beside_relay(
        &mut self,
        settings: &Settings,
        cell: u32,
        (entry, ask): (SocketAddr, Ask),
        streams: u32,
        calls: u32,
    ) -> anyhow::Result<()> {
        let relay = self.entry(PROBE)?;
        let alone = ask_of(settings, 1);
        let known = self.probe.take();
        let probe = self.runtime.block_on(async {
            let ready = open_all(entry, streams).await?;
            let over = std::cell::Cell::new(false);
            let streams = async {
                let ended = run_all(ready, ask, cell, calls).await;
                over.set(true);
                ended
            };
            let beside = async {
                let mut probe = match known {
                    Some(probe) => probe,
                    None => Probe::open(relay).await?,
                };
                while !over.get() {
                    probe.call(alone, cell).await?;
                }
                anyhow::Ok(probe)
            };
            let (streams, probe) = tokio::join!(streams, beside);
            streams?;
            probe
        })?;
        self.probe = Some(probe);
        self.children.check()
    }

    /// The chain of the checks: the first mode with the least delay.
    fn mildest(&self, settings: &Settings) -> anyhow::Result<SocketAddr> {
        let delays = (0..settings.delays.len()).min_by_key(|at| settings.delays.get(*at));
        let mode = settings.modes.first().copied().unwrap_or_default();
        self.entry(&chain_name(mode, delays.unwrap_or(0)))
    }

    /// One call of a thousand tokens, each token delayed by the least delay, as `cell`.
    pub(super) fn drive_long(&mut self, settings: &Settings, cell: u32) -> anyhow::Result<()> {
        let long = Ask {
            tokens: LONG,
            pace: (2_000, 1),
            end_gap: 0,
            choices: 1,
        };
        let entry = self.mildest(settings)?;
        self.beside_relay(settings, cell, (entry, long), 1, 1)
    }

    /// One call of some thirteen megabytes whose client reads a small part of what comes for two
    /// seconds, as `cell`: more than the buffers of every kernel socket on its way hold.
    pub(super) fn drive_slow(&mut self, settings: &Settings, cell: u32) -> anyhow::Result<()> {
        let ask = Ask {
            tokens: 1_000_000,
            pace: (SLOW_GAP / 1_000, 2_000),
            end_gap: 0,
            choices: 3,
        };
        let entry = self.mildest(settings)?;
        let held = Duration::from_secs(2);
        self.runtime
            .block_on(slow(entry, ask, cell, 500_000, held))?;
        self.children.check()
    }

    /// Ends every process, then reads what the taps and the stand-ins wrote.
    pub(super) fn collect(mut self, cells: &[Cell]) -> anyhow::Result<Samples> {
        // The client's last byte is not the taps' last word: their meter settles within a second.
        std::thread::sleep(Duration::from_millis(1_200));
        self.children.stop_all();
        let health = read_health(&self.work.join("taps").join("tap"))?;
        // A run directory is known by its manifest; this one is read here and nowhere else.
        std::fs::write(self.work.join("manifest.json"), "{}")?;
        let mut paired = RunDir::open(&self.work)?.pair()?;
        let calls: Vec<_> = paired.by_ref().collect();
        let mut truths = HashMap::new();
        for chain in self.entries.keys() {
            let log = sim::truth::read(&self.truth(chain))?;
            truths.extend(log.into_iter().filter_map(|t| Some((t.call.clone()?, t))));
        }
        let account = Account {
            pairing: paired.counts(),
            health,
            losses: paired.losses().cloned().collect(),
        };
        Ok(Samples::new(cells, &calls, &truths, account))
    }
}

/// What a call of a cell with so many streams asks for: the engine's script, slowed down where the
/// host could not carry it.
fn ask_of(settings: &Settings, streams: u32) -> Ask {
    let least = u64::from(streams) * 1_000_000 / u64::from(settings.token_rate_max);
    let micros = |gap: config::Period| (gap.nanos() / 1_000).max(least);
    Ask {
        tokens: settings.output_tokens,
        pace: (micros(settings.engine.gap), 1),
        end_gap: micros(settings.engine.end_gap),
        choices: 1,
    }
}

/// Opens `streams` streams, all at once, so that none finds another's connection further in.
async fn open_all(entry: SocketAddr, streams: u32) -> anyhow::Result<Vec<Stream>> {
    let opening = (0..streams).map(|_| Stream::open(entry, streams));
    let mut opening: JoinSet<_> = opening.collect();
    let mut ready = Vec::new();
    while let Some(opened) = opening.join_next().await {
        ready.push(opened.context("a stream failed")??);
    }
    Ok(ready)
}

/// Runs all streams to their end, their starts apart.
async fn run_all(ready: Vec<Stream>, ask: Ask, cell: u32, calls: u32) -> anyhow::Result<()> {
    let mut running = JoinSet::new();
    let mut later = Duration::ZERO;
    let mut first = 0;
    for stream in ready {
        running.spawn(async move {
            tokio::time::sleep(later).await;
            stream.run(ask, cell, first, calls).await
        });
        later += STAGGER;
        first += u64::from(calls);
    }
    while let Some(done) = running.join_next().await {
        done.context("a stream failed")??;
    }
    Ok(())
}
