use super::*;
use crate::event::{Guardrail, GuardrailUnits, Usage};
use crate::eventstream::{FrameDecoder, MAX_FRAME_BYTES, encode};

/// A frame as Bedrock writes one, its padding included.
fn event(kind: &str, payload: &str) -> Vec<u8> {
    let headers = [
        (":event-type", kind),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];
    let padded = payload.replacen('{', "{\"p\":\"abcdefghijkl\",", 1);
    encode(&headers, padded.replace(",}", "}").as_bytes())
}

fn exception(kind: &str, payload: &str) -> Vec<u8> {
    let headers = [(":exception-type", kind), (":message-type", "exception")];
    encode(&headers, payload.as_bytes())
}

/// What every frame says, and what was passed over.
fn decode(stream: &[u8]) -> (Vec<String>, Counts) {
    let (mut frames, mut converse) = (FrameDecoder::new(MAX_FRAME_BYTES), Converse::default());
    let mut seen = Vec::new();
    frames.feed(stream, &mut |frame| {
        converse.frame(&frame, &mut |framed| {
            let choices = if framed.has_choices {
                ""
            } else {
                "no choice: "
            };
            seen.push(format!("{choices}{:?}", framed.events));
        });
    });
    (seen, converse.counts)
}

fn body(json: &str) -> (Vec<String>, Counts) {
    let mut converse = Converse::default();
    let mut seen = Vec::new();
    let place = Place::of_body(json.len() as u64);
    converse.body(json.as_bytes(), place, &mut |framed| {
        seen.push(format!("{:?}", framed.events));
    });
    (seen, converse.counts)
}

