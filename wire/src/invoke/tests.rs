use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE};

use super::*;
use crate::eventstream::{FrameDecoder, MAX_FRAME_BYTES, encode};

fn chunk(payload: &str) -> Vec<u8> {
    let headers = [(":event-type", "chunk"), (":message-type", "event")];
    encode(&headers, payload.as_bytes())
}

fn native(json: &str) -> Vec<u8> {
    chunk(&format!(
        r#"{{"bytes":"{}","p":"abc"}}"#,
        STANDARD.encode(json)
    ))
}

/// What every frame says, and what was passed over.
fn decode(frames: &[Vec<u8>]) -> (Vec<String>, Counts) {
    let (mut decoder, mut invoke) = (FrameDecoder::new(MAX_FRAME_BYTES), Invoke::default());
    let mut seen = Vec::new();
    decoder.feed(&frames.concat(), &mut |frame| {
        invoke.frame(&frame, &mut |framed| {
            seen.push(format!("{:?}", framed.events));
        });
    });
    (seen, invoke.counts())
}

fn body(json: &str) -> (Vec<String>, Counts) {
    let mut invoke = Invoke::default();
    let mut seen = Vec::new();
    let place = Place::of_body(json.len() as u64);
    invoke.body(json.as_bytes(), place, &mut |framed| {
        seen.push(format!("{:?}", framed.events));
    });
    (seen, invoke.counts())
}

const METRICS: &str = r#""amazon-bedrock-invocationMetrics":{"inputTokenCount":3,"outputTokenCount":2,"invocationLatency":9,"firstByteLatency":4}"#;
const SERVER: &str = "Server(ServerFigures { latency_ms: Some(9), first_byte_ms: Some(4) })";

