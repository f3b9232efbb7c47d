//! A stand-in for an LLM gateway with a known delay.
//!
//! Models: forwarding any HTTP/1.1 request to one upstream; delays of request, first token, token and
//! finish, spent by waiting or by busy CPU on a limited number of workers (so that it saturates at a known
//! rate, as a Python gateway does); the ways in which real gateways change a stream (re-serialising,
//! dropping, merging, making the final chunk themselves); headers lost on the way; retries, abandoned
//! attempts, refusals; a cache of equal requests and one of similar requests ([`SemanticOptions`]); virtual
//! keys with limits, budgets and guardrails ([`KeyOptions`]); the response head held until the first event; a claim about its own
//! overhead that leaves out what happens after the upstream request, as LiteLLM's does. Pages of its own:
//! `/metrics`, `/health`.
//!
//! Does not model: several upstreams (see [`crate::router`]), TLS, HTTP/2, request bodies forwarded before they are complete,
//! changes to the request body (but for tools that a key may not use), embeddings (similarity is one of
//! words), a content filter that understands (guardrails look for words). Non-streamed answers and errors are held whole, and so are streams that an output guardrail must see. Trailers and informational
//! responses of the upstream end here. A waiting delay is measured from the read of each event, so delays
//! of a stream overlap; where workers are limited they queue.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::net::{TcpListener, TcpStream};

use crate::accept::accept;
use crate::clock::Alarm;
use crate::http::{Conn, RequestHead};
use crate::router::Fleet;
use crate::truth::Log;

mod attempt;
mod cache;
mod chunk;
mod counters;
mod exchange;
mod fields;
mod flow;
mod gate;
mod keys;
mod options;
mod recall;
mod reply;
mod rewrite;
mod semantic;
mod station;
#[cfg(test)]
mod tests;

use cache::Cache;
use counters::{Counters, Refusal};
use keys::Keys;
pub use keys::{Dialect, KeyOptions};
pub use options::GatewayOptions;
use semantic::SemanticCache;
pub use semantic::SemanticOptions;
use station::Station;

struct Gateway {
    options: GatewayOptions,
    log: Log,
    fleet: Fleet,
    station: Station,
    cache: Cache,
    semantic: SemanticCache,
    keys: Keys,
    counters: Counters,
    refusal: Refusal,
    random: Mutex<StdRng>,
    connections: AtomicU64,
}

/// Serves a gateway on `listener` until `stop` resolves; open streams are then cut and recorded as
/// stopped.
///
/// # Errors
/// When its worker threads cannot be started or its key file cannot be used; a failed connection concerns only itself.
pub async fn serve(
    listener: TcpListener,
    options: GatewayOptions,
    log: Log,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let fleet = Fleet::one(options.upstream.clone(), options.pool);
    serve_before(fleet, listener, options, log, stop).await
}

/// Serves a gateway before a fleet instead of before [`GatewayOptions::upstream`].
pub(crate) async fn serve_before(
    fleet: Fleet,
    listener: TcpListener,
    options: GatewayOptions,
    log: Log,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let gateway = Arc::new(Gateway {
        log,
        fleet,
        station: Station::new(options.cpu_delay, options.workers)?,
        cache: Cache::default(),
        semantic: SemanticCache::default(),
        keys: Keys::new(options.key_options.clone())?,
        counters: Counters::default(),
        refusal: Refusal::default(),
        random: Mutex::new(StdRng::seed_from_u64(options.seed)),
        connections: AtomicU64::new(0),
        options,
    });
    accept(listener, stop, |stream| {
        let gateway = Arc::clone(&gateway);
        async move {
            if let Err(error) = connection(&gateway, stream).await {
                tracing::warn!(%error, "gateway stand-in dropped a connection");
            }
        }
    })
    .await
}

async fn connection(gateway: &Gateway, stream: TcpStream) -> io::Result<()> {
    let number = gateway.connections.fetch_add(1, Ordering::Relaxed) + 1;
    let mut conn = Conn::new(stream)?;
    let mut alarm = Alarm::new()?;
    while exchange::exchange(gateway, &mut conn, &mut alarm, number).await {}
    conn.close().await;
    Ok(())
}

impl Gateway {
    /// The text of a page of the gateway's own.
    fn own_page(&self, head: &RequestHead) -> Option<String> {
        match (head.method.as_str(), head.path()) {
            ("GET", "/metrics") => {
                Some(self.counters.render() + &self.fleet.render() + &self.keys.render())
            }
            ("GET", "/health") => Some(String::new()),
            _ => None,
        }
    }
}
