//! The modelled engine: a scheduler without a clock, and here the clock that drives it.
//!
//! Models: continuous batching with chunked prefill; a step's time from its prompt tokens, decoding
//! sequences and their context; KV blocks with a prefix cache and LRU reuse; the queue; preemption by
//! recomputation; vLLM's metrics. Without randomness: the same arrivals give the same steps.
//!
//! Does not model: tokenisation, chat templates, sampling, several choices as several sequences (`n`
//! choices are one sequence that gives them together), speculative decoding, LoRA, offload of the KV
//! cache, priorities, pipeline stages, or noise. Its constants are calculated, not measured.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use crate::clock::{Alarm, now};

mod blocks;
mod meters;
mod options;
mod scheduler;

use meters::Meters;
pub use options::ModelOptions;
pub(super) use scheduler::Job;
use scheduler::{Scheduler, SequenceId, Token};

/// How far an answer is.
#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    tokens: u64,
    cached: u64,
}

/// A request as its metrics see it, ns.
struct Request {
    progress: watch::Sender<Progress>,
    prompt: u64,
    arrived: u64,
    last_token: u64,
}

struct State {
    scheduler: Scheduler,
    requests: HashMap<SequenceId, Request>,
    meters: Meters,
}

/// A running model.
pub(super) struct Model {
    state: Mutex<State>,
    arrival: Notify,
    scale: f64,
}

impl Model {
    pub(super) fn new(options: &ModelOptions) -> Self {
        Self {
            state: Mutex::new(State {
                scheduler: Scheduler::new(options.clone()),
                requests: HashMap::new(),
                meters: Meters::default(),
            }),
            arrival: Notify::new(),
            scale: options.time_scale,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a job; `None` where the engine's blocks could never hold it.
    pub(super) fn submit(&self, job: Job) -> Option<Ticket<'_>> {
        let (progress, seen) = watch::channel(Progress::default());
        let request = Request {
            progress,
            prompt: job.prompt,
            arrived: now(),
            last_token: 0,
        };
        let tokens = job.output;
        let mut state = self.lock();
        let id = state.scheduler.arrive(job)?;
        state.requests.insert(id, request);
        drop(state);
        self.arrival.notify_one();
        Some(Ticket {
            model: self,
            id,
            tokens,
            seen,
        })
    }

    /// Runs step after step, for ever. Steps follow each other without a gap as long as there is work,
    /// so that late wake-ups do not add up.
    pub(super) async fn run(&self) -> io::Result<()> {
        let mut alarm = Alarm::new()?;
        let mut free_at = now();
        loop {
            // Taken before the look at the queue: an arrival after the look is then not missed.
            let arrival = self.arrival.notified();
            let begin = now();
            let Some(duration) = self.lock().begin(begin) else {
                arrival.await;
                free_at = now();
                continue;
            };
            free_at += (duration as f64 / self.scale) as u64;
            alarm.until(free_at).await?;
            self.lock().end(now(), free_at);
        }
    }

    /// The page of metrics.
    pub(super) fn metrics(&self, name: &str) -> String {
        let state = self.lock();
        state.meters.render(name, &state.scheduler)
    }
}

impl State {
    /// Begins a step and tells how long it takes.
    fn begin(&mut self, at: u64) -> Option<u64> {
        let step = self.scheduler.begin()?;
        for id in step.admitted {
            if let Some(request) = self.requests.get(&id) {
                self.meters
                    .queued
                    .observe(at.saturating_sub(request.arrived));
            }
        }
        Some(step.duration)
    }

    /// Ends the step that was due at `due`.
    fn end(&mut self, at: u64, due: u64) {
        let behind = &mut self.meters.behind;
        *behind = (*behind).max(at.saturating_sub(due));
        for token in self.scheduler.end() {
            self.give(&token, at);
        }
    }

    fn give(&mut self, token: &Token, at: u64) {
        let Some(request) = self.requests.get_mut(&token.sequence) else {
            return;
        };
        let meters = &mut self.meters;
        meters.generation_tokens += 1;
        if token.number == 1 {
            meters.prompt_tokens += request.prompt;
            meters
                .first_token
                .observe(at.saturating_sub(request.arrived));
        } else {
            meters
                .between_tokens
                .observe(at.saturating_sub(request.last_token));
        }
        request.last_token = at;
        request.progress.send_replace(Progress {
            tokens: token.number,
            cached: token.cached,
        });
        if token.last {
            meters.succeeded += 1;
            meters.whole.observe(at.saturating_sub(request.arrived));
            self.requests.remove(&token.sequence);
        }
    }
}

/// A queued or running job. Dropping it takes the job out of the engine.
pub(super) struct Ticket<'m> {
    model: &'m Model,
    id: SequenceId,
    tokens: u64,
    seen: watch::Receiver<Progress>,
}

impl Ticket<'_> {
    /// Returns when `tokens` tokens are there, or all; tells how many of the prompt came from the cache.
    pub(super) async fn reached(&mut self, tokens: u64) -> io::Result<u64> {
        let enough = tokens.min(self.tokens);
        let progress = self
            .seen
            .wait_for(|progress| progress.tokens >= enough)
            .await;
        progress
            .map(|progress| progress.cached)
            .map_err(|_| io::Error::other("the modelled engine has stopped"))
    }
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let mut state = self.model.lock();
        state.requests.remove(&self.id);
        state.scheduler.leave(self.id);
    }
}
