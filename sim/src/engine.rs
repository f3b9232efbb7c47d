//! A stand-in for an inference engine with the OpenAI API, in the shape of vLLM's streams.
//!
//! Models: `/v1/chat/completions`, `/v1/completions` and Bedrock's `/model/…/converse` and `/model/…/invoke`
//! (Anthropic's messages and Llama's prompts), streamed and not, `/v1/models`, `/health`; AWS' signatures, where a
//! key file is given; a guardrail of words; a seeded, absolute schedule of first token and gaps; reasoning, tool calls (of the tools that a request
//! offers, with the examples of their schemas as arguments), several choices, usage with cached tokens; the faults of [`Faults`]. One chunk is one write.
//!
//! By default the times are a script's, which does not model batching, queueing, a KV cache or prefill
//! cost: streams do not slow each other down and a longer prompt takes no longer. With
//! [`ModelOptions::modelled`] they come from a model of such an engine ([`ModelOptions`] has its
//! constants). Either way nothing measured against it says what an engine can do: results are *simulated*.
//!
//! A request can ask for its own script in the body field `sim` (`ttft_us`, `gap_us`,
//! `end_gap_us`, `tokens_per_chunk`, `reasoning_tokens`, `tool_calls`, `finish_apart`, `prompt_tokens`,
//! `cached_tokens`, `fault`), which survives gateways that drop headers, and for faults in the field
//! `x-sim-fault` of its head.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::{TcpListener, TcpStream};

use crate::accept::accept;
use crate::aws::Verifier;
use crate::clock::{Alarm, unix_seconds};
use crate::http::Conn;
use crate::managed::Service;
use crate::truth::Log;

mod answer;
mod bedrock;
mod calls;
mod converse;
mod exchange;
mod fault;
mod guardrail;
mod invoke;
mod managed;
mod model;
mod options;
mod pace;
mod plan;
mod play;
mod reply;
mod request;
mod script;
mod shape;
mod stop;
#[cfg(test)]
mod tests;
mod text;
mod tool_call;
pub(crate) mod words;

use calls::Calls;
pub use fault::{FaultError, Faults};
pub use guardrail::GuardrailOptions;
use model::Model;
pub use model::ModelOptions;
pub use options::EngineOptions;
use pace::Pace;
use plan::Plan;
use reply::Next;
use script::Script;

struct Engine {
    options: EngineOptions,
    log: Log,
    /// Gives the times, where the script does not.
    model: Option<Model>,
    /// Decides who is let in and when, where the engine is a managed service's.
    service: Option<Service>,
    /// Decides who may call.
    verifier: Option<Verifier>,
    calls: Mutex<Calls>,
    connections: AtomicU64,
    generations: AtomicU64,
    ids_given: AtomicU64,
    ids: [RandomState; 2],
}

/// Serves an engine on `listener` until `stop` resolves; open streams are then cut and recorded as
/// stopped.
///
/// # Errors
/// When the key file cannot be used, or the modelled engine gets no timer; a failed connection concerns only itself.
pub async fn serve(
    listener: TcpListener,
    options: EngineOptions,
    log: Log,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    serve_as(listener, options, None, log, stop).await
}

/// Serves the engine of a managed service.
pub(crate) async fn serve_managed(
    listener: TcpListener,
    options: EngineOptions,
    service: Service,
    log: Log,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    serve_as(listener, options, Some(service), log, stop).await
}

async fn serve_as(
    listener: TcpListener,
    options: EngineOptions,
    service: Option<Service>,
    log: Log,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let engine = Arc::new(Engine {
        model: options
            .model_options
            .modelled
            .then(|| Model::new(&options.model_options)),
        service,
        verifier: Verifier::of(&options.keys, "bedrock")?,
        options,
        log,
        calls: Mutex::new(Calls::default()),
        connections: AtomicU64::new(0),
        generations: AtomicU64::new(0),
        ids_given: AtomicU64::new(0),
        ids: [RandomState::new(), RandomState::new()],
    });
    let served = accept(listener, stop, |stream| {
        let engine = Arc::clone(&engine);
        async move {
            if let Err(error) = connection(&engine, stream).await {
                tracing::warn!(%error, "engine stand-in dropped a connection");
            }
        }
    });
    match &engine.model {
        None => served.await,
        Some(model) => tokio::select! {
            served = served => served,
            failed = model.run() => failed,
        },
    }
}

async fn connection(engine: &Engine, stream: TcpStream) -> io::Result<()> {
    let number = engine.connections.fetch_add(1, Ordering::Relaxed) + 1;
    let mut conn = Conn::new(stream)?;
    let mut alarm = Alarm::new()?;
    loop {
        match exchange::exchange(engine, &mut conn, &mut alarm, number).await {
            Next::KeepAlive => {}
            Next::Close => {
                conn.close().await;
                return Ok(());
            }
            Next::Reset => {
                conn.reset();
                return Ok(());
            }
        }
    }
}

impl Engine {
    /// The faults of the options, when it is the turn of this generation.
    fn next_faults(&self) -> Option<Faults> {
        let number = self.generations.fetch_add(1, Ordering::Relaxed) + 1;
        number
            .is_multiple_of(self.options.fault_every.max(1))
            .then(|| self.options.fault.clone())
    }

    fn attempt(&self, call: Option<&str>) -> u32 {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        call.map_or(1, |call| calls.arrive(call))
    }

    /// Where the times of an answer come from; the error is a message for the client.
    fn pace(&self, plan: &mut Plan, start: u64) -> Result<Pace<'_>, &'static str> {
        match (&self.model, plan.job()) {
            (Some(model), Some(job)) => model
                .submit(job)
                .map(Pace::Model)
                .ok_or("prompt and completion exceed the KV blocks of the engine: see --kv-blocks"),
            _ => {
                let script = Script::new(&plan.options, plan.seed, start);
                Ok(Pace::Script(Box::new(script)))
            }
        }
    }

    fn metrics(&self) -> String {
        let model = self.model.as_ref();
        let service = self.service.as_ref().map(Service::metrics);
        let model = model.map(|model| model.metrics(&self.options.model));
        model.or(service).unwrap_or_default()
    }

    fn random_id(&self) -> String {
        let number = self.ids_given.fetch_add(1, Ordering::Relaxed);
        let [high, low] = self.ids.each_ref().map(|ids| ids.hash_one(number));
        format!("{high:016x}{low:016x}")
    }

    fn models(&self) -> String {
        serde_json::json!({
            "object": "list",
            "data": [{
                "id": self.options.model,
                "object": "model",
                "created": unix_seconds(),
                "owned_by": "vllm"
            }]
        })
        .to_string()
    }
}
