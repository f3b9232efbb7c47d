//! What a tap is: read once from the chain's file, shared by every connection of a thread.

use super::aws::Signer;
use super::bearer::Bearer;
use super::head::{CALL, CALL_BIFROST, EXCHANGE, RequestHead, ResponseHead};
use super::translation::Translator;
use super::upstream::Upstream;
use crate::meter::MeterHandle;
use config::chain::{Forward, HeaderEvidence, TapLimits};
use config::tap::Traceparent;
use record::exchange::{Claims, Exchange, Position};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Makes ids that no other tap process makes: a random half and a counter.
#[derive(Debug)]
pub(crate) struct Ids {
    process: u32,
    next: AtomicU64,
}

impl Ids {
    /// Ids of this process.
    pub(crate) fn new() -> Self {
        // The hasher's keys are random per process: as good a source as any for a name.
        use std::hash::{BuildHasher as _, Hasher as _};
        let random = std::hash::RandomState::new().build_hasher().finish();
        Self {
            process: (random >> 32) as u32,
            next: AtomicU64::new(1),
        }
    }

    /// A new exchange id.
    pub(crate) fn exchange(&self) -> u64 {
        let count = self.next.fetch_add(1, Ordering::Relaxed) & 0xffff_ffff;
        u64::from(self.process) << 32 | count
    }

    /// A new call id.
    pub(crate) fn call(&self) -> String {
        format!("{:016x}", self.exchange())
    }
}

/// One tap of one chain.
pub(crate) struct TapContext {
    pub(crate) chain: Arc<str>,
    pub(crate) name: Arc<str>,
    pub(crate) position: Position,
    /// Clients may speak HTTP/2.
    pub(crate) http2: bool,
    /// Names under which the call id goes on; none where no further tap reads it.
    pub(crate) call_headers: &'static [&'static str],
    /// The response tells the gateway which exchange this was, for it to echo.
    pub(crate) echoes: bool,
    pub(crate) upstream: Upstream,
    /// Requests are signed for AWS.
    pub(crate) signer: Option<Signer>,
    /// `Authorization` in place of the client's.
    pub(crate) bearer: Option<Bearer>,
    /// Requests and answers are translated.
    pub(crate) translator: Option<Translator>,
    pub(crate) timeouts: Timeouts,
    /// Client connections that may yet be served; all threads of the tap share them.
    pub(crate) connections: Arc<Semaphore>,
    pub(crate) body_max: u64,
    pub(crate) event_max: usize,
    pub(crate) overhead_header: Option<String>,
    pub(crate) cache_header: Option<HeaderEvidence>,
    pub(crate) traceparent: Traceparent,
    pub(crate) kernel_stamps: bool,
    pub(crate) meter: MeterHandle,
    pub(crate) ids: Arc<Ids>,
}

/// Bounds on time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    pub(crate) request_head: Duration,
    pub(crate) response_head: Duration,
    pub(crate) stream_idle: Duration,
    pub(crate) client_write: Duration,
    pub(crate) client_idle: Duration,
}

impl From<&TapLimits> for Timeouts {
    fn from(limits: &TapLimits) -> Self {
        Self {
            request_head: limits.request_head_timeout.into(),
            response_head: limits.response_head_timeout.into(),
            stream_idle: limits.stream_idle_timeout.into(),
            client_write: limits.client_write_timeout.into(),
            client_idle: limits.client_idle_timeout.into(),
        }
    }
}

/// The headers that carry the call id from this tap on. The outer tap sends it where an inner tap
/// is there to take it out again; the inner tap only where a tap stands before the engine.
pub(crate) fn call_headers(
    position: Position,
    forward: Forward,
    inner: bool,
    engine: bool,
) -> &'static [&'static str] {
    match (position, forward) {
        (Position::Outer, Forward::Header) if inner => &[CALL],
        (Position::Outer, Forward::BifrostPrefix) if inner => &[CALL, CALL_BIFROST],
        (Position::Inner, _) if engine => &[CALL],
        _ => &[],
    }
}

impl TapContext {
    /// The fields that this tap adds to a request.
    pub(crate) fn request_fields<'a>(
        &self,
        exchange: &'a Exchange,
    ) -> Vec<(&'static str, &'a str)> {
        match &exchange.keys.call {
            Some(call) => self
                .call_headers
                .iter()
                .map(|name| (*name, call.as_str()))
                .collect(),
            None => Vec::new(),
        }
    }

    /// Does to the client's trace context what the configuration says. None is made unless asked:
    /// it can switch tracing on in the gateway, and so change what is measured.
    pub(crate) fn trace_context(&self, head: &mut RequestHead) {
        match self.traceparent {
            Traceparent::Pass => {}
            Traceparent::Off => {
                head.traceparent = None;
                head.fields.retain(|(name, _)| {
                    !name.eq_ignore_ascii_case("traceparent")
                        && !name.eq_ignore_ascii_case("tracestate")
                });
            }
            Traceparent::Create
                if head.traceparent.is_none() && self.position == Position::Outer =>
            {
                let (a, b) = (self.ids.exchange(), self.ids.exchange());
                let made = format!("00-{a:016x}{b:016x}-{b:016x}-01");
                head.fields
                    .push(("traceparent".to_owned(), made.clone().into_bytes()));
                head.traceparent = Some(made);
            }
            Traceparent::Create => {}
        }
    }

    /// The field that this tap adds to a response.
    pub(crate) fn response_field(&self, exchange: &Exchange) -> Option<(&'static str, String)> {
        self.echoes
            .then(|| (EXCHANGE, format!("{:016x}", exchange.id)))
    }

    /// What the gateway claims in its response head.
    pub(crate) fn claims(&self, head: &ResponseHead) -> Claims {
        let overhead = self
            .overhead_header
            .as_deref()
            .and_then(|name| head.value(name)?.parse::<f64>().ok())
            .filter(|ms| ms.is_finite() && *ms >= 0.0)
            // Nanoseconds of a figure in milliseconds; a header that claims centuries saturates.
            .map(|ms| (ms * 1e6) as u64);
        let cache_hit = self.cache_header.as_ref().is_some_and(|evidence| {
            head.value(evidence.name.as_str())
                .is_some_and(|value| evidence.proves(value))
        });
        Claims {
            overhead,
            cache_hit,
        }
    }
}
