//! One HTTP/1 exchange: bytes from the client to the upstream and back, each read stamped, each
//! write stamped at both ends, one write for each read.
//!
//! One task polls both directions, so a read and its write happen in the same poll, with no
//! channel between. The response goes first: it is what somebody waits for.

use super::context::TapContext;
use super::framing::{BodyLength, Framing};
use super::head::{self, MAX_HEAD, RequestHead, ResponseHead};
use super::live::Live;
use super::sending::Sending;
use super::socket::Socket;
use record::clock::{self, Nanos};
use record::exchange::Outcome;
use record::stamp::{Arrival, Passage};
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;

/// Bytes of one read.
const READ: usize = 16 * 1024;
/// Request bytes kept for a resend and for the record; a longer request keeps none.
const RETAIN: usize = 1024 * 1024;
/// Rounds of one poll before other tasks of the thread have their turn.
const ROUNDS: u32 = 32;

/// How an exchange ended, for the connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Answered in full: both connections may go on as far as each side agrees.
    Complete { client: bool, upstream: bool },
    /// The upstream closed a reused connection before a response byte.
    Stale,
    /// No response head came: the client can still be told why.
    Unanswered(Why),
    /// Part of a response went out: only a cut is honest.
    Cut,
    /// The client left.
    ClientGone,
    /// 101: the connections are now a pipe.
    Upgraded,
}

/// Why no response head came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// The connection ended.
    Closed,
    /// It failed.
    Failed(io::ErrorKind),
    /// What came is not HTTP/1.
    Malformed,
    /// Too long a silence.
    TimedOut,
    /// The request body is longer than allowed.
    TooLarge,
    /// The request body is malformed.
    BadRequest,
}

/// The request's direction.
struct Outward {
    /// Head and body as sent upstream; grows while it is kept for a resend.
    bytes: Vec<u8>,
    /// Up to here written.
    written: usize,
    /// Where the body begins in `bytes`.
    body_at: usize,
    framing: Framing,
    chunked: bool,
    body_seen: u64,
    /// Bytes were dropped from the front: no resend, no facts.
    dropped: bool,
    /// The read that brought the bytes being sent.
    arrival: Arrival,
    sending: Sending,
    state: OutwardState,
    /// Bytes of the next request, read too early.
    surplus: Vec<u8>,
    ranges: Vec<Range<usize>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutwardState {
    Sending {
        head: bool,
    },
    Reading,
    /// All of it is sent.
    Done,
    /// The upstream takes no more; its answer may still come.
    Broken,
}

/// The response's direction.
struct Homeward {
    buffer: Box<[u8]>,
    /// Bytes of the response head so far, then free.
    head: Vec<u8>,
    /// What is being sent in place of `buffer`: a rewritten head and what came with it.
    rewritten: Vec<u8>,
    /// Range of `buffer` being sent.
    range: Range<usize>,
    payload: Vec<Range<usize>>,
    framing: Framing,
    arrival: Option<Arrival>,
    sending: Sending,
    state: HomewardState,
    keep_upstream: bool,
    keep_client: bool,
    upgrading: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HomewardState {
    Head,
    SendingInterim,
    SendingHead,
    Reading,
    Sending,
}

/// One exchange between two connections.
pub(crate) struct Relay<'a> {
    tap: &'a TapContext,
    client: &'a mut Socket,
    upstream: &'a mut Socket,
    live: &'a mut Live,
    request: &'a RequestHead,
    /// No further request will be taken from this client.
    closing: bool,
    outward: Outward,
    homeward: Homeward,
    timer: Pin<Box<Sleep>>,
    last_activity: Nanos,
}

/// What is left of the request when an exchange is over.
#[derive(Default)]
pub(crate) struct Leftover {
    /// Bytes of the next request.
    pub(crate) surplus: Vec<u8>,
    /// The request as sent: bytes, where its body begins, whether the body is chunked.
    pub(crate) sent: Option<(Vec<u8>, usize, bool)>,
}

impl<'a> Relay<'a> {
    /// `early` is what came of the body together with the head, read at `arrival`.
    pub(crate) fn new(
        tap: &'a TapContext,
        (client, upstream): (&'a mut Socket, &'a mut Socket),
        live: &'a mut Live,
        request: &'a RequestHead,
        early: &[u8],
        (arrival, closing): (Arrival, bool),
    ) -> Result<Self, Why> {
        let mut bytes = Vec::with_capacity(1024 + early.len());
        request.write(
            &mut bytes,
            tap.upstream.host().as_deref(),
            &tap.request_fields(&live.exchange),
        );
        let body_at = bytes.len();
        let mut framing = Framing::new(request.body);
        let mut ranges = Vec::new();
        let used = framing
            .follow(early, &mut ranges)
            .map_err(|_| Why::BadRequest)?;
        bytes.extend_from_slice(&early[..used]);
        let outward = Outward {
            bytes,
            written: 0,
            body_at,
            framing,
            chunked: request.body == BodyLength::Chunked,
            body_seen: ranges.iter().map(|r| r.len() as u64).sum(),
            dropped: false,
            arrival,
            sending: Sending::default(),
            state: OutwardState::Sending { head: true },
            surplus: early[used..].to_vec(),
            ranges,
        };
        let homeward = Homeward {
            buffer: vec![0; READ].into_boxed_slice(),
            head: Vec::new(),
            rewritten: Vec::new(),
            range: 0..0,
            payload: Vec::new(),
            framing: Framing::new(BodyLength::None),
            arrival: None,
            sending: Sending::default(),
            state: HomewardState::Head,
            keep_upstream: false,
            keep_client: false,
            upgrading: false,
        };
        let timer = Box::pin(tokio::time::sleep(tap.timeouts.response_head));
        Ok(Self {
            tap,
            client,
            upstream,
            live,
            request,
            closing,
            outward,
            homeward,
            timer,
            last_activity: clock::now(),
        })
    }

