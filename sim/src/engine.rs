//! A stand-in for an inference engine with the OpenAI API, in the shape of vLLM's streams.
//!
//! Models: `/v1/chat/completions` and `/v1/completions`, streamed and not, `/v1/models`, `/health`; a
//! seeded, absolute schedule of first token and gaps; reasoning, tool calls, several choices, usage with
//! cached tokens; the faults of [`Faults`]. One chunk is one write.
//!
//! Does not model: batching, queueing, a KV cache or prefill cost. Streams do not slow each other down
//! and a longer prompt takes no longer, so nothing measured against it says what an engine can do:
//! results are *simulated*.
//!
//! A request can ask for its own script in the body field `sim` (`ttft_us`, `gap_us`,
//! `tokens_per_chunk`, `reasoning_tokens`, `tool_calls`, `finish_apart`, `prompt_tokens`,
//! `cached_tokens`, `fault`), which survives gateways that drop headers, and for faults in the field
//! `x-sim-fault` of its head.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::net::{TcpListener, TcpStream};

use crate::accept::accept;
use crate::clock::{Alarm, unix_seconds};
use crate::http::Conn;
use crate::truth::Log;

mod answer;
mod calls;
mod exchange;
mod fault;
mod options;
mod plan;
mod play;
mod reply;
mod request;
mod script;
mod shape;
#[cfg(test)]
mod tests;
mod text;
mod words;

use calls::Calls;
pub use fault::{FaultError, Faults};
pub use options::EngineOptions;
use reply::Next;

struct Engine {
    options: EngineOptions,
    log: Log,
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
/// None at present; a failed connection concerns only itself.
pub async fn serve(
    listener: TcpListener,
    options: EngineOptions,
    log: Log,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let engine = Arc::new(Engine {
        options,
        log,
        calls: Mutex::new(Calls::default()),
        connections: AtomicU64::new(0),
        generations: AtomicU64::new(0),
        ids_given: AtomicU64::new(0),
        ids: [RandomState::new(), RandomState::new()],
    });
    accept(listener, stop, |stream| {
        let engine = Arc::clone(&engine);
        async move {
            if let Err(error) = connection(&engine, stream).await {
                tracing::warn!(%error, "engine stand-in dropped a connection");
            }
        }
    })
    .await
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
