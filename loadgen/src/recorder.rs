//! Takes every call as it ends: rows on disk, a line of the series each second, histograms, and
//! the progress that a person sees. A thread of its own, so that no stream waits for a disk.

mod tally;
mod tools;

pub(crate) use tally::Tally;

use crate::client::Told;
use crate::progress::{Phase, Progress, Update};
use crate::usage::{Component, Cpu};
use crate::{LoadError, Stop};
use hdrhistogram::Histogram;
use record::agent::ToolUse;
use record::client::{CallOutcome, ClientCall};
use record::clock;
use record::experiment::Probe;
use record::histogram;
use record::rundir::{RunDir, RunDirError, SEGMENT, SegmentWriter};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tools::ToolLog;

const SECOND: Duration = Duration::from_secs(1);

/// What the run is at, told by whoever drives.
#[derive(Debug, Clone)]
pub(crate) struct Current {
    pub(crate) phase: Phase,
    pub(crate) chain: String,
    pub(crate) cell: String,
    pub(crate) asked: f64,
    pub(crate) done: u32,
    pub(crate) total: u32,
    /// The processes of the component under load.
    pub(crate) component: Component,
}

/// Counted by the callers, read by the recorder.
#[derive(Debug, Default)]
pub(crate) struct Flight {
    pub(crate) sent: AtomicU64,
    pub(crate) in_flight: AtomicU64,
}

enum Event {
    Told(Box<Told>),
    /// Write down calls of an earlier process that have ended otherwise.
    Keep(Vec<ClientCall>),
    Used(Box<ToolUse>),
    /// Bring everything onto the disk.
    Settle(Sender<()>),
    /// Keep the calls of a cell in memory too.
    Watch(u32),
    /// Tell the calls of a watched cell that have ended so far.
    SoFar(u32, Sender<Vec<Probe>>),
    /// Hand back the calls of a watched cell.
    Watched(u32, Sender<Vec<ClientCall>>),
    /// Tell what the calls of the cell came to once they are on the disk, and write down its histograms.
    /// Nothing is told where something could not be written.
    Cell(u32, Sender<Tally>),
    End,
}

/// The callers' end.
pub(crate) struct Recorder {
    sender: Sender<Event>,
    thread: Option<JoinHandle<Result<(), RunDirError>>>,
    pub(crate) flight: Arc<Flight>,
    current: Arc<Mutex<Current>>,
}

/// Sends one finished call.
#[derive(Clone)]
pub(crate) struct Reporter(Sender<Event>);

impl Reporter {
    pub(crate) fn told(&self, told: Told) {
        // The recorder outlives every call of a run; where it failed, the run ends with its error.
        let _ = self.0.send(Event::Told(Box::new(told)));
    }

    /// Sends one finished tool call.
    pub(crate) fn used(&self, one: ToolUse) {
        // As above.
        let _ = self.0.send(Event::Used(Box::new(one)));
    }
}

impl Recorder {
    pub(crate) fn start(
        run: &RunDir,
        progress: Arc<dyn Progress>,
        stop: Stop,
    ) -> Result<Self, LoadError> {
        let segments = SegmentWriter::create(&run.calls(), "calls", SEGMENT)?;
        // A run that is taken up again goes on in its own files.
        let file = |path: std::path::PathBuf| {
            let mut open = File::options();
            open.create(true)
                .append(true)
                .open(&path)
                .map_err(|source| LoadError::File { path, source })
        };
        let (sender, receiver) = channel();
        let flight = Arc::new(Flight::default());
        let current = Arc::new(Mutex::new(Current {
            phase: Phase::Preflight,
            chain: String::new(),
            cell: String::new(),
            asked: 0.0,
            done: 0,
            total: 0,
            component: Component::default(),
        }));
        let mut worker = Worker {
            segments,
            tools: ToolLog::of(run),
            run: run.clone(),
            series: BufWriter::new(file(run.series())?),
            log: file(run.histograms())?,
            histograms: BTreeMap::new(),
            tallies: BTreeMap::new(),
            watched: BTreeMap::new(),
            second: Second::default(),
            errors: 0,
            cpu_before: None,
            began: Instant::now(),
            flight: flight.clone(),
            current: current.clone(),
            progress,
            stop,
        };
        let thread = std::thread::Builder::new()
            .name("recorder".to_owned())
            .spawn(move || worker.run(&receiver))
            .map_err(|source| LoadError::Start {
                what: "the recorder's thread",
                source,
            })?;
        Ok(Self {
            sender,
            thread: Some(thread),
            flight,
            current,
        })
    }

