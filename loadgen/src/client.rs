//! One call: one connection, no pool that could make it wait, every read stamped, no retry.

mod called;
mod ending;
mod link;
mod said;
mod socket;
mod watch;

pub(crate) use called::CalledTool;
pub(crate) use watch::{Broken, Cut, TOTAL};

use crate::api::{Api, InSession, SESSION};
use crate::target::{REQUEST_HEADER, Target};
use bytes::Bytes;
use called::Calls;
use ending::Ended;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, Method, Request};
use http_body_util::Full;
use hyper::body::{Body as _, Incoming};
use link::{Idle, Link};
use record::client::{CallOutcome, ClientCall};
use record::clock::{Nanos, now};
use record::service::ServiceFault;
use record::stamp::{Arrival, Passage};
use record::stream::StreamRecord;
use said::Said;
use std::pin::Pin;
use std::sync::Arc;
use watch::{CONNECT, FIRST_BYTE, SILENCE, Watch};
use wire::{Decoder, Field, Limits, StreamEvent};

/// Gaps kept of one call; a longer answer's later gaps are in its longest one only.
const MAX_GAPS: usize = 65_536;
/// The client needs instants and counts, not text positions: those are let go at this number.
const POSITIONS: usize = 64;

/// One call to make.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) cell: u32,
    pub(crate) seq: u64,
    pub(crate) task: Option<(u32, u16)>,
    pub(crate) warmup: bool,
    pub(crate) intended: Nanos,
    pub(crate) prompt_tokens: u32,
    pub(crate) body: Bytes,
    /// Keep the answer's text and tool calls: an agent says them again in its next turn.
    pub(crate) collect: bool,
    /// The call is one of a session.
    pub(crate) session: Option<InSession>,
}

/// What came of it.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) call: ClientCall,
    /// Between content events, nanoseconds; 0 for events of one read.
    pub(crate) gaps: Vec<u64>,
    /// The answer, where it was asked for. Never recorded.
    pub(crate) text: String,
    /// Its tool calls, likewise.
    pub(crate) tools: Vec<CalledTool>,
    /// What a limit or policy could have said in it.
    pub(crate) said: Said,
}

/// Sends the calls of one cell to one chain.
pub(crate) struct Client {
    target: Arc<Target>,
    idle: Vec<Idle>,
    cut: Cut,
}

/// How a call was broken off.
struct Failure {
    outcome: CallOutcome,
    fault: String,
}

impl Failure {
    fn new(outcome: CallOutcome, fault: impl Into<String>) -> Self {
        Self {
            outcome,
            fault: fault.into(),
        }
    }
}

impl From<Broken> for Failure {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::TimedOut(CONNECT) => Self::new(CallOutcome::Connect, CONNECT),
            Broken::TimedOut(what) => Self::new(CallOutcome::TimedOut, what),
            Broken::CutOff => Self::new(CallOutcome::CutOff, "the cell ended"),
        }
    }
}

/// A call under way.
struct Live {
    told: Told,
    stream: StreamRecord,
    calls: Calls,
    collect: bool,
    /// The class of the first error, where a service said it.
    service: Option<ServiceFault>,
}

impl Client {
    /// A client of `target` for `lanes` threads, whose calls `cut` can end.
    pub(crate) fn new(target: Arc<Target>, lanes: usize, cut: Cut) -> Self {
        Self {
            target,
            idle: (0..lanes).map(|_| Idle::default()).collect(),
            cut,
        }
    }

    /// Makes one call on the lane that this runs on.
    pub(crate) async fn call(&self, lane: usize, ask: Ask) -> Told {
        let mut watch = Watch::new(&self.cut, self.target.timeouts.total.get());
        let request = self.request(&ask);
        let mut live = Live::begin(&ask);
        let result = self.run(lane, request, &mut live, &mut watch).await;
        live.end(result)
    }

    fn request(&self, ask: &Ask) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(ask.body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.target.uri.clone();
        let mut headers = self.target.headers.clone();
        headers.insert(CONTENT_LENGTH, HeaderValue::from(ask.body.len()));
        if self.target.tapped
            && ask.cell != NO_CELL
            && let Ok(key) = HeaderValue::try_from(ClientCall::key_of(ask.cell, ask.seq))
        {
            headers.insert(REQUEST_HEADER, key);
        }
        if let Some(session) = &ask.session {
            headers.insert(SESSION, session.id.clone());
        }
        *request.headers_mut() = headers;
        request
    }