    /// Runs the exchange to its end.
    pub(crate) async fn run(mut self) -> (Ending, Leftover) {
        // Unconstrained, since tokio's budget would answer a read with "pending" although bytes
        // are there, and so falsify what "waited" means; `ROUNDS` shares the thread instead.
        let ending = tokio::task::unconstrained(std::future::poll_fn(|cx| self.poll(cx))).await;
        let kept = !self.outward.dropped;
        let sent = kept.then(|| {
            (
                std::mem::take(&mut self.outward.bytes),
                self.outward.body_at,
                self.outward.chunked,
            )
        });
        (
            ending,
            Leftover {
                surplus: std::mem::take(&mut self.outward.surplus),
                sent,
            },
        )
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ending> {
        for _ in 0..ROUNDS {
            let home = self.poll_homeward(cx);
            if let Poll::Ready(Some(ending)) = home {
                return Poll::Ready(ending);
            }
            let out = self.poll_outward(cx);
            if let Poll::Ready(Some(ending)) = out {
                return Poll::Ready(ending);
            }
            if home.is_pending() && out.is_pending() {
                return self.poll_timeout(cx);
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// One step of the request's direction: `Ready(None)` is progress.
    fn poll_outward(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        match self.outward.state {
            OutwardState::Sending { head } => self.send_request(cx, head),
            OutwardState::Reading => self.read_request(cx),
            OutwardState::Done | OutwardState::Broken => self.watch_client(cx),
        }
    }

    fn send_request(&mut self, cx: &mut Context<'_>, head: bool) -> Poll<Option<Ending>> {
        let out = &mut self.outward;
        let sent = match out
            .sending
            .poll(cx, self.upstream, &out.bytes[out.written..])
        {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(Ok(departure)) => departure,
            Poll::Ready(Err(_)) => {
                // The upstream may have answered before it stopped listening.
                out.state = OutwardState::Broken;
                return Poll::Ready(None);
            }
        };
        self.last_activity = sent.end;
        let passage = Passage {
            arrival: out.arrival,
            departure: Some(sent),
        };
        let exchange = &mut self.live.exchange;
        exchange.pressure.upstream_blocked += sent.blocked_for();
        if head {
            exchange.marks.head.departure = Some(sent);
        }
        out.written = out.bytes.len();
        if out.framing.done() {
            exchange.marks.request = Some(passage);
            out.state = OutwardState::Done;
            return Poll::Ready(None);
        }
        if out.bytes.len() > RETAIN {
            out.dropped = true;
        }
        if out.dropped {
            out.bytes.clear();
            out.written = 0;
        }
        out.state = OutwardState::Reading;
        Poll::Ready(None)
    }

    fn read_request(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        let out = &mut self.outward;
        let from = out.bytes.len();
        out.bytes.resize(from + READ, 0);
        let polled = self.client.poll_read(cx, &mut out.bytes[from..]);
        let (count, arrival) = match polled {
            Poll::Pending => {
                out.bytes.truncate(from);
                return Poll::Pending;
            }
            Poll::Ready(Ok((count, arrival))) if count > 0 => (count, arrival),
            Poll::Ready(_) => return Poll::Ready(Some(Ending::ClientGone)),
        };
        self.last_activity = arrival.at;
        out.bytes.truncate(from + count);
        out.ranges.clear();
        let Ok(used) = out.framing.follow(&out.bytes[from..], &mut out.ranges) else {
            return Poll::Ready(Some(Ending::Unanswered(Why::BadRequest)));
        };
        out.surplus.extend_from_slice(&out.bytes[from + used..]);
        out.bytes.truncate(from + used);
        out.body_seen += out.ranges.iter().map(|r| r.len() as u64).sum::<u64>();
        if out.body_seen > self.tap.body_max {
            return Poll::Ready(Some(self.unanswered_or_cut(Why::TooLarge)));
        }
        out.arrival = arrival;
        out.state = OutwardState::Sending { head: false };
        Poll::Ready(None)
    }

    /// Reads on where the request is over, only to learn that the client left.
    fn watch_client(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        if self.outward.surplus.len() >= MAX_HEAD {
            return Poll::Pending;
        }
        let mut scratch = [0_u8; 1024];
        match self.client.poll_read(cx, &mut scratch) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok((count, _))) if count > 0 => {
                self.outward.surplus.extend_from_slice(&scratch[..count]);
                Poll::Ready(None)
            }
            Poll::Ready(_) => Poll::Ready(Some(Ending::ClientGone)),
        }
    }

    /// One step of the response's direction.
    fn poll_homeward(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
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
        self.last_activity = arrival.at;
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
        let keep_for_old = home.keep_client && self.request.minor == 0;
        head.write(&mut home.rewritten, !home.keep_client, keep_for_old, &extra);
        let shift = home.rewritten.len();
        home.rewritten.extend_from_slice(&rest[..used]);
        for range in &mut home.payload {
            *range = range.start + shift..range.end + shift;
        }
        home.head = Vec::new();
        home.state = HomewardState::SendingHead;
        None
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
        self.last_activity = arrival.at;
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
        // The end itself is what arrived; the client learns of it when its connection closes.
        let now = clock::now();
        let departure = record::stamp::Departure {
            begin: now,
            end: now,
            blocked: false,
        };
        self.live.ended(Passage {
            arrival,
            departure: Some(departure),
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
        self.last_activity = departure.end;
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
            self.live.exchange.marks.response_head = Some(passage);
        }
        self.live.pressure(&passage);
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

    /// One timer for all bounds, looked at only when it fires.
    fn poll_timeout(&mut self, cx: &mut Context<'_>) -> Poll<Ending> {
        loop {
            if self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let (limit, since) = self.bound();
            let passed = Duration::from_nanos(clock::now().saturating_sub(since));
            if passed >= limit {
                return Poll::Ready(self.timed_out());
            }
            let next = tokio::time::Instant::now() + (limit - passed);
            self.timer.as_mut().reset(next);
        }
    }

    /// The bound in force, and since when it counts.
    fn bound(&self) -> (Duration, Nanos) {
        let timeouts = &self.tap.timeouts;
        if let Some(since) = self.homeward.sending.blocked_since() {
            return (timeouts.client_write, since);
        }
        match self.homeward.state {
            HomewardState::Head => (timeouts.response_head, self.last_activity),
            _ => (timeouts.stream_idle, self.last_activity),
        }
    }

    fn timed_out(&mut self) -> Ending {
        if self.homeward.sending.blocked_since().is_some() {
            return Ending::ClientGone;
        }
        self.unanswered_or_cut(Why::TimedOut)
    }

    fn unanswered_or_cut(&mut self, why: Why) -> Ending {
        if self.homeward.state == HomewardState::Head {
            return Ending::Unanswered(why);
        }
        self.live.fail(
            Outcome::Truncated,
            "response given up: silence or a refused request body",
        );
        Ending::Cut
    }
}
