//! Open loop: calls at the instants of a schedule, whatever became of those before.

use super::{Driver, Ran, within};
use crate::LoadError;
use crate::client::Ask;
use crate::pacer;
use crate::prompt::Feed;
use crate::trace::Trace;
use record::clock::{Nanos, now};
use std::sync::atomic::{AtomicBool, Ordering};

/// Between deciding to begin and the first due instant.
pub(crate) const RUN_UP: Nanos = 20_000_000;

impl Driver<'_, '_> {
    /// Calls at absolute instants. What is late is sent late and shown as lag; what is beyond the
    /// bound of calls in flight is not sent, and fails the verdict.
    pub(super) fn open(
        &self,
        offsets: impl Iterator<Item = Nanos>,
        most: u64,
        over: &AtomicBool,
    ) -> Result<Ran, LoadError> {
        let feed = Feed::start(self.recipe(), self.stage.share)?;
        self.follow(offsets, &feed, most, over)
    }

    /// The calls of a trace, when it says and as long as it says.
    pub(super) fn replay(
        &self,
        trace: &Trace,
        most: u64,
        over: &AtomicBool,
    ) -> Result<Ran, LoadError> {
        let share = self.stage.share;
        let feed = Feed::replay(self.recipe(), trace, share)?;
        let mut bad = None;
        let offsets = trace.rows()?.map_while(|row| match row {
            Ok(row) => Some(row.due),
            Err(error) => {
                bad = Some(error);
                None
            }
        });
        let ran = self.follow(offsets, &feed, most, over)?;
        if let Some(error) = bad {
            return Err(error);
        }
        let own = (0..trace.info.calls)
            .filter(|call| share.has(*call))
            .count() as u64;
        let stopped = self.stage.stop.requested() || over.load(Ordering::Relaxed);
        match stopped || ran.scheduled == Some(own) {
            true => Ok(ran),
            false => Err(LoadError::Plan(format!(
                "{}: was changed while it was replayed; what was measured is kept, run it anew",
                trace.info.file
            ))),
        }
    }

