//! Exchanges made by hand, for tests of this crate.

use crate::clock::Nanos;
use crate::exchange::{
    Claims, Connection, Exchange, Keys, Marks, Outcome, Position, Pressure, RequestFacts,
};
use crate::stamp::{Arrival, Departure, Passage, StampClass};
use crate::stream::StreamRecord;
use wire::Field;

/// Read at `at`, written from `at + 5` to `at + 9`.
pub(crate) fn passage(at: Nanos) -> Passage {
    let arrival = Arrival {
        at,
        earliest: at - 2,
        kernel: None,
        waited: true,
    };
    Passage {
        arrival,
        departure: Some(Departure {
            begin: at + 5,
            end: at + 9,
            blocked: false,
        }),
    }
}

/// A complete exchange: request at `start`, then one event of text at each of `tokens`.
pub(crate) fn exchange(
    id: u64,
    position: Position,
    call: &str,
    start: Nanos,
    tokens: &[(Nanos, &str)],
) -> Exchange {
    let mut stream = StreamRecord::starting(start);
    for (at, text) in tokens {
        let passage = passage(*at);
        stream.timeline.read(&passage);
        stream.timeline.text(0, Field::Content, 0, text);
        stream.marks.first_text.get_or_insert(passage);
        stream.marks.last_text = Some(passage);
        stream.counts.text_events += 1;
    }
    let last = tokens.last().map_or(start + 10, |t| t.0 + 10);
    stream.response_id = Some(format!("chatcmpl-{call}"));
    Exchange {
        id,
        chain: "c".into(),
        tap: format!("{position:?}").into(),
        position,
        keys: Keys {
            call: (!call.is_empty()).then(|| call.to_owned()),
            ..Keys::default()
        },
        request: RequestFacts {
            generation: true,
            ..RequestFacts::default()
        },
        connection: Connection {
            client_class: StampClass::Socket,
            upstream_class: StampClass::Socket,
            client_reused: false,
            upstream_reused: Some(false),
            upstream: None,
            connect: None,
            resent: false,
        },
        marks: Marks {
            begin: passage(start).arrival,
            head: passage(start),
            request: Some(passage(start)),
            response_head: Some(passage(start + 1)),
            end: Some(passage(last)),
            closed: last + 20,
        },
        status: Some(200),
        stream,
        response_bytes: 0,
        claims: Claims::default(),
        pressure: Pressure::default(),
        outcome: Outcome::Complete,
        fault: None,
    }
}
