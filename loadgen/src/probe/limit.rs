//! A key beyond its limit: rest, drive, and try until it passes again.

use super::{Caller, GLANCE, Prober, of_probe};
use crate::LoadError;
use crate::client::{Cut, Told};
use crate::prompt::Message;
use crate::target::Target;
use config::scenario::{Limit, LimitProbe, Probes};
use record::clock::{Nanos, now};
use record::probe::{DriveEnd, Fate, LimitCall, LimitRun, LimitUnit};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// Calls kept of one drive.
const MOST: u64 = 50_000;
/// Between a call that got no answer and the next.
const PAUSE: Duration = Duration::from_millis(10);

/// One drive to make.
pub(super) struct Job<'a> {
    probe: &'a LimitProbe,
    chain: usize,
    name: &'a str,
    target: Arc<Target>,
    concurrency: u32,
}

impl Job<'_> {
    pub(super) fn is(&self, made: &LimitRun) -> bool {
        (made.chain.as_str(), made.probe.as_str(), made.concurrency)
            == (self.name, self.probe.name.as_str(), self.concurrency)
    }
}

/// What the callers of a drive share.
struct Drive {
    until: Nanos,
    refusals: u64,
    refused: AtomicU64,
    begun: AtomicU64,
    cut: Cut,
}

impl Drive {
    /// The number of one more call; `None` where the drive is over.
    fn next(&self) -> Option<u64> {
        let over = self.cut.is_done()
            || now() >= self.until
            || self.refused.load(Ordering::Acquire) >= self.refusals;
        let number = || self.begun.fetch_add(1, Ordering::AcqRel);
        (!over).then(number).filter(|number| *number < MOST)
    }

    fn ended(&self) -> DriveEnd {
        if self.refused.load(Ordering::Acquire) >= self.refusals {
            DriveEnd::Refused
        } else if self.begun.load(Ordering::Acquire) >= MOST {
            DriveEnd::Calls
        } else {
            DriveEnd::Time
        }
    }
}

