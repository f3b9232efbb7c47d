//! Bedrock's own API: InvokeModel, guardrails, signatures.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::*;
use crate::aws::KeyOptions;

const CONVERSE: &str = "/model/us.m%3A0/converse";
const CONVERSE_STREAM: &str = "/model/us.m%3A0/converse-stream";
const INVOKE: &str = "/model/us.m%3A0/invoke";
const INVOKE_STREAM: &str = "/model/us.m%3A0/invoke-with-response-stream";

/// A frame as a client reads it.
struct Frame {
    kind: String,
    payload: Value,
}

/// The frames of an answer, by a reading that shares nothing with the stand-in.
fn frames(answer: &Answer) -> Vec<Frame> {
    let head = answer.bytes.windows(4).position(|it| it == b"\r\n\r\n");
    let mut chunked = &answer.bytes[head.unwrap() + 4..];
    let mut body = Vec::new();
    loop {
        let line = chunked.windows(2).position(|it| it == b"\r\n").unwrap();
        let size = std::str::from_utf8(&chunked[..line]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        body.extend_from_slice(&chunked[line + 2..line + 2 + size]);
        chunked = &chunked[line + 4 + size..];
    }
    let number = |at: usize| u32::from_be_bytes(body[at..at + 4].try_into().unwrap()) as usize;
    let (mut at, mut frames) = (0, Vec::new());
    while at < body.len() {
        let (total, headers) = (number(at), number(at + 4));
        assert_eq!(number(at + 8) as u32, crc32fast::hash(&body[at..at + 8]));
        let sum = number(at + total - 4) as u32;
        assert_eq!(sum, crc32fast::hash(&body[at..at + total - 4]));
        let lines = String::from_utf8_lossy(&body[at + 12..at + 12 + headers]).into_owned();
        // The value stands behind its type and two bytes of length.
        let kind = [":event-type", ":exception-type"]
            .iter()
            .find_map(|name| lines.split_once(name))
            .unwrap();
        let kind = kind.1[3..].chars().take_while(char::is_ascii_alphanumeric);
        frames.push(Frame {
            kind: kind.collect(),
            payload: serde_json::from_slice(&body[at + 12 + headers..at + total - 4]).unwrap(),
        });
        at += total;
    }
    frames
}

/// The native events in chunks.
fn native(answer: &Answer) -> Vec<Value> {
    let frames = frames(answer);
    let chunk = |frame: &Frame| {
        assert_eq!(frame.kind, "chunk");
        assert!(!frame.payload["p"].as_str().unwrap().is_empty());
        let bytes = STANDARD.decode(frame.payload["bytes"].as_str().unwrap());
        serde_json::from_slice(&bytes.unwrap()).unwrap()
    };
    frames.iter().map(chunk).collect()
}

fn field(answer: &Answer, name: &str) -> Option<String> {
    let text = answer.text();
    let head = text.split("\r\n\r\n").next().unwrap();
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    fields
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value.to_owned())
}

fn messages(more: &Value) -> String {
    let mut body = json!({
        "anthropic_version": "bedrock-2023-05-31", "max_tokens": 8, "system": "be brief",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "one two three"}]}]
    });
    let more = more.as_object().unwrap().clone();
    body.as_object_mut().unwrap().extend(more);
    body.to_string()
}

const LLAMA: &str = r#"{"prompt":"one two three","max_gen_len":8}"#;

async fn ask(engine: &Running, path: &str, fields: &str, body: &str) -> Answer {
    let mut client = Client::connect(&engine.address).await;
    client.post(path, fields, body).await
}

fn whole(answer: &Answer) -> Value {
    assert_eq!(answer.status(), 200, "{}", answer.text());
    serde_json::from_str(&answer.body()).unwrap()
}

