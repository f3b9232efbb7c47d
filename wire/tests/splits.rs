//! Any split of the same bytes gives the same events, and no bytes make a decoder panic.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use wire::eventstream;
use wire::sse::SseDecoder;
use wire::{Decoder, Dialect, Limits, request};

/// Cuts `bytes` at the given places, which are taken modulo its length.
fn pieces<'a>(bytes: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places
        .windows(2)
        .map(|pair| &bytes[pair[0]..pair[1]])
        .collect()
}

fn frame(pieces: &[&[u8]], bound: usize) -> Vec<String> {
    let mut decoder = SseDecoder::new(bound);
    let mut seen = Vec::new();
    for piece in pieces {
        decoder.feed(piece, &mut |event| seen.push(format!("{event:?}")));
    }
    decoder.finish(&mut |event| seen.push(format!("{event:?}")));
    seen.push(format!("{} {}", decoder.oversized(), decoder.consumed()));
    seen
}

fn decode(pieces: &[&[u8]], content_type: Option<&str>, bound: usize) -> Vec<String> {
    decode_as(Dialect::OpenAiChat, pieces, content_type, bound)
}

fn decode_as(
    dialect: Dialect,
    pieces: &[&[u8]],
    content_type: Option<&str>,
    bound: usize,
) -> Vec<String> {
    let limits = Limits {
        max_event_bytes: bound,
        max_body_bytes: bound,
    };
    let mut decoder = Decoder::new(dialect, content_type, limits);
    let mut seen = Vec::new();
    for piece in pieces {
        decoder.feed(piece, &mut |framed| seen.push(format!("{framed:?}")));
    }
    decoder.finish(&mut |framed| seen.push(format!("{framed:?}")));
    seen.push(format!("{:?} {:?}", decoder.counts(), decoder.framing()));
    seen
}

fn ending() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("\n"), Just("\r"), Just("\r\n")]
}

fn chunk() -> impl Strategy<Value = String> {
    let text = prop_oneof![Just(String::new()), "[a-zé🦀\"\\\\\n]{1,12}"];
    (0u16..3, text, any::<bool>(), any::<bool>(), 0u64..50).prop_map(
        |(choice, text, role, finish, tokens)| {
            let mut delta = serde_json::json!({ "content": text });
            if role {
                delta["role"] = "assistant".into();
            }
            let finish = finish.then_some("stop");
            serde_json::json!({"id": "x", "choices": [
                {"index": choice, "delta": delta, "finish_reason": finish}],
                "usage": {"completion_tokens": tokens}})
            .to_string()
        },
    )
}

/// One line of a stream, without its terminator.
fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => chunk().prop_map(|json| format!("data: {json}")),
        1 => chunk().prop_map(|json| format!("data:{json}")),
        3 => Just(String::new()),
        1 => Just("data: [DONE]".to_owned()),
        1 => "(: ?|event: |id: |retry: |data|data: |[a-z]{1,4}: ?)[a-zé🦀]{0,6}",
    ]
}

/// Lines with an ending each, so that blank lines come in every mixture.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let body = prop::collection::vec((line(), ending(), ending(), any::<bool>()), 0..20);
    (any::<bool>(), body, 0usize..4).prop_map(|(bom, lines, short)| {
        let mut bytes = if bom {
            b"\xEF\xBB\xBF".to_vec()
        } else {
            Vec::new()
        };
        for (line, ending, blank, with_blank) in lines {
            bytes.extend_from_slice(line.as_bytes());
            bytes.extend_from_slice(ending.as_bytes());
            if with_blank {
                bytes.extend_from_slice(blank.as_bytes());
            }
        }
        bytes.truncate(bytes.len().saturating_sub(short));
        bytes
    })
}

const FRAMES: Option<&str> = Some("application/vnd.amazon.eventstream");

/// A frame of any event type with any JSON, or with none.
fn converse_frame() -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![
        Just("messageStart"),
        Just("contentBlockStart"),
        Just("contentBlockDelta"),
        Just("contentBlockStop"),
        Just("messageStop"),
        Just("metadata"),
        Just("another"),
    ];
    let text = "[a-zé🦀\"\\\\\n]{0,12}";
    let payload = (text, 0_u8..4, any::<bool>()).prop_map(|(text, block, tool)| {
        let delta = match tool {
            true => serde_json::json!({"toolUse": {"input": text}}),
            false => serde_json::json!({"text": text}),
        };
        serde_json::json!({
            "p": "abcdef", "contentBlockIndex": block, "delta": delta, "stopReason": "end_turn",
            "start": {"toolUse": {"toolUseId": "t", "name": text}},
            "usage": {"inputTokens": block}, "message": text})
        .to_string()
        .into_bytes()
    });
    let payload = prop_oneof![6 => payload, 1 => prop::collection::vec(any::<u8>(), 0..40)];
    let message = prop_oneof![8 => Just("event"), 1 => Just("exception"), 1 => Just("error")];
    (kind, message, payload).prop_map(|(kind, message, payload)| {
        let headers = [
            (":event-type", kind),
            (":exception-type", kind),
            (":message-type", message),
        ];
        eventstream::encode(&headers, &payload)
    })
}

