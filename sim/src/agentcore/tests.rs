use std::time::Duration;

use serde_json::Value;

use super::*;
use crate::aws::KeyOptions;
use crate::aws::sigv4::signed_fields;
use crate::clock::unix_seconds;
use crate::engine::EngineOptions;
use crate::rig::*;
use crate::truth::{Mark, Outcome};

const INVOKE: &str = "/runtimes/arn%3Aaws%3Abedrock-agentcore%3Aus-east-1%3A1%3Aruntime%2Fa-1/invocations?qualifier=DEFAULT";

fn quick() -> AgentCoreOptions {
    AgentCoreOptions {
        cold_start_ms: 0,
        cold_start_sigma: 0.0,
        first_us: 2_000,
        gap_us: 500,
        pieces: 12,
        ..AgentCoreOptions::default()
    }
}

fn session(letter: char) -> String {
    let id: String = std::iter::repeat_n(letter, 33).collect();
    format!("{}: {id}\r\n", exchange::SESSION)
}

fn field<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let head = answer.split("\r\n\r\n").next().unwrap();
    let mut fields = head.lines().filter_map(|line| line.split_once(": "));
    fields
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value)
}

async fn ask(service: &Running, fields: &str, body: &str) -> Answer {
    let mut client = Client::connect(&service.address).await;
    client.post(INVOKE, fields, body).await
}