    async fn run(
        &self,
        lane: usize,
        request: Request<Full<Bytes>>,
        live: &mut Live,
        watch: &mut Watch,
    ) -> Result<(), Failure> {
        let mut link = self.connect(lane, watch).await?;
        let call = &mut live.told.call;
        call.reused = link.reused;
        watch.phase(self.target.timeouts.first_byte.get(), FIRST_BYTE);
        let answer = link.sender.send_request(request);
        let answer = watch.wait(Some(&mut link), answer).await;
        call.sent = link.stamps.first_write();
        let answer =
            answer?.map_err(|error| Failure::new(CallOutcome::Transport, describe(&error)))?;
        call.head = link.stamps.last_read();
        call.status = Some(answer.status().as_u16());
        call.claimed_overhead = self.claimed(answer.headers());
        if !answer.status().is_success() {
            live.told.said.read(answer.headers());
        }
        self.read(answer, &mut link, live, watch).await?;
        if let Some(idle) = self.idle.get(lane) {
            idle.give(link).await;
        }
        Ok(())
    }

    async fn connect(&self, lane: usize, watch: &mut Watch) -> Result<Link, Failure> {
        if let Some(link) = self.idle.get(lane).and_then(Idle::take) {
            return Ok(link);
        }
        watch.phase(self.target.timeouts.connect.get(), CONNECT);
        let link = watch.wait(None, Link::open(self.target.address)).await?;
        link.map_err(|error| Failure::new(CallOutcome::Connect, error))
    }

    /// The gateway's own figure in milliseconds, as nanoseconds.
    fn claimed(&self, headers: &HeaderMap) -> Option<u64> {
        let value = headers
            .get(self.target.overhead_header.as_ref()?)?
            .to_str()
            .ok()?;
        let millis: f64 = value.trim().parse().ok()?;
        (millis.is_finite() && millis >= 0.0).then_some((millis * 1e6).round() as u64)
    }

    async fn read(
        &self,
        answer: hyper::Response<Incoming>,
        link: &mut Link,
        live: &mut Live,
        watch: &mut Watch,
    ) -> Result<(), Failure> {
        let (head, mut body) = answer.into_parts();
        let delimited = head.headers.contains_key(CONTENT_LENGTH)
            || head.headers.contains_key(TRANSFER_ENCODING);
        let kind = head
            .headers
            .get(CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok());
        let api = self.target.api;
        let mut decoder = Decoder::new(api.dialect(), kind, Limits::default());
        let silence = self.target.timeouts.silence.get();
        watch.phase(silence, SILENCE);
        loop {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
            let frame = watch.wait(Some(&mut *link), frame).await?;
            let Some(frame) = frame else { break };
            let frame =
                frame.map_err(|error| Failure::new(CallOutcome::Truncated, describe(&error)))?;
            let at = link.stamps.last_read().unwrap_or_else(now);
            watch.renew(at, silence);
            if let Some(data) = frame.data_ref() {
                live.observe(data, &mut decoder, at);
            }
        }
        // Without a length the end of the connection is the end of the body.
        let last = link.stamps.last_read();
        let end = if delimited {
            last
        } else {
            link.stamps.closed().or(last)
        };
        live.finish(&mut decoder, end.unwrap_or_else(now));
        let status = head.status.as_u16();
        let (outcome, fault) = live.judge(status, api, &decoder);
        live.told.call.outcome = outcome;
        live.told.call.fault = fault;
        Ok(())
    }
}

/// The cell of a call that belongs to none, such as a preflight's: it carries no name.
pub(crate) const NO_CELL: u32 = u32::MAX;

