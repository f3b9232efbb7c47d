//! One exchange as it happens: the relay reports passages, this builds the record.

use super::aws::explain;
use super::context::TapContext;
use super::fault::Form;
use super::head::{RequestHead, ResponseHead};
use super::translation::Translation;
use crate::meter::Finished;
use record::clock;
use record::exchange::{
    Claims, Connection, Exchange, Keys, Marks, Outcome, Position, Pressure, RequestFacts,
};
use record::stamp::{Arrival, Passage, StampClass};
use record::stream::StreamRecord;
use std::time::SystemTime;
use wire::{Decoder, Dialect, Framing, HeaderFigures, Limits, StreamEvent};

/// The record under construction.
pub(crate) struct Live {
    pub(crate) exchange: Box<Exchange>,
    decoder: Option<Decoder>,
    dialect: Dialect,
    /// Events of the read being passed on, so far.
    events_of_read: u32,
    /// What makes the client's answer of the upstream's, where they speak differently.
    pub(crate) translation: Option<Translation>,
}

impl Live {
    /// A request head came in.
    pub(crate) fn begin(
        tap: &TapContext,
        head: &RequestHead,
        begin: Arrival,
        read: Arrival,
        client: (StampClass, bool),
    ) -> Self {
        let dialect = Dialect::from_path(&head.target);
        let generation = dialect.generates() && head.method == "POST";
        let call = if tap.position == Position::Outer {
            Some(tap.ids.call())
        } else {
            head.call.clone()
        };
        let trace = head.traceparent.as_deref().and_then(trace_id);
        let exchange = Exchange {
            id: tap.ids.exchange(),
            chain: tap.chain.clone(),
            tap: tap.name.clone(),
            position: tap.position,
            keys: Keys {
                call,
                echoed: None,
                trace,
                client: head.client.clone(),
            },
            request: RequestFacts {
                method: head.method.clone(),
                path: head.path().to_owned(),
                generation,
                ..RequestFacts::default()
            },
            connection: Connection {
                client_class: client.0,
                upstream_class: tap.upstream.class(),
                client_reused: client.1,
                upstream_reused: None,
                upstream: None,
                connect: None,
                resent: false,
            },
            marks: Marks {
                begin,
                head: Passage {
                    arrival: read,
                    departure: None,
                },
                request: None,
                response_head: None,
                end: None,
                closed: 0,
            },
            status: None,
            stream: StreamRecord::starting(begin.at),
            response_bytes: 0,
            claims: Claims::default(),
            pressure: Pressure::default(),
            outcome: Outcome::Failed,
            fault: None,
        };
        Self {
            exchange: Box::new(exchange),
            decoder: None,
            dialect,
            events_of_read: 0,
            translation: None,
        }
    }

    /// In whose form the client reads errors.
    pub(crate) fn form(&self, tap: &TapContext) -> Form {
        let theirs = matches!(
            self.dialect,
            Dialect::Converse | Dialect::Invoke | Dialect::AgentCore
        );
        match theirs && tap.translator.is_none() {
            true => Form::Aws,
            false => Form::OpenAi,
        }
    }

    /// The request goes on as this one, in Converse: the record is of what the upstream is asked.
    pub(crate) fn translated(&mut self, head: &RequestHead) {
        self.dialect = Dialect::Converse;
        self.exchange.request.path = head.path().to_owned();
    }

    /// The final response head came in.
    pub(crate) fn response_head(&mut self, tap: &TapContext, head: &ResponseHead) {
        self.exchange.status = Some(head.status);
        self.exchange.keys.echoed = head.echoed;
        self.exchange.claims = tap.claims(head);
        if tap.signer.is_some() {
            self.exchange.fault = explain(head, SystemTime::now());
        }
        let mut figures = HeaderFigures::default();
        for (name, value) in &head.fields {
            figures.take(name, value);
        }
        self.exchange
            .stream
            .head_says(figures.usage(), figures.server());
        // A tool call is no generation, and its answer is read all the same.
        let read = self.dialect != Dialect::Opaque && self.exchange.request.method == "POST";
        if read && !head.encoded {
            let limits = Limits {
                max_event_bytes: tap.event_max,
                ..Limits::default()
            };
            self.decoder = Some(Decoder::new(
                self.dialect,
                head.content_type.as_deref(),
                limits,
            ));
        }
    }

    /// A read from upstream was passed on; `payload` is what it carried of the body.
    pub(crate) fn payload(&mut self, payload: &[u8], passage: &Passage) {
        self.exchange.response_bytes += payload.len() as u64;
        let stream = &mut self.exchange.stream;
        if let Some(decoder) = &mut self.decoder {
            let (events, joined) = (
                &mut self.events_of_read,
                &mut self.exchange.pressure.joined_events,
            );
            decoder.feed(payload, &mut |framed| {
                stream.observe(&framed, passage);
                if !matches!(framed.events, [StreamEvent::KeepAlive]) {
                    // A read can carry many chunks of the framing: the read counts, not the chunk.
                    *joined += u32::from(*events > 0);
                    *events += 1;
                }
            });
        }
    }

