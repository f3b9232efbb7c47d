//! Decoding a usual stream allocates nothing per event. Alone in its process, because the
//! allocator counts for all threads.

use std::alloc::System;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use wire::{Decoder, Dialect, Limits};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

#[test]
fn a_usual_chunk_is_decoded_without_allocation() {
    for delta in [
        r#"{"role":"assistant","content":""}"#,
        r#"{"content":" naïve"}"#,
        r#"{"reasoning_content":" hm"}"#,
        r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"x"}}]}"#,
    ] {
        let chunk = format!(
            "data: {{\"id\":\"chatcmpl-1\",\"choices\":[{{\"index\":0,\"delta\":{delta},\
             \"finish_reason\":\"stop\"}}],\"usage\":{{\"prompt_tokens\":1}}}}\n\n"
        );
        allocates_nothing(Dialect::OpenAiChat, "text/event-stream", chunk.as_bytes());
    }
    for delta in [
        r#"{"text":" naïve"}"#,
        r#"{"toolUse":{"input":"x"}}"#,
        r#"{"reasoningContent":{"text":" hm"}}"#,
    ] {
        let headers = [
            (":event-type", "contentBlockDelta"),
            (":message-type", "event"),
        ];
        let payload = format!("{{\"p\":\"abc\",\"contentBlockIndex\":0,\"delta\":{delta}}}");
        let frame = wire::eventstream::encode(&headers, payload.as_bytes());
        let content_type = "application/vnd.amazon.eventstream";
        allocates_nothing(Dialect::Converse, content_type, &frame);
    }
    let claude =
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":" naïve"}}"#;
    for native in [
        claude,
        r#"{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":1}}"#,
        r#"{"generation":" hm","prompt_token_count":null,"generation_token_count":2,"stop_reason":null}"#,
        r#"{"id":"c","choices":[{"index":0,"delta":{"content":" x"}}]}"#,
    ] {
        let headers = [(":event-type", "chunk"), (":message-type", "event")];
        let payload = format!(r#"{{"bytes":"{}","p":"abc"}}"#, STANDARD.encode(native));
        let frame = wire::eventstream::encode(&headers, payload.as_bytes());
        let content_type = "application/vnd.amazon.eventstream";
        allocates_nothing(Dialect::Invoke, content_type, &frame);
    }
    for (dialect, json) in [
        (Dialect::AnthropicMessages, claude),
        (
            Dialect::AnthropicMessages,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#,
        ),
        (
            Dialect::OpenAiResponses,
            r#"{"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":" x"}"#,
        ),
        (
            Dialect::OpenAiResponses,
            r#"{"type":"response.function_call_arguments.delta","output_index":2,"delta":"x"}"#,
        ),
        (
            Dialect::AgentCore,
            r#"{"event":{"contentBlockDelta":{"delta":{"text":" x"},"contentBlockIndex":0}}}"#,
        ),
        (Dialect::AgentCore, r#"" naïve""#),
        (
            Dialect::Mcp,
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#,
        ),
    ] {
        let event = format!("data: {json}\n\n");
        allocates_nothing(dialect, "text/event-stream", event.as_bytes());
    }
}

fn allocates_nothing(dialect: Dialect, content_type: &str, event: &[u8]) {
    let mut decoder = Decoder::new(dialect, Some(content_type), Limits::default());
    let mut events = 0;
    decoder.feed(event, &mut |_| events += 1);
    let region = Region::new(ALLOCATOR);
    for _ in 0..1000 {
        decoder.feed(event, &mut |_| events += 1);
    }
    let change = region.change();
    // The test harness's own threads may allocate a few times meanwhile.
    assert!(
        change.allocations + change.reallocations < 100,
        "{}: {change:?}",
        String::from_utf8_lossy(event)
    );
    assert_eq!(events, 1001);
}
