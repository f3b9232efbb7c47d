//! One request at a gateway.

use std::io;
use std::sync::atomic::Ordering;

use super::Gateway;
use super::attempt::Upstream;
use super::cache::Answer;
use super::fields::{close_head, inbound, outbound};
use super::flow::Flow;
use super::keys::Key;
use super::recall::{Keep, Recalled};
use crate::clock::{Alarm, now};
use crate::http::{Conn, Framing, Headers, HttpError, RequestHead, ResponseHead, simple_response};
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
        key: None,
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

/// One exchange in progress.
pub(super) struct Turn<'t> {
    pub(super) gateway: &'t Gateway,
    pub(super) conn: &'t mut Conn,
    pub(super) alarm: &'t mut Alarm,
    pub(super) truth: &'t mut ExchangeTruth,
    /// Whose request it is, where keys are on.
    pub(super) key: Option<&'t Key>,
    pub(super) keep_alive: bool,
    minor: u8,
    pub(super) body_read_at: u64,
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
        self.key = match gateway.keys.of(head) {
            Ok(key) => key,
            Err(why) => return self.refuse(&why).await,
        };
        let Some(key) = self.key.filter(|_| head.method == "POST") else {
            return self.forward(head, body).await;
        };
        let body = match self.screen(key, body).await? {
            Ok(body) => body,
            Err(why) => return self.refuse(&why).await,
        };
        let ended = self.forward(head, &body).await;
        self.settle(key, &body, &ended);
        ended
    }

    /// Answers a request that was let in, from memory or from the upstream.
    async fn forward(&mut self, head: &RequestHead, body: &[u8]) -> io::Result<Outcome> {
        let gateway = self.gateway;
        let options = &gateway.options;
        let from = match self.key {
            // The rules of the key took their time first.
            Some(_) => now(),
            None => self.body_read_at,
        };
        let delay = options.request_delay_us;
        gateway.station.spend(self.alarm, from, delay).await?;
        let keep = match self.recall(head, body).await? {
            Recalled::Hit(answer, alike) => {
                self.replay(&answer, alike).await?;
                return Ok(Outcome::CacheHit);
            }
            Recalled::Miss(keep) => keep,
        };
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
            Ok(upstream) => self.answer(upstream, &head.method, keep).await,
            Err(error) => self.failed(&error).await,
        }
    }

    async fn answer(
        &mut self,
        upstream: Upstream,
        method: &str,
        keep: Keep,
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
            match self.guards_output() {
                // What a guardrail must see whole cannot be passed on as it comes.
                true => self.whole(upstream, framing, fields, keep).await,
                false => self.stream(upstream, framing, fields, keep).await,
            }
        } else {
            self.whole(upstream, framing, fields, keep).await
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
        keep: Keep,
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
        if let Some(body) = flowed.kept {
            let answer = Answer {
                streamed: true,
                content_type,
                body,
            };
            self.keep(keep, answer);
        }
        Ok(flowed.outcome)
    }

    pub(super) fn stream_framing(&self) -> Framing {
        match self.minor {
            0 => Framing::UntilClose,
            _ => Framing::Chunked,
        }
    }

    async fn whole(
        &mut self,
        mut upstream: Upstream,
        framing: Framing,
        fields: Headers,
        keep: Keep,
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
        self.finish_whole(&head, fields, (body, read_at), keep)
            .await
    }

    /// Sends on an answer that was read whole.
    async fn finish_whole(
        &mut self,
        head: &ResponseHead,
        mut fields: Headers,
        (body, read_at): (Vec<u8>, u64),
        keep: Keep,
    ) -> io::Result<Outcome> {
        let gateway = self.gateway;
        let delay = gateway.options.first_token_delay_us;
        gateway.station.spend(self.alarm, read_at, delay).await?;
        let answer = Answer {
            streamed: head.status < 300 && head.is_event_stream(),
            content_type: content_type(&head.headers),
            body,
        };
        let guarded = self
            .guard_output(answer.streamed, &answer.body, now())
            .await?;
        if let Err(why) = guarded {
            self.note_usage(&answer);
            self.tell(&why).await?;
            return Ok(Outcome::Rejected);
        }
        match answer.streamed {
            true => self.send_stream(fields, &answer, Some(read_at)).await?,
            false => {
                let length = Framing::Length(answer.body.len() as u64);
                close_head(&mut fields, length, self.keep_alive);
                let sent = self.send_whole((head.status, &fields), &answer.body, Some(read_at));
                sent.await?;
            }
        }
        let is_whole = !answer.streamed || self.truth.mark(Mark::Done).is_some();
        if head.status == 200 && is_whole {
            self.keep(keep, answer);
        }
        Ok(match head.status {
            400..500 => Outcome::Rejected,
            500.. => Outcome::UpstreamFailed,
            _ => Outcome::Complete,
        })
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
}

fn content_type(headers: &Headers) -> String {
    headers.get("content-type").unwrap_or_default().to_owned()
}
