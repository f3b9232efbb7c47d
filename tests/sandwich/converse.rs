//! Bedrock's streams through a tap: bytes as they are, and everything in them read.

use crate::rig::{END, Rig, connect, exchange, upstream};
use record::exchange::{Exchange, Outcome};
use std::io::Write;
use std::time::Duration;
use wire::eventstream::encode;

/// One thing that the server does.
enum Step {
    /// A frame, written in pieces of so many bytes.
    Frame(Vec<u8>, usize),
    Pause(Duration),
}

fn frame(kind: &str, payload: &str) -> Vec<u8> {
    let headers = [
        (":event-type", kind),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];
    encode(&headers, payload.as_bytes())
}

fn event(kind: &str, payload: &str) -> Step {
    Step::Frame(frame(kind, payload), usize::MAX)
}

fn text_frame(text: &str) -> Vec<u8> {
    let payload =
        format!(r#"{{"contentBlockIndex":0,"delta":{{"text":"{text}"}},"p":"abcdefghijkl"}}"#);
    frame("contentBlockDelta", &payload)
}

fn text(text: &str) -> Step {
    Step::Frame(text_frame(text), usize::MAX)
}

fn metadata() -> Step {
    event(
        "metadata",
        r#"{"usage":{"inputTokens":3,"outputTokens":2,"totalTokens":12,"cacheReadInputTokens":7},"metrics":{"latencyMs":50}}"#,
    )
}

/// One ConverseStream call to a server that does `steps`, what the client got of its body, and the record.
fn called(steps: Vec<Step>) -> (Vec<u8>, Vec<u8>, Exchange) {
    let whole: Vec<u8> = steps
        .iter()
        .flat_map(|step| match step {
            Step::Frame(bytes, _) => &bytes[..],
            Step::Pause(_) => &[],
        })
        .copied()
        .collect();
    let (at, _) = upstream(move |socket, _| {
        socket
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\nx-amzn-RequestId: r\r\nTransfer-Encoding: chunked\r\n\r\n")
            .unwrap();
        for step in &steps {
            match step {
                Step::Frame(bytes, size) => {
                    bytes.chunks((*size).min(bytes.len())).for_each(|piece| {
                        let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
                        chunk.extend_from_slice(piece);
                        chunk.extend_from_slice(b"\r\n");
                        socket.write_all(&chunk).unwrap();
                    });
                }
                Step::Pause(time) => std::thread::sleep(*time),
            }
        }
        socket.write_all(b"0\r\n\r\n").unwrap();
    });
    let mut rig = Rig::around(at);
    let body = r#"{"messages":[{"role":"user","content":[{"text":"hello"}]}],"inferenceConfig":{"maxTokens":20}}"#;
    let request = format!(
        "POST /model/us.meta.llama3-1-70b-instruct-v1%3A0/converse-stream HTTP/1.1\r\nHost: rig\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let got = exchange(&mut connect(rig.outer), request.as_bytes(), END);
    let begin = got.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
    let body = dechunked(&got[begin..]);
    (whole, body, rig.calls().remove(0).outer)
}

fn dechunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(line) = bytes.windows(2).position(|w| w == b"\r\n") {
        let size = std::str::from_utf8(&bytes[..line]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        all.extend_from_slice(&bytes[line + 2..line + 2 + size]);
        bytes = &bytes[(line + 2 + size + 2).min(bytes.len())..];
    }
    all
}

#[test]
fn a_stream_of_frames_is_measured_as_exactly_as_one_of_events() {
    const PAUSE: Duration = Duration::from_millis(30);
    let slow = Step::Frame(text_frame(" you"), 5);
    let (sent, got, exchange) = called(vec![
        event("messageStart", r#"{"role":"assistant","p":"ab"}"#),
        Step::Pause(PAUSE),
        text("Hi"),
        Step::Pause(PAUSE),
        slow,
        event("contentBlockStop", r#"{"contentBlockIndex":0}"#),
        Step::Pause(PAUSE),
        event("messageStop", r#"{"stopReason":"end_turn"}"#),
        metadata(),
    ]);
    assert_eq!(got, sent);
    assert_eq!(
        (exchange.outcome, exchange.fault),
        (Outcome::Complete, None)
    );
    let request = &exchange.request;
    assert!(request.generation && request.stream);
    let model = "us.meta.llama3-1-70b-instruct-v1:0";
    assert_eq!(request.model.as_deref(), Some(model));
    let stream = &exchange.stream;
    let usage = stream.usage.unwrap();
    assert_eq!(
        (
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.completion_tokens
        ),
        (Some(10), Some(7), Some(2))
    );
    assert_eq!(stream.finish_reason.as_deref(), Some("end_turn"));
    assert_eq!((stream.counts.text_events, stream.counts.malformed), (2, 0));
    let marks = &stream.marks;
    let at = |mark: &Option<record::stamp::Passage>| mark.unwrap().arrival.at;
    let pauses = [
        at(&marks.first_text) - at(&marks.first_choice),
        at(&marks.last_text) - at(&marks.first_text),
        at(&marks.finish) - at(&marks.last_text),
    ];
    for pause in pauses {
        // A read may come late, and the next not.
        assert!(pause >= PAUSE.as_nanos() as u64 / 2, "{pauses:?}");
    }
    assert!(at(&marks.done) >= at(&marks.finish));
}

#[test]
fn a_stream_without_its_end_is_truncated_and_an_exception_in_it_is_an_error() {
    let start = || event("messageStart", r#"{"role":"assistant"}"#);
    let stop = || event("messageStop", r#"{"stopReason":"max_tokens"}"#);
    let (_, _, no_stop) = called(vec![start(), text("Hi")]);
    assert_eq!(no_stop.outcome, Outcome::Truncated);
    let (_, _, no_usage) = called(vec![start(), text("Hi"), stop()]);
    assert_eq!(no_usage.outcome, Outcome::Truncated);
    assert!(no_usage.stream.usage.is_none());
    let exception = encode(
        &[
            (":exception-type", "throttlingException"),
            (":message-type", "exception"),
        ],
        br#"{"message":"Too many tokens, please wait before trying again."}"#,
    );
    let (sent, got, failed) = called(vec![start(), text("Hi"), Step::Frame(exception, 7)]);
    assert_eq!(got, sent);
    assert_eq!(failed.outcome, Outcome::ErrorInStream);
    assert_eq!(failed.stream.error.as_deref(), Some("throttlingException"));
}

#[test]
fn a_damaged_frame_passes_as_it_is_and_is_counted() {
    let mut bytes = text_frame("Hi");
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let stop = event("messageStop", r#"{"stopReason":"end_turn"}"#);
    let (sent, got, exchange) = called(vec![
        Step::Frame(bytes, usize::MAX),
        text("you"),
        stop,
        metadata(),
    ]);
    assert_eq!(got, sent);
    assert_eq!(exchange.stream.counts.malformed, 1);
    assert_eq!(exchange.stream.counts.text_events, 1);
}
