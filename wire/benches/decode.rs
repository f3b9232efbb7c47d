//! Cost of decoding a stream: nanoseconds and allocations per event, by dialect and by read size.
//! `cargo bench -p wire`. Each figure is the fastest of several rounds, which is what the code
//! costs when the machine does nothing else.

use std::alloc::System;
use std::hint::black_box;
use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use wire::sse::SseDecoder;
use wire::{Decoder, Dialect, Limits, eventstream, request};

const EVENTS: usize = 20_000;
const ROUNDS: usize = 15;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// A stream of one kind of chunk.
fn stream(choice: &str, ending: &str) -> Vec<u8> {
    let head = r#"{"id":"chatcmpl-rid-1","object":"chat.completion.chunk","created":1796083200,"model":"tiny","choices":["#;
    format!("data: {head}{choice}]}}{ending}{ending}")
        .repeat(EVENTS)
        .into_bytes()
}

fn report(name: &str, unit: &str, per: usize, mut round: impl FnMut() -> usize) {
    let mut best = f64::INFINITY;
    let mut allocations = 0;
    for _ in 0..ROUNDS {
        let region = Region::new(ALLOCATOR);
        let start = Instant::now();
        assert_eq!(black_box(round()), per, "{name}");
        best = best.min(start.elapsed().as_nanos() as f64);
        let change = region.change();
        allocations = change.allocations + change.reallocations;
    }
    let (each, allocated) = (best / per as f64, allocations as f64 / per as f64);
    println!("{name:<44} {each:>9.0} ns/{unit} {allocated:>6.2} allocations/{unit}");
}

fn decode(body: &[u8], read: usize) -> usize {
    decode_as(Dialect::OpenAiChat, "text/event-stream", body, read)
}

fn decode_as(dialect: Dialect, content_type: &str, body: &[u8], read: usize) -> usize {
    let mut decoder = Decoder::new(dialect, Some(content_type), Limits::default());
    let mut framed = 0;
    for piece in body.chunks(read) {
        decoder.feed(piece, &mut |event| {
            framed += black_box(&event).events.len().min(1);
        });
    }
    framed
}

fn frame(body: &[u8], read: usize) -> usize {
    let mut decoder = SseDecoder::default();
    let mut framed = 0;
    for piece in body.chunks(read) {
        decoder.feed(piece, &mut |event| {
            framed += usize::from(!black_box(&event).comment);
        });
    }
    framed
}

fn main() {
    let plain = r#"{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}"#;
    let escaped = r#"{"index":0,"delta":{"content":"\n\"x\u00e9"},"finish_reason":null}"#;
    let tool = r#"{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"abc"}}]}}"#;
    let plain_stream = stream(plain, "\n");
    let event = plain_stream.len() / EVENTS;
    println!("events of {event} bytes");
    report("framing alone, 16 KiB reads", "event", EVENTS, || {
        frame(&plain_stream, 16 << 10)
    });
    report("framing alone, one event a read", "event", EVENTS, || {
        frame(&plain_stream, event)
    });
    for (name, read) in [
        ("one event a read", event),
        ("16 KiB reads", 16 << 10),
        ("100 byte reads", 100),
    ] {
        let name = format!("content, {name}");
        report(&name, "event", EVENTS, || decode(&plain_stream, read));
    }
    for (name, body) in [
        ("content with escapes, 16 KiB reads", stream(escaped, "\n")),
        ("tool arguments, 16 KiB reads", stream(tool, "\n")),
        ("content, CRLF, 16 KiB reads", stream(plain, "\r\n")),
    ] {
        report(name, "event", EVENTS, || decode(&body, 16 << 10));
    }
    let headers = [
        (":event-type", "contentBlockDelta"),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];
    let payload = br#"{"contentBlockIndex":0,"delta":{"text":" token"},"p":"abcdefghijklmnop"}"#;
    let frame = eventstream::encode(&headers, payload);
    let frames = frame.repeat(EVENTS);
    for (name, read) in [("one a read", frame.len()), ("16 KiB reads", 16 << 10)] {
        let name = format!("frames of {} bytes, {name}", frame.len());
        let kind = "application/vnd.amazon.eventstream";
        report(&name, "event", EVENTS, || {
            decode_as(Dialect::Converse, kind, &frames, read)
        });
    }
    let claude =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" token"}}"#;
    let headers = [(":event-type", "chunk"), (":message-type", "event")];
    for (name, native) in [
        ("Claude's", claude),
        (
            "Llama's",
            r#"{"generation":" token","generation_token_count":2,"stop_reason":null}"#,
        ),
    ] {
        let payload = format!(r#"{{"bytes":"{}","p":"abcdef"}}"#, STANDARD.encode(native));
        let frames = eventstream::encode(&headers, payload.as_bytes()).repeat(EVENTS);
        let name = format!("InvokeModel, {name}, 16 KiB reads");
        let kind = "application/vnd.amazon.eventstream";
        report(&name, "event", EVENTS, || {
            decode_as(Dialect::Invoke, kind, &frames, 16 << 10)
        });
    }
    for (name, dialect, json) in [
        ("Anthropic's messages", Dialect::AnthropicMessages, claude),
        (
            "OpenAI's responses",
            Dialect::OpenAiResponses,
            r#"{"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":" token"}"#,
        ),
        (
            "AgentCore, Strands",
            Dialect::AgentCore,
            r#"{"event":{"contentBlockDelta":{"delta":{"text":" token"},"contentBlockIndex":0}}}"#,
        ),
    ] {
        let events = format!("data: {json}\n\n").repeat(EVENTS);
        let name = format!("{name}, 16 KiB reads");
        report(&name, "event", EVENTS, || {
            decode_as(dialect, "text/event-stream", events.as_bytes(), 16 << 10)
        });
    }
    let prompt = "word ".repeat(40_000);
    let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{prompt}"}}]}}"#);
    report("request facts of a 200 kB prompt", "request", 1, || {
        usize::from(request::facts(Dialect::OpenAiChat, "", body.as_bytes()).is_ok())
    });
}
