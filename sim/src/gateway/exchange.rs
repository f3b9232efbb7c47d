//! One request at a gateway.

use std::io;
use std::sync::atomic::Ordering;

use super::Gateway;
use super::attempt::Upstream;
use super::cache::{Answer, Cache};
use super::fields::{close_head, inbound, outbound};
use super::flow::Flow;
use crate::clock::Alarm;
use crate::delta::Delta;
use crate::http::{
    Conn, Framing, Headers, HttpError, Outlet, RequestHead, error_body, simple_response,
};
use crate::reading::Reader;
use crate::sse::Splitter;
use crate::truth::{ExchangeTruth, Mark, Outcome, Recorder, Role};

/// Whether the connection can serve another request.
pub(super) async fn exchange(
    gateway: &Gateway,
    conn: &mut Conn,
    alarm: &mut Alarm,
    connection: u64,
) -> bool {
    let served = match conn.request_head().await {
        Ok(Some(head)) => request(gateway, conn, alarm, connection, &head).await,
        Ok(None) => return false,
        Err(error) => Err(error),
    };
    served.unwrap_or_else(|error| {
        tracing::debug!(%error, "gateway stand-in ended a connection");
        false
    })
}

async fn request(
    gateway: &Gateway,
    conn: &mut Conn,
    alarm: &mut Alarm,
    connection: u64,
    head: &RequestHead,
) -> Result<bool, HttpError> {
    let head_read_at = conn.read_at;
    if head.expects_continue() && conn.pending().is_empty() {
        conn.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    let (body, body_read_at) = conn.body(head.framing()?, None).await?;
    let keep_alive = head.keeps_alive();
    if let Some(text) = gateway.own_page(head) {
        let page = simple_response(
            200,
            "text/plain",
            &Headers::default(),
            text.as_bytes(),
            keep_alive,
        );
        conn.write(&page).await?;
        return Ok(keep_alive);
    }
    gateway.counters.requests.fetch_add(1, Ordering::Relaxed);
    let truth = begin(head, (head_read_at, body_read_at), connection);
    let mut recorder = Recorder::new(&gateway.log, truth);
    let mut turn = Turn {
        gateway,
        conn,
        alarm,
        truth: &mut recorder.truth,
        keep_alive,
        minor: head.minor,
        body_read_at,
    };
    match turn.serve(head, &body).await {
        Ok(outcome) => turn.truth.outcome = outcome,
        Err(_) => {
            turn.truth.outcome = Outcome::ClientGone;
            turn.keep_alive = false;
        }
    }
    Ok(turn.keep_alive)
}

/// The truth of an exchange whose request has been read.
fn begin(
    head: &RequestHead,
    (head_read_at, body_read_at): (u64, u64),
    connection: u64,
) -> ExchangeTruth {
    let mut truth = ExchangeTruth {
        role: Role::Gateway,
        call: head.headers.get("x-hopscope-call").map(str::to_owned),
        connection,
        ..ExchangeTruth::default()
    };
    truth.set_read(Mark::RequestHead, head_read_at);
    truth.set_read(Mark::RequestBody, body_read_at);
    truth
}

struct Turn<'t> {
    gateway: &'t Gateway,
    conn: &'t mut Conn,
    alarm: &'t mut Alarm,
    truth: &'t mut ExchangeTruth,
    keep_alive: bool,
    minor: u8,
    body_read_at: u64,
}

