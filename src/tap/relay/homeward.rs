//! The response's direction: upstream to client.

use super::outward::OutwardState;
use super::{READ, Relay};
use crate::tap::ending::{Ending, Why};
use crate::tap::framing::{BodyLength, Framing};
use crate::tap::head::{self, ResponseHead};
use crate::tap::sending::Sending;
use crate::tap::translation::Client1;
use record::exchange::Outcome;
use record::stamp::{Arrival, Passage};
use std::ops::Range;
use std::task::{Context, Poll};

/// The response's direction.
pub(super) struct Homeward {
    pub(super) buffer: Box<[u8]>,
    /// Bytes of the response head so far, then free.
    pub(super) head: Vec<u8>,
    /// What is being sent in place of `buffer`: a rewritten head and what came with it.
    pub(super) rewritten: Vec<u8>,
    /// The payload that `rewritten` was translated from.
    pub(super) source: Vec<u8>,
    /// Range of `buffer` being sent.
    pub(super) range: Range<usize>,
    pub(super) payload: Vec<Range<usize>>,
    pub(super) framing: Framing,
    pub(super) arrival: Option<Arrival>,
    pub(super) sending: Sending,
    pub(super) state: HomewardState,
    pub(super) keep_upstream: bool,
    pub(super) keep_client: bool,
    pub(super) upgrading: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HomewardState {
    Head,
    SendingInterim,
    SendingHead,
    Reading,
    Sending,
}

impl Homeward {
    /// Before the first byte of a response.
    pub(super) fn begin() -> Self {
        Self {
            buffer: vec![0; READ].into_boxed_slice(),
            head: Vec::new(),
            rewritten: Vec::new(),
            source: Vec::new(),
            range: 0..0,
            payload: Vec::new(),
            framing: Framing::new(BodyLength::None),
            arrival: None,
            sending: Sending::default(),
            state: HomewardState::Head,
            keep_upstream: false,
            keep_client: false,
            upgrading: false,
        }
    }

    /// How a client of HTTP/1.`minor` is sent an answer whose length is not known.
    fn client(&self, minor: u8) -> Client1 {
        Client1 {
            chunks: minor >= 1,
            close: !self.keep_client,
        }
    }
}

impl Relay<'_> {
    /// One step of the response's direction.
    pub(super) fn poll_homeward(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        match self.homeward.state {
            HomewardState::Head => self.read_head(cx),
            HomewardState::Reading => self.read_body(cx),
            HomewardState::SendingInterim | HomewardState::SendingHead | HomewardState::Sending => {
                self.send_response(cx)
            }
        }
    }