    pub(crate) fn reporter(&self) -> Reporter {
        Reporter(self.sender.clone())
    }

    /// Says what the run is at.
    pub(crate) fn at(&self, change: impl FnOnce(&mut Current)) {
        change(&mut self.current.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Writes calls into the record that no caller reports.
    pub(crate) fn keep(&self, calls: &[ClientCall]) -> Result<(), LoadError> {
        let sent = self.sender.send(Event::Keep(calls.to_vec()));
        sent.map_err(|_| gone())
    }

    /// What the calls of a cell that has ended came to, when all of them are on the disk.
    ///
    /// # Errors
    /// Not all of them are: [`Self::end`] tells why.
    pub(crate) fn cell(&self, id: u32) -> Result<Tally, LoadError> {
        self.ask(|sender| Event::Cell(id, sender)).ok_or_else(gone)
    }

    /// Keeps the calls of a cell in memory beside the disk, from now on. The memory is theirs: for cells of
    /// thousands of calls, not of millions.
    pub(crate) fn watch(&self, id: u32) {
        // An error is a recorder that has failed; the run ends with it.
        let _ = self.sender.send(Event::Watch(id));
    }

    /// The calls of a watched cell that have ended so far.
    pub(crate) fn so_far(&self, id: u32) -> Vec<Probe> {
        let told = self.ask(|sender| Event::SoFar(id, sender));
        told.unwrap_or_default()
    }

    /// The calls of a watched cell that has ended; the recorder lets go of them.
    pub(crate) fn watched(&self, id: u32) -> Vec<ClientCall> {
        let told = self.ask(|sender| Event::Watched(id, sender));
        told.unwrap_or_default()
    }

    /// Waits until all calls and tool calls of the run are on the disk.
    pub(crate) fn settle(&self) {
        // As above.
        let _ = self.ask(Event::Settle);
    }

    /// The recorder's answer; `None` of one that has failed.
    fn ask<T>(&self, event: impl FnOnce(Sender<T>) -> Event) -> Option<T> {
        let (sender, receiver) = channel();
        self.sender.send(event(sender)).ok()?;
        receiver.recv().ok()
    }

    /// Writes down what is left.
    pub(crate) fn end(mut self) -> Result<(), LoadError> {
        let _ = self.sender.send(Event::End);
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => Ok(result?),
            _ => Ok(()),
        }
    }
}

/// What callers of the recorder are told where it failed; [`Recorder::end`] has the reason.
fn gone() -> LoadError {
    LoadError::Start {
        what: "the recorder",
        source: std::io::Error::other("it has ended"),
    }
}

/// One second of the series. Durations are nanoseconds; absent where nothing ended.
#[derive(Debug, Default, Serialize)]
struct Line {
    at_ns: u64,
    chain: String,
    cell: String,
    asked: f64,
    sent: u64,
    done: u64,
    failed: u64,
    in_flight: u64,
    ttft_p50_ns: Option<u64>,
    ttft_p99_ns: Option<u64>,
    lag_p99_ns: Option<u64>,
    /// CPU seconds that the component under load used since the line before; absent where its
    /// processes are not known, and on the first line of another component.
    component_cpu_s: Option<f64>,
    /// Its resident memory (RSS summed: shared pages count for each process), bytes. The cells have
    /// PSS, which is exact, and too dear to ask of a process under load each second.
    component_rss_bytes: Option<u64>,
    /// Its open file descriptors; absent where the processes are not known or another user's.
    component_descriptors: Option<u64>,
}

#[derive(Default)]
struct Second {
    done: u64,
    failed: u64,
    ttft: Vec<u64>,
    lag: Vec<u64>,
    sent_before: u64,
}

struct Worker {
    segments: SegmentWriter<ClientCall>,
    tools: ToolLog,
    run: RunDir,
    series: BufWriter<File>,
    log: File,
    histograms: BTreeMap<(u32, &'static str), Histogram<u64>>,
    tallies: BTreeMap<u32, Tally>,
    watched: BTreeMap<u32, Vec<ClientCall>>,
    second: Second,
    errors: u64,
    /// The chain whose component was looked at last, and its CPU seconds then.
    cpu_before: Option<(String, Cpu)>,
    began: Instant,
    flight: Arc<Flight>,
    current: Arc<Mutex<Current>>,
    progress: Arc<dyn Progress>,
    stop: Stop,
}

impl Worker {
    fn run(&mut self, receiver: &Receiver<Event>) -> Result<(), RunDirError> {
        let mut next = Instant::now() + SECOND;
        // The first thing that went wrong; the others follow from it.
        let mut result = Ok(());
        loop {
            match receiver.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Event::Told(told)) => {
                    let taken = self.take(*told);
                    result = result.and(self.kept(taken));
                }
                Ok(Event::Used(one)) => {
                    let taken = self.tools.take(&one);
                    result = result.and(self.kept(taken));
                }
                Ok(Event::Settle(sender)) => {
                    let synced = self.sync();
                    result = result.and(self.kept(synced));
                    let _ = sender.send(());
                }
                Ok(Event::Watch(id)) => {
                    self.watched.entry(id).or_default();
                }
                Ok(Event::SoFar(id, sender)) => {
                    let calls = self.watched.get(&id).into_iter().flatten();
                    let _ = sender.send(calls.map(Probe::of).collect());
                }
                Ok(Event::Watched(id, sender)) => {
                    let _ = sender.send(self.watched.remove(&id).unwrap_or_default());
                }
                Ok(Event::Keep(calls)) => {
                    let taken = calls.iter().try_for_each(|c| self.segments.append(c));
                    result = result.and(self.kept(taken));
                }
                Ok(Event::Cell(id, sender)) => {
                    let tally = self.tallies.remove(&id).unwrap_or_default();
                    let written = self
                        .sync()
                        .and_then(|()| self.write_histograms(|c| c == id));
                    result = result.and(self.kept(written));
                    if result.is_ok() {
                        let _ = sender.send(tally);
                    }
                }
                Ok(Event::End) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if Instant::now() >= next {
                next += SECOND;
                let written = self.tick().and_then(|()| self.sync());
                result = result.and(self.kept(written));
            }
        }
        result?;
        self.tick()?;
        self.sync()?;
        self.write_histograms(|_| true)
    }

