//! A call and its truth made by hand: three tokens, a gateway that holds the request for about a
//! microsecond and each token for exactly one. For tests.

use record::clock::Nanos;
use record::exchange::{
    Claims, Connection, Exchange, Keys, Marks, Outcome, Position, Pressure, RequestFacts,
};
use record::pairing::{Call, Pairer};
use record::stamp::{Arrival, Departure, Passage, StampClass};
use record::stream::StreamRecord;
use sim::truth::{AttemptTruth, ExchangeTruth, Field, Mark, MarkTruth, Role, TokenTruth};

/// When the inner tap reads each token.
const TOKENS: [Nanos; 3] = [10_000, 20_000, 30_000];
/// From the inner tap's read of a token to the outer tap's.
const LATER: Nanos = 1_080;

/// Read at `at`, written from `at + 5`.
fn passage(at: Nanos) -> Passage {
    Passage {
        arrival: Arrival::instant(at),
        departure: Some(Departure {
            begin: at + 5,
            end: at + 9,
            blocked: false,
        }),
    }
}

fn exchange(position: Position, id: &str, key: &str, start: Nanos, later: Nanos) -> Exchange {
    let mut stream = StreamRecord::starting(start);
    for at in TOKENS {
        let passage = passage(at + later);
        stream.timeline.read(&passage);
        stream.timeline.text(0, wire::Field::Content, 0, "word");
        stream.counts.text_events += 1;
    }
    Exchange {
        id: u64::from(position == Position::Inner),
        chain: "c".into(),
        tap: format!("{position:?}").into(),
        position,
        keys: Keys {
            call: Some(id.to_owned()),
            client: Some(key.to_owned()),
            ..Keys::default()
        },
        request: RequestFacts {
            generation: true,
            ..RequestFacts::default()
        },
        connection: Connection {
            client_class: StampClass::Socket,
            upstream_class: StampClass::Socket,
            client_reused: true,
            upstream_reused: Some(true),
            upstream: None,
            connect: None,
            resent: false,
        },
        marks: Marks {
            begin: passage(start).arrival,
            head: passage(start),
            request: Some(passage(start)),
            response_head: Some(passage(9_000 + later)),
            end: Some(passage(31_000 + later)),
            closed: 33_000 + later,
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

/// The call `id`, which its client named `key`.
pub(crate) fn call(id: &str, key: &str) -> Call {
    let mut pairer = Pairer::default();
    pairer.offer(exchange(Position::Inner, id, key, 2_080, 0));
    pairer.offer(exchange(Position::Outer, id, key, 1_000, LATER));
    pairer.finish().remove(0)
}

/// What the gateway says of the call `id`: two hops of the request take 40 and 30 ns, those of a
/// token 50 and 25.
pub(crate) fn gateway_truth(id: &str) -> ExchangeTruth {
    let token = |(n, at): (u64, Nanos)| TokenTruth {
        choice: 0,
        field: Field::Content,
        tool: 0,
        end_text_offset: 4 * (n + 1),
        read_at: Some(at + 55),
        write_begin: at + 1_055,
        write_end: at + 1_060,
    };
    ExchangeTruth {
        role: Role::Gateway,
        call: Some(id.to_owned()),
        text_events_read: 3,
        text_events_written: 3,
        marks: vec![MarkTruth {
            mark: Mark::RequestBody,
            read_at: Some(1_045),
            write_begin: None,
            write_end: None,
        }],
        tokens: (0..).zip(TOKENS).map(token).collect(),
        attempts: vec![AttemptTruth {
            number: 1,
            request_write_begin: Some(2_050),
            ..AttemptTruth::default()
        }],
        ..ExchangeTruth::default()
    }
}