    fn read_head(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        let home = &mut self.homeward;
        // A final head can stand right behind an interim one.
        if !home.head.is_empty()
            && let Some(step) = self.take_head()
        {
            return Poll::Ready(step);
        }
        let home = &mut self.homeward;
        let (count, arrival) = match self.upstream.poll_read(cx, &mut home.buffer) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok((count, arrival))) => (count, arrival),
            Poll::Ready(Err(error)) => {
                let stale = self.upstream.reused() && home.head.is_empty();
                let ending = if stale {
                    Ending::Stale
                } else {
                    Ending::Unanswered(Why::Failed(error.kind()))
                };
                return Poll::Ready(Some(ending));
            }
        };
        if count == 0 {
            let stale = self.upstream.reused()
                && home.head.is_empty()
                && self.live.exchange.status.is_none();
            return Poll::Ready(Some(if stale {
                Ending::Stale
            } else {
                Ending::Unanswered(Why::Closed)
            }));
        }
        self.patience.last_activity = arrival.at;
        home.arrival = Some(arrival);
        home.head.extend_from_slice(&home.buffer[..count]);
        Poll::Ready(self.take_head().flatten())
    }

    /// Takes a head from what was read so far; outer `None` where it is not complete.
    fn take_head(&mut self) -> Option<Option<Ending>> {
        let (length, head) = match head::response(&self.homeward.head, &self.request.method) {
            Ok(Some(found)) => found,
            Ok(None) => return None,
            Err(_) => return Some(Some(Ending::Unanswered(Why::Malformed))),
        };
        if head.status < 200 && head.status != 101 {
            self.interim(length, &head);
            return Some(None);
        }
        Some(self.final_head(length, &head))
    }

    /// A 1xx goes on to a client that knows them; more heads follow.
    fn interim(&mut self, length: usize, head: &ResponseHead) {
        let home = &mut self.homeward;
        home.head.drain(..length);
        home.rewritten.clear();
        if self.request.minor >= 1 {
            head.write(&mut home.rewritten, false, false, &[]);
        }
        home.state = HomewardState::SendingInterim;
    }

    fn final_head(&mut self, length: usize, head: &ResponseHead) -> Option<Ending> {
        let home = &mut self.homeward;
        self.live.response_head(self.tap, head);
        home.upgrading = head.status == 101;
        home.framing = Framing::new(if home.upgrading {
            BodyLength::UntilClose
        } else {
            head.body
        });
        let rest = home.head.split_off(length);
        home.payload.clear();
        let Ok(used) = home.framing.follow(&rest, &mut home.payload) else {
            return Some(Ending::Unanswered(Why::Malformed));
        };
        // What stands behind a complete response is no answer to anything that was asked.
        home.keep_upstream = head.keep_alive && used == rest.len();
        home.keep_client =
            self.request.keep_alive && head.body != BodyLength::UntilClose && !self.closing;
        let field = self.tap.response_field(&self.live.exchange);
        let extra: Vec<(&str, &str)> = field
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        home.rewritten.clear();
        home.head = Vec::new();
        if let Some(translation) = &mut self.live.translation {
            home.keep_client &= self.request.minor >= 1;
            let client = home.client(self.request.minor);
            translation.head(head, client, &extra, &mut home.rewritten);
            self.translate(&rest);
            return None;
        }
        let keep_for_old = home.keep_client && self.request.minor == 0;
        head.write(&mut home.rewritten, !home.keep_client, keep_for_old, &extra);
        let shift = home.rewritten.len();
        home.rewritten.extend_from_slice(&rest[..used]);
        for range in &mut home.payload {
            *range = range.start + shift..range.end + shift;
        }
        home.state = HomewardState::SendingHead;
        None
    }

    /// Makes of the payload in `bytes` what the client is sent, behind what is in `rewritten`. Where that is nothing
    /// yet, as of part of a frame, the next read goes on.
    fn translate(&mut self, bytes: &[u8]) {
        let home = &mut self.homeward;
        home.source.clear();
        for range in home.payload.drain(..) {
            home.source.extend_from_slice(&bytes[range]);
        }
        let client = home.client(self.request.minor);
        if let Some(translation) = &mut self.live.translation {
            translation.body(
                &home.source,
                home.framing.done(),
                client,
                &mut home.rewritten,
            );
        }
        if !home.rewritten.is_empty() {
            home.state = HomewardState::SendingHead;
            return;
        }
        home.state = HomewardState::Reading;
        if let Some(arrival) = home.arrival {
            let passage = Passage {
                arrival,
                departure: None,
            };
            self.live.read(&passage);
            self.live.payload(&home.source, &passage);
        }
    }

    fn read_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        let home = &mut self.homeward;
        let (count, arrival) = match self.upstream.poll_read(cx, &mut home.buffer) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(read)) => read,
            Poll::Ready(Err(error)) => {
                self.live.fail(
                    Outcome::Truncated,
                    &format!(
                        "upstream connection failed inside the response: {}",
                        error.kind()
                    ),
                );
                return Poll::Ready(Some(Ending::Cut));
            }
        };
        self.patience.last_activity = arrival.at;
        home.arrival = Some(arrival);
        if count == 0 {
            return Poll::Ready(Some(self.upstream_closed(arrival)));
        }
        home.payload.clear();
        let Ok(used) = home
            .framing
            .follow(&home.buffer[..count], &mut home.payload)
        else {
            self.live.fail(
                Outcome::Truncated,
                "upstream broke the framing of its response",
            );
            return Poll::Ready(Some(Ending::Cut));
        };
        home.keep_upstream &= used == count;
        if self.live.translation.is_some() {
            let bytes = std::mem::take(&mut home.buffer);
            home.rewritten.clear();
            self.translate(&bytes[..used]);
            self.homeward.buffer = bytes;
            return Poll::Ready(None);
        }
        home.range = 0..used;
        home.state = HomewardState::Sending;
        Poll::Ready(None)
    }

    fn upstream_closed(&mut self, arrival: Arrival) -> Ending {
        if !self.homeward.framing.ends_with_connection() {
            self.live
                .fail(Outcome::Truncated, "upstream closed inside the response");
            return Ending::Cut;
        }
        // No byte tells the client of this end but the close of its own connection, which happens
        // later and is not stamped: the end has an arrival and no departure.
        self.live.ended(Passage {
            arrival,
            departure: None,
        });
        Ending::Complete {
            client: false,
            upstream: false,
        }
    }

    fn send_response(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        let home = &mut self.homeward;
        let body = home.state == HomewardState::Sending;
        let bytes = if body {
            &home.buffer[home.range.clone()]
        } else {
            &home.rewritten[..]
        };
        let departure = match home.sending.poll(cx, self.client, bytes) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(departure)) => departure,
            Poll::Ready(Err(_)) => return Poll::Ready(Some(Ending::ClientGone)),
        };
        self.patience.last_activity = departure.end;
        if home.state == HomewardState::SendingInterim {
            home.state = HomewardState::Head;
            return Poll::Ready(None);
        }
        let Some(arrival) = home.arrival else {
            return Poll::Ready(None);
        };
        let passage = Passage {
            arrival,
            departure: Some(departure),
        };
        if !body {
            // Of a translated answer each write is one of `rewritten`; the first carries the head.
            self.live
                .exchange
                .marks
                .response_head
                .get_or_insert(passage);
        }
        self.live.read(&passage);
        if self.live.translation.is_some() {
            self.live.payload(&home.source, &passage);
        }
        for range in &home.payload {
            self.live.payload(&bytes[range.clone()], &passage);
        }
        if home.upgrading {
            return Poll::Ready(Some(Ending::Upgraded));
        }
        if home.framing.done() {
            self.live.ended(passage);
            let whole = self.outward.state == OutwardState::Done;
            return Poll::Ready(Some(Ending::Complete {
                client: home.keep_client && whole,
                upstream: home.keep_upstream && whole,
            }));
        }
        home.state = HomewardState::Reading;
        Poll::Ready(None)
    }
}
