//! Passing a stream on, token by token.

use std::collections::VecDeque;
use std::io;

use super::attempt::Upstream;
use super::cache::MAX_ANSWER;
use super::rewrite::{Kind, Parcel, Rewriter};
use super::{Gateway, GatewayOptions};
use crate::clock::{Alarm, now};
use crate::http::{BodyDecoder, Conn, Framing, Headers, Outlet};
use crate::sse::Splitter;
use crate::truth::{ExchangeTruth, Mark, Outcome};

/// Events that may wait for their delay; then the upstream is not read until some have left.
const MAX_WAITING: usize = 4096;

/// A stream on its way from the upstream to the client.
pub(super) struct Flow<'f> {
    gateway: &'f Gateway,
    client: &'f mut Conn,
    alarm: &'f mut Alarm,
    truth: &'f mut ExchangeTruth,
    upstream: Upstream,
    body: BodyDecoder,
    splitter: Splitter,
    rewriter: Rewriter,
    waiting: VecDeque<Parcel>,
    outlet: Outlet,
    /// The response head while it is held back.
    head: Option<Headers>,
    /// Whether the upstream's body has ended, and was complete.
    ended: Option<bool>,
    /// The stream as the client got it, for the cache; `None` when there is none or it grew too long.
    kept: Option<Vec<u8>>,
}

/// How a stream ended.
pub(super) struct Flowed {
    pub(super) outcome: Outcome,
    /// The stream, where it is complete and is to be cached.
    pub(super) kept: Option<Vec<u8>>,
    /// Whether the client's connection can serve on.
    pub(super) reusable: bool,
}

impl<'f> Flow<'f> {
    pub(super) fn new(
        gateway: &'f Gateway,
        sides: (&'f mut Conn, &'f mut Alarm, &'f mut ExchangeTruth),
        upstream: Upstream,
        framings: (Framing, Framing),
        head: Headers,
    ) -> Self {
        let (client, alarm, truth) = sides;
        let (upstream_framing, client_framing) = framings;
        Self {
            gateway,
            client,
            alarm,
            truth,
            upstream,
            body: BodyDecoder::new(upstream_framing),
            splitter: Splitter::default(),
            rewriter: Rewriter::new(&gateway.options),
            waiting: VecDeque::new(),
            outlet: Outlet::new(client_framing),
            head: Some(head),
            ended: None,
            kept: gateway.options.keeps_answers().then(Vec::new),
        }
    }

    /// Runs to the end of either side.
    pub(super) async fn run(mut self) -> Flowed {
        let outcome = match self.pass().await {
            Ok(outcome) => outcome,
            Err(_) => Outcome::ClientGone,
        };
        let waiting = self.waiting.iter().map(|parcel| parcel.tokens.len() as u64);
        self.truth.tokens_unwritten = waiting.sum::<u64>() + self.rewriter.held_texts();
        let seen = self.rewriter.seen();
        seen.note(self.truth);
        self.truth.text_events_read = seen.text_events;
        let whole = outcome == Outcome::Complete;
        let ends_by_itself = self.ends_by_itself();
        let Upstream { conn, head, pool } = self.upstream;
        if whole && head.keeps_alive() && conn.pending().is_empty() {
            pool.put(conn);
        }
        Flowed {
            outcome,
            kept: self.kept.filter(|_| whole && seen.done),
            reusable: whole || (outcome == Outcome::UpstreamFailed && ends_by_itself),
        }
    }
}

impl Flow<'_> {
    /// Whether a stream that was cut off gets an end all the same.
    fn ends_by_itself(&self) -> bool {
        self.gateway.options.synthesize_final
    }

