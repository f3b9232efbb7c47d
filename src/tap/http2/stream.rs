//! One stream of an HTTP/2 connection: what a client asked of the tap, and what the tap asks of an
//! upstream.

use super::fields;
use super::io::{Dating, Reads};
use super::sessions::Session;
use crate::tap::ending::RETAIN;
use crate::tap::fault::{Fault, Form};
use crate::tap::head::{RequestHead, ResponseHead};
use crate::tap::portion::{Broken, Portion, Received};
use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use record::clock::{self, Nanos};
use record::stamp::{Arrival, Departure};
use std::future::Future as _;
use std::task::{Context, Poll, ready};

/// A body coming in.
struct Receiving {
    body: RecvStream,
    dating: Dating,
    /// Bytes that the peer may send again once they are passed on.
    held: usize,
}

impl Receiving {
    fn new(body: RecvStream, dating: Dating) -> Self {
        Self {
            body,
            dating,
            held: 0,
        }
    }

    /// The next portion. Asking for it says that the one before was passed on.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Received, Broken>> {
        if self.held > 0 {
            let held = std::mem::take(&mut self.held);
            // A stream that was reset has no window to open.
            let _ = self.body.flow_control().release_capacity(held);
        }
        let portion = loop {
            match self.body.poll_data(cx) {
                Poll::Pending => {
                    self.dating.nothing();
                    return Poll::Pending;
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error.into())),
                Poll::Ready(Some(Ok(data))) => {
                    let end = self.body.is_end_stream();
                    if data.is_empty() && !end {
                        continue;
                    }
                    self.held = data.len();
                    break Portion {
                        data,
                        end,
                        trailers: None,
                    };
                }
                Poll::Ready(None) => match self.body.poll_trailers(cx) {
                    Poll::Pending => {
                        self.dating.nothing();
                        return Poll::Pending;
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                    Poll::Ready(Ok(trailers)) => {
                        break Portion {
                            data: Bytes::new(),
                            end: true,
                            trailers,
                        };
                    }
                },
            }
        };
        Poll::Ready(Ok(Received {
            portion,
            arrival: self.dating.arrival(),
        }))
    }
}

/// A body going out. A write is a hand-over to the connection's queue as far as the peer's window
/// reaches, which is why its stamps are a class of their own.
struct Delivering {
    send: SendStream<Bytes>,
    begin: Option<Nanos>,
    blocked: bool,
}

impl Delivering {
    fn new(send: SendStream<Bytes>) -> Self {
        Self {
            send,
            begin: None,
            blocked: false,
        }
    }

    /// Hands over all of `portion` (the same on each call, less what was taken of it).
    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        portion: &mut Portion,
    ) -> Poll<Result<Departure, Broken>> {
        let begin = *self.begin.get_or_insert_with(clock::now);
        let mut ended = false;
        while !portion.data.is_empty() {
            let mut room = self.send.capacity();
            if room == 0 {
                self.send.reserve_capacity(portion.data.len());
                room = self.send.capacity();
            }
            if room == 0 {
                match self.send.poll_capacity(cx) {
                    Poll::Pending => {
                        self.blocked = true;
                        return Poll::Pending;
                    }
                    Poll::Ready(None) => return Poll::Ready(Err(Broken::Closed)),
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error.into())),
                    Poll::Ready(Some(Ok(_))) => continue,
                }
            }
            let part = portion.data.split_to(room.min(portion.data.len()));
            ended = portion.end && portion.data.is_empty() && portion.trailers.is_none();
            self.send.send_data(part, ended)?;
        }
        if portion.end && !ended {
            match portion.trailers.take() {
                Some(trailers) => self.send.send_trailers(trailers)?,
                None => self.send.send_data(Bytes::new(), true)?,
            }
        }
        self.begin = None;
        Poll::Ready(Ok(Departure {
            begin,
            end: clock::now(),
            blocked: std::mem::take(&mut self.blocked),
        }))
    }

    fn blocked_since(&self) -> Option<Nanos> {
        self.begin.filter(|_| self.blocked)
    }
}

