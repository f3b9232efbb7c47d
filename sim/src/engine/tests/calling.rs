//! Answers that call the tools of a request.

use super::*;
use serde_json::{Value, json};

fn request(stream: bool, choice: &Value, most: u64) -> String {
    json!({
        "model": "m", "stream": stream, "max_tokens": most,
        "stream_options": {"include_usage": true},
        "messages": [{"role": "user", "content": "a b c"}],
        "tools": [
            {"type": "function", "function": {"name": "look", "parameters": {
                "type": "object", "required": ["at"],
                "properties": {"at": {"type": "string", "examples": ["the \"whole\" of it"]}}}}},
            {"type": "other"}
        ],
        "tool_choice": choice
    })
    .to_string()
}

async fn ask(engine: &Running, body: &str) -> Answer {
    let mut client = Client::connect(&engine.address).await;
    client.post(CHAT, "x-request-id: r\r\n", body).await
}

#[tokio::test]
async fn a_named_tool_is_called_in_pieces_that_usage_counts() {
    let engine = Running::engine(quick()).await;
    let named = json!({"type": "function", "function": {"name": "look"}});
    let answer = ask(&engine, &request(true, &named, 100)).await;
    let chunks = answer.chunks();
    let calls: Vec<&Value> = chunks
        .iter()
        .map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"][0])
        .filter(|call| !call.is_null())
        .collect();
    assert_eq!(
        (&calls[0]["function"]["name"], &calls[0]["id"]),
        (&"look".into(), &"call-r".into())
    );
    assert!(calls[1..].iter().all(|call| call["id"].is_null()));
    let arguments: String = calls
        .iter()
        .map(|call| call["function"]["arguments"].as_str().unwrap())
        .collect();
    assert_eq!(arguments, r#"{"at":"the \"whole\" of it"}"#);
    assert!(calls.len() > 3);
    let said = |key: &str| {
        chunks
            .iter()
            .any(|c| c["choices"][0]["finish_reason"] == key)
    };
    assert!(said("tool_calls") && !said("length"));
    let usage = chunks.iter().find(|c| c["usage"].is_object()).unwrap();
    assert_eq!(usage["usage"]["completion_tokens"], calls.len());

    let whole: Value =
        serde_json::from_str(&ask(&engine, &request(false, &named, 100)).await.body()).unwrap();
    let call = &whole["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(
        call["function"],
        json!({"name": "look", "arguments": arguments})
    );
    // Too few tokens cut the arguments, as they do in a real engine.
    let cut = ask(&engine, &request(true, &named, 2)).await;
    assert!(
        cut.chunks()
            .iter()
            .any(|c| c["choices"][0]["finish_reason"] == "length")
    );
    let truth = engine.stop().await.remove(0);
    assert_complete(&truth);
    assert_eq!(truth.text_events_written as usize, calls.len());
}

#[tokio::test]
async fn without_a_choice_only_a_willing_engine_calls() {
    let text = |answer: &Answer| answer.content().split_whitespace().count();
    let engine = Running::engine(quick()).await;
    assert_eq!(
        text(&ask(&engine, &request(true, &Value::Null, 5)).await),
        5
    );
    let unknown = json!({"type": "function", "function": {"name": "nothing"}});
    assert_eq!(
        ask(&engine, &request(true, &unknown, 5)).await.status(),
        400
    );
    let willing = Running::engine(EngineOptions {
        call_tools: true,
        ..quick()
    })
    .await;
    assert_eq!(
        text(&ask(&willing, &request(true, &json!("auto"), 50)).await),
        0
    );
    assert_eq!(
        text(&ask(&willing, &request(true, &json!("none"), 5)).await),
        5
    );
}