impl Turn<'_> {
    /// An error is the client's.
    async fn serve(&mut self, head: &RequestHead, body: &[u8]) -> io::Result<Outcome> {
        let gateway = self.gateway;
        let options = &gateway.options;
        let (every, rate) = (options.refuse_every, options.refuse_above_rate);
        if gateway.refusal.refuses(self.body_read_at, every, rate) {
            gateway.counters.refused.fetch_add(1, Ordering::Relaxed);
            let extra = Headers(vec![("retry-after".to_owned(), b"1".to_vec())]);
            let message = "rate limit exceeded: refused by the gateway stand-in";
            self.error(429, message, &extra).await?;
            return Ok(Outcome::Refused);
        }
        gateway
            .station
            .spend(self.alarm, self.body_read_at, options.request_delay_us)
            .await?;
        let key = options.cache.then(|| Cache::key(&head.target, body));
        if let Some(answer) = key.and_then(|key| gateway.cache.get(key)) {
            gateway.counters.cache_hits.fetch_add(1, Ordering::Relaxed);
            self.replay(&answer).await?;
            return Ok(Outcome::CacheHit);
        }
        let Some(berth) = gateway.fleet.choose(body) else {
            let message = "no replica is ready: the router stand-in has none";
            self.error(503, message, &Headers::default()).await?;
            return Ok(Outcome::UpstreamFailed);
        };
        let request = outbound(options, berth.pool.address(), head, body);
        let upstream = tokio::select! {
            biased;
            upstream = gateway.ask(&berth.pool, &request, self.truth) => upstream,
            () = self.conn.gone() => return Ok(self.client_gone()),
        };
        match upstream {
            Ok(upstream) => self.answer(upstream, &head.method, key).await,
            Err(error) => self.failed(&error).await,
        }
    }

    async fn answer(
        &mut self,
        upstream: Upstream,
        method: &str,
        key: Option<u64>,
    ) -> io::Result<Outcome> {
        let framing = match upstream.head.framing(method) {
            Ok(framing) => framing,
            Err(error) => return self.failed(&error).await,
        };
        let mut fields = inbound(&self.gateway.options, &upstream.head.headers);
        let overhead_ms = self.claim() as f64 / 1e6;
        let claim = format!("{overhead_ms:.3}").into_bytes();
        fields.0.push(("x-sim-overhead-ms".to_owned(), claim));
        if upstream.head.status < 300 && upstream.head.is_event_stream() {
            self.stream(upstream, framing, fields, key).await
        } else {
            self.whole(upstream, framing, fields, key).await
        }
    }

    /// The overhead as the gateway itself tells it: nothing after the upstream request is in it.
    fn claim(&self) -> u64 {
        let sent = self.truth.attempts.first();
        let sent = sent.and_then(|attempt| attempt.request_write_begin);
        let overhead = sent.map_or(0, |sent| sent.saturating_sub(self.body_read_at));
        self.gateway.counters.add_overhead(overhead);
        overhead
    }

    async fn stream(
        &mut self,
        upstream: Upstream,
        framing: Framing,
        mut fields: Headers,
        key: Option<u64>,
    ) -> io::Result<Outcome> {
        self.truth.streamed = true;
        let content_type = content_type(&upstream.head.headers);
        let outward = self.stream_framing();
        close_head(&mut fields, outward, self.keep_alive);
        let sides = (&mut *self.conn, &mut *self.alarm, &mut *self.truth);
        let flow = Flow::new(self.gateway, sides, upstream, (framing, outward), fields);
        let flowed = flow.run().await;
        self.keep_alive &= flowed.reusable;
        if flowed.outcome == Outcome::UpstreamFailed {
            self.count_failure();
        }
        if let (Some(key), Some(body)) = (key, flowed.kept) {
            let answer = Answer {
                streamed: true,
                content_type,
                body,
            };
            self.gateway.cache.put(key, answer);
        }
        Ok(flowed.outcome)
    }

    fn stream_framing(&mut self) -> Framing {
        match self.minor {
            0 => Framing::UntilClose,
            _ => Framing::Chunked,
        }
    }

    async fn whole(
        &mut self,
        mut upstream: Upstream,
        framing: Framing,
        mut fields: Headers,
        key: Option<u64>,
    ) -> io::Result<Outcome> {
        let read = tokio::select! {
            biased;
            read = upstream.conn.body(framing, None) => read,
            () = self.conn.gone() => return Ok(self.client_gone()),
        };
        let (body, read_at) = match read {
            Ok(read) => read,
            Err(error) => return self.failed(&error).await,
        };
        let Upstream { conn, head, pool } = upstream;
        if head.keeps_alive() && framing != Framing::UntilClose {
            pool.put(conn);
        }
        let gateway = self.gateway;
        let delay = gateway.options.first_token_delay_us;
        gateway.station.spend(self.alarm, read_at, delay).await?;
        close_head(
            &mut fields,
            Framing::Length(body.len() as u64),
            self.keep_alive,
        );
        self.send_whole((head.status, &fields), &body, Some(read_at))
            .await?;
        if let (Some(key), 200) = (key, head.status) {
            let answer = Answer {
                streamed: false,
                content_type: content_type(&head.headers),
                body,
            };
            gateway.cache.put(key, answer);
        }
        Ok(match head.status {
            400..500 => Outcome::Rejected,
            500.. => Outcome::UpstreamFailed,
            _ => Outcome::Complete,
        })
    }

    /// Head and body in one write.
    async fn send_whole(
        &mut self,
        (status, fields): (u16, &Headers),
        body: &[u8],
        read_at: Option<u64>,
    ) -> io::Result<()> {
        let mut outlet = Outlet::new(Framing::Length(body.len() as u64));
        outlet.head(status, fields);
        outlet.piece(&[body]);
        outlet.carry_mark(Mark::ResponseHead, None);
        outlet.carry_mark(Mark::End, read_at);
        self.truth.status = Some(status);
        if let Some(delta) = Delta::parse(body) {
            self.note_whole(delta, read_at, &mut outlet);
        }
        outlet.flush(self.conn, self.truth).await?;
        Ok(())
    }

    fn note_whole(&mut self, delta: Delta, read_at: Option<u64>, outlet: &mut Outlet) {
        let tokens = Reader::default().tokens(&delta, read_at);
        outlet.carry(tokens, &[], read_at, self.truth);
        let count = delta.pieces.len() as u64;
        self.truth.text_events_read = if read_at.is_some() { count } else { 0 };
        self.truth.text_events_written = count;
        self.truth.response_id = delta.id;
        self.truth.prompt_tokens = delta.usage.map(|usage| usage.prompt);
        self.truth.completion_tokens = delta.usage.map(|usage| usage.completion);
        self.truth.cached_tokens = delta.usage.and_then(|usage| usage.cached);
    }

    async fn replay(&mut self, answer: &Answer) -> io::Result<()> {
        let mut fields = Headers(vec![
            (
                "content-type".to_owned(),
                answer.content_type.clone().into_bytes(),
            ),
            ("x-cache-hit".to_owned(), b"true".to_vec()),
        ]);
        if !answer.streamed {
            close_head(
                &mut fields,
                Framing::Length(answer.body.len() as u64),
                self.keep_alive,
            );
            return self.send_whole((200, &fields), &answer.body, None).await;
        }
        self.truth.streamed = true;
        self.truth.status = Some(200);
        let framing = self.stream_framing();
        close_head(&mut fields, framing, self.keep_alive);
        let mut outlet = Outlet::new(framing);
        outlet.head(200, &fields);
        outlet.carry_mark(Mark::ResponseHead, None);
        outlet.flush(self.conn, self.truth).await?;
        let mut splitter = Splitter::default();
        splitter.bytes.extend_from_slice(&answer.body);
        let mut reader = Reader::default();
        while let Some(event) = splitter.next_event() {
            let reading = reader.read(&event, None);
            outlet.piece(&[&event]);
            outlet.carry(reading.tokens, &reading.marks, None, self.truth);
            outlet.flush(self.conn, self.truth).await?;
        }
        reader.seen.note(self.truth);
        outlet.end(b"");
        outlet.carry_mark(Mark::End, None);
        outlet.flush(self.conn, self.truth).await?;
        Ok(())
    }

    async fn failed(&mut self, error: &HttpError) -> io::Result<Outcome> {
        self.count_failure();
        let message = format!("the upstream failed: {error}");
        self.error(502, &message, &Headers::default()).await?;
        Ok(Outcome::UpstreamFailed)
    }

    fn count_failure(&self) {
        let failures = &self.gateway.counters.upstream_failures;
        failures.fetch_add(1, Ordering::Relaxed);
    }

    fn client_gone(&mut self) -> Outcome {
        self.keep_alive = false;
        Outcome::ClientGone
    }

    async fn error(&mut self, status: u16, message: &str, extra: &Headers) -> io::Result<()> {
        let body = error_body(status, message);
        let response = simple_response(
            status,
            "application/json",
            extra,
            body.as_bytes(),
            self.keep_alive,
        );
        let written = self.conn.write(&response).await?;
        self.truth.status = Some(status);
        for mark in [Mark::ResponseHead, Mark::End] {
            self.truth
                .set_written(mark, None, written.begin, written.end);
        }
        Ok(())
    }
}

fn content_type(headers: &Headers) -> String {
    headers.get("content-type").unwrap_or_default().to_owned()
}