    fn sync(&mut self) -> Result<(), RunDirError> {
        self.segments.sync()?;
        self.tools.sync()
    }

    /// What was measured is kept; the run ends, since the rest would be lost.
    fn kept(&self, taken: Result<(), RunDirError>) -> Result<(), RunDirError> {
        if taken.is_err() {
            self.stop.request();
        }
        taken
    }

    fn take(&mut self, told: Told) -> Result<(), RunDirError> {
        let call = told.call;
        self.segments.append(&call)?;
        let complete = call.outcome == CallOutcome::Complete;
        self.second.done += u64::from(complete);
        self.second.failed += u64::from(!complete);
        self.errors += u64::from(!complete);
        self.second.lag.push(call.lag());
        self.second.ttft.extend(call.ttft());
        if !call.warmup {
            let durations = [
                ("ttft", call.ttft()),
                ("e2e", call.e2e()),
                ("lag", Some(call.lag())),
            ];
            for (name, value) in durations {
                self.add(call.cell, name, value);
            }
            for gap in told.gaps {
                self.add(call.cell, "chunk-gap", Some(gap));
            }
        }
        self.tallies.entry(call.cell).or_default().take(&call);
        if let Some(watched) = self.watched.get_mut(&call.cell) {
            watched.push(call);
        }
        Ok(())
    }