impl<'a> Prober<'a> {
    /// The drives that are asked for.
    pub(super) fn limits(&self, probes: &'a Probes) -> Result<Vec<Job<'a>>, LoadError> {
        let mut jobs = Vec::new();
        for probe in &probes.limits {
            for chain in self.chains(&probe.chains) {
                let target = Arc::new(of_probe(&self.targets[chain], probe)?);
                jobs.extend(probe.concurrency.iter().map(|&concurrency| Job {
                    probe,
                    chain,
                    name: &self.plan.chains[chain].chain.name,
                    target: target.clone(),
                    concurrency,
                }));
            }
        }
        Ok(jobs)
    }

    /// Drives a key against its limit; `None` where the run was stopped meanwhile.
    pub(super) fn drive(&self, job: &Job<'_>) -> Option<LimitRun> {
        let probe = job.probe;
        let what = format!("limit {}, {} at once", probe.name, job.concurrency);
        self.at(job.chain, what);
        let cut = Cut::default();
        let salt = [probe.name.as_bytes(), &job.concurrency.to_le_bytes()].concat();
        let caller = self.caller(job.chain, &job.target, &cut, &salt);
        let window = probe.window.map(config::Period::get);
        let poll = poll(probe);
        if let Some(window) = window {
            // What was used before is forgotten then, wherever the gateway's windows begin.
            let rest = cut.clone();
            self.wait(&cut, async move { sleep(&rest, window + poll).await })?;
        }
        let lasts = probe.lasts.nanos();
        let drive = Arc::new(Drive {
            until: now()
                + probe
                    .window
                    .map_or(lasts, |window| lasts.min(window.nanos())),
            refusals: u64::from(probe.refusals),
            refused: AtomicU64::new(0),
            begun: AtomicU64::new(0),
            cut: cut.clone(),
        });
        let mut calls = self.all(job.concurrency, &caller, &drive)?;
        calls.sort_by_key(|call| call.sent);
        let base = calls.first().map_or(0, |call| call.sent);
        let mut tries = Vec::new();
        let refused = drive.refused.load(Ordering::Acquire) > 0;
        if let Some(window) = window.filter(|_| refused) {
            let tokens = self.plan.scenario.workload.input_tokens;
            let patience = u64::try_from(2 * window.as_nanos()).unwrap_or(Nanos::MAX);
            let until = base.saturating_add(patience);
            let ended = cut.clone();
            tries = self.wait(&cut, async move {
                again(&caller, tokens, until, poll, &ended).await
            })?;
        }
        for call in calls.iter_mut().chain(&mut tries) {
            call.sent = call.sent.saturating_sub(base);
            call.head = call.head.map(|head| head.saturating_sub(base));
            call.end = call.end.saturating_sub(base);
        }
        let (unit, limit) = unit(probe.limit);
        Some(LimitRun {
            chain: job.name.to_owned(),
            probe: probe.name.clone(),
            unit,
            limit,
            window: probe.window.map(config::Period::nanos),
            concurrency: job.concurrency,
            ended: drive.ended(),
            calls,
            tries,
        })
    }

    /// The calls of all callers, in no order.
    fn all(&self, concurrency: u32, caller: &Caller, drive: &Arc<Drive>) -> Option<Vec<LimitCall>> {
        let (sender, receiver) = channel();
        let tokens = self.plan.scenario.workload.input_tokens;
        for number in 0..u64::from(concurrency) {
            let lane = self.stage.lanes.of(number);
            let (caller, drive, sender) = (caller.clone(), drive.clone(), sender.clone());
            self.stage.lanes.spawn(lane, async move {
                press(&caller, lane, tokens, &drive, &sender).await;
            });
        }
        drop(sender);
        let mut calls = Vec::new();
        loop {
            match receiver.recv_timeout(GLANCE) {
                Ok(call) => calls.push(call),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if self.stage.stop.requested() => drive.cut.now(),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        (!self.stage.stop.requested()).then_some(calls)
    }
}

fn unit(limit: Limit) -> (LimitUnit, f64) {
    match limit {
        Limit::Requests(count) => (LimitUnit::Requests, count as f64),
        Limit::Tokens(count) => (LimitUnit::Tokens, count as f64),
        Limit::Usd(budget) => (
            LimitUnit::Usd {
                per_million_in: budget.per_million_in,
                per_million_out: budget.per_million_out,
            },
            budget.amount,
        ),
    }
}

fn poll(probe: &LimitProbe) -> Duration {
    let window = probe.window.map_or(Duration::ZERO, config::Period::get);
    let own = probe.poll.map(config::Period::get);
    own.unwrap_or(window / 50).max(Duration::from_millis(1))
}

/// One caller: the next call after each answer, until the drive is over.
async fn press(
    caller: &Caller,
    lane: usize,
    tokens: u32,
    drive: &Drive,
    calls: &Sender<LimitCall>,
) {
    while let Some(number) = drive.next() {
        let text = caller.text(tokens, number);
        let told = caller.ask(lane, tokens, &[Message::user(text)]).await;
        let call = call_of(&told);
        let fate = call.answer.fate();
        if matches!(fate, Fate::Refused(_) | Fate::Unclear) {
            drive.refused.fetch_add(1, Ordering::AcqRel);
        }
        if calls.send(call).is_err() {
            return;
        }
        if fate == Fate::Failed {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Tries one call after the other, `poll` apart, until one passes or it is `until`.
async fn again(
    caller: &Caller,
    tokens: u32,
    until: Nanos,
    poll: Duration,
    cut: &Cut,
) -> Vec<LimitCall> {
    let mut tries = Vec::new();
    while now() < until && !cut.is_done() {
        let text = caller.text(tokens, MOST + tries.len() as u64);
        let told = caller.ask(0, tokens, &[Message::user(text)]).await;
        let call = call_of(&told);
        let passed = call.answer.fate() == Fate::Admitted;
        tries.push(call);
        if passed {
            break;
        }
        sleep(cut, poll).await;
    }
    tries
}

async fn sleep(cut: &Cut, time: Duration) {
    // Ends with the time or the cut; which of them shows in `cut`.
    let _ = cut.bound(time, std::future::pending::<()>()).await;
}

fn call_of(told: &Told) -> LimitCall {
    let call = &told.call;
    LimitCall {
        sent: call.sent.unwrap_or(call.started),
        head: call.head,
        end: call.end,
        answer: told.said.answer(call),
        tokens: call.usage_prompt.zip(call.usage_completion),
    }
}