    /// An error is the client's.
    async fn pass(&mut self) -> io::Result<Outcome> {
        if !self.gateway.options.hold_head {
            self.send_head().await?;
        }
        self.absorb();
        loop {
            self.deliver().await?;
            let due = self.waiting.front().map(|parcel| self.due(parcel));
            if due.is_none() && self.ended.is_some() {
                return self.finish().await;
            }
            tokio::select! {
                biased;
                read = self.upstream.conn.fill(),
                    if self.ended.is_none() && self.waiting.len() < MAX_WAITING =>
                {
                    if matches!(read, Ok(1..)) {
                        self.absorb();
                    } else {
                        let complete = read.is_ok() && self.body.end().is_ok();
                        self.end(complete);
                    }
                }
                rung = self.alarm.until(due.unwrap_or(0)), if due.is_some() => rung?,
                () = self.client.gone() => return Ok(Outcome::ClientGone),
            }
        }
    }

    /// Takes in what the latest read brought.
    fn absorb(&mut self) {
        let read_at = self.upstream.conn.read_at;
        let pending = self.upstream.conn.pending();
        let Ok(used) = self.body.feed(pending, &mut self.splitter.bytes) else {
            self.end(false);
            return;
        };
        self.upstream.conn.consume(used);
        while let Some(event) = self.splitter.next_event() {
            self.rewriter.event(event, Some(read_at), &mut self.waiting);
        }
        if self.body.is_done() {
            self.end(true);
        }
    }

    fn end(&mut self, complete: bool) {
        let read_at = Some(self.upstream.conn.read_at);
        let rest = self.splitter.rest();
        if !rest.is_empty() {
            self.rewriter.event(rest, read_at, &mut self.waiting);
        }
        self.rewriter.end(read_at, &mut self.waiting);
        self.ended = Some(complete);
        self.truth.set_read(Mark::End, self.upstream.conn.read_at);
    }

    fn due(&self, parcel: &Parcel) -> u64 {
        let delay = delay_us(&self.gateway.options, parcel.kind);
        parcel.read_at.unwrap_or(0) + delay * 1000
    }

    /// Writes what is due, each event in a write of its own.
    async fn deliver(&mut self) -> io::Result<()> {
        let station = &self.gateway.station;
        while let Some(parcel) = self.waiting.front() {
            let delay = delay_us(&self.gateway.options, parcel.kind);
            if !station.is_free() {
                let from = parcel.read_at.unwrap_or(0);
                station.spend(self.alarm, from, delay).await?;
            } else if delay > 0 && self.due(parcel) > now() {
                return Ok(());
            }
            if self.head.is_some() {
                self.send_head().await?;
            }
            if let Some(parcel) = self.waiting.pop_front() {
                self.write(parcel).await?;
            }
        }
        Ok(())
    }

    async fn write(&mut self, parcel: Parcel) -> io::Result<()> {
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(&parcel.bytes);
        }
        if self
            .kept
            .as_ref()
            .is_some_and(|kept| kept.len() > MAX_ANSWER)
        {
            self.kept = None;
        }
        self.outlet.piece(&[&parcel.bytes]);
        self.outlet
            .carry(parcel.tokens, &parcel.marks, parcel.read_at, self.truth);
        self.outlet.flush(self.client, self.truth).await?;
        Ok(())
    }

    async fn send_head(&mut self) -> io::Result<()> {
        if let Some(head) = self.head.take() {
            self.truth.status = Some(self.upstream.head.status);
            self.outlet.head(self.upstream.head.status, &head);
            self.outlet.carry_mark(Mark::ResponseHead, None);
            self.outlet.flush(self.client, self.truth).await?;
        }
        Ok(())
    }

    async fn finish(&mut self) -> io::Result<Outcome> {
        self.send_head().await?;
        let complete = self.ended == Some(true);
        if complete || self.ends_by_itself() {
            self.outlet.end(b"");
            self.outlet.carry_mark(Mark::End, None);
            self.outlet.flush(self.client, self.truth).await?;
        }
        Ok(match complete {
            true => Outcome::Complete,
            false => Outcome::UpstreamFailed,
        })
    }
}

fn delay_us(options: &GatewayOptions, kind: Kind) -> u64 {
    match kind {
        Kind::Text { first, finish } => {
            options.token_delay_us
                + u64::from(first) * options.first_token_delay_us
                + u64::from(finish) * options.finish_delay_us
        }
        Kind::Final => options.finish_delay_us,
        Kind::Other => 0,
    }
}