    fn follow(
        &self,
        offsets: impl Iterator<Item = Nanos>,
        feed: &Feed,
        most: u64,
        over: &AtomicBool,
    ) -> Result<Ran, LoadError> {
        let order = self.order;
        pacer::sharpen_this_thread();
        let start = order.begin.unwrap_or_else(now) + RUN_UP;
        // The measured window opens where the last warm-up call was due, not where the first measured
        // one is: a window that begins with a call by construction holds one call too many.
        let (mut opened, mut last, mut scheduled) = (start, start, 0_u64);
        // Of the whole schedule, whoever sends them.
        let mut measured = 0_u64;
        let mut closes = None;
        for (index, offset) in (0_u64..).zip(offsets) {
            let due = start.saturating_add(offset);
            let warm = within(&order.warmup, index, offset);
            if !warm && !within(&order.length, measured, due - opened) {
                let whole = order
                    .length
                    .duration
                    .map(|d| opened.saturating_add(d.nanos()));
                closes = whole.filter(|end| due >= *end);
                break;
            }
            let own = self.stage.share.has(index);
            let ready = if own { feed.next_blocking() } else { None };
            if own && ready.is_none() {
                break;
            }
            let go_on = || !self.stage.stop.requested() && !over.load(Ordering::Relaxed);
            if ready.is_some() && !pacer::sleep_while(due, go_on) {
                break;
            }
            last = due;
            match warm {
                true => opened = due,
                false => measured += 1,
            }
            let Some(ready) = ready else {
                continue;
            };
            scheduled += u64::from(!warm);
            if self.counts.in_flight.load(Ordering::Acquire) >= most {
                continue;
            }
            self.send(Ask {
                cell: order.id,
                seq: ready.seq,
                task: None,
                warmup: warm,
                intended: due,
                prompt_tokens: ready.tokens,
                body: ready.body,
                collect: order.seat.is_some(),
                session: None,
            });
        }
        Ok(Ran {
            scheduled: Some(scheduled),
            ..self.ran(Some(opened), closes.unwrap_or(last))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrival::Offsets;
    use crate::cell::{Counts, Order, Stage, Way};
    use crate::client::{Client, Cut};
    use crate::lanes::Lanes;
    use crate::progress::Silent;
    use crate::prompt::Vocabulary;
    use crate::recorder::Recorder;
    use crate::shard::Share;
    use crate::target::Target;
    use crate::testbed::Server;
    use crate::{PlannedChain, Stop};
    use config::Scenario;
    use config::scenario::{Arrivals, CellLength, Timeouts, Tokenizer};
    use record::client::ClientCall;
    use record::rundir::RunDir;
    use std::path::{Path, PathBuf};
    use std::sync::Arc;
    use std::time::Duration;

    const MILLISECOND: Nanos = 1_000_000;
    const SCENARIO: &str = "
name: small
number: 4
question: Is the schedule kept?
workload: {input_tokens: 5, output_tokens: 16}
open_loop: {rates: [100], cell: {calls: 100}}
blocks: 1
warmup: {duration: 1us}
seed: 7
";

    /// Drives `server` by `offsets`, and tells what was sent, in the order of the schedule.
    fn driven(
        server: &Server,
        offsets: impl Iterator<Item = Nanos>,
        most: u64,
    ) -> (Ran, Vec<ClientCall>) {
        let scenario = config::from_text::<Scenario>(Path::new("small.yaml"), SCENARIO).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::create(&dir.path().join("run")).unwrap();
        let stop = Stop::default();
        let recorder = Recorder::start(&run, Arc::new(Silent), stop.clone()).unwrap();
        let lanes = Lanes::start(1).unwrap();
        let stage = Stage {
            scenario: &scenario,
            lanes: &lanes,
            recorder: &recorder,
            vocabulary: Arc::new(Vocabulary::load(&Tokenizer::O200k).unwrap()),
            stop: &stop,
            seed: 7,
            run: "small",
            ignore_eos: true,
            share: Share::ALL,
            lengths: std::collections::HashMap::new(),
        };
        let planned = PlannedChain {
            chain: server.chain("c", "direct"),
            text: String::new(),
            base: PathBuf::new(),
            pids: Vec::new(),
            injected: None,
        };
        let target = Arc::new(Target::of(&planned, &Timeouts::default(), true).unwrap());
        let calls = |count: u64| CellLength {
            duration: None,
            calls: Some(count),
        };
        let order = Order {
            id: 0,
            target: target.clone(),
            model: "m".to_owned(),
            block: 0,
            way: Way::Open {
                rate: 100.0,
                arrivals: Arrivals::Uniform,
                in_flight: most,
            },
            length: calls(100),
            warmup: calls(0),
            begin: None,
            draw: Vec::new(),
            seat: None,
        };
        let cut = Cut::default();
        let driver = Driver {
            stage: &stage,
            order: &order,
            client: Arc::new(Client::new(target, 1, cut.clone())),
            cut,
            counts: Arc::new(Counts::default()),
        };
        recorder.watch(0);
        let ran = driver.open(offsets, most, &AtomicBool::new(false)).unwrap();
        driver.drain();
        let mut calls = recorder.watched(0);
        recorder.end().unwrap();
        calls.sort_unstable_by_key(|c| c.seq);
        (ran, calls)
    }

    #[test]
    fn a_generator_that_was_held_up_catches_up_and_keeps_its_schedule() {
        let server = Server::engine(2, Duration::ZERO, Duration::ZERO);
        // A call each ten milliseconds; before the twentieth this thread gets no CPU for a while.
        let offsets = (0..100_u64).map(|n| {
            if n == 20 {
                std::thread::sleep(Duration::from_millis(400));
            }
            n * 10 * MILLISECOND
        });
        let (ran, calls) = driven(&server, offsets, 1_000);
        assert_eq!(
            (ran.scheduled, ran.sent, calls.len()),
            (Some(100), 100, 100)
        );
        for (n, call) in (0_u64..).zip(&calls) {
            assert_eq!(call.intended - calls[0].intended, n * 10 * MILLISECOND);
        }
        // What was held up is late, and says so in every latency that counts from the schedule.
        let held = &calls[22];
        assert!(held.lag() > 250 * MILLISECOND, "{}", held.lag());
        let hidden = held.ttft_intended().unwrap() - held.ttft().unwrap();
        assert!(hidden >= held.lag());
        // The rest is on time again: the schedule was not begun anew after the hold.
        let mut late: Vec<Nanos> = calls[75..].iter().map(ClientCall::lag).collect();
        late.sort_unstable();
        assert!(late[12] < 100 * MILLISECOND, "{late:?}");
    }

    #[test]
    fn what_is_sent_is_the_poisson_schedule_of_the_seed() {
        let server = Server::engine(2, Duration::ZERO, Duration::ZERO);
        let offsets = Offsets::new(Arrivals::Poisson, 200.0, 3).take(100);
        let wanted: Vec<Nanos> = offsets.clone().collect();
        let (ran, calls) = driven(&server, offsets, 1_000);
        assert_eq!((ran.scheduled, ran.sent), (Some(100), 100));
        let sent: Vec<Nanos> = calls.iter().map(|c| c.intended - ran.from).collect();
        assert_eq!(sent, wanted);
    }

    #[test]
    fn calls_beyond_the_bound_of_those_in_flight_are_not_sent_and_are_counted() {
        let server = Server::engine(2, Duration::from_millis(300), Duration::ZERO);
        let (ran, calls) = driven(&server, (0..30).map(|n| n * 10 * MILLISECOND), 4);
        assert_eq!(ran.scheduled, Some(30));
        assert!((4..20).contains(&ran.sent), "{}", ran.sent);
        assert_eq!(calls.len() as u64, ran.sent);
        // None of them waited for its turn: a late call would hide the bound.
        let mut late: Vec<Nanos> = calls.iter().map(ClientCall::lag).collect();
        late.sort_unstable();
        assert!(late[late.len() / 2] < 50 * MILLISECOND, "{late:?}");
    }
}
