//! A stand-in for Amazon Bedrock AgentCore: Runtime (`/runtimes/{arn}/invocations`) with a scripted agent in it,
//! and Gateway (`/mcp`) with a few tools.
//!
//! Models: sessions by `X-Amzn-Bedrock-AgentCore-Runtime-Session-Id` (made up and returned where a request has
//! none), each starting cold, one request at a time, gone when idle; quotas of calls, new sessions and sessions;
//! answers as events of strings, as events of a Strands agent, or as JSON; calls of a model at a configured engine;
//! SigV4 for the service `bedrock-agentcore`, or a bearer key of the key file; tools named `target___tool`, over
//! JSON-RPC.
//!
//! Does not model: the agent itself (it says words, at its pace), JSON web tokens (a bearer key is compared), the
//! web socket, `runtimeUserId`, the ports and pings of a container, longest lifetimes, memory, identity, billing;
//! at the gateway its targets (the tools are built in), sessions, streamed answers, semantic search.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::net::{TcpListener, TcpStream};

use crate::accept::accept;
use crate::aws::{Received, Refused, Verifier};
use crate::bucket::Bucket;
use crate::clock::{Alarm, now};
use crate::exposition::Exposition;
use crate::http::{Conn, Headers, HttpError, Pool, RequestHead, simple_response};
use crate::truth::Log;

mod agent;
mod exchange;
mod mcp;
mod options;
mod sessions;
#[cfg(test)]
mod tests;

pub use options::{AgentCoreOptions, Form};
use sessions::Sessions;

/// Most idle connections to the engine.
const IDLE_CONNECTIONS: usize = 64;
const SECOND: f64 = 1e9;

struct Service {
    options: AgentCoreOptions,
    log: Log,
    verifier: Option<Verifier>,
    sessions: Mutex<Sessions>,
    tool_calls: Mutex<Bucket>,
    engine: Option<Pool>,
    connections: AtomicU64,
    refused: AtomicU64,
    ids: [RandomState; 2],
    ids_given: AtomicU64,
}

/// Serves AgentCore on `listener` until `stop` resolves.
///
/// # Errors
/// When the key file cannot be used; a failed connection concerns only itself.
pub async fn serve(
    listener: TcpListener,
    options: AgentCoreOptions,
    log: Log,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let service = Arc::new(Service {
        verifier: Verifier::of(&options.keys, "bedrock-agentcore")?,
        sessions: Mutex::new(Sessions::new(&options)),
        tool_calls: Mutex::new(Bucket::new(options.tool_tps, SECOND)),
        engine: options
            .engine
            .clone()
            .map(|address| Pool::new(address, IDLE_CONNECTIONS)),
        options,
        log,
        connections: AtomicU64::new(0),
        refused: AtomicU64::new(0),
        ids: [RandomState::new(), RandomState::new()],
        ids_given: AtomicU64::new(0),
    });
    accept(listener, stop, |stream| {
        let service = Arc::clone(&service);
        async move {
            if let Err(error) = connection(&service, stream).await {
                tracing::debug!(%error, "agentcore stand-in dropped a connection");
            }
        }
    })
    .await
}

async fn connection(service: &Service, stream: TcpStream) -> Result<(), HttpError> {
    let number = service.connections.fetch_add(1, Ordering::Relaxed) + 1;
    let mut conn = Conn::new(stream)?;
    let mut alarm = Alarm::new()?;
    loop {
        match request(service, &mut conn, &mut alarm, number).await {
            Ok(true) => {}
            Ok(false) => {
                conn.close().await;
                return Ok(());
            }
            Err(error) => {
                if let Some(status) = error.status() {
                    let answer = failure(status, "ValidationException", &error.to_string(), false);
                    conn.write(&answer).await?;
                }
                return Err(error);
            }
        }
    }
}