#[tokio::test]
async fn strings_come_one_by_one_and_the_truth_agrees() {
    let service = Running::agentcore(quick()).await;
    let answer = ask(&service, "x-hopscope-call: c\r\n", r#"{"prompt":"x"}"#).await;
    assert_eq!(answer.status(), 200);
    let text = answer.text();
    assert!(
        field(&text, "content-type")
            .unwrap()
            .starts_with("text/event-stream")
    );
    // Made up, since there was none.
    assert_eq!(field(&text, exchange::SESSION).unwrap().len(), 36);
    assert!(field(&text, "x-sim-cold-start-ms").is_some());
    let said: Vec<String> = answer
        .datas()
        .iter()
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    assert_eq!(said.len(), 12);
    let truth = service.stop().await.remove(0);
    assert_eq!(
        (truth.outcome, truth.status),
        (Outcome::Complete, Some(200))
    );
    assert_eq!(truth.call.as_deref(), Some("c"));
    assert_ordered(&truth);
    let ends: Vec<u64> = truth.tokens.iter().map(|it| it.end_text_offset).collect();
    let mut end = 0;
    for (text, found) in said.iter().zip(&ends) {
        end += text.len() as u64;
        assert_eq!(*found, end);
    }
    let read = truth.mark(Mark::RequestBody).unwrap().read_at.unwrap();
    assert!(truth.tokens[11].write_begin - read >= 2_000_000 + 11 * 500_000);
}

#[tokio::test]
async fn a_strands_agent_and_json_say_the_same_words() {
    let service = Running::agentcore(AgentCoreOptions {
        agent: Form::Strands,
        ..quick()
    })
    .await;
    let events = ask(&service, "", "{}").await.chunks();
    let texts: String = events.iter().filter_map(|it| it["data"].as_str()).collect();
    let deltas: String = events
        .iter()
        .filter_map(|it| it["event"]["contentBlockDelta"]["delta"]["text"].as_str())
        .collect();
    assert_eq!(texts.split_whitespace().count(), 12);
    assert_eq!(texts, deltas);
    assert_eq!(events[0]["init_event_loop"], true);
    let last = events.last().unwrap();
    assert_eq!(
        last["result"]["message"]["content"][0]["text"],
        texts.as_str()
    );
    service.stop().await;

    let service = Running::agentcore(AgentCoreOptions {
        agent: Form::Strands,
        ..quick()
    })
    .await;
    let answer = ask(&service, "accept: application/json\r\n", "{}").await;
    let answer: Value = serde_json::from_str(&answer.body()).unwrap();
    assert_eq!(answer["result"], texts.as_str());
    assert_eq!(service.stop().await[0].text_events_written, 1);
}

#[tokio::test]
async fn the_first_call_of_a_session_pays_its_start() {
    let service = Running::agentcore(AgentCoreOptions {
        cold_start_ms: 150,
        ..quick()
    })
    .await;
    let cold = ask(&service, &session('a'), "{}").await.text();
    let warm = ask(&service, &session('a'), "{}").await.text();
    assert_eq!(field(&cold, "x-sim-cold-start-ms"), Some("150"));
    assert_eq!(field(&warm, "x-sim-cold-start-ms"), None);
    assert_eq!(field(&warm, exchange::SESSION).unwrap().len(), 33);
    let first = |truth: &crate::truth::ExchangeTruth| {
        let read = truth.mark(Mark::RequestBody).unwrap().read_at.unwrap();
        truth.first_token().unwrap().write_begin - read
    };
    let truths = service.stop().await;
    let (cold, warm) = (first(&truths[0]), first(&truths[1]));
    assert!(cold >= 152_000_000 && warm < cold / 2, "{cold} {warm}");
}

#[tokio::test]
async fn a_second_call_of_a_session_is_in_the_way_and_a_lost_client_is_not() {
    let service = Running::agentcore(AgentCoreOptions {
        first_us: 5_000_000,
        ..quick()
    })
    .await;
    let mut first = Client::connect(&service.address).await;
    first
        .send(post(INVOKE, &session('a'), "{}").as_bytes())
        .await;
    first
        .read_until(|bytes| bytes.windows(4).any(|it| it == b"\r\n\r\n"))
        .await;
    let second = ask(&service, &session('a'), "{}").await;
    assert_eq!(second.status(), 409);
    assert_eq!(
        field(&second.text(), "x-amzn-errortype"),
        Some("RetryableConflictException")
    );
    drop(first);
    service.truths(2).await;
    let mut third = Client::connect(&service.address).await;
    third
        .send(post(INVOKE, &session('a'), "{}").as_bytes())
        .await;
    let head = third
        .read_until(|bytes| bytes.windows(4).any(|it| it == b"\r\n\r\n"))
        .await;
    assert_eq!(head.status(), 200);
    let truths = service.stop().await;
    assert_eq!(truths[0].outcome, Outcome::Stopped);
}

#[tokio::test]
async fn what_cannot_be_served_is_refused_in_the_form_of_aws() {
    let service = Running::agentcore(AgentCoreOptions {
        tps: 2,
        init_limit_ms: 20,
        cold_start_ms: 500,
        ..quick()
    })
    .await;
    let mut client = Client::connect(&service.address).await;
    let short = format!("{}: short\r\n", exchange::SESSION);
    let mut told = Vec::new();
    for fields in [short, session('a'), session('b'), session('c')] {
        let answer = client.post(INVOKE, &fields, "{}").await;
        let kind = field(&answer.text(), "x-amzn-errortype")
            .unwrap()
            .to_owned();
        let body: Value = serde_json::from_str(&answer.body()).unwrap();
        assert!(body["message"].is_string());
        told.push((answer.status(), kind));
    }
    let expected = [
        (400, "ValidationException"),
        (424, "RuntimeClientError"),
        (424, "RuntimeClientError"),
        (429, "ThrottlingException"),
    ];
    assert_eq!(
        told,
        expected.map(|(status, kind)| (status, kind.to_owned()))
    );
    // A raw ARN is no label.
    let raw = "/runtimes/arn:aws:bedrock-agentcore:us-east-1:1:runtime/a-1/invocations";
    assert_eq!(client.post(raw, "", "{}").await.status(), 404);
    let stop = INVOKE.replace("invocations", "stopruntimesession");
    assert_eq!(client.post(&stop, &session('a'), "").await.status(), 404);
    client
        .send(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
        .await;
    let metrics = client.read_until(complete).await.body();
    assert!(
        metrics.contains("sim_agentcore_cold_starts_total 2\n"),
        "{metrics}"
    );
    assert!(
        metrics.contains("sim_agentcore_refused_total 1\n"),
        "{metrics}"
    );
    assert!(metrics.contains("sim_agentcore_sessions 0\n"), "{metrics}");
    drop(client);
    service.stop().await;
}

#[tokio::test]
async fn an_agent_with_an_engine_says_what_its_last_call_said() {
    let engine = Running::engine(EngineOptions {
        ttft_us: 30_000,
        gap_us: 0,
        tokens: 7,
        ..EngineOptions::default()
    })
    .await;
    let service = Running::agentcore(AgentCoreOptions {
        engine: Some(engine.address.clone()),
        model_calls: 2,
        ..quick()
    })
    .await;
    let fields = "x-hopscope-call: c\r\n";
    let answer = ask(&service, fields, r#"{"prompt":"one two"}"#).await;
    assert_eq!(answer.status(), 200, "{}", answer.text());
    let said: String = answer
        .datas()
        .iter()
        .map(|data| serde_json::from_str::<String>(data).unwrap())
        .collect();
    assert_eq!(said.split_whitespace().count(), 7);
    let calls = engine.stop().await;
    assert_eq!(calls.len(), 2);
    assert_eq!(calls[0].prompt_tokens, Some(2));
    assert!(calls[1].prompt_tokens > Some(9));
    assert!(calls.iter().all(|call| call.call.as_deref() == Some("c")));
    let truth = service.stop().await.remove(0);
    let read = truth.mark(Mark::RequestBody).unwrap().read_at.unwrap();
    assert!(truth.first_token().unwrap().write_begin - read >= 60_000_000);

    // The engine is gone.
    let alone = Running::agentcore(AgentCoreOptions {
        engine: Some("127.0.0.1:1".to_owned()),
        ..quick()
    })
    .await;
    let answer = ask(&alone, "", "{}").await;
    assert_eq!(answer.status(), 424);
    assert!(answer.body().contains("127.0.0.1:1"), "{}", answer.body());
    alone.stop().await;
}

#[tokio::test]
async fn the_gateway_lists_and_calls_tools_by_target() {
    let service = Running::agentcore(AgentCoreOptions {
        tool_tps: 3,
        ..quick()
    })
    .await;
    let mut client = Client::connect(&service.address).await;
    let mut rpc = async |body: Value| {
        let answer = client.post("/mcp", "", &body.to_string()).await;
        let said = serde_json::from_str(&answer.body()).unwrap_or(Value::Null);
        (answer.status(), said)
    };
    let asked = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}}});
    let (_, said) = rpc(asked).await;
    assert_eq!(said["result"]["protocolVersion"], "2025-06-18");
    let notice = serde_json::json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(rpc(notice).await.0, 202);
    let (_, said) = rpc(serde_json::json!({"id": "l", "method": "tools/list"})).await;
    let tools = said["result"]["tools"].as_array().unwrap();
    assert!(
        tools
            .iter()
            .all(|it| it["name"].as_str().unwrap().contains("___"))
    );
    let call = |name: &str, arguments: Value| {
        serde_json::json!({"id": 2, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}})
    };
    let (_, said) = rpc(call(
        "calculator___add",
        serde_json::json!({"a": 2, "b": 0.5}),
    ))
    .await;
    assert_eq!(said["result"]["content"][0]["text"], "2.5");
    assert_eq!(said["result"]["isError"], false);
    let (_, said) = rpc(call("text___count_words", serde_json::json!({"text": 7}))).await;
    assert_eq!(said["result"]["isError"], true);
    let (_, said) = rpc(call("add", serde_json::json!({}))).await;
    assert_eq!(said["error"]["code"], -32602);
    let (status, _) = rpc(call("calculator___add", serde_json::json!({}))).await;
    assert_eq!(status, 429, "the fourth in a second");
    let (_, said) = rpc(serde_json::json!({"id": 3, "method": "prompts/list"})).await;
    assert_eq!(said["error"]["code"], -32601);
    drop(client);
    service.stop().await;
}