/// Frames, some of them damaged, maybe cut.
fn frames() -> impl Strategy<Value = Vec<u8>> {
    let damage = prop::option::weighted(0.3, (any::<usize>(), 1_u8..));
    let all = prop::collection::vec(converse_frame(), 0..8);
    (all, damage, 0_usize..30).prop_map(|(frames, damage, short)| {
        let mut bytes = frames.concat();
        bytes.truncate(bytes.len().saturating_sub(short));
        if let (Some((at, flip)), false) = (damage, bytes.is_empty()) {
            let at = at % bytes.len();
            bytes[at] ^= flip;
        }
        bytes
    })
}

/// The dialects whose streams are SSE, and events of all of them: each must read its own, and pass over the others'.
const SPOKEN: [Dialect; 5] = [
    Dialect::AnthropicMessages,
    Dialect::OpenAiResponses,
    Dialect::AgentCore,
    Dialect::Mcp,
    Dialect::Invoke,
];

/// JSON of any of the dialects, or of none.
fn native() -> impl Strategy<Value = String> {
    let text = "[a-zé🦀\"\\\\\n]{0,12}";
    (text, 0_u8..24, 0_u64..50).prop_map(|(text, form, count)| {
        use serde_json::json;
        let usage = json!({"input_tokens": count, "output_tokens": count, "cache_read_input_tokens": 1});
        let metrics = json!({"inputTokenCount": count, "outputTokenCount": 2, "invocationLatency": count});
        let item = json!({"type": "function_call", "call_id": "c", "name": text, "arguments": text});
        let message = json!({"id": text, "status": "completed", "usage": usage, "output": [item]});
        match form {
            0 => json!({"type": "message_start", "message": {"id": text, "usage": usage}}),
            1 => json!({"type": "content_block_start", "index": count % 4,
                "content_block": {"type": "tool_use", "id": "t", "name": text}}),
            2 => json!({"type": "content_block_delta", "index": 0, "delta": {"text": text}}),
            3 => json!({"type": "content_block_delta", "index": count % 4, "delta": {"partial_json": text}}),
            4 => json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}),
            5 => json!({"type": "message_stop", "amazon-bedrock-invocationMetrics": metrics}),
            6 => json!({"type": "error", "error": {"type": "x", "message": text}}),
            7 => json!({"type": "response.created", "response": message}),
            8 => json!({"type": "response.output_item.added", "output_index": count % 4, "item": item}),
            9 => json!({"type": "response.output_text.delta", "output_index": 0, "delta": text}),
            10 => json!({"type": "response.completed", "response": message}),
            11 => json!({"generation": text, "generation_token_count": count, "stop_reason": null}),
            12 => json!({"generation": text, "stop_reason": "stop", "amazon-bedrock-invocationMetrics": metrics}),
            13 => json!({"choices": [{"delta": {"content": text}}], "amazon-bedrock-invocationMetrics": metrics}),
            14 => json!({"event": {"contentBlockDelta": {"delta": {"text": text}}}}),
            15 => json!({"event": {"metadata": {"usage": {"inputTokens": count}}}}),
            16 => json!({"data": text}),
            17 => json!(text),
            18 => json!({"jsonrpc": "2.0", "id": 1, "result": {"isError": count % 2 == 0}}),
            19 => json!([{"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": text}}]),
            20 => json!({"type": "ping"}),
            21 => json!({"result": {"content": [{"text": text}]}}),
            22 => json!({"outputText": text, "amazon-bedrock-invocationMetrics": 1}),
            _ => json!(count),
        }
        .to_string()
    })
}

