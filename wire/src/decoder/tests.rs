use super::{Counts, Decoder, Framing, Limits};
use crate::dialect::Dialect;

const SSE: Option<&str> = Some("text/event-stream");
const JSON: Option<&str> = Some("application/json");

fn decode(content_type: Option<&str>, limits: Limits, body: &[u8]) -> (Vec<String>, Counts) {
    let mut decoder = Decoder::new(Dialect::OpenAiChat, content_type, limits);
    let mut events = Vec::new();
    let mut sink = |framed: super::Framed<'_>| {
        assert!(!framed.events.is_empty());
        events.extend(framed.events.iter().map(|event| format!("{event:?}")));
    };
    for piece in body.chunks(5) {
        decoder.feed(piece, &mut sink);
    }
    decoder.finish(&mut sink);
    (events, decoder.counts())
}

#[test]
fn the_content_type_decides_the_framing() {
    for (content_type, framing) in [
        (Some("text/event-stream"), Framing::Sse),
        (Some("Text/Event-Stream ; charset=utf-8"), Framing::Sse),
        (Some("application/json; charset=utf-8"), Framing::Json),
        (Some("application/problem+json"), Framing::Json),
        (Some("text/html"), Framing::Opaque),
        (Some(""), Framing::Opaque),
        (None, Framing::Undecided),
    ] {
        let decoder = Decoder::new(Dialect::OpenAiChat, content_type, Limits::default());
        assert_eq!(decoder.framing(), framing, "{content_type:?}");
        let decoder = Decoder::new(Dialect::Opaque, content_type, Limits::default());
        assert_eq!(decoder.framing(), Framing::Opaque);
    }
}

#[test]
fn without_a_content_type_the_first_byte_decides() {
    for (body, framing) in [
        (&b"{\"error\":\"x\"}"[..], Framing::Json),
        (b"data: [DONE]\n\n", Framing::Sse),
        (b"\n: hi\n", Framing::Sse),
        (b"", Framing::Undecided),
    ] {
        let mut decoder = Decoder::new(Dialect::OpenAiChat, None, Limits::default());
        let mut events = 0;
        decoder.feed(b"", &mut |_| events += 1);
        decoder.feed(body, &mut |_| events += 1);
        decoder.finish(&mut |_| events += 1);
        assert_eq!(decoder.framing(), framing);
        assert_eq!(events, usize::from(!body.is_empty()));
    }
}

#[test]
fn opaque_bodies_give_nothing_and_count_nothing() {
    let (events, counts) = decode(Some("text/html"), Limits::default(), b"<html>data: {}\n\n");
    assert_eq!((events.len(), counts), (0, Counts::default()));
}

#[test]
fn a_json_body_beyond_its_bound_is_dropped_and_counted_once() {
    let body = br#"{"choices":[{"message":{"content":"0123456789"}}]}"#;
    let at_bound = Limits {
        max_body_bytes: body.len(),
        ..Limits::default()
    };
    assert_eq!(decode(JSON, at_bound, body).0.len(), 1);
    let beyond = Limits {
        max_body_bytes: body.len() - 1,
        ..Limits::default()
    };
    let (events, counts) = decode(JSON, beyond, body);
    assert_eq!(
        (events.len(), counts),
        (
            0,
            Counts {
                oversized: 1,
                ..Counts::default()
            }
        )
    );
}

#[test]
fn an_event_beyond_its_bound_is_dropped_and_counted() {
    let body =
        b"data: {\"choices\":[{\"delta\":{\"content\":\"0123456789\"}}]}\n\ndata: [DONE]\n\n";
    let limits = Limits {
        max_event_bytes: 40,
        ..Limits::default()
    };
    let (events, counts) = decode(SSE, limits, body);
    assert_eq!(events, ["Done"]);
    assert_eq!(
        counts,
        Counts {
            oversized: 1,
            ..Counts::default()
        }
    );
}