    /// A read from upstream was written to the client; its payload follows.
    pub(crate) fn read(&mut self, passage: &Passage) {
        self.events_of_read = 0;
        let pressure = &mut self.exchange.pressure;
        pressure.reads += 1;
        pressure.unwaited_reads += u32::from(!passage.arrival.waited);
        pressure.client_blocked += passage.departure.map_or(0, |d| d.blocked_for());
    }

    /// The response came to the end that its framing promised.
    pub(crate) fn ended(&mut self, passage: Passage) {
        self.exchange.marks.end = Some(passage);
        let stream = &mut self.exchange.stream;
        if let Some(decoder) = &mut self.decoder {
            decoder.finish(&mut |framed| stream.observe(&framed, &passage));
        }
        if self.exchange.status == Some(101) {
            return;
        }
        self.exchange.outcome = self.ended_as();
    }

    fn ended_as(&mut self) -> Outcome {
        let exchange = &mut self.exchange;
        if !exchange.status.is_some_and(|s| (200..300).contains(&s)) {
            return Outcome::Refused;
        }
        let Some(decoder) = &self.decoder else {
            return Outcome::Complete;
        };
        // A notification of MCP is answered by its head alone.
        if self.dialect == Dialect::Mcp && exchange.response_bytes == 0 {
            return Outcome::Complete;
        }
        if exchange.stream.counts.errors > 0 {
            return Outcome::ErrorInStream;
        }
        if !self.dialect.marks_its_end() {
            return Outcome::Complete;
        }
        let finished = exchange.stream.finish_reason.is_some();
        let missing = match decoder.framing() {
            Framing::Sse | Framing::EventStream if !finished => {
                "stream ended without a finish reason"
            }
            Framing::Sse | Framing::EventStream if exchange.stream.marks.done.is_none() => {
                "stream ended without its terminal marker"
            }
            Framing::Json | Framing::Undecided if !finished => "body ended without a finish reason",
            _ => return Outcome::Complete,
        };
        exchange.fault = Some(missing.to_owned());
        Outcome::Truncated
    }

    /// The client left. Gateways' own clients hang up at the terminal marker, before the last
    /// bytes of the framing: such an answer is complete, and has no end mark. They also hang up at an
    /// error: that is what ended the call, whoever closed first.
    pub(crate) fn client_left(&mut self) {
        let stream = &self.exchange.stream;
        let answered = stream.marks.done.is_some() && stream.finish_reason.is_some();
        let (outcome, fault) = if stream.counts.errors > 0 {
            let answered = self
                .exchange
                .status
                .is_some_and(|s| (200..300).contains(&s));
            let outcome = if answered {
                Outcome::ErrorInStream
            } else {
                Outcome::Refused
            };
            (outcome, "client left after an error in the response")
        } else if answered {
            (Outcome::Complete, "client left after the terminal marker")
        } else {
            (
                Outcome::Aborted,
                "client left before the end of the response",
            )
        };
        self.fail(outcome, fault);
    }

    /// The exchange ended otherwise.
    pub(crate) fn fail(&mut self, outcome: Outcome, fault: &str) {
        self.exchange.outcome = outcome;
        self.exchange.fault = Some(fault.to_owned());
    }

    /// Hands the record over, with the request as it was sent (`sent`, whose body starts at `body`).
    pub(crate) fn close(mut self, sent: Option<(Vec<u8>, usize, bool)>) -> Finished {
        self.exchange.marks.closed = clock::now();
        if let Some(decoder) = &self.decoder {
            let counts = decoder.counts();
            let sum = counts.malformed + counts.oversized + counts.cut;
            self.exchange.stream.counts.malformed = u32::try_from(sum).unwrap_or(u32::MAX);
        }
        Finished {
            exchange: self.exchange,
            sent,
            dialect: self.dialect,
        }
    }
}

/// The trace id of a W3C `traceparent`; `None` where it is not one.
fn trace_id(value: &str) -> Option<String> {
    let mut parts = value.split('-');
    let (version, trace) = (parts.next()?, parts.next()?);
    let hex = trace.len() == 32 && trace.bytes().all(|b| b.is_ascii_hexdigit());
    (version.len() == 2 && hex).then(|| trace.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_traceparent_has_a_trace_id() {
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        assert_eq!(
            trace_id(&format!("00-{id}-00f067aa0ba902b7-01")).as_deref(),
            Some(id)
        );
        assert_eq!(trace_id("00-xyz-1-01"), None);
        assert_eq!(trace_id(""), None);
    }
}
