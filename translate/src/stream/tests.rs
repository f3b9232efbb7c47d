use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use wire::eventstream::encode;
use wire::{Decoder, Dialect, Limits, StreamEvent};

fn event(kind: &str, payload: &Value) -> Vec<u8> {
    let headers = [
        (":event-type", kind),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];
    encode(&headers, payload.to_string().as_bytes())
}

fn naming() -> Naming {
    Naming {
        id: "chatcmpl-1".to_owned(),
        model: "a\"b".to_owned(),
        created: 7,
    }
}

fn written(bytes: &[u8], cuts: &[usize], include_usage: bool) -> String {
    let mut stream = Stream::new(&naming(), include_usage);
    let mut out = Vec::new();
    let mut from = 0;
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    cuts.sort_unstable();
    for cut in cuts.into_iter().chain([bytes.len()]) {
        stream.feed(&bytes[from..cut], &mut out);
        from = cut;
    }
    stream.finish(&mut out);
    String::from_utf8(out).unwrap()
}

fn answer() -> Vec<u8> {
    [
        event("messageStart", &json!({"p": "abc", "role": "assistant"})),
        event("contentBlockDelta", &json!({"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "hm"}}})),
        event("contentBlockDelta", &json!({"contentBlockIndex": 1, "delta": {"text": "Gr\u{fc}\n\"x\""}, "p": "ab"})),
        event("contentBlockDelta", &json!({"contentBlockIndex": 1, "delta": {"text": ""}})),
        event("contentBlockStop", &json!({"contentBlockIndex": 1})),
        event("contentBlockStart", &json!({"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t1", "name": "f"}}})),
        event("contentBlockDelta", &json!({"contentBlockIndex": 2, "delta": {"toolUse": {"input": "{\"x\""}}})),
        event("contentBlockDelta", &json!({"contentBlockIndex": 2, "delta": {"toolUse": {"input": ": 1}"}}})),
        event("messageStop", &json!({"stopReason": "tool_use"})),
        event("metadata", &json!({"usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7, "cacheReadInputTokens": 2}, "metrics": {"latencyMs": 9}})),
    ]
    .concat()
}

fn data(text: &str) -> Vec<Value> {
    text.split("\n\n")
        .filter_map(|one| one.strip_prefix("data: "))
        .filter(|one| *one != "[DONE]")
        .map(|one| serde_json::from_str(one).unwrap())
        .collect()
}

#[test]
fn frames_become_chunks() {
    let text = written(&answer(), &[], true);
    assert!(text.ends_with("data: [DONE]\n\n"));
    let chunks = data(&text);
    for chunk in &chunks {
        assert_eq!(chunk["id"], "chatcmpl-1");
        assert_eq!(
            (&chunk["model"], &chunk["created"]),
            (&json!("a\"b"), &json!(7))
        );
    }
    let deltas: Vec<&Value> = chunks
        .iter()
        .map(|chunk| &chunk["choices"][0]["delta"])
        .collect();
    assert_eq!(deltas[0], &json!({"role": "assistant", "content": ""}));
    assert_eq!(deltas[1], &json!({"reasoning_content": "hm"}));
    assert_eq!(deltas[2], &json!({"content": "Gr\u{fc}\n\"x\""}));
    assert_eq!(
        deltas[3],
        &json!({"tool_calls": [{"index": 0, "id": "t1", "type": "function", "function": {"name": "f", "arguments": ""}}]})
    );
    assert_eq!(
        deltas[5],
        &json!({"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]})
    );
    assert_eq!(chunks[6]["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(chunks[6]["choices"][0]["stop_reason"], "tool_use");
    assert_eq!(
        chunks[7]["usage"],
        json!({"prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9, "prompt_tokens_details": {"cached_tokens": 2}})
    );
    assert_eq!(chunks[7]["choices"], json!([]));
    assert_eq!(data(&written(&answer(), &[], false)).len(), 7);
}

#[test]
fn a_tool_without_arguments_is_given_none_and_not_nothing() {
    let start = |index: u64, name: &str| {
        event(
            "contentBlockStart",
            &json!({"contentBlockIndex": index, "start": {"toolUse": {"toolUseId": name, "name": name}}}),
        )
    };
    let input = |index: u64, text: &str| {
        let delta = json!({"contentBlockIndex": index, "delta": {"toolUse": {"input": text}}});
        event("contentBlockDelta", &delta)
    };
    let stop = |index: u64| event("contentBlockStop", &json!({"contentBlockIndex": index}));
    let bytes = [
        event("messageStart", &json!({"role": "assistant"})),
        // A text's block ends too.
        stop(0),
        [start(1, "silent"), stop(1)].concat(),
        [start(2, "empty"), input(2, ""), stop(2)].concat(),
        [start(3, "full"), input(3, "{\"x\":1}"), stop(3)].concat(),
    ]
    .concat();
    let mut arguments = [String::new(), String::new(), String::new()];
    for chunk in data(&written(&bytes, &[], false)) {
        let call = &chunk["choices"][0]["delta"]["tool_calls"][0];
        if let Some(piece) = call["function"]["arguments"].as_str() {
            arguments[call["index"].as_u64().unwrap() as usize].push_str(piece);
        }
    }
    assert_eq!(arguments, ["{}", "{}", "{\"x\":1}"]);
}

/// What hopscope itself reads of the one and of the other is the same.
#[test]
fn both_dialects_say_the_same() {
    let read = |dialect, kind, bytes: &[u8]| {
        let mut decoder = Decoder::new(dialect, Some(kind), Limits::default());
        let (mut texts, mut finish, mut usage, mut done) = (Vec::new(), None, None, false);
        let mut sink = |framed: wire::Framed<'_>| {
            for event in framed.events {
                match event {
                    StreamEvent::Text(text) => texts.push((text.field, text.text.to_owned())),
                    StreamEvent::Finish { reason, .. } => finish = Some(*reason),
                    StreamEvent::Usage(found) => {
                        usage = Some((
                            found.prompt_tokens,
                            found.completion_tokens,
                            found.cached_tokens,
                        ));
                    }
                    StreamEvent::Done => done = true,
                    _ => {}
                }
            }
        };
        decoder.feed(bytes, &mut sink);
        decoder.finish(&mut sink);
        (texts, finish, usage, done)
    };
    let theirs = read(
        Dialect::Converse,
        "application/vnd.amazon.eventstream",
        &answer(),
    );
    let ours = read(
        Dialect::OpenAiChat,
        "text/event-stream",
        written(&answer(), &[], true).as_bytes(),
    );
    assert_eq!(theirs, ours);
    assert!(theirs.3 && theirs.0.len() == 4);
}

#[test]
fn an_exception_is_an_error_in_the_stream_and_its_end() {
    let headers = [
        (":exception-type", "throttlingException"),
        (":content-type", "application/json"),
        (":message-type", "exception"),
    ];
    let bytes = [
        event("messageStart", &json!({"role": "assistant"})),
        encode(&headers, br#"{"message":"Too many tokens"}"#),
        event(
            "contentBlockDelta",
            &json!({"contentBlockIndex": 0, "delta": {"text": "late"}}),
        ),
    ]
    .concat();
    let text = written(&bytes, &[], true);
    let found = data(&text);
    assert_eq!(found.len(), 2);
    assert_eq!(found[1]["error"]["message"], "Too many tokens");
    assert_eq!(found[1]["error"]["code"], "rate_limit_exceeded");
    assert_eq!(found[1]["error"]["original"]["type"], "throttlingException");
    assert!(!text.contains("[DONE]") && !text.contains("late"));
}

#[test]
fn a_stream_that_is_cut_or_damaged_says_so() {
    let whole = answer();
    let cut = written(&whole[..whole.len() - 20], &[], true);
    let mut damaged = whole.clone();
    damaged[200] ^= 1;
    for text in [cut, written(&damaged, &[], true)] {
        assert!(!text.contains("[DONE]"), "{text}");
        assert_eq!(
            data(&text).last().unwrap()["error"]["code"],
            "incomplete_stream"
        );
    }
}

proptest! {
    #[test]
    fn where_the_bytes_are_split_changes_nothing(cuts in prop::collection::vec(any::<usize>(), 0..20)) {
        prop_assert_eq!(written(&answer(), &cuts, true), written(&answer(), &[], true));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = written(&bytes, &[], true);
    }
}