#[test]
fn a_body_that_ends_inside_is_cut_and_not_malformed() {
    let cut = Counts {
        cut: 1,
        ..Counts::default()
    };
    for body in [
        "data: {\"choices\":[",
        "data: {\"id\":\"x",
        "dat",
        "event: x\n",
        "data: {\n: c\n",
        "event: x\n: c",
    ] {
        assert_eq!(
            decode(SSE, Limits::default(), body.as_bytes()).1,
            cut,
            "{body:?}"
        );
    }
    assert_eq!(
        decode(JSON, Limits::default(), b"{\"choices\":[{\"messa").1,
        cut
    );
    assert_eq!(decode(JSON, Limits::default(), b"{\"id\":\"\xC3").1, cut);
    let whole = [
        "data: {\"choices\":[{}]}",
        ": c",
        ": c\n",
        "data: [DONE]\n\n",
        "",
    ];
    for body in whole {
        assert_eq!(
            decode(SSE, Limits::default(), body.as_bytes()).1,
            Counts::default(),
            "{body:?}"
        );
    }
}

#[test]
fn a_complete_event_that_is_not_json_is_malformed() {
    let malformed = Counts {
        malformed: 1,
        ..Counts::default()
    };
    for body in [
        &b"data: {\"a\":\n\n"[..],
        b"data: x\n\n",
        b"data: x",
        b"data: {\"id\":\"\xFF\"}\n\n",
    ] {
        let (events, counts) = decode(SSE, Limits::default(), body);
        assert_eq!((events.len(), counts), (0, malformed), "{body:?}");
    }
    assert_eq!(decode(JSON, Limits::default(), b"{\"a\":1}}").1, malformed);
}

#[test]
fn an_event_stream_that_claims_to_be_json_is_malformed() {
    let (events, counts) = decode(JSON, Limits::default(), b"data: [DONE]\n\n");
    assert_eq!((events.len(), counts.malformed), (0, 1));
}

#[test]
fn long_ids_and_messages_are_bounded_at_a_character() {
    let long = "é".repeat(1000);
    let body = format!("data: {{\"id\":\"x{long}\",\"error\":{{\"message\":\"{long}\"}}}}\n\n");
    let mut decoder = Decoder::new(Dialect::OpenAiChat, SSE, Limits::default());
    let mut lengths = Vec::new();
    decoder.feed(body.as_bytes(), &mut |framed| {
        for event in framed.events {
            lengths.push(match event {
                crate::StreamEvent::Id(id) => id.len(),
                crate::StreamEvent::Error { message, .. } => message.len(),
                other => panic!("{other:?}"),
            });
        }
    });
    assert_eq!(lengths, [255, 512]);
}

#[test]
fn more_choices_than_an_index_can_name_pass() {
    let choices = vec!["{}"; 70_000].join(",");
    let body = format!("data: {{\"choices\":[{choices}]}}\n\n");
    let (events, counts) = decode(SSE, Limits::default(), body.as_bytes());
    assert_eq!((events.len(), counts), (70_000, Counts::default()));
    assert_eq!(
        events.last().map(String::as_str),
        Some("Empty { choice: 65535 }")
    );
}

#[test]
fn arrays_are_not_read_as_objects() {
    for body in [
        &b"data: [\"id\"]\n\n"[..],
        b"data: {\"usage\":[1,2,3]}\n\n",
        b"data: []\n\n",
    ] {
        let (events, counts) = decode(SSE, Limits::default(), body);
        assert_eq!(events, ["Unknown"], "{body:?}");
        assert_eq!(
            counts,
            Counts {
                unknown: 1,
                ..Counts::default()
            }
        );
    }
}

#[test]
fn a_delta_goes_before_the_message_that_accumulates_it() {
    let delta = r#""delta":{"content":"b"}"#;
    let message = r#""message":{"content":"ab"}"#;
    for choice in [
        format!("{delta},{message}"),
        format!("{message},{delta}"),
        format!(r#""message":null,{delta}"#),
    ] {
        let body = format!("data: {{\"choices\":[{{{choice}}}]}}\n\n");
        let (events, _) = decode(SSE, Limits::default(), body.as_bytes());
        assert_eq!(events.len(), 1);
        assert!(events[0].contains("text: \"b\""), "{body}: {events:?}");
    }
}

#[test]
fn an_empty_reasoning_member_does_not_hide_the_other() {
    for delta in [
        r#""reasoning_content":"","reasoning":"r""#,
        r#""reasoning":"","reasoning_content":"r""#,
    ] {
        let body = format!("data: {{\"choices\":[{{\"delta\":{{{delta}}}}}]}}\n\n");
        let (events, _) = decode(SSE, Limits::default(), body.as_bytes());
        assert_eq!(events.len(), 1);
        assert!(
            events[0].contains("field: Reasoning") && events[0].contains("\"r\""),
            "{events:?}"
        );
    }
}
