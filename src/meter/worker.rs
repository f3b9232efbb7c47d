//! The meter's thread: facts, disk, pairing, legs, metrics.

use super::sinks::{Feed, LiveCall};
use super::{Finished, MeterHandle, Tally, facts};
use crate::lag;
use crate::telemetry::Metrics;
use record::clock;
use record::exchange::{Exchange, Position};
use record::manifest::TapHealth;
use record::pairing::{Call, MAX_WAITING, Pairer};
use record::rundir::{EXCHANGES, RunDirError, SegmentWriter, write_health};
use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A settled call waits this long for an inner exchange that ends after its outer one.
const GRACE: Duration = Duration::from_secs(1);
/// Between two looks at the queue. The meter is not woken by a record: it would run at the very
/// moment at which the last bytes of that call pass the gateway and the outer tap, and on a host
/// with few CPUs be in their way.
const PAUSE: Duration = Duration::from_millis(25);
/// Records taken between two looks at what is due.
const ROUND: usize = 1024;
/// Between syncs of the segments and of the health file.
const SYNC: Duration = Duration::from_secs(1);

/// How the meter works.
#[derive(Debug, Clone)]
pub struct MeterOptions {
    /// Records that may wait for the meter.
    pub queue: usize,
    /// Where to write exchanges; `None`: nowhere.
    pub record: Option<PathBuf>,
    /// Size at which a segment is closed, bytes.
    pub segment_bytes: u64,
    /// How long an inner exchange waits for its call.
    pub wait: Duration,
    /// Chains of which this process has both an outer and an inner tap: only these are paired live.
    pub paired: HashSet<Arc<str>>,
    /// Name of this process in records.
    pub instance: String,
}

/// The meter: its thread and the ends that others hold.
pub struct Meter {
    thread: JoinHandle<()>,
    stop: Arc<AtomicBool>,
    handle: MeterHandle,
    /// Finished calls, live.
    pub feed: Feed,
    /// Everything that `/metrics` shows.
    pub metrics: Arc<Metrics>,
}

impl Meter {
    /// Starts the meter.
    ///
    /// # Errors
    /// The record directory cannot be made, or the thread cannot be started.
    pub fn start(options: MeterOptions) -> anyhow::Result<Self> {
        let (sender, receiver) = sync_channel(options.queue);
        let tally = Arc::new(Tally::default());
        let metrics = Arc::new(Metrics::new(tally.clone()));
        let feed = Feed::default();
        let stop = Arc::new(AtomicBool::new(false));
        let segments = match &options.record {
            Some(dir) => Some(SegmentWriter::create(
                dir,
                EXCHANGES,
                options.segment_bytes,
            )?),
            None => None,
        };
        let mut worker = Worker {
            options,
            segments,
            pairer: Pairer::bounded(MAX_WAITING),
            metrics: metrics.clone(),
            feed: feed.clone(),
            tally: tally.clone(),
            synced: Instant::now(),
            disk_lost: 0,
            full: false,
            boot: record::host::boot(),
        };
        worker.write_health();
        let stopping = stop.clone();
        let thread = std::thread::Builder::new()
            .name("meter".to_owned())
            .spawn(move || worker.run(&receiver, &stopping))?;
        Ok(Self {
            thread,
            stop,
            handle: MeterHandle { sender, tally },
            feed,
            metrics,
        })
    }

    /// The taps' end.
    pub(crate) fn handle(&self) -> MeterHandle {
        self.handle.clone()
    }

    /// Exchanges under way.
    #[must_use]
    pub fn active(&self) -> u64 {
        self.handle.tally.active.load(Ordering::Relaxed)
    }

    /// Takes in what is queued, writes it down, and ends.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        drop(self.handle);
        if self.thread.join().is_err() {
            tracing::error!("the meter's thread ended with a panic");
        }
    }
}

struct Worker {
    options: MeterOptions,
    segments: Option<SegmentWriter<Exchange>>,
    pairer: Pairer,
    metrics: Arc<Metrics>,
    feed: Feed,
    tally: Arc<Tally>,
    synced: Instant,
    /// Records that the disk did not take.
    disk_lost: u64,
    /// The disk takes nothing more: said once, not each second.
    full: bool,
    boot: Option<String>,
}

impl Worker {
    fn run(&mut self, receiver: &Receiver<Finished>, stop: &AtomicBool) {
        loop {
            // Asked for before the queue is emptied, so that what came before it is still taken.
            let stopping = stop.load(Ordering::Relaxed);
            let mut taken = 0;
            for finished in receiver.try_iter().take(ROUND) {
                self.take(finished);
                taken += 1;
            }
            if stopping && taken < ROUND {
                break;
            }
            let now = clock::now();
            let nanos = |d: Duration| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX);
            let forget = now.saturating_sub(nanos(self.options.wait));
            let calls = self.pairer.settle(now.saturating_sub(nanos(GRACE)), forget);
            self.hand_out(&calls);
            if self.synced.elapsed() >= SYNC {
                self.sync();
            }
            if taken < ROUND {
                std::thread::sleep(PAUSE);
            }
        }
        let calls = self.pairer.finish();
        self.hand_out(&calls);
        self.sync();
    }

    fn take(&mut self, mut finished: Finished) {
        facts::fill(&mut finished);
        let exchange = *finished.exchange;
        self.metrics.exchange(&exchange);
        if let Some(segments) = &mut self.segments {
            let taken = segments.append(&exchange);
            self.disk_lost += u64::from(taken.is_err());
            self.say(taken);
        }
        if self.options.paired.contains(&exchange.chain) {
            self.pairer.offer(exchange);
        } else if exchange.position == Position::Outer {
            self.feed.send(|| LiveCall::alone(&exchange));
        }
    }

    fn hand_out(&mut self, calls: &[Call]) {
        for call in calls {
            let legs = call.legs();
            self.metrics.call(call, legs.as_ref());
            self.feed.send(|| LiveCall::paired(call, legs.as_ref()));
        }
        self.metrics
            .pairing(&self.pairer.counts(), self.pairer.waiting());
    }

    fn sync(&mut self) {
        self.synced = Instant::now();
        if let Some(segments) = &mut self.segments {
            let synced = segments.sync();
            // There is room again.
            self.full &= synced.is_err();
            self.say(synced);
        }
        self.metrics.lateness(lag::summary(), lag::clock_steps());
        self.write_health();
    }

    /// Tells the first error of a row; traffic goes on.
    fn say(&mut self, taken: Result<(), RunDirError>) {
        if let Err(error) = taken
            && !std::mem::replace(&mut self.full, true)
        {
            tracing::error!(%error, "cannot record exchanges; the run will count them as lost");
        }
    }

    fn write_health(&self) {
        let Some(dir) = &self.options.record else {
            return;
        };
        let health = TapHealth {
            instance: self.options.instance.clone(),
            lost: self.tally.lost.load(Ordering::Relaxed) + self.disk_lost + self.unwritten(),
            lateness: lag::summary(),
            clock_steps: lag::clock_steps(),
            cpus: std::thread::available_parallelism()
                .map_or(0, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
            boot: self.boot.clone(),
        };
        if let Err(error) = write_health(dir, &health)
            && !self.full
        {
            tracing::error!(%error, "cannot write the tap's health");
        }
    }

    /// Records that a full disk keeps in memory.
    fn unwritten(&self) -> u64 {
        let segments = self.segments.as_ref().filter(|_| self.full);
        segments.map_or(0, SegmentWriter::waiting)
    }
}