#[test]
fn a_stream_without_its_last_event_has_no_end() {
    let text =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#;
    let finish = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#;
    let llama = r#"{"generation":"Hi","generation_token_count":1,"stop_reason":null}"#;
    let openai = r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    for unfinished in [text, finish, llama, openai] {
        let (seen, _) = decode(&[native(unfinished)]);
        assert!(!seen[0].contains("Done"), "{seen:?}");
    }
    for last in [
        r#"{"type":"message_stop"}"#.to_owned(),
        r#"{"generation":"","stop_reason":"stop"}"#.to_owned(),
        openai.replacen('{', &format!("{{{METRICS},"), 1),
        format!(r#"{{"outputText":"Hi",{METRICS}}}"#),
        format!("{{{METRICS}}}"),
    ] {
        let (seen, _) = decode(&[native(&last)]);
        assert_eq!(seen[0].matches("Done").count(), 1, "{seen:?}");
        assert!(seen[0].ends_with("Done]"), "{seen:?}");
    }
}

#[test]
fn metrics_join_the_counts_that_came_before() {
    let start = r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":3,"cache_read_input_tokens":100,"output_tokens":1}}}"#;
    let stop = format!(r#"{{"type":"message_stop",{METRICS}}}"#);
    let (seen, counts) = decode(&[native(start), native(&stop)]);
    assert!(
        seen[1].contains(
            "prompt_tokens: Some(103), completion_tokens: Some(2), cached_tokens: Some(100)"
        ),
        "{seen:?}"
    );
    assert!(seen[1].contains(SERVER) && seen[1].ends_with("Done]"));
    assert_eq!(counts, Counts::default());
}

#[test]
fn counts_of_an_openai_model_go_before_the_service_s() {
    let usage = r#"{"choices":[],"usage":{"prompt_tokens":8,"completion_tokens_details":{"reasoning_tokens":1}}}"#;
    let last = format!(r#"{{"choices":[{{"delta":{{"content":"x"}}}}],{METRICS}}}"#);
    let (seen, _) = decode(&[native(&last)]);
    assert!(seen[0].contains("prompt_tokens: Some(3)"), "{seen:?}");
    for stream in [
        vec![native(usage), native(&last)],
        vec![native(&usage.replacen('{', &format!("{{{METRICS},"), 1))],
    ] {
        let (seen, _) = decode(&stream);
        let all = seen.concat();
        assert_eq!(all.matches("Usage(").count(), 1, "{all}");
        assert!(
            all.contains("prompt_tokens: Some(8)") && all.contains(SERVER),
            "{all}"
        );
    }
}

#[test]
fn llama_s_counts_are_given_when_they_change() {
    let (seen, counts) = decode(&[
        native(
            r#"{"generation":"a","prompt_token_count":5,"generation_token_count":1,"stop_reason":null}"#,
        ),
        native(
            r#"{"generation":"b","prompt_token_count":null,"generation_token_count":1,"stop_reason":null}"#,
        ),
        native(r#"{"generation":"","generation_token_count":2,"stop_reason":"length"}"#),
    ]);
    assert!(seen[0].contains("prompt_tokens: Some(5), completion_tokens: Some(1)"));
    assert!(!seen[1].contains("Usage"));
    assert!(seen[2].contains("reason: Length"));
    assert!(seen[2].contains("prompt_tokens: Some(5), completion_tokens: Some(2)"));
    assert_eq!(counts, Counts::default());
}

#[test]
fn base64_of_any_usual_writer_is_read_and_other_bytes_are_malformed() {
    let json = r#"{"generation":"ab"}"#;
    let escaped = STANDARD
        .encode(r#"{"generation":"???>>>"}"#)
        .replace('/', "\\/");
    for bytes in [STANDARD.encode(json), STANDARD_NO_PAD.encode(json), escaped] {
        let (seen, counts) = decode(&[chunk(&format!(r#"{{"bytes":"{bytes}"}}"#))]);
        assert!(seen[0].contains("Text("), "{bytes}: {seen:?}");
        assert_eq!(counts, Counts::default());
    }
    let url = URL_SAFE.encode(r#"{"generation":"???>>>"}"#);
    assert!(url.contains(['-', '_']));
    let (seen, counts) = decode(&[
        chunk(&format!(r#"{{"bytes":"{url}"}}"#)),
        chunk(r#"{"bytes":"!"}"#),
        chunk(&format!(r#"{{"bytes":"{}"}}"#, STANDARD.encode("{"))),
        chunk(r#"{"bytes":null}"#),
        chunk(r#"{"bytes":5}"#),
        native(json),
    ]);
    assert_eq!((counts.malformed, counts.unknown), (3, 2));
    assert_eq!(seen[..2], ["[Unknown]"; 2]);
    assert!(
        seen[2].contains("\"ab\""),
        "what was kept of others does not spoil it"
    );
}

#[test]
fn frames_of_converse_and_exceptions_are_read_as_such() {
    let start = encode(
        &[(":event-type", "messageStart"), (":message-type", "event")],
        br#"{"role":"assistant"}"#,
    );
    let slow = encode(
        &[
            (":exception-type", "modelTimeoutException"),
            (":message-type", "exception"),
        ],
        br#"{"message":"slow"}"#,
    );
    let (seen, _) = decode(&[start, slow]);
    assert_eq!(seen[0], "[Role { choice: 0 }]");
    assert!(
        seen[1].contains("message: \"slow\", code: None, kind: Some(\"modelTimeoutException\")")
    );
}

#[test]
fn a_body_is_told_by_its_members() {
    for (json, wanted) in [
        (
            r#"{"generation":"Hi","stop_reason":"stop"}"#,
            "reason: Stop, raw: \"stop\"",
        ),
        (
            r#"{"choices":[{"message":{"content":"Hi"},"finish_reason":"length"}]}"#,
            "reason: Length",
        ),
        (
            r#"{"choices":[{"text":"Hi","finish_reason":"stop"}]}"#,
            "\"Hi\"",
        ),
        (
            r#"{"type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}"#,
            "end_turn",
        ),
        (
            r#"{"output":{"message":{"content":[{"text":"Hi"}]}},"stopReason":"end_turn"}"#,
            "end_turn",
        ),
        (
            r#"{"message":"Too many tokens"}"#,
            "Error { message: \"Too many tokens\"",
        ),
        (r#"{"error":{"message":"bad"}}"#, "Error { message: \"bad\""),
    ] {
        let (seen, counts) = body(json);
        assert!(
            seen[0].contains(wanted) && !seen[0].contains("Done"),
            "{json}: {seen:?}"
        );
        assert_eq!(counts, Counts::default());
    }
    assert_eq!(body(r#"{"embedding":[1]}"#).0, ["[Unknown]"]);
    assert_eq!(body("{").1.cut, 1);
}

#[test]
fn a_large_chunk_does_not_keep_its_memory() {
    let mut invoke = Invoke::default();
    let mut decoder = FrameDecoder::new(MAX_FRAME_BYTES);
    let large = native(&format!(r#"{{"generation":"{}"}}"#, "x".repeat(1 << 20)));
    let mut texts = 0;
    decoder.feed(&large, &mut |frame| {
        invoke.frame(&frame, &mut |_| texts += 1);
    });
    assert_eq!(texts, 1);
    assert!(invoke.native.capacity() <= RETAINED_BYTES);
}