/// The library's words and their causes; they hold no content.
fn describe(error: &hyper::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

impl Live {
    fn begin(ask: &Ask) -> Self {
        let started = now();
        let call = ClientCall {
            task: ask.task,
            cold: ask.session.as_ref().and_then(|session| session.cold),
            warmup: ask.warmup,
            prompt_tokens: ask.prompt_tokens,
            ..ClientCall::unanswered(ask.cell, ask.seq, ask.intended, started)
        };
        Self {
            told: Told {
                call,
                gaps: Vec::new(),
                text: String::new(),
                tools: Vec::new(),
                said: Said::default(),
            },
            stream: StreamRecord::starting(started),
            calls: Calls::default(),
            collect: ask.collect,
            service: None,
        }
    }

    /// Takes the bytes that the read at `at` brought.
    fn observe(&mut self, data: &[u8], decoder: &mut Decoder, at: Nanos) {
        self.take(at, |sink| decoder.feed(data, &mut |framed| sink(framed)));
    }

    fn finish(&mut self, decoder: &mut Decoder, at: Nanos) {
        self.take(at, |sink| decoder.finish(&mut |framed| sink(framed)));
        self.told.call.end = at;
    }

    fn take(&mut self, at: Nanos, source: impl FnOnce(&mut dyn FnMut(wire::Framed<'_>))) {
        let passage = Passage {
            arrival: Arrival::instant(at),
            departure: None,
        };
        let stream = &mut self.stream;
        let (before, last) = (stream.counts.text_events, stream.marks.last_text);
        let (text, calls, keep) = (&mut self.told.text, &mut self.calls, self.collect);
        let (said, service) = (&self.told.said, &mut self.service);
        let first = stream.counts.errors == 0;
        source(&mut |framed| {
            if keep {
                collect(&framed, text, calls);
            }
            if first && service.is_none() {
                *service = framed.events.iter().find_map(|event| said.class(event));
            }
            stream.observe(&framed, &passage);
        });
        if stream.timeline.texts.len() >= POSITIONS {
            stream.timeline = record::timeline::Timeline::starting(at);
        }
        let mut since = last.map(|p| p.arrival.at);
        for _ in before..stream.counts.text_events {
            if let Some(since) = since {
                self.told.gap(at.saturating_sub(since));
            }
            since = Some(at);
        }
    }

    /// How an answer ended whose body ended as its framing promised.
    fn judge(&self, status: u16, api: Api, decoder: &Decoder) -> (CallOutcome, Option<String>) {
        let (said, error) = (&self.told.said, self.stream.error.as_deref());
        let error = said.kind.as_deref().or(error);
        ending::judge(&Ended {
            status,
            api,
            stream: &self.stream,
            decoder,
            error,
            service: self
                .service
                .or_else(|| ServiceFault::of(said.kind.as_deref()?, "")),
        })
    }

    /// Closes the row.
    fn end(self, result: Result<(), Failure>) -> Told {
        let Self {
            mut told,
            stream,
            calls,
            ..
        } = self;
        told.tools = calls.into_calls();
        told.said.error = told.said.kind.take().or(stream.error);
        told.said.finish = stream.finish_reason;
        let call = &mut told.call;
        if let Err(failure) = result {
            call.end = now();
            call.outcome = failure.outcome;
            call.fault = Some(failure.fault);
        }
        let at = |passage: Option<Passage>| passage.map(|p| p.arrival.at);
        call.first_choice = at(stream.marks.first_choice);
        call.first_text = at(stream.marks.first_text);
        call.last_text = at(stream.marks.last_text);
        call.finish = at(stream.marks.finish);
        call.done = at(stream.marks.done);
        call.text_events = stream.counts.text_events;
        call.response_id = stream.response_id;
        let narrow = |count: Option<u64>| count.and_then(|count| u32::try_from(count).ok());
        if let Some(usage) = stream.usage {
            call.usage_prompt = narrow(usage.prompt_tokens);
            call.usage_cached = narrow(usage.cached_tokens);
            call.usage_cache_write = narrow(usage.cache_write_tokens);
            call.usage_completion = narrow(usage.completion_tokens);
        }
        told
    }
}

impl Told {
    fn gap(&mut self, gap: u64) {
        let longest = &mut self.call.longest_gap;
        *longest = Some(longest.map_or(gap, |known| known.max(gap)));
        if self.gaps.len() < MAX_GAPS {
            self.gaps.push(gap);
        }
    }
}

fn collect(framed: &wire::Framed<'_>, text: &mut String, calls: &mut Calls) {
    for event in framed.events {
        calls.observe(event);
        if let StreamEvent::Text(delta) = event
            && delta.field == Field::Content
            && delta.choice == 0
        {
            text.push_str(delta.text);
        }
    }
}

#[cfg(test)]
mod tests;
