//! The processes of a calibration: an engine, a gateway for each mode and delay, a relay, one tap
//! process around all of them. They share a machine with the client, not a thread.

use super::Plan;
use super::analysis::{Cell as Ran, Kind, Samples};
use super::client::{Ask, Probe, slow, stream};
use crate::spawn::Children;
use crate::standin;
use anyhow::Context as _;
use config::Calibration as Settings;
use config::standin::{GatewayScript, StreamMode};
use record::client::ClientCall;
use record::pairing::Pairer;
use record::rundir::{RunDir, read_health};
use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::task::JoinSet;

/// Calls of the relay in a row beside each cell: the floor, in situ.
const RELAY: &str = "relay";
/// Between the starts of a cell's streams. Streams that start together queue for the stand-in's
/// one thread, before its first stamp: that is a gateway's queue, not an error of the instrument.
const STAGGER: Duration = Duration::from_micros(1_500);
/// Tokens of the check that a delay on each token does not add up.
pub(super) const LONG: u32 = 1_000;

/// See the module.
pub(super) struct Rig {
    children: Children,
    runtime: tokio::runtime::Runtime,
    work: PathBuf,
    /// Where the client enters, by chain.
    entries: HashMap<String, SocketAddr>,
    tokens: u32,
    /// The relay's client: one connection for the whole calibration.
    probe: Option<Probe>,
}

/// Which cells the special series ran in, by cell id.
pub(super) type Special = u32;

fn chain_name(mode: StreamMode, delay: usize) -> String {
    format!("{}-{delay}", mode.as_str())
}

/// A free port of loopback. Another program could take it before it is used; then the start fails
/// and says so.
fn free() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