/// Serves the next request; whether another may follow.
async fn request(
    service: &Service,
    conn: &mut Conn,
    alarm: &mut Alarm,
    number: u64,
) -> Result<bool, HttpError> {
    let Some(head) = conn.request_head().await? else {
        return Ok(false);
    };
    let head_read_at = conn.read_at;
    if head.expects_continue() && conn.pending().is_empty() {
        conn.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    let (body, body_read_at) = conn.body(head.framing()?, None).await?;
    let keep_alive = head.keeps_alive();
    let operation = Operation::of(&head);
    if operation.is_signed()
        && let Err(refused) = service.check(&head, &body)
    {
        service.count_refused();
        let body = error_body(&refused.message);
        let mut fields = error_fields(refused.kind);
        fields.0.push(refused.field());
        let answer = simple_response(403, JSON, &fields, body.as_bytes(), keep_alive);
        conn.write(&answer).await?;
        return Ok(keep_alive);
    }
    let answer = match operation {
        Operation::Invoke => {
            let asked = exchange::Asked {
                head: &head,
                body: &body,
                read_at: (head_read_at, body_read_at),
                connection: number,
            };
            return Ok(exchange::invoke(service, conn, alarm, &asked).await && keep_alive);
        }
        Operation::Stop => service.stop(&head, keep_alive),
        Operation::Tools => mcp::answer(service, &body, keep_alive).await,
        Operation::Ping => plain("text/plain", b"", keep_alive),
        Operation::Metrics => plain(
            "text/plain; version=0.0.4",
            service.metrics().as_bytes(),
            keep_alive,
        ),
        Operation::Unknown => {
            let message = format!(
                "no such operation: {} {}; there are POST /runtimes/ARN/invocations (its ARN percent-encoded), POST /runtimes/ARN/stopruntimesession, POST /mcp",
                head.method,
                head.path()
            );
            failure(404, "UnknownOperationException", &message, keep_alive)
        }
    };
    conn.write(&answer).await?;
    Ok(keep_alive)
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Invoke,
    Stop,
    Tools,
    Ping,
    Metrics,
    Unknown,
}

impl Operation {
    fn of(head: &RequestHead) -> Self {
        let labels: Vec<&str> = head.path().split('/').skip(1).collect();
        match (head.method.as_str(), &labels[..]) {
            ("POST", ["runtimes", arn, "invocations"]) if !arn.is_empty() => Self::Invoke,
            ("POST", ["runtimes", arn, "stopruntimesession"]) if !arn.is_empty() => Self::Stop,
            ("POST", ["mcp"]) => Self::Tools,
            ("GET", ["ping"]) => Self::Ping,
            ("GET", ["metrics"]) => Self::Metrics,
            _ => Self::Unknown,
        }
    }

    fn is_signed(self) -> bool {
        matches!(self, Self::Invoke | Self::Stop | Self::Tools)
    }
}

const JSON: &str = "application/json";

fn plain(content_type: &str, body: &[u8], keep_alive: bool) -> Vec<u8> {
    simple_response(200, content_type, &Headers::default(), body, keep_alive)
}

/// An error in the form of AWS.
fn failure(status: u16, kind: &str, message: &str, keep_alive: bool) -> Vec<u8> {
    let body = error_body(message);
    simple_response(
        status,
        JSON,
        &error_fields(kind),
        body.as_bytes(),
        keep_alive,
    )
}

fn error_body(message: &str) -> String {
    serde_json::json!({"message": message}).to_string()
}

fn error_fields(kind: &str) -> Headers {
    let field = ("x-amzn-errortype".to_owned(), kind.as_bytes().to_vec());
    Headers(vec![field])
}

impl Service {
    fn check(&self, head: &RequestHead, body: &[u8]) -> Result<(), Refused> {
        let Some(verifier) = &self.verifier else {
            return Ok(());
        };
        verifier.check(&Received {
            method: &head.method,
            target: &head.target,
            headers: &head.headers,
            body,
        })
    }

    fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether one more tool may be called now.
    fn takes_tool_call(&self) -> bool {
        let mut calls = self
            .tool_calls
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let has = calls.has(1, now());
        if has {
            calls.take(1);
        }
        has
    }

    fn count_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// A random id in the form of a UUID.
    fn uuid(&self) -> String {
        let number = self.ids_given.fetch_add(1, Ordering::Relaxed);
        let [high, low] = self.ids.each_ref().map(|ids| ids.hash_one(number));
        let hex = format!("{high:016x}{low:016x}");
        let parts = [
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        ];
        parts.join("-")
    }

    /// Ends a session.
    fn stop(&self, head: &RequestHead, keep_alive: bool) -> Vec<u8> {
        let id = head.headers.get(exchange::SESSION).unwrap_or_default();
        match self.sessions().end(id) {
            true => plain(JSON, b"{}", keep_alive),
            false => failure(
                404,
                "ResourceNotFoundException",
                "no such runtime session",
                keep_alive,
            ),
        }
    }

    fn metrics(&self) -> String {
        let (open, started) = self.sessions().counts(&self.options, now());
        let mut page = Exposition::default();
        page.gauge(
            "sim_agentcore_sessions",
            "Sessions that are there.",
            open as f64,
        );
        page.counter(
            "sim_agentcore_cold_starts_total",
            "Sessions that were started.",
            started,
        );
        page.counter(
            "sim_agentcore_refused_total",
            "Calls refused: unsigned, beyond a quota, in the way of another.",
            self.refused.load(Ordering::Relaxed),
        );
        page.finish()
    }
}
