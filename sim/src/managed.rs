//! A stand-in for a managed service: the scripted engine behind quotas, a prompt cache and copies that
//! come and go, as Amazon Bedrock has them, with the `OpenAI` API and Bedrock's own.
//!
//! Models: quotas of requests and tokens per minute as token buckets, the tokens reserved from
//! `max_tokens`; a time to first token of a log-normal body and a Pareto tail; a prompt cache that knows
//! earlier prefixes for a while, in Bedrock's own API those that end at a cache point of the request, otherwise
//! all; signatures, keys and guardrails as the engine has them; copies of an imported model that are dropped when nobody calls, load again
//! on the next call and grow with concurrency; time that runs faster.
//!
//! Does not model: daily quotas; capacity errors (503); fairness among accounts: all callers are one account;
//! the time to live that a cache point asks for; copies that go one by one; throughput that falls
//! with load: streams do not slow each other down. What a refused call did to the quota stays (assumed), and
//! what an answer leaves of its reservation is not given back.
//!
//! The first token comes after `(the drawn time) + prefill_token_us × (prompt − cached tokens)`. It takes
//! the place of the time that a request's body asks for in `sim`.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::net::TcpListener;

use crate::clock::now;
use crate::engine;
use crate::exposition::Exposition;
use crate::truth::Log;

mod copies;
mod options;
mod prefix;
mod quota;
mod tail;
#[cfg(test)]
mod tests;

use copies::{Copies, Entered};
pub use options::{Cold, ManagedOptions};
use prefix::Prefixes;
pub(crate) use prefix::{Reusable, Reuse};
use quota::{Exhausted, Quota};
use tail::Tail;

/// Serves a managed service on `listener` until `stop` resolves; its truths are those of an engine.
///
/// # Errors
/// As [`engine::serve`].
pub async fn serve(
    listener: TcpListener,
    options: ManagedOptions,
    log: Log,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let script = options.script();
    let service = Service::new(options);
    engine::serve_managed(listener, script, service, log, stop).await
}

/// What an engine must ask before it answers.
pub(crate) struct Service {
    options: ManagedOptions,
    /// When modelled time began, ns of the clock.
    origin: u64,
    state: Mutex<State>,
    throttled: AtomicU64,
    not_ready: AtomicU64,
}

/// Instants in it are modelled ns since the origin.
struct State {
    quota: Quota,
    copies: Copies,
    prefixes: Prefixes,
    tail: Tail,
}

/// Why a call is refused; each is HTTP 429.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Throttled {
    Requests,
    Tokens,
    /// No copy of the imported model is up.
    NotReady,
}

impl Throttled {
    /// Bedrock's name of the error.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::Requests | Self::Tokens => "ThrottlingException",
            Self::NotReady => "ModelNotReadyException",
        }
    }

    pub(crate) fn message(self) -> &'static str {
        match self {
            Self::Requests => "Too many requests, please wait before trying again.",
            Self::Tokens => "Too many tokens, please wait before trying again.",
            Self::NotReady => "Model is not ready for inference. Wait and try your request again.",
        }
    }
}

/// A call that was let in. Its copy is free again when it is dropped.
pub(crate) struct Call<'s> {
    service: &'s Service,
    /// When its copy is up, ns of the clock; the past where one is.
    pub(crate) ready_at: u64,
    /// From then to the first token, real µs.
    pub(crate) ttft_us: u64,
    /// Prompt tokens found in the cache, and put there.
    pub(crate) reuse: Reuse,
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let at = self.service.modelled(now());
        self.service.lock().copies.leave(at);
    }
}

impl Service {
    fn new(options: ManagedOptions) -> Self {
        Self {
            origin: now(),
            state: Mutex::new(State {
                quota: Quota::new(&options),
                copies: Copies::new(&options),
                prefixes: Prefixes::default(),
                tail: Tail::new(options.seed),
            }),
            options,
            throttled: AtomicU64::new(0),
            not_ready: AtomicU64::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn modelled(&self, at: u64) -> u64 {
        (at.saturating_sub(self.origin) as f64 * self.options.time_scale) as u64
    }

    fn real(&self, at: u64) -> u64 {
        self.origin + (at as f64 / self.options.time_scale) as u64
    }

    /// Lets a call in that was read at `at` ns, with what may be reused of its `prompt` tokens and at most
    /// `output` tokens to come.
    pub(crate) fn enter(
        &self,
        at: u64,
        prefix: &Reusable,
        (prompt, output): (u64, u64),
    ) -> Result<Call<'_>, Throttled> {
        match self.decide(self.modelled(at), prefix, (prompt, output)) {
            Ok((ready_at, ttft_us, reuse)) => Ok(Call {
                service: self,
                ready_at: self.real(ready_at),
                ttft_us: (ttft_us / self.options.time_scale) as u64,
                reuse,
            }),
            Err(why) => {
                let count = match why {
                    Throttled::NotReady => &self.not_ready,
                    Throttled::Requests | Throttled::Tokens => &self.throttled,
                };
                count.fetch_add(1, Ordering::Relaxed);
                Err(why)
            }
        }
    }

    /// When its copy is up, the modelled µs from then to its first token, and what the cache did.
    fn decide(
        &self,
        at: u64,
        prefix: &Reusable,
        (prompt, output): (u64, u64),
    ) -> Result<(u64, f64, Reuse), Throttled> {
        let options = &self.options;
        let mut guard = self.lock();
        let state = &mut *guard;
        state
            .quota
            .take(at, prompt + output * options.output_burndown)
            .map_err(|exhausted| match exhausted {
                Exhausted::Requests => Throttled::Requests,
                Exhausted::Tokens => Throttled::Tokens,
            })?;
        let ready_at = match state.copies.enter(options, at) {
            Entered::At(ready_at) => ready_at,
            Entered::NotReady => return Err(Throttled::NotReady),
            Entered::Full => return Err(Throttled::Requests),
        };
        let reuse = match prefix {
            Reusable::Blocks(hashes) if options.prompt_cache => Reuse {
                read: state.prefixes.look(options, hashes, at),
                written: 0,
            },
            Reusable::Points(points) if options.prompt_cache => {
                state.prefixes.look_at_points(options, points, at)
            }
            _ => Reuse::default(),
        };
        let computed = prompt.saturating_sub(reuse.read) * options.prefill_token_us;
        let drawn = options.ttft_us as f64 * state.tail.draw(options);
        Ok((ready_at, drawn + computed as f64, reuse))
    }

    /// The metrics in Prometheus' text format.
    pub(crate) fn metrics(&self) -> String {
        let at = self.modelled(now());
        let copies = self.lock().copies.ready(&self.options, at);
        let mut page = Exposition::default();
        let throttled = self.throttled.load(Ordering::Relaxed);
        let not_ready = self.not_ready.load(Ordering::Relaxed);
        page.counter(
            "sim_managed_throttled_total",
            "Calls beyond a quota or all copies.",
            throttled,
        );
        page.counter(
            "sim_managed_not_ready_total",
            "Calls that found no copy.",
            not_ready,
        );
        page.gauge(
            "sim_managed_copies",
            "Copies of the model that are up.",
            copies as f64,
        );
        page.finish()
    }
}