impl Rig {
    pub(super) fn start(settings: &Settings, work: &Path) -> anyhow::Result<Self> {
        if work.exists() {
            std::fs::remove_dir_all(work)
                .with_context(|| format!("{}: cannot be removed", work.display()))?;
        }
        let mut rig = Self {
            children: Children::new(&work.join("logs"))?,
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?,
            work: work.to_owned(),
            entries: HashMap::new(),
            tokens: settings.output_tokens,
            probe: None,
        };
        let engine = free()?;
        rig.run(
            "engine",
            &standin::engine(&settings.engine, engine, &rig.truth("engine")),
            engine,
        )?;
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
                let (listen, inner) = (free()?, free()?);
                let line = standin::gateway(&script, listen, &inner.to_string(), &rig.truth(&name));
                rig.run(&name, &line, listen)?;
                chains.push(rig.chain(&name, "gateway", listen, (inner, engine))?);
            }
        }
        let (listen, inner) = (free()?, free()?);
        let line = standin::relay(listen, &inner.to_string(), &rig.truth(RELAY));
        rig.run(RELAY, &line, listen)?;
        chains.push(rig.chain(RELAY, "relay", listen, (inner, engine))?);
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
        let outer = free()?;
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
                "  - {{name: {tap}, position: {tap}, listen: \"{listen}\", upstream: {{addresses: [\"{upstream}\"], idle_timeout: 1h}}}}"
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

    /// Runs one cell: its streams, and the relay's one stream beside them.
    pub(super) fn drive(
        &mut self,
        settings: &Settings,
        cell: u32,
        plan: &Plan,
    ) -> anyhow::Result<()> {
        let calls = settings
            .calls_per_stream
            .max(settings.calls_min.div_ceil(plan.streams));
        let ask = Ask {
            tokens: self.tokens,
            pace: None,
        };
        let entry = match plan.kind {
            Kind::Gateway { mode, delay } => self.entry(&chain_name(mode, delay))?,
            Kind::Floor | Kind::Special => self.entry(RELAY)?,
        };
        self.beside_relay(cell, ask, (entry, ask), plan.streams, calls)
    }

    /// `streams` streams into `gateway`, and calls through the relay, one after the other on one
    /// connection, until they have ended.
    fn beside_relay(
        &mut self,
        cell: u32,
        floor: Ask,
        (gateway, ask): (SocketAddr, Ask),
        streams: u32,
        calls: u32,
    ) -> anyhow::Result<()> {
        let relay = self.entry(RELAY)?;
        let known = self.probe.take();
        let probe = self.runtime.block_on(async {
            let mut running = JoinSet::new();
            for n in 0..u64::from(streams) {
                let later = STAGGER * u32::try_from(n).unwrap_or(0);
                running.spawn(async move {
                    tokio::time::sleep(later).await;
                    stream(gateway, ask, cell, n * u64::from(calls), calls).await
                });
            }
            let over = Cell::new(false);
            let streams = async {
                while let Some(done) = running.join_next().await {
                    done.context("a stream failed")??;
                }
                over.set(true);
                anyhow::Ok(())
            };
            let beside = async {
                let mut probe = match known {
                    Some(probe) => probe,
                    None => Probe::connect(relay).await?,
                };
                while !over.get() {
                    probe.call(floor, cell).await?;
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

    /// Opens as many connections along each gateway as any cell needs: a fresh connection's accept
    /// is a stratum of its own, and no error of the instrument.
    pub(super) fn warm(&mut self, settings: &Settings, cells: &mut Vec<Ran>) -> anyhow::Result<()> {
        let streams = settings.streams.iter().copied().max().unwrap_or(1);
        let ask = Ask {
            tokens: settings.output_tokens,
            pace: None,
        };
        for &mode in &settings.modes {
            for delay in 0..settings.delays.len() {
                let id = special(cells)?;
                let gateway = self.entry(&chain_name(mode, delay))?;
                self.beside_relay(id, ask, (gateway, ask), streams, 1)?;
            }
        }
        let (id, relay) = (special(cells)?, self.entry(RELAY)?);
        self.beside_relay(id, ask, (relay, ask), streams, 1)
    }

    /// One cell of a thousand tokens, each delayed by the smallest delay.
    pub(super) fn drive_long(&mut self, cells: &mut Vec<Ran>) -> anyhow::Result<Special> {
        let id = special(cells)?;
        let ask = Ask {
            tokens: LONG,
            pace: Some((2_000, 1)),
        };
        let gateway = self.first_entry()?;
        self.beside_relay(
            id,
            Ask {
                tokens: self.tokens,
                pace: None,
            },
            (gateway, ask),
            1,
            2,
        )?;
        Ok(id)
    }

    /// One call of some megabytes whose client reads a small part of what comes for two seconds.
    pub(super) fn drive_slow(&mut self, cells: &mut Vec<Ran>) -> anyhow::Result<Special> {
        let id = special(cells)?;
        let ask = Ask {
            tokens: 1_000_000,
            pace: Some((2_000, 2_000)),
        };
        let gateway = self.first_entry()?;
        let key = ClientCall::key_of(id, 0);
        self.runtime
            .block_on(slow(gateway, ask, &key, 500_000, Duration::from_secs(2)))?;
        self.children.check()?;
        Ok(id)
    }

    fn first_entry(&self) -> anyhow::Result<SocketAddr> {
        let name = self
            .entries
            .keys()
            .filter(|n| n.ends_with("-0"))
            .min()
            .context("no gateway")?;
        self.entry(name)
    }

    /// Ends every process, then reads what the taps and the stand-ins wrote.
    pub(super) fn collect(mut self, cells: &[Ran]) -> anyhow::Result<Samples> {
        // The client's last byte is not the taps' last word: their meter settles within a second.
        std::thread::sleep(Duration::from_millis(1_200));
        self.children.stop_all();
        let records = self.work.join("taps").join("tap");
        let health = read_health(&records)?;
        std::fs::write(self.work.join("manifest.json"), "{}")?;
        let (exchanges, losses) = RunDir::open(&self.work)?.read_exchanges()?;
        let mut pairer = Pairer::default();
        exchanges.into_iter().for_each(|e| pairer.offer(e));
        let calls = pairer.finish();
        let mut truths = HashMap::new();
        for chain in self.entries.keys() {
            let log = sim::truth::read(&self.truth(chain))?;
            truths.extend(log.into_iter().filter_map(|t| Some((t.call.clone()?, t))));
        }
        Ok(Samples::new(
            cells,
            &calls,
            &truths,
            (pairer.counts(), health, losses),
        ))
    }
}

fn special(cells: &mut Vec<Ran>) -> anyhow::Result<u32> {
    let id = u32::try_from(cells.len()).context("too many cells")?;
    cells.push(Ran {
        block: 0,
        load: 0.0,
        streams: 1,
        kind: Kind::Special,
    });
    Ok(id)
}