/// A request that a client of HTTP/2 made, and the way of its answer.
pub(crate) struct Asked {
    respond: SendResponse<Bytes>,
    answer: Option<Delivering>,
    body: Receiving,
    /// The body so far, while it is kept for a resend.
    kept: Option<Vec<u8>>,
    /// Of `kept`, what goes out again first.
    again: Bytes,
}

impl Asked {
    /// `reads` of the connection that brought it.
    pub(super) fn new(respond: SendResponse<Bytes>, body: RecvStream, reads: &Reads) -> Self {
        Self {
            respond,
            answer: None,
            body: Receiving::new(body, Dating::begin(reads)),
            kept: Some(Vec::new()),
            again: Bytes::new(),
        }
    }

    /// When the head arrived.
    pub(super) fn arrival(&self) -> Arrival {
        self.body.dating.arrival()
    }

    /// The next portion of the request's body.
    pub(crate) fn poll_received(&mut self, cx: &mut Context<'_>) -> Poll<Result<Received, Broken>> {
        if !self.again.is_empty() {
            return Poll::Ready(Ok(Received {
                portion: Portion {
                    data: std::mem::take(&mut self.again),
                    end: self.body.body.is_end_stream(),
                    trailers: None,
                },
                arrival: self.body.dating.arrival(),
            }));
        }
        let received = ready!(self.body.poll(cx))?;
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(&received.portion.data);
        }
        self.kept.take_if(|kept| kept.len() > RETAIN);
        Poll::Ready(Ok(received))
    }

    /// Takes a portion of the body and lets it fall; `false` once none comes any more.
    pub(crate) fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let received = ready!(self.body.poll(cx));
        Poll::Ready(received.is_ok_and(|received| !received.portion.end))
    }

    /// Makes the whole body come again; `false` where it is no longer there.
    pub(crate) fn rewind(&mut self) -> bool {
        match &self.kept {
            Some(kept) => {
                self.again = Bytes::copy_from_slice(kept);
                true
            }
            None => false,
        }
    }

    /// The body, where it was short enough to be kept.
    pub(crate) fn take_kept(&mut self) -> Option<Vec<u8>> {
        self.kept.take()
    }

    /// Sends a 1xx.
    pub(crate) fn interim(&mut self, head: &ResponseHead) {
        if let Ok(response) = fields::response(head, &[]) {
            // A client that is gone is noticed where its stream is watched.
            let _ = self.respond.send_informational(response);
        }
    }

    /// Sends the head of the answer; `end` where no body follows.
    pub(crate) fn answer(
        &mut self,
        head: &ResponseHead,
        extra: &[(&str, &str)],
        end: bool,
    ) -> Result<Departure, Broken> {
        let response = fields::response(head, extra).map_err(|_| Broken::Malformed)?;
        let begin = clock::now();
        self.answer = Some(Delivering::new(self.respond.send_response(response, end)?));
        Ok(Departure {
            begin,
            end: clock::now(),
            blocked: false,
        })
    }

    /// Sends a portion of the answer.
    pub(crate) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        portion: &mut Portion,
    ) -> Poll<Result<Departure, Broken>> {
        match &mut self.answer {
            Some(answer) => answer.poll(cx, portion),
            None => Poll::Ready(Err(Broken::Closed)),
        }
    }

    /// Since when the client takes no more; `None` where it does.
    pub(crate) fn blocked_since(&self) -> Option<Nanos> {
        self.answer.as_ref()?.blocked_since()
    }

    /// Ready once the client has reset the stream or is gone.
    pub(crate) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let reset = match &mut self.answer {
            Some(answer) => answer.send.poll_reset(cx),
            None => self.respond.poll_reset(cx),
        };
        reset.map(|_| ())
    }

    /// Answers with a fault of the tap's own.
    pub(crate) fn fault(&mut self, fault: &Fault, form: Form) {
        let sent = self.respond.send_response(fault.http2_head(form), false);
        if let Ok(mut send) = sent {
            // The error object is shorter than any window.
            let _ = send.send_data(fault.body(form).into(), true);
        }
    }

    /// Ends an answer that cannot be completed, so that the client sees that it was cut.
    pub(crate) fn cut(&mut self) {
        self.respond.send_reset(Reason::INTERNAL_ERROR);
    }
}

