//! The steps of each direction: `Ready(None)` is progress.

use super::sides::NoHead;
use super::{Answering, Crossing, Homeward, Near, Outward};
use crate::tap::ending::{Ending, Why};
use crate::tap::framing::BodyLength;
use crate::tap::head::ResponseHead;
use crate::tap::http2::Answer;
use crate::tap::passing::Passing as _;
use crate::tap::portion::Broken;
use record::exchange::Outcome;
use record::stamp::{Arrival, Departure, Passage};
use std::task::{Context, Poll, ready};

impl Crossing<'_> {
    pub(super) fn poll_outward(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        match &mut self.outward {
            Outward::Head => self.ask(cx),
            Outward::Reading => self.read_request(cx),
            Outward::Sending(portion) => {
                let end = portion.end;
                match ready!(self.far.poll_send(cx, portion)) {
                    Ok(departure) => self.request_sent(departure, end),
                    Err(_) => self.outward = Outward::Broken,
                }
                Poll::Ready(None)
            }
            Outward::Done | Outward::Broken => {
                self.near.poll_gone(cx).map(|()| Some(Ending::ClientGone))
            }
        }
    }

    fn ask(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        let end = matches!(self.request.body, BodyLength::None | BodyLength::Fixed(0));
        let host = self.tap.upstream.host();
        let extra = self.tap.request_fields(&self.live.exchange);
        let head = (self.request, self.request_bytes.as_slice());
        match ready!(self.far.poll_ask(cx, head, host.as_deref(), &extra, end)) {
            Ok(departure) => {
                self.live.exchange.marks.head.departure = Some(departure);
                self.request_sent(departure, end);
            }
            Err(Broken::Malformed) => {
                return Poll::Ready(Some(Ending::Unanswered(Why::BadRequest)));
            }
            // Nothing of the request left: another connection may be tried.
            Err(_) => return Poll::Ready(Some(Ending::Stale)),
        }
        Poll::Ready(None)
    }

    fn request_sent(&mut self, departure: Departure, end: bool) {
        self.patience.last_activity = departure.end;
        let exchange = &mut self.live.exchange;
        exchange.pressure.upstream_blocked += departure.blocked_for();
        if end {
            exchange.marks.request = Some(Passage {
                arrival: self.outward_arrival,
                departure: Some(departure),
            });
        }
        self.outward = if end { Outward::Done } else { Outward::Reading };
    }

    fn read_request(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        let received = match ready!(self.near.poll_received(cx)) {
            Ok(received) => received,
            Err(Broken::Malformed) => {
                return Poll::Ready(Some(self.given_up(Why::BadRequest)));
            }
            Err(_) => return Poll::Ready(Some(Ending::ClientGone)),
        };
        self.patience.last_activity = received.arrival.at;
        self.body_seen += received.portion.data.len() as u64;
        if self.body_seen > self.tap.body_max {
            return Poll::Ready(Some(self.given_up(Why::TooLarge)));
        }
        self.outward_arrival = received.arrival;
        self.outward = Outward::Sending(received.portion);
        Poll::Ready(None)
    }

    pub(super) fn poll_homeward(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        match &mut self.homeward {
            Homeward::Head => self.read_head(cx),
            Homeward::Interim(bytes) => {
                if let Near::Http1(line) = &mut self.near
                    && ready!(line.poll_send_bytes(cx, bytes)).is_err()
                {
                    return Poll::Ready(Some(Ending::ClientGone));
                }
                self.homeward = Homeward::Head;
                Poll::Ready(None)
            }
            Homeward::SendingHead(_) => self.send_head(cx),
            Homeward::Reading => self.read_body(cx),
            Homeward::Sending { .. } => self.send_body(cx),
        }
    }

    fn read_head(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        if matches!(self.outward, Outward::Head) {
            return Poll::Pending;
        }
        match ready!(self.far.poll_head(cx, &self.request.method)) {
            Ok(Answer::Interim(head)) => {
                self.interim(&head);
                Poll::Ready(None)
            }
            Ok(Answer::Final(head, end, arrival)) => {
                self.patience.last_activity = arrival.at;
                self.final_head(head, end, arrival);
                Poll::Ready(None)
            }
            Err(NoHead::Untouched) => Poll::Ready(Some(Ending::Stale)),
            Err(NoHead::Because(why)) => Poll::Ready(Some(Ending::Unanswered(why))),
        }
    }

    fn interim(&mut self, head: &ResponseHead) {
        match &mut self.near {
            Near::Http2(asked) => asked.interim(head),
            Near::Http1(_) if self.request.minor >= 1 => {
                let mut bytes = Vec::new();
                head.write(&mut bytes, false, false, &[]);
                self.homeward = Homeward::Interim(bytes);
            }
            Near::Http1(_) => {}
        }
    }

    fn final_head(&mut self, mut head: ResponseHead, end: bool, arrival: Arrival) {
        self.live.response_head(self.tap, &head);
        self.keep_upstream = head.keep_alive;
        let mut bytes = Vec::new();
        if let Near::Http1(line) = &mut self.near {
            let bodyless = self.request.method == "HEAD" || matches!(head.status, 204 | 304);
            let unframed = head.body == BodyLength::Chunked && !bodyless;
            let chunked = unframed && self.request.minor >= 1;
            line.set_chunked(chunked);
            if chunked {
                head.take("transfer-encoding", b"chunked");
            } else if end && !bodyless && head.value("content-length").is_none() {
                head.take("content-length", b"0");
            }
            self.keep_client = self.request.keep_alive && !self.closing && (!unframed || chunked);
            let field = self.tap.response_field(&self.live.exchange);
            let extra: Vec<(&str, &str)> = field.iter().map(|(n, v)| (*n, v.as_str())).collect();
            let keep_for_old = self.keep_client && self.request.minor == 0;
            head.write(&mut bytes, !self.keep_client, keep_for_old, &extra);
        }
        self.homeward = Homeward::SendingHead(Box::new(Answering {
            head,
            bytes,
            end,
            arrival,
        }));
    }

    fn send_head(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        let Homeward::SendingHead(answering) = &self.homeward else {
            return Poll::Ready(None);
        };
        let field = self.tap.response_field(&self.live.exchange);
        let extra: Vec<(&str, &str)> = field.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let head = (&answering.head, answering.bytes.as_slice());
        let departure = match ready!(self.near.poll_head(cx, head, &extra, answering.end)) {
            Ok(departure) => departure,
            Err(Broken::Malformed) => {
                return Poll::Ready(Some(Ending::Unanswered(Why::Malformed)));
            }
            Err(_) => return Poll::Ready(Some(Ending::ClientGone)),
        };
        self.patience.last_activity = departure.end;
        let passage = Passage {
            arrival: answering.arrival,
            departure: Some(departure),
        };
        let end = answering.end;
        self.live.exchange.marks.response_head = Some(passage);
        self.homeward = Homeward::Reading;
        Poll::Ready(end.then(|| self.complete(passage)))
    }

    fn read_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        let received = match ready!(self.far.poll_received(cx)) {
            Ok(received) => received,
            Err(broken) => {
                let fault = match broken {
                    Broken::Closed => "upstream closed inside the response".to_owned(),
                    Broken::Malformed => "upstream broke the framing of its response".to_owned(),
                    Broken::Failed(kind) => {
                        format!("upstream connection failed inside the response: {kind}")
                    }
                    Broken::Reset(reason) => {
                        format!("upstream reset the stream inside the response: {reason}")
                    }
                };
                self.live.fail(Outcome::Truncated, &fault);
                return Poll::Ready(Some(Ending::Cut));
            }
        };
        self.patience.last_activity = received.arrival.at;
        self.homeward = Homeward::Sending {
            data: received.portion.data.clone(),
            portion: received.portion,
            arrival: received.arrival,
        };
        Poll::Ready(None)
    }

    fn send_body(&mut self, cx: &mut Context<'_>) -> Poll<Option<Ending>> {
        let Homeward::Sending {
            portion,
            data,
            arrival,
        } = &mut self.homeward
        else {
            return Poll::Ready(None);
        };
        let end = portion.end;
        let Ok(departure) = ready!(self.near.poll_send(cx, portion)) else {
            return Poll::Ready(Some(Ending::ClientGone));
        };
        self.patience.last_activity = departure.end;
        let passage = Passage {
            arrival: *arrival,
            departure: Some(departure),
        };
        if !data.is_empty() {
            self.live.read(&passage);
            self.live.payload(data, &passage);
        }
        self.homeward = Homeward::Reading;
        Poll::Ready(end.then(|| self.complete(passage)))
    }

    fn complete(&mut self, passage: Passage) -> Ending {
        self.live.ended(passage);
        let whole = matches!(self.outward, Outward::Done);
        Ending::Complete {
            client: self.keep_client && whole,
            upstream: self.keep_upstream && whole && self.far.clean(),
        }
    }
}