/// Such JSON as SSE, some of it damaged.
fn spoken() -> impl Strategy<Value = Vec<u8>> {
    let event = (native(), any::<bool>(), ending()).prop_map(|(json, error, ending)| {
        let name = if error {
            "event: error"
        } else {
            "event: message"
        };
        format!("{name}{ending}data: {json}{ending}{ending}")
    });
    let damage = prop::option::weighted(0.3, (any::<usize>(), any::<u8>()));
    (prop::collection::vec(event, 0..8), damage, 0_usize..9).prop_map(|(events, damage, short)| {
        let mut bytes = events.concat().into_bytes();
        bytes.truncate(bytes.len().saturating_sub(short));
        if let (Some((at, byte)), false) = (damage, bytes.is_empty()) {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        bytes
    })
}

/// Such JSON in chunks of an InvokeModel stream, some of it not Base64, maybe cut.
fn chunks() -> impl Strategy<Value = Vec<u8>> {
    let chunk = (native(), 0_u8..8).prop_map(|(json, odd)| {
        let kind = if odd == 0 { "messageStart" } else { "chunk" };
        let headers = [(":event-type", kind), (":message-type", "event")];
        let mut bytes = STANDARD.encode(json);
        if odd == 1 {
            bytes.push('!');
        }
        let payload = format!(r#"{{"bytes":"{bytes}","p":"abc"}}"#);
        eventstream::encode(&headers, payload.as_bytes())
    });
    (prop::collection::vec(chunk, 0..8), 0_usize..30).prop_map(|(chunks, short)| {
        let mut bytes = chunks.concat();
        bytes.truncate(bytes.len().saturating_sub(short));
        bytes
    })
}

fn cuts() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(any::<usize>(), 0..12)
}

fn content_type() -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![
        Just(Some("text/event-stream")),
        Just(Some("application/json")),
        Just(None)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_stream_frames_alike_however_it_is_split(
        bytes in stream(), cuts in cuts(), bound in prop_oneof![Just(1 << 20), 0usize..200],
    ) {
        let whole = frame(&[&bytes], bound);
        prop_assert_eq!(&frame(&pieces(&bytes, &cuts), bound), &whole);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&frame(&single, bound), &whole);
    }

    #[test]
    fn a_stream_decodes_alike_however_it_is_split(
        bytes in stream(), cuts in cuts(), content_type in content_type(),
        bound in prop_oneof![Just(1 << 20), 0usize..400],
    ) {
        let whole = decode(&[&bytes], content_type, bound);
        prop_assert_eq!(&decode(&pieces(&bytes, &cuts), content_type, bound), &whole);
    }

    #[test]
    fn an_amazon_stream_decodes_alike_however_it_is_split(bytes in frames(), cuts in cuts()) {
        let read = |pieces: &[&[u8]]| decode_as(Dialect::Converse, pieces, FRAMES, 1 << 20);
        let whole = read(&[&bytes]);
        prop_assert_eq!(&read(&pieces(&bytes, &cuts)), &whole);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&read(&single), &whole);
    }

    #[test]
    fn a_stream_of_any_dialect_decodes_alike_however_it_is_split(
        bytes in spoken(), cuts in cuts(), bound in prop_oneof![Just(1 << 20), 0usize..300],
    ) {
        for dialect in SPOKEN {
            let read = |pieces: &[&[u8]]| decode_as(dialect, pieces, Some("text/event-stream"), bound);
            let whole = read(&[&bytes]);
            prop_assert_eq!(&read(&pieces(&bytes, &cuts)), &whole);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&read(&single), &whole);
        }
    }

    #[test]
    fn a_body_of_any_dialect_decodes_alike_however_it_is_split(json in native(), cuts in cuts()) {
        for dialect in SPOKEN {
            let read = |pieces: &[&[u8]]| decode_as(dialect, pieces, Some("application/json"), 1 << 20);
            prop_assert_eq!(&read(&pieces(json.as_bytes(), &cuts)), &read(&[json.as_bytes()]));
        }
    }

    #[test]
    fn chunks_of_a_model_decode_alike_however_they_are_split(bytes in chunks(), cuts in cuts()) {
        let read = |pieces: &[&[u8]]| decode_as(Dialect::Invoke, pieces, FRAMES, 1 << 20);
        let whole = read(&[&bytes]);
        prop_assert_eq!(&read(&pieces(&bytes, &cuts)), &whole);
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(&read(&single), &whole);
    }

    #[test]
    fn line_endings_do_not_change_what_is_said(chunks in prop::collection::vec(chunk(), 1..8), ending in ending()) {
        let body = |ending: &str| -> String {
            chunks.iter().map(|chunk| format!("data: {chunk}{ending}{ending}")).collect()
        };
        let said = |body: &str| {
            let mut said = Vec::new();
            let mut decoder =
                Decoder::new(Dialect::OpenAiChat, Some("text/event-stream"), Limits::default());
            decoder.feed(body.as_bytes(), &mut |framed| said.push(format!("{:?}", framed.events)));
            said
        };
        let with_line_feed = said(&body("\n"));
        prop_assert_eq!(with_line_feed.len(), chunks.len());
        prop_assert_eq!(said(&body(ending)), with_line_feed);
    }

    #[test]
    fn random_bytes_never_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..300), cuts in cuts(), content_type in content_type(),
    ) {
        for dialect in [Dialect::OpenAiChat, Dialect::Converse].into_iter().chain(SPOKEN) {
            for content_type in [content_type, FRAMES] {
                let read = |pieces: &[&[u8]]| decode_as(dialect, pieces, content_type, 100);
                prop_assert_eq!(&read(&pieces(&bytes, &cuts)), &read(&[&bytes]));
            }
            let _ = request::facts(dialect, "/model/m/converse", &bytes);
        }
        let _ = request::facts(Dialect::OpenAiCompletions, "", &bytes);
    }
}
