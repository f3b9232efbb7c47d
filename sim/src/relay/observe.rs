//! What a relay learns from the bytes it has already passed on.

use super::RelayOptions;
use crate::http::{BodyDecoder, Framing, RequestHead, ResponseHead};
use crate::reading::Reader;
use crate::sse::Splitter;
use crate::truth::{
    Direction, ExchangeTruth, Log, MAX_PER_EXCHANGE, Mark, Outcome, Recorder, Role, SegmentTruth,
};

/// Longer heads are not understood, only passed on.
const MAX_HEAD: usize = 64 * 1024;

/// Cuts the bytes of one connection into exchanges and notes their truths. It sees bytes only after they
/// were written, so it delays at most the next read.
pub(super) struct Observer {
    options: RelayOptions,
    log: Log,
    connection: u64,
    current: Option<Recorder>,
    request: Request,
    /// Method of the current request: an answer to HEAD has no body.
    method: String,
    response: Response,
    offsets: [u64; 2],
}

/// Where the client's side stands.
enum Request {
    Head(Vec<u8>),
    Body(BodyDecoder),
    /// Between requests, or no HTTP.
    Idle,
}

/// Where the upstream's side stands.
enum Response {
    Head(Vec<u8>),
    Stream(Box<Streaming>),
    Body(BodyDecoder),
    /// Between responses, or no HTTP.
    Idle,
}

struct Streaming {
    body: BodyDecoder,
    splitter: Splitter,
    reader: Reader,
}

/// The stamps of one read and its write.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stamps {
    pub(super) read_at: u64,
    pub(super) write_begin: u64,
    pub(super) write_end: u64,
}

impl Observer {
    pub(super) fn new(options: &RelayOptions, log: &Log, connection: u64) -> Self {
        Self {
            options: options.clone(),
            log: log.clone(),
            connection,
            current: None,
            request: Request::Idle,
            method: String::new(),
            response: Response::Idle,
            offsets: [0, 0],
        }
    }

    /// Notes bytes that were read and passed on.
    pub(super) fn passed(&mut self, direction: Direction, bytes: &[u8], stamps: Stamps) {
        if direction == Direction::Up && self.begins_exchange(bytes) {
            self.begin();
        }
        self.segment(direction, bytes.len(), stamps);
        if self.options.opaque {
            return;
        }
        match direction {
            Direction::Up => self.request_bytes(bytes, stamps),
            Direction::Down => self.response_bytes(bytes, stamps),
        }
    }

    /// One side closed. `end` tells how the connection went.
    pub(super) fn ended(&mut self, direction: Direction, failed: bool) {
        let Some(recorder) = &mut self.current else {
            return;
        };
        let until_close = direction == Direction::Down
            && match &mut self.response {
                Response::Stream(streaming) => streaming.body.end().is_ok(),
                Response::Body(body) => body.end().is_ok(),
                Response::Head(_) | Response::Idle => false,
            };
        let truth = &mut recorder.truth;
        if truth.outcome == Outcome::Stopped {
            truth.outcome = match direction {
                _ if self.options.opaque && !failed => Outcome::Complete,
                Direction::Down if until_close => Outcome::Complete,
                Direction::Down => Outcome::UpstreamFailed,
                Direction::Up => Outcome::ClientGone,
            };
        }
    }

    /// A request begins where the last exchange is over (or none was) and bytes come from the client. Bytes
    /// after `100 Continue` belong to the request that waits for it.
    fn begins_exchange(&self, bytes: &[u8]) -> bool {
        let over = self
            .current
            .as_ref()
            .is_none_or(|recorder| recorder.truth.outcome != Outcome::Stopped);
        match self.options.opaque {
            true => self.current.is_none(),
            false => over && !bytes.is_empty(),
        }
    }

    fn begin(&mut self) {
        let truth = ExchangeTruth {
            role: Role::Relay,
            attempt: 1,
            connection: self.connection,
            ..ExchangeTruth::default()
        };
        self.current = Some(Recorder::new(&self.log, truth));
        self.request = Request::Head(Vec::new());
        self.response = Response::Head(Vec::new());
    }

    fn segment(&mut self, direction: Direction, length: usize, stamps: Stamps) {
        let offset = &mut self.offsets[usize::from(direction == Direction::Down)];
        let begin_offset = *offset;
        *offset += length as u64;
        let Some(recorder) = self.current.as_mut().filter(|_| !self.options.no_segments) else {
            return;
        };
        if recorder.truth.segments.len() >= MAX_PER_EXCHANGE {
            recorder.truth.segments_lost += 1;
            return;
        }
        recorder.truth.segments.push(SegmentTruth {
            direction,
            begin_offset,
            end_offset: *offset,
            read_at: stamps.read_at,
            write_begin: stamps.write_begin,
            write_end: stamps.write_end,
        });
    }