#[tokio::test]
async fn anthropics_events_come_in_chunks_with_what_bedrock_measured() {
    let engine = Running::engine(EngineOptions {
        ttft_us: 40_000,
        gap_us: 5_000,
        reasoning_tokens: 3,
        ..EngineOptions::default()
    })
    .await;
    let answer = ask(&engine, INVOKE_STREAM, "", &messages(&json!({}))).await;
    let kind = field(&answer, "content-type").unwrap();
    assert_eq!(kind, "application/vnd.amazon.eventstream");
    let told = field(&answer, "x-amzn-bedrock-content-type");
    assert_eq!(told.as_deref(), Some("application/json"));
    let events = native(&answer);
    let mut kinds: Vec<&str> = events
        .iter()
        .map(|it| it["type"].as_str().unwrap())
        .collect();
    kinds.dedup();
    let (start, delta, stop) = (
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
    );
    assert_eq!(
        kinds,
        [
            "message_start",
            start,
            delta,
            stop,
            start,
            delta,
            stop,
            "message_delta",
            "message_stop"
        ]
    );
    assert_eq!(events[0]["message"]["usage"]["input_tokens"], 5);
    let said = |key: &str| -> String {
        events
            .iter()
            .filter_map(|it| it["delta"][key].as_str())
            .collect()
    };
    assert_eq!(said("thinking").split_whitespace().count(), 3);
    assert_eq!(said("text").split_whitespace().count(), 5);
    let end = &events[events.len() - 2];
    assert_eq!(end["delta"]["stop_reason"], "max_tokens");
    assert_eq!(end["usage"]["output_tokens"], 8);
    let metrics = &events.last().unwrap()["amazon-bedrock-invocationMetrics"];
    assert_eq!(
        (&metrics["inputTokenCount"], &metrics["outputTokenCount"]),
        (&5.into(), &8.into())
    );
    assert!(metrics["cacheReadInputTokenCount"].is_null());
    let (first, all) = (
        metrics["firstByteLatency"].as_u64().unwrap(),
        metrics["invocationLatency"].as_u64().unwrap(),
    );
    let truth = engine.stop().await.remove(0);
    assert_complete(&truth);
    let read = truth.mark(Mark::RequestBody).unwrap().read_at.unwrap();
    let since = |at: u64| (at - read) / 1_000_000;
    // Measured just before the write, in whole milliseconds.
    assert!(first >= 40 && all >= 75, "{metrics}");
    assert!(first <= since(truth.first_token().unwrap().write_begin));
    assert!(all <= since(truth.mark(Mark::Usage).unwrap().write_begin.unwrap()));
    let offset = truth.tokens.last().unwrap().end_text_offset;
    assert_eq!(offset as usize, said("text").len());
}

#[tokio::test]
async fn llamas_last_event_has_the_reason_and_the_metrics() {
    let engine = Running::engine(quick()).await;
    let events = native(&ask(&engine, INVOKE_STREAM, "", LLAMA).await);
    assert_eq!(events.len(), 9);
    assert_eq!(events[0]["prompt_token_count"], 3);
    let counts: Vec<u64> = events
        .iter()
        .map(|it| it["generation_token_count"].as_u64().unwrap())
        .collect();
    assert_eq!(counts, [1, 2, 3, 4, 5, 6, 7, 8, 8]);
    let reasons = events.iter().map(|it| it["stop_reason"].as_str());
    assert_eq!(reasons.flatten().collect::<Vec<_>>(), ["length"]);
    let last = events.last().unwrap();
    assert_eq!(
        last["amazon-bedrock-invocationMetrics"]["outputTokenCount"],
        8
    );
    let truth = engine.stop().await.remove(0);
    assert_complete(&truth);
    let finish = truth.mark(Mark::Finish).unwrap();
    assert_eq!(
        finish.write_begin,
        truth.mark(Mark::Usage).unwrap().write_begin
    );
}

