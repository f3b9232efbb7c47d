//! Decoding a usual stream allocates nothing per event. Alone in its process, because the
//! allocator counts for all threads.

use std::alloc::System;

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