#[test]
fn an_answer_is_read_to_its_metadata() {
    let stream = [
        event("messageStart", r#"{"role":"assistant"}"#),
        event(
            "contentBlockDelta",
            r#"{"contentBlockIndex":0,"delta":{"text":"Hi \"you\""}}"#,
        ),
        event("contentBlockStop", r#"{"contentBlockIndex":0}"#),
        event("messageStop", r#"{"stopReason":"end_turn"}"#),
        event(
            "metadata",
            r#"{"usage":{"inputTokens":3,"outputTokens":2,"totalTokens":15,"cacheReadInputTokens":7,"cacheWriteInputTokens":3},"metrics":{"latencyMs":12}}"#,
        ),
    ];
    let (seen, counts) = decode(&stream.concat());
    let text = r#"[Text(TextDelta { choice: 0, field: Content, tool: 0, text: "Hi \"you\"" })]"#;
    assert_eq!(
        seen[..4],
        [
            "[Role { choice: 0 }]",
            text,
            "[Empty { choice: 0 }]",
            "[Finish { choice: 0, reason: Stop, raw: \"end_turn\" }]",
        ]
    );
    let usage = Usage {
        prompt_tokens: Some(13),
        completion_tokens: Some(2),
        cached_tokens: Some(7),
        reasoning_tokens: None,
        total_tokens: Some(15),
        cache_write_tokens: Some(3),
    };
    let server = ServerFigures {
        latency_ms: Some(12),
        first_byte_ms: None,
    };
    let last = [
        StreamEvent::Usage(usage),
        StreamEvent::Server(server),
        StreamEvent::Done,
    ];
    assert_eq!(seen[4], format!("no choice: {last:?}"));
    assert_eq!(counts, Counts::default());
}

#[test]
fn tool_calls_are_counted_among_themselves() {
    let start = |block: u8, id: &str| {
        let json = format!(
            r#"{{"contentBlockIndex":{block},"start":{{"toolUse":{{"toolUseId":"{id}","name":"sum"}}}}}}"#
        );
        event("contentBlockStart", &json)
    };
    let input = |block: u8, text: &str| {
        let json = format!(
            r#"{{"contentBlockIndex":{block},"delta":{{"toolUse":{{"input":"{text}"}}}}}}"#
        );
        event("contentBlockDelta", &json)
    };
    let stream = [
        start(1, "a"),
        input(1, "x"),
        start(3, "b"),
        input(3, "y"),
        input(1, "z"),
    ];
    let (seen, _) = decode(&stream.concat());
    let tools: Vec<&str> = seen
        .iter()
        .map(|event| {
            event
                .split("tool: ")
                .nth(1)
                .unwrap()
                .split(',')
                .next()
                .unwrap()
        })
        .collect();
    assert_eq!(tools, ["0", "0", "1", "1", "0"]);
    assert!(seen[0].contains("id: Some(\"a\"), name: Some(\"sum\")"));
    assert!(seen[1].contains("field: ToolArguments"));
}

#[test]
fn reasoning_is_text_and_a_signature_is_none() {
    let delta = |inner: &str| {
        event(
            "contentBlockDelta",
            &format!(r#"{{"contentBlockIndex":0,"delta":{{"reasoningContent":{inner}}}}}"#),
        )
    };
    let stream = [delta(r#"{"text":"hm"}"#), delta(r#"{"signature":"c2ln"}"#)];
    let (seen, counts) = decode(&stream.concat());
    assert!(seen[0].contains("field: Reasoning") && seen[0].contains("\"hm\""));
    assert_eq!(seen[1], "[Empty { choice: 0 }]");
    assert_eq!(counts, Counts::default());
}

#[test]
fn an_exception_inside_a_stream_is_an_error_by_its_type() {
    let stream = [
        exception("throttlingException", r#"{"message":"Too many tokens"}"#),
        exception("modelStreamErrorException", "not JSON"),
        encode(
            &[
                (":message-type", "error"),
                (":error-code", "InternalFailure"),
                (":error-message", "no"),
            ],
            b"",
        ),
    ];
    let (seen, _) = decode(&stream.concat());
    assert_eq!(
        seen,
        [
            "no choice: [Error { message: \"Too many tokens\", code: None, kind: Some(\"throttlingException\") }]",
            "no choice: [Error { message: \"not JSON\", code: None, kind: Some(\"modelStreamErrorException\") }]",
            "no choice: [Error { message: \"no\", code: Some(\"InternalFailure\"), kind: None }]",
        ]
    );
}

#[test]
fn what_is_not_known_is_counted_and_costs_nothing_else() {
    let stream = [
        event("newEvent", r#"{"a":1}"#),
        encode(
            &[(":message-type", "event"), (":event-type", "metadata")],
            b"[1]",
        ),
        encode(
            &[(":message-type", "event"), (":event-type", "metadata")],
            b"{",
        ),
        encode(&[], b"{}"),
        event("metadata", r#"{"usage":"odd"}"#),
        event("metadata", r#"{"metrics":{"latencyMs":1}}"#),
    ];
    let (seen, counts) = decode(&stream.concat());
    assert_eq!(seen[..3], ["no choice: [Unknown]"; 3]);
    let server = "Server(ServerFigures { latency_ms: Some(1), first_byte_ms: None })";
    assert_eq!(
        seen[3..],
        [
            "no choice: [Done]".to_owned(),
            format!("no choice: [{server}, Done]"),
        ]
    );
    assert_eq!((counts.unknown, counts.malformed), (4, 1));
}

#[test]
fn metadata_with_metrics_only_says_nothing_of_usage() {
    let stream = [
        event("metadata", r#"{"usage":{"inputTokens":3}}"#),
        event("metadata", r#"{"metrics":{"latencyMs":9}}"#),
    ];
    let (seen, counts) = decode(&stream.concat());
    assert!(
        seen[0].contains("Usage(") && !seen[1].contains("Usage("),
        "{seen:?}"
    );
    assert_eq!(counts, Counts::default());
}

#[test]
fn a_guardrail_that_stopped_an_answer_intervened_also_without_a_trace() {
    let stream = [
        event("messageStop", r#"{"stopReason":"guardrail_intervened"}"#),
        event("metadata", r#"{"metrics":{"latencyMs":9}}"#),
    ];
    let (seen, _) = decode(&stream.concat());
    assert!(seen[0].contains("reason: ContentFilter"), "{seen:?}");
    let guardrail = Guardrail {
        intervened: true,
        ..Guardrail::default()
    };
    let wanted = format!("{:?}", StreamEvent::Guardrail(guardrail));
    assert!(seen[1].contains(&wanted), "{seen:?}");
}

#[test]
fn a_trace_gives_time_and_units_of_all_assessments() {
    let assessment = |action: &str, ms: u8| {
        format!(
            r#"{{"sensitiveInformationPolicy":{{"piiEntities":[{{"match":"BLOCKED","action":"{action}"}}]}},
            "invocationMetrics":{{"guardrailProcessingLatency":{ms},"usage":{{"topicPolicyUnits":{ms},"newUnits":7}}}}}}"#
        )
    };
    for (action, intervened) in [("NONE", false), ("ANONYMIZED", true), ("BLOCKED", true)] {
        let json = format!(
            r#"{{"trace":{{"guardrail":{{"actionReason":"BLOCKED","inputAssessment":{{"g":{}}},"outputAssessments":{{"g":[{},{}]}}}}}}}}"#,
            assessment("NONE", 1),
            assessment(action, 2),
            assessment("NONE", 4),
        );
        let guardrail = Guardrail {
            intervened,
            latency_ms: Some(7),
            units: GuardrailUnits {
                topic: Some(7),
                ..GuardrailUnits::default()
            },
        };
        let (seen, counts) = decode(&event("metadata", &json));
        assert_eq!(
            seen,
            [format!(
                "no choice: [{:?}, Done]",
                StreamEvent::Guardrail(guardrail)
            )]
        );
        assert_eq!(counts, Counts::default());
    }
    let odd = decode(&event(
        "metadata",
        r#"{"trace":{"guardrail":3},"metrics":4}"#,
    ));
    assert_eq!(
        (odd.0, odd.1.unknown),
        (vec!["no choice: [Done]".to_owned()], 2)
    );
}

#[test]
fn every_reason_of_the_service_is_known() {
    for (raw, reason) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("tool_use", FinishReason::ToolCalls),
        ("guardrail_intervened", FinishReason::ContentFilter),
        ("content_filtered", FinishReason::ContentFilter),
        ("malformed_model_output", FinishReason::Error),
        ("malformed_tool_use", FinishReason::Error),
        ("one of next year", FinishReason::Other),
    ] {
        assert_eq!(
            Converse::default().finish(raw),
            StreamEvent::Finish {
                choice: 0,
                reason,
                raw
            }
        );
    }
}

#[test]
fn a_whole_body_says_the_same_as_a_stream() {
    let (seen, counts) = body(
        r#"{"output":{"message":{"role":"assistant","content":[
            {"reasoningContent":{"reasoningText":{"text":"hm","signature":"s"}}},
            {"text":"Hi"},
            {"toolUse":{"toolUseId":"a","name":"sum","input":{"x":1}}},
            {"toolUse":{"toolUseId":"b","name":"sum","input":{}}},
            {"image":{}}]}},
            "stopReason":"tool_use","usage":{"inputTokens":3,"outputTokens":2,"totalTokens":5},
            "metrics":{"latencyMs":4}}"#,
    );
    for part in [
        "[Role { choice: 0 }, Text(TextDelta { choice: 0, field: Reasoning, tool: 0, text: \"hm\" }), Text(TextDelta { choice: 0, field: Content",
        "ToolCall { choice: 0, tool: 0, id: Some(\"a\"), name: Some(\"sum\") }, Text(TextDelta { choice: 0, field: ToolArguments, tool: 0, text: \"{\\\"x\\\":1}\" })",
        "tool: 1, id: Some(\"b\")",
        "Empty { choice: 0 }, Finish { choice: 0, reason: ToolCalls",
        "prompt_tokens: Some(3)",
    ] {
        assert!(seen[0].contains(part), "{part} in {}", seen[0]);
    }
    assert_eq!((seen.len(), counts), (1, Counts::default()));
}

#[test]
fn a_refusal_is_an_error_and_other_json_is_unknown() {
    let refused = body(r#"{"message":"Too many requests, please wait before trying again."}"#);
    assert!(refused.0[0].starts_with("[Error { message: \"Too many requests"));
    assert!(body(r#"{"Message":"denied"}"#).0[0].contains("denied"));
    let typed = body(r#"{"__type":"a#ValidationException","message":"no"}"#);
    assert!(typed.0[0].contains("code: Some(\"a#ValidationException\")"));
    assert_eq!(
        body("{}"),
        (
            vec!["[Unknown]".to_owned()],
            Counts {
                unknown: 1,
                ..Counts::default()
            }
        )
    );
    assert_eq!(body("[]").1.unknown, 1);
    assert_eq!(body("{").1.cut, 1);
    assert_eq!(body("{}}").1.malformed, 1);
}