    fn request_bytes(&mut self, bytes: &[u8], stamps: Stamps) {
        let Some(recorder) = &mut self.current else {
            return;
        };
        let truth = &mut recorder.truth;
        let mut rest = bytes.to_vec();
        if let Request::Head(head) = &mut self.request {
            head.extend_from_slice(bytes);
            match RequestHead::parse(head) {
                Ok(Some((parsed, length))) => {
                    truth.call = parsed.headers.get("x-hopscope-call").map(str::to_owned);
                    mark(truth, Mark::RequestHead, stamps);
                    mark(truth, Mark::RequestBody, stamps);
                    rest = head.split_off(length);
                    self.method.clone_from(&parsed.method);
                    let framing = parsed.framing().unwrap_or(Framing::Length(0));
                    self.request = Request::Body(BodyDecoder::new(framing));
                }
                Ok(None) if head.len() < MAX_HEAD => {}
                Ok(None) | Err(_) => self.request = Request::Idle,
            }
        }
        if let Request::Body(body) = &mut self.request {
            let mut data = Vec::new();
            let fed = body.feed(&rest, &mut data);
            if !data.is_empty() {
                mark(truth, Mark::RequestBody, stamps);
            }
            if fed.is_err() || body.is_done() {
                self.request = Request::Idle;
            }
        }
    }

    fn response_bytes(&mut self, bytes: &[u8], stamps: Stamps) {
        let Some(recorder) = &mut self.current else {
            return;
        };
        let truth = &mut recorder.truth;
        let mut rest = bytes.to_vec();
        while let Response::Head(head) = &mut self.response {
            head.append(&mut rest);
            match ResponseHead::parse(head) {
                Ok(Some((parsed, length))) => {
                    rest = head.split_off(length);
                    if parsed.is_informational() {
                        head.clear();
                    } else {
                        self.response = begin_response(&parsed, &self.method, truth);
                        mark(truth, Mark::ResponseHead, stamps);
                    }
                }
                Ok(None) if head.len() < MAX_HEAD => return,
                Ok(None) | Err(_) => self.response = Response::Idle,
            }
        }
        let done = match &mut self.response {
            Response::Stream(streaming) => streaming.take(&rest, truth, stamps),
            Response::Body(body) => body.feed(&rest, &mut Vec::new()).is_ok() && body.is_done(),
            Response::Head(_) | Response::Idle => return,
        };
        if done {
            mark(truth, Mark::End, stamps);
            truth.outcome = Outcome::Complete;
            self.response = Response::Idle;
            self.current = None; // records it
        }
    }
}

fn begin_response(head: &ResponseHead, method: &str, truth: &mut ExchangeTruth) -> Response {
    truth.status = Some(head.status);
    truth.streamed = head.is_event_stream();
    let framing = head.framing(method).unwrap_or(Framing::UntilClose);
    let body = BodyDecoder::new(framing);
    match truth.streamed {
        true => Response::Stream(Box::new(Streaming {
            body,
            splitter: Splitter::default(),
            reader: Reader::default(),
        })),
        false => Response::Body(body),
    }
}

impl Streaming {
    /// Notes what the bytes carried; whether the body is complete.
    fn take(&mut self, bytes: &[u8], truth: &mut ExchangeTruth, stamps: Stamps) -> bool {
        if self.body.feed(bytes, &mut self.splitter.bytes).is_err() {
            return false;
        }
        while let Some(event) = self.splitter.next_event() {
            let reading = self.reader.read(&event, Some(stamps.read_at));
            truth.text_events_written += u64::from(!reading.tokens.is_empty());
            for mut token in reading.tokens {
                token.write_begin = stamps.write_begin;
                token.write_end = stamps.write_end;
                truth.push_token(token);
            }
            for carried in reading.marks {
                mark(truth, carried, stamps);
            }
        }
        self.reader.seen.note(truth);
        truth.text_events_read = self.reader.seen.text_events;
        self.body.is_done()
    }
}

fn mark(truth: &mut ExchangeTruth, mark: Mark, stamps: Stamps) {
    truth.set_read(mark, stamps.read_at);
    truth.set_written(mark, None, stamps.write_begin, stamps.write_end);
}
