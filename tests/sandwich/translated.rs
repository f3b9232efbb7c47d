//! Clients of OpenAI's before an upstream that speaks Converse.

use crate::rig::{END, Rig, chat, connect, engine, exchange, upstream};
use config::chain::{Translate, TranslateFrom, TranslateTo, Unsupported};
use record::exchange::Outcome;
use sim::engine::EngineOptions;
use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;
use wire::eventstream::encode;

const MODEL: &str = "us.meta.llama3-1-70b-instruct-v1:0";

fn around(at: SocketAddr) -> Rig {
    Rig::with(at, |chain| {
        chain.taps[0].upstream.translate = Some(Translate {
            from: TranslateFrom::OpenaiChat,
            to: TranslateTo::Converse,
            model: Some(MODEL.to_owned()),
            cache_system_from: None,
            unsupported: Unsupported::Refuse,
        });
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn frame(kind: &str, payload: &str) -> Vec<u8> {
    let headers = [
        (":event-type", kind),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];
    encode(&headers, payload.as_bytes())
}

fn said(word: &str) -> Vec<u8> {
    frame(
        "contentBlockDelta",
        &format!(r#"{{"contentBlockIndex":0,"delta":{{"text":"{word}"}},"p":"abc"}}"#),
    )
}

/// An upstream that streams these pieces, with a pause before each.
fn streams(pieces: Vec<Vec<u8>>, pause: Duration) -> SocketAddr {
    let answer = move |socket: &mut std::net::TcpStream, _: &str| {
        socket
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\nx-amzn-RequestId: r-1\r\nTransfer-Encoding: chunked\r\n\r\n")
            .unwrap();
        for piece in &pieces {
            std::thread::sleep(pause);
            let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
            chunk.extend_from_slice(piece);
            chunk.extend_from_slice(b"\r\n");
            socket.write_all(&chunk).unwrap();
        }
        socket.write_all(b"0\r\n\r\n").unwrap();
    };
    upstream(answer).0
}

#[test]
fn a_stand_in_that_speaks_both_says_the_same_through_the_translation() {
    let (runtime, at) = engine(EngineOptions::default());
    let mut rig = around(at);
    let mut socket = connect(rig.outer);
    let asked = chat(8, "", "");
    let direct = text(&exchange(&mut connect(at), asked.as_bytes(), b"[DONE]\n\n"));
    let translated = text(&exchange(&mut socket, asked.as_bytes(), END));
    // On the same connection, not streamed.
    let whole = asked.replace(r#""stream":true"#, r#""stream":false"#);
    let length = asked.len() - asked.find("\r\n\r\n").unwrap() - 4;
    let whole = whole.replace(
        &format!("Content-Length: {length}"),
        &format!("Content-Length: {}", length + 1),
    );
    let answered = text(&exchange(&mut socket, whole.as_bytes(), b"}}"));
    let words = |text: &str| -> String {
        text.split("\"content\":\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect()
    };
    assert!(!words(&direct).is_empty());
    assert_eq!(words(&translated), words(&direct));
    assert_eq!(words(&answered), words(&direct));
    assert!(translated.contains("text/event-stream") && translated.contains("data: [DONE]"));
    assert!(
        translated.contains(r#""completion_tokens":8"#),
        "{translated}"
    );
    assert!(
        answered.contains(r#""object":"chat.completion""#) && answered.contains("content-length")
    );
    let calls = rig.calls();
    for call in &calls {
        let one = &call.outer;
        assert_eq!(
            (one.outcome, one.fault.as_deref()),
            (Outcome::Complete, None)
        );
        assert!(one.request.generation);
        assert_eq!(one.request.model.as_deref(), Some(MODEL));
        assert_eq!(one.stream.usage.unwrap().completion_tokens, Some(8));
        assert!(one.stream.server.unwrap().latency_ms.is_some());
    }
    assert_eq!(calls.len(), 2);
    assert!(calls[0].outer.request.stream && !calls[1].outer.request.stream);
    runtime.shutdown_background();
}

#[test]
fn each_event_goes_on_as_it_comes_and_a_part_of_one_waits_for_the_rest() {
    const PAUSE: Duration = Duration::from_millis(40);
    let mut late = said(" you");
    let rest = late.split_off(20);
    let pieces = vec![
        frame("messageStart", r#"{"role":"assistant"}"#),
        said("Hi"),
        late,
        rest,
        frame("messageStop", r#"{"stopReason":"max_tokens"}"#),
        frame(
            "metadata",
            r#"{"usage":{"inputTokens":3,"outputTokens":2,"totalTokens":5},"metrics":{"latencyMs":50}}"#,
        ),
    ];
    let mut rig = around(streams(pieces, PAUSE));
    let got = text(&exchange(
        &mut connect(rig.outer),
        chat(20, "", "").as_bytes(),
        END,
    ));
    assert!(got.contains(r#""id":"chatcmpl-r-1""#), "{got}");
    assert!(
        got.contains(r#""finish_reason":"length""#) && got.contains("[DONE]"),
        "{got}"
    );
    let one = rig.calls().remove(0).outer;
    assert_eq!((one.outcome, one.fault), (Outcome::Complete, None));
    let marks = &one.stream.marks;
    let (first, last) = (marks.first_text.unwrap(), marks.last_text.unwrap());
    // Two pauses lie between them: the word is there with its last byte.
    assert!(last.arrival.at - first.arrival.at > PAUSE.as_nanos() as u64 * 3 / 2);
    for mark in [first, last, marks.finish.unwrap(), marks.done.unwrap()] {
        let departure = mark.departure.unwrap();
        assert!(departure.end >= mark.arrival.at);
        // Written when it came, not when the answer was over.
        assert!(departure.end - mark.arrival.at < PAUSE.as_nanos() as u64);
    }
    assert_eq!(one.pressure.joined_events, 0);
}

#[test]
fn errors_keep_their_status_and_their_original() {
    let (at, _) = upstream(|socket, _| {
        let body = r#"{"message":"Too many tokens, please wait before trying again."}"#;
        let head = format!(
            "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nContent-Length: {}\r\nx-amzn-ErrorType: ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/\r\n\r\n{body}",
            body.len()
        );
        socket.write_all(head.as_bytes()).unwrap();
    });
    let mut rig = around(at);
    let got = text(&exchange(
        &mut connect(rig.outer),
        chat(20, "", "").as_bytes(),
        b"}}}",
    ));
    assert!(got.starts_with("HTTP/1.1 429 "), "{got}");
    for part in [
        "rate_limit_exceeded",
        "\"original\"",
        "Too many tokens",
        "x-amzn-ErrorType",
    ] {
        assert!(got.contains(part), "{part} in {got}");
    }
    assert_eq!(rig.calls().remove(0).outer.outcome, Outcome::Refused);
}

#[test]
fn a_stream_that_breaks_off_is_an_error_for_the_client_and_truncated_in_the_record() {
    let pieces = vec![frame("messageStart", r#"{"role":"assistant"}"#), said("Hi")];
    let mut rig = around(streams(pieces, Duration::from_millis(1)));
    let got = text(&exchange(
        &mut connect(rig.outer),
        chat(20, "", "").as_bytes(),
        END,
    ));
    assert!(
        got.contains("incomplete_stream") && !got.contains("[DONE]"),
        "{got}"
    );
    assert_eq!(rig.calls().remove(0).outer.outcome, Outcome::Truncated);
}

#[test]
fn what_cannot_be_translated_is_told_and_goes_no_further() {
    let (at, seen) = upstream(|_, _| ());
    let mut rig = around(at);
    let refused = chat(20, "", r#","n":2"#);
    let got = text(&exchange(
        &mut connect(rig.outer),
        refused.as_bytes(),
        b"}}",
    ));
    assert!(
        got.starts_with("HTTP/1.1 400 ") && got.contains("`n`"),
        "{got}"
    );
    let other = b"GET /v1/models HTTP/1.1\r\nHost: rig\r\n\r\n";
    let got = text(&exchange(&mut connect(rig.outer), other, b"}}"));
    assert!(
        got.starts_with("HTTP/1.1 404 ") && got.contains("chat/completions only"),
        "{got}"
    );
    assert!(seen.try_recv().is_err(), "the upstream was asked");
    let outcomes: Vec<Outcome> = rig.calls().iter().map(|c| c.outer.outcome).collect();
    assert_eq!(outcomes, [Outcome::Failed, Outcome::Failed]);
}

#[test]
fn a_client_that_knows_no_chunks_gets_a_stream_that_ends_with_its_connection() {
    let pieces = vec![
        frame("messageStart", r#"{"role":"assistant"}"#),
        said("Hi"),
        frame("messageStop", r#"{"stopReason":"end_turn"}"#),
        frame(
            "metadata",
            r#"{"usage":{"inputTokens":3,"outputTokens":2,"totalTokens":5}}"#,
        ),
    ];
    let rig = around(streams(pieces, Duration::from_millis(1)));
    let old = chat(20, "", "").replace("HTTP/1.1", "HTTP/1.0");
    let got = text(&exchange(
        &mut connect(rig.outer),
        old.as_bytes(),
        b"no such bytes",
    ));
    assert!(!got.to_lowercase().contains("transfer-encoding"), "{got}");
    assert!(got.ends_with("data: [DONE]\n\n"), "{got}");
}