#[tokio::test]
async fn whole_answers_have_the_form_of_the_request_and_counts_in_their_head() {
    let engine = Running::engine(EngineOptions {
        ttft_us: 30_000,
        ..quick()
    })
    .await;
    let answer = ask(&engine, INVOKE, "", &messages(&json!({}))).await;
    let said = whole(&answer);
    assert_eq!(said["content"][0]["type"], "text");
    assert_eq!(
        (&said["type"], &said["model"]),
        (&"message".into(), &"us.m:0".into())
    );
    assert_eq!(said["usage"]["output_tokens"], 8);
    let number = |name: &str| -> u64 { field(&answer, name).unwrap().parse().unwrap() };
    assert_eq!(number("x-amzn-bedrock-input-token-count"), 5);
    assert_eq!(number("x-amzn-bedrock-output-token-count"), 8);
    assert!(number("x-amzn-bedrock-invocation-latency") >= 33);
    let answer = ask(&engine, INVOKE, "", LLAMA).await;
    let said = whole(&answer);
    let text = said["generation"].as_str().unwrap();
    assert_eq!(text.split_whitespace().count(), 8);
    assert_eq!(
        (&said["prompt_token_count"], &said["stop_reason"]),
        (&3.into(), &"length".into())
    );
    let wrong = ask(&engine, INVOKE, "", "{}").await;
    assert_eq!(wrong.status(), 400);
    let kind = field(&wrong, "x-amzn-errortype").unwrap();
    assert!(kind.starts_with("ValidationException:"), "{kind}");
    assert!(wrong.body().contains("anthropic_version"));
    engine.stop().await;
}