#[tokio::test]
async fn both_ask_for_a_signature_of_their_own_service() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keys.json");
    let keys = r#"{"keys": {"AKID": {"secret": "s"}}, "bearer": ["b"]}"#;
    std::fs::write(&path, keys).unwrap();
    let service = Running::agentcore(AgentCoreOptions {
        keys: KeyOptions {
            aws_keys: Some(path),
            ..KeyOptions::default()
        },
        ..quick()
    })
    .await;
    let mut client = Client::connect(&service.address).await;
    for target in [INVOKE, "/mcp"] {
        let signed = |name| {
            let plain = post(target, "", "{}");
            let (head, _) = RequestHead::parse(plain.as_bytes()).unwrap().unwrap();
            // The client adds a length, which is not signed.
            let mut headers = head.headers.clone();
            headers.0.retain(|(name, _)| name != "content-length");
            let request = Received {
                method: "POST",
                target,
                headers: &headers,
                body: b"{}",
            };
            let at = unix_seconds().cast_signed();
            signed_fields(&request, ("AKID", "s", None), (name, "us-east-1"), at)
        };
        let good = client
            .post(target, &signed("bedrock-agentcore"), "{}")
            .await;
        assert!(matches!(good.status(), 200 | 202), "{}", good.text());
        let bearer = client
            .post(target, "authorization: Bearer b\r\n", "{}")
            .await;
        assert!(matches!(bearer.status(), 200 | 202));
        let other = client.post(target, &signed("bedrock"), "{}").await;
        assert_eq!(other.status(), 403);
        let told = other.text();
        let differs = field(&told, "x-sim-signature-differs").unwrap();
        assert!(
            differs.starts_with("scope: signed for service bedrock,"),
            "{told}"
        );
        assert_eq!(client.post(target, "", "{}").await.status(), 403);
    }
    drop(client);
    service.stop().await;
}

#[tokio::test]
async fn an_idle_session_is_cold_again() {
    let service = Running::agentcore(AgentCoreOptions {
        idle_timeout_ms: 50,
        ..quick()
    })
    .await;
    ask(&service, &session('a'), "{}").await;
    tokio::time::sleep(Duration::from_millis(80)).await;
    let again = ask(&service, &session('a'), "{}").await.text();
    assert!(field(&again, "x-sim-cold-start-ms").is_some());
    service.stop().await;
}

#[test]
fn the_command_line_has_the_same_defaults() {
    use clap::{Args, FromArgMatches};
    let line = AgentCoreOptions::augment_args(clap::Command::new("x"));
    let parse = |words: &[&str]| line.clone().try_get_matches_from(words);
    let parsed = AgentCoreOptions::from_arg_matches(&parse(&["x"]).unwrap()).unwrap();
    assert_eq!(parsed, AgentCoreOptions::default());
    assert!(parse(&["x", "--cold-start-sigma", "9"]).is_err());
}