    fn add(&mut self, cell: u32, name: &'static str, value: Option<u64>) {
        if let Some(value) = value {
            let histogram = self
                .histograms
                .entry((cell, name))
                .or_insert_with(histogram::durations);
            histogram::add(histogram, value);
        }
    }

    fn tick(&mut self) -> Result<(), RunDirError> {
        let current = self
            .current
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut second = std::mem::take(&mut self.second);
        let sent = self.flight.sent.load(Ordering::Relaxed);
        let in_flight = self.flight.in_flight.load(Ordering::Relaxed);
        let usage = current.component.look();
        let cpu_spent = self
            .cpu_before
            .take()
            .filter(|(chain, _)| *chain == current.chain)
            .zip(usage.cpu.as_ref())
            .and_then(|((_, before), now)| now.since(&before));
        self.cpu_before = usage.cpu.map(|now| (current.chain.clone(), now));
        let line = Line {
            at_ns: clock::now(),
            chain: current.chain.clone(),
            cell: current.cell.clone(),
            asked: current.asked,
            sent: sent - second.sent_before,
            done: second.done,
            failed: second.failed,
            in_flight,
            ttft_p50_ns: quantile(&mut second.ttft, 0.5),
            ttft_p99_ns: quantile(&mut second.ttft, 0.99),
            lag_p99_ns: quantile(&mut second.lag, 0.99),
            component_cpu_s: cpu_spent,
            component_rss_bytes: usage.resident,
            component_descriptors: usage.descriptors,
        };
        self.second.sent_before = sent;
        let written = serde_json::to_writer(&mut self.series, &line)
            .map_err(std::io::Error::from)
            .and_then(|()| self.series.write_all(b"\n"))
            .and_then(|()| self.series.flush());
        let left = (current.done > 0 && current.total > current.done).then(|| {
            self.began
                .elapsed()
                .mul_f64(f64::from(current.total - current.done) / f64::from(current.done))
        });
        self.progress.update(&Update {
            phase: current.phase,
            chain: current.chain,
            cell: current.cell,
            asked: current.asked,
            achieved: second.done as f64,
            in_flight,
            ttft_p50: line.ttft_p50_ns,
            ttft_p99: line.ttft_p99_ns,
            errors: self.errors,
            lag_p99: line.lag_p99_ns,
            done: current.done,
            total: current.total,
            left,
            note: None,
        });
        written.map_err(RunDirError::io(&self.run.series()))
    }

    /// Writes the histograms of the cells that `pick` takes, and lets go of them.
    fn write_histograms(&mut self, pick: impl Fn(u32) -> bool) -> Result<(), RunDirError> {
        let (these, others) = std::mem::take(&mut self.histograms)
            .into_iter()
            .partition::<BTreeMap<_, _>, _>(|((cell, _), _)| pick(*cell));
        self.histograms = others;
        let names: Vec<String> = these
            .keys()
            .map(|(cell, name)| format!("cell{cell}.{name}"))
            .collect();
        let entries = names
            .iter()
            .zip(these.values())
            .map(|(n, h)| (n.as_str(), Duration::ZERO, Duration::ZERO, h));
        histogram::write_log(&mut self.log, entries)
            .map_err(RunDirError::io(&self.run.histograms()))
    }
}

/// The order statistic at `q`; `None` of none.
pub(crate) fn quantile<T: Ord + Copy>(values: &mut [T], q: f64) -> Option<T> {
    values.sort_unstable();
    let rank = (q * values.len() as f64).ceil() as usize;
    values
        .get(rank.max(1).min(values.len().max(1)) - 1)
        .copied()
}