#[tokio::test]
async fn tools_are_called_and_faults_injected_in_this_form_too() {
    let engine = Running::engine(quick()).await;
    let tools = json!({"max_tokens": 90, "tool_choice": {"type": "tool", "name": "look"}, "tools": [
        {"name": "look", "input_schema": {"required": ["at"], "properties": {"at": {"examples": ["it"]}}}}]});
    let events = native(&ask(&engine, INVOKE_STREAM, "", &messages(&tools)).await);
    let start = &events[1]["content_block"];
    assert_eq!(
        (&start["type"], &start["name"]),
        (&"tool_use".into(), &"look".into())
    );
    let input: String = events
        .iter()
        .filter_map(|it| it["delta"]["partial_json"].as_str())
        .collect();
    assert_eq!(input, r#"{"at":"it"}"#);
    assert_eq!(events[events.len() - 2]["delta"]["stop_reason"], "tool_use");
    let said = whole(&ask(&engine, INVOKE, "", &messages(&tools)).await);
    assert_eq!(said["content"][0]["input"], json!({"at": "it"}));

    let fault = "x-sim-fault: error-event=2\r\n";
    for body in [messages(&json!({})), LLAMA.to_owned()] {
        let cut = frames(&ask(&engine, INVOKE_STREAM, fault, &body).await);
        let last = cut.last().unwrap();
        assert_eq!(last.kind, "internalServerException");
        assert!(last.payload["message"].is_string());
        assert!(cut.iter().filter(|it| it.kind == "chunk").count() >= 2);
    }
    let refused = ask(&engine, INVOKE, "x-sim-fault: status=503\r\n", LLAMA).await;
    let kind = field(&refused, "x-amzn-errortype").unwrap();
    assert!(kind.starts_with("ServiceUnavailableException:"), "{kind}");
    engine.stop().await;
}

fn guarded() -> EngineOptions {
    EngineOptions {
        ttft_us: 20_000,
        echo_system: true,
        guardrail: GuardrailOptions {
            guardrail_words: vec!["Forbidden".to_owned(), "canary".to_owned()],
            guardrail_latency_us: 30_000,
        },
        ..quick()
    }
}

fn conversation(system: &str, text: &str, named: bool) -> String {
    let mut body = json!({
        "system": [{"text": system}], "inferenceConfig": {"maxTokens": 6},
        "messages": [{"role": "user", "content": [{"text": text}]}]
    });
    if named {
        body["guardrailConfig"] =
            json!({"guardrailIdentifier": "g1", "guardrailVersion": "1", "trace": "enabled"});
    }
    body.to_string()
}

const SORRY: &str = "Sorry, the model cannot answer this question.";

#[tokio::test]
async fn a_blocked_input_costs_no_model_and_a_blocked_output_does() {
    let engine = Running::engine(guarded()).await;
    let input = whole(
        &ask(
            &engine,
            CONVERSE,
            "",
            &conversation("x", "a FORBIDDEN word", true),
        )
        .await,
    );
    assert_eq!(input["stopReason"], "guardrail_intervened");
    assert_eq!(input["output"]["message"]["content"][0]["text"], SORRY);
    let usage = &input["usage"];
    assert_eq!(
        (&usage["inputTokens"], &usage["outputTokens"]),
        (&0.into(), &0.into())
    );
    let latency = input["metrics"]["latencyMs"].as_u64().unwrap();
    assert!(latency >= 30, "{latency}");
    let found = &input["trace"]["guardrail"]["inputAssessment"]["g1"];
    assert_eq!(found["wordPolicy"]["customWords"][0]["match"], "forbidden");
    let measured = &found["invocationMetrics"];
    assert_eq!(measured["usage"]["wordPolicyUnits"], 1);
    assert_eq!(measured["usage"]["topicPolicyUnits"], 0);
    let took = measured["guardrailProcessingLatency"].as_u64().unwrap();
    assert!((30..=latency).contains(&took), "{took}");
    assert!(input["trace"]["guardrail"]["outputAssessments"].is_null());

    let output = whole(
        &ask(
            &engine,
            CONVERSE,
            "",
            &conversation("canary", "hello", true),
        )
        .await,
    );
    assert_eq!(output["stopReason"], "guardrail_intervened");
    assert_eq!(output["output"]["message"]["content"][0]["text"], SORRY);
    assert_eq!(output["usage"]["outputTokens"], 6);
    let found = &output["trace"]["guardrail"];
    assert!(found["inputAssessment"]["g1"]["wordPolicy"].is_null());
    let words = &found["outputAssessments"]["g1"][0]["wordPolicy"]["customWords"];
    assert_eq!(words[0]["match"], "canary");

    let long = "word ".repeat(300);
    let passed = whole(&ask(&engine, CONVERSE, "", &conversation("x", &long, true)).await);
    assert_eq!(passed["stopReason"], "max_tokens");
    let found = &passed["trace"]["guardrail"]["inputAssessment"]["g1"]["invocationMetrics"];
    assert_eq!(found["usage"]["wordPolicyUnits"], 2, "1500 characters");
    assert!(passed["metrics"]["latencyMs"].as_u64().unwrap() >= 80);

    let unnamed = whole(
        &ask(
            &engine,
            CONVERSE,
            "",
            &conversation("canary", "forbidden", false),
        )
        .await,
    );
    assert_eq!(unnamed["stopReason"], "max_tokens");
    assert!(unnamed["trace"].is_null());
    let truths = engine.stop().await;
    let counts: Vec<_> = truths
        .iter()
        .map(|it| it.completion_tokens.unwrap())
        .collect();
    assert_eq!(counts, [0, 6, 6, 6]);
    truths.iter().for_each(assert_complete);
}

#[tokio::test]
async fn a_guarded_stream_is_held_and_says_so_at_its_end() {
    let engine = Running::engine(guarded()).await;
    for (system, text, tokens) in [("x", "forbidden", 0), ("canary", "hello", 6)] {
        let body = conversation(system, text, true);
        let found = frames(&ask(&engine, CONVERSE_STREAM, "", &body).await);
        let kinds: Vec<&str> = found.iter().map(|it| it.kind.as_str()).collect();
        let expected = [
            "messageStart",
            "contentBlockDelta",
            "contentBlockStop",
            "messageStop",
            "metadata",
        ];
        assert_eq!(kinds, expected);
        assert_eq!(found[1].payload["delta"]["text"], SORRY);
        assert_eq!(found[3].payload["stopReason"], "guardrail_intervened");
        assert_eq!(found[4].payload["usage"]["outputTokens"], tokens);
        assert!(found[4].payload["trace"]["guardrail"].is_object());
    }
    let body = conversation("x", "hello", true);
    let passed = frames(&ask(&engine, CONVERSE_STREAM, "", &body).await);
    let texts = passed.iter().filter(|it| it.kind == "contentBlockDelta");
    assert_eq!(texts.count(), 6);
    let truth = engine.stop().await.pop().unwrap();
    assert_complete(&truth);
    let read = truth.mark(Mark::RequestBody).unwrap().read_at.unwrap();
    let first = truth.first_token().unwrap().write_begin - read;
    // Twice the guardrail, and the model to its last token.
    assert!(first >= 82_000_000, "{first} ns");
}

#[tokio::test]
async fn a_guardrail_named_in_the_head_tells_beside_the_message() {
    let engine = Running::engine(guarded()).await;
    let named = "X-Amzn-Bedrock-GuardrailIdentifier: g1\r\nX-Amzn-Bedrock-GuardrailVersion: 1\r\nX-Amzn-Bedrock-Trace: ENABLED\r\n";
    let bad = LLAMA.replace("one", "forbidden");
    let said = whole(&ask(&engine, INVOKE, named, &bad).await);
    assert_eq!(said["generation"], SORRY);
    assert_eq!(said["amazon-bedrock-guardrailAction"], "INTERVENED");
    assert!(said["amazon-bedrock-trace"]["guardrail"]["inputAssessment"]["g1"].is_object());
    let events = native(&ask(&engine, INVOKE_STREAM, named, &messages(&json!({}))).await);
    let last = events.last().unwrap();
    assert_eq!(last["amazon-bedrock-guardrailAction"], "NONE");
    let bad = messages(&json!({"messages": [{"role": "user", "content": "forbidden"}]}));
    let events = native(&ask(&engine, INVOKE_STREAM, named, &bad).await);
    assert_eq!(events[2]["delta"]["text"], SORRY);
    let last = events.last().unwrap();
    assert_eq!(last["amazon-bedrock-guardrailAction"], "INTERVENED");
    assert_eq!(
        last["amazon-bedrock-invocationMetrics"]["outputTokenCount"],
        0
    );
    engine.stop().await;
}

#[tokio::test]
async fn with_a_key_file_nobody_is_answered_who_is_not_known() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keys.json");
    std::fs::write(&path, r#"{"bearer": ["known"]}"#).unwrap();
    let keys = |path: std::path::PathBuf| KeyOptions {
        aws_keys: Some(path),
        ..KeyOptions::default()
    };
    let engine = Running::engine(EngineOptions {
        keys: keys(path),
        ..quick()
    })
    .await;
    let body = conversation("x", "hi", false);
    let refused = ask(&engine, CONVERSE, "", &body).await;
    assert_eq!(refused.status(), 403);
    let kind = field(&refused, "x-amzn-errortype").unwrap();
    assert!(kind.starts_with("MissingAuthenticationTokenException:"));
    let differs = field(&refused, "x-sim-signature-differs").unwrap();
    assert!(differs.starts_with("authorization:"));
    assert!(
        refused
            .body()
            .contains(r#""message":"Missing Authentication Token""#)
    );
    let bearer = "authorization: Bearer known\r\n";
    whole(&ask(&engine, CONVERSE, bearer, &body).await);
    // The OpenAI form of the service asks for the same, in its own form.
    let refused = ask(&engine, CHAT, "", &stream_of(1)).await;
    assert_eq!(refused.status(), 403);
    assert!(
        refused.body().contains(r#""error":{"#),
        "{}",
        refused.body()
    );
    assert_eq!(
        ask(&engine, CHAT, bearer, &stream_of(1)).await.status(),
        200
    );
    let outcomes: Vec<_> = engine.stop().await.iter().map(|it| it.outcome).collect();
    let (no, yes) = (Outcome::Rejected, Outcome::Complete);
    assert_eq!(outcomes, [no, yes, no, yes]);

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = EngineOptions {
        keys: keys(dir.path().join("nothing.json")),
        ..quick()
    };
    let served = serve(listener, options, Log::off(), std::future::pending()).await;
    let told = served.unwrap_err().to_string();
    assert!(told.contains("nothing.json"), "{told}");
}
