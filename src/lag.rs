//! How late this process reads: a ticker that wakes every tap thread, and the wall clock's offset.
//!
//! One operating-system thread ticks. At each tick it writes the instant to a socket of every tap
//! thread; a task there reads it like any other socket and notes how late it was. That is the
//! bound of a tap's own lateness for reads that waited and have no kernel stamp. The same tick
//! pairs the two clocks, so that the kernel's wall-clock stamps can be put on the monotonic one.

use record::clock::{self, Nanos};
use std::cell::{Cell, OnceCell};
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;

/// Between ticks.
const TICK: Duration = Duration::from_millis(25);
/// The lateness bound is the largest seen within this time.
const WINDOW: Nanos = 1_000_000_000;
/// A jump of the wall clock that is a step and not a slew, over one tick. Nanoseconds.
const STEP: u64 = 1_000_000;

static OFFSET: AtomicI64 = AtomicI64::new(0);
static STEPS: AtomicU64 = AtomicU64::new(0);
static TICKER: OnceLock<Mutex<Vec<UnixStream>>> = OnceLock::new();
static LATENESS: OnceLock<Mutex<hdrhistogram::Histogram<u64>>> = OnceLock::new();

thread_local! {
    static BOUND: Cell<u64> = const { Cell::new(0) };
    static PROBE: OnceCell<()> = const { OnceCell::new() };
}

/// The lateness of every wake-up so far, over all tap threads.
fn lateness() -> &'static Mutex<hdrhistogram::Histogram<u64>> {
    LATENESS.get_or_init(|| Mutex::new(record::histogram::durations()))
}

/// Puts a kernel stamp (wall clock) on the monotonic clock.
#[must_use]
pub fn monotonic(wall: Nanos) -> Nanos {
    let mono = wall
        .cast_signed()
        .saturating_sub(OFFSET.load(Ordering::Relaxed));
    u64::try_from(mono).unwrap_or(0)
}

/// Steps of the wall clock seen since the ticker began.
#[must_use]
pub fn clock_steps() -> u64 {
    STEPS.load(Ordering::Relaxed)
}

/// The largest lateness that this thread's probe saw in the last one to two seconds, nanoseconds.
#[must_use]
pub fn bound() -> u64 {
    BOUND.get()
}

/// Median, 99th percentile and largest lateness so far; `None` before the first tick.
#[must_use]
pub fn summary() -> Option<(f64, f64, f64)> {
    let histogram = lateness().lock().ok()?;
    let at = |q: f64| histogram.value_at_quantile(q) as f64;
    (!histogram.is_empty()).then(|| (at(0.5), at(0.99), histogram.max() as f64))
}

/// Starts this thread's probe, once. Must be called inside the thread's runtime.
pub fn watch_this_thread() {
    PROBE.with(|probe| {
        if probe.get().is_some() {
            return;
        }
        match subscribe() {
            Ok(stream) => {
                tokio::spawn(probe_task(stream));
                let _ = probe.set(());
            }
            Err(error) => tracing::warn!(%error, "no lateness probe on this thread"),
        }
    });
}

fn subscribe() -> std::io::Result<tokio::net::UnixStream> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    theirs.set_nonblocking(true)?;
    let listeners = TICKER.get_or_init(|| {
        OFFSET.store(clock::pair().offset, Ordering::Relaxed);
        let spawned = std::thread::Builder::new()
            .name("ticker".to_owned())
            .spawn(tick_forever);
        if let Err(error) = spawned {
            tracing::warn!(%error, "no ticker: the tap's lateness is not measured");
        }
        Mutex::new(Vec::new())
    });
    if let Ok(mut listeners) = listeners.lock() {
        listeners.push(theirs);
    }
    tokio::net::UnixStream::from_std(ours)
}

fn tick_forever() {
    let mut last = clock::pair().offset;
    loop {
        std::thread::sleep(TICK);
        let paired = clock::pair();
        if paired.offset.abs_diff(last) > STEP + paired.error {
            STEPS.fetch_add(1, Ordering::Relaxed);
        }
        last = paired.offset;
        OFFSET.store(last, Ordering::Relaxed);
        let Some(Ok(mut listeners)) = TICKER.get().map(Mutex::lock) else {
            continue;
        };
        // A full pipe is a thread that has not run for seconds: its next read tells. A closed one
        // is a thread that ended.
        listeners.retain_mut(|s| match s.write(&clock::now().to_le_bytes()) {
            Ok(_) => true,
            Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
        });
    }
}

async fn probe_task(mut stream: tokio::net::UnixStream) {
    let mut word = [0_u8; 8];
    let (mut current, mut previous, mut since) = (0_u64, 0_u64, clock::now());
    while stream.read_exact(&mut word).await.is_ok() {
        let now = clock::now();
        let late = now.saturating_sub(Nanos::from_le_bytes(word));
        if let Ok(mut histogram) = lateness().lock() {
            record::histogram::add(&mut histogram, late);
        }
        if now.saturating_sub(since) > WINDOW {
            (previous, current, since) = (current, 0, now);
        }
        current = current.max(late);
        BOUND.set(current.max(previous));
    }
}