/// A request to be made over HTTP/2.
pub(crate) struct Asking<'a> {
    session: &'a mut Session,
    sent: Option<Sent>,
}

/// A request that was made, and its answer.
struct Sent {
    response: ResponseFuture,
    dating: Option<Dating>,
    request: Delivering,
    body: Option<Receiving>,
}

/// What an upstream answers first.
pub(crate) enum Answer {
    /// A 1xx: more heads follow.
    Interim(ResponseHead),
    /// The response's head; `bool`: no body follows.
    Final(ResponseHead, bool, Arrival),
}

impl<'a> Asking<'a> {
    pub(crate) fn new(session: &'a mut Session) -> Self {
        Self {
            session,
            sent: None,
        }
    }

    /// Sends the head; `end` where no body follows.
    pub(crate) fn ask(
        &mut self,
        head: &RequestHead,
        host: Option<&str>,
        extra: &[(&str, &str)],
        end: bool,
    ) -> Result<Departure, Broken> {
        let request =
            fields::request(head, host, self.session.tls, extra).map_err(|_| Broken::Malformed)?;
        let begin = clock::now();
        let (response, send) = self.session.send.send_request(request, end)?;
        self.sent = Some(Sent {
            response,
            dating: Some(Dating::begin(&self.session.reads)),
            request: Delivering::new(send),
            body: None,
        });
        Ok(Departure {
            begin,
            end: clock::now(),
            blocked: false,
        })
    }

    /// Sends a portion of the request's body.
    pub(crate) fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        portion: &mut Portion,
    ) -> Poll<Result<Departure, Broken>> {
        match &mut self.sent {
            Some(sent) => sent.request.poll(cx, portion),
            None => Poll::Ready(Err(Broken::Closed)),
        }
    }

    /// The next head of the answer. The error says whether the request was certainly not taken up.
    pub(crate) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Answer, (Broken, bool)>> {
        let Some(sent) = &mut self.sent else {
            return Poll::Pending;
        };
        if let Poll::Ready(Some(Ok(interim))) = sent.response.poll_informational(cx) {
            return Poll::Ready(Ok(Answer::Interim(fields::response_head(&interim, false))));
        }
        match std::pin::Pin::new(&mut sent.response).poll(cx) {
            Poll::Pending => {
                if let Some(dating) = &mut sent.dating {
                    dating.nothing();
                }
                Poll::Pending
            }
            Poll::Ready(Err(error)) => {
                let untouched = error.is_remote()
                    && (error.is_go_away() || error.reason() == Some(Reason::REFUSED_STREAM));
                Poll::Ready(Err((error.into(), untouched)))
            }
            Poll::Ready(Ok(response)) => {
                let Some(dating) = sent.dating.take() else {
                    return Poll::Pending;
                };
                let (arrival, end) = (dating.arrival(), response.body().is_end_stream());
                let head = fields::response_head(&response, end);
                sent.body = Some(Receiving::new(response.into_body(), dating));
                Poll::Ready(Ok(Answer::Final(head, end, arrival)))
            }
        }
    }

    /// The next portion of the answer.
    pub(crate) fn poll_received(&mut self, cx: &mut Context<'_>) -> Poll<Result<Received, Broken>> {
        match self.sent.as_mut().and_then(|sent| sent.body.as_mut()) {
            Some(body) => body.poll(cx),
            None => Poll::Ready(Err(Broken::Closed)),
        }
    }
}
