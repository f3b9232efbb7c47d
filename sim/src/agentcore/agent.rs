//! The agent in the runtime: what it says, and the calls of a model that it makes first.

use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::{Value, json};

use super::{AgentCoreOptions, Form};
use crate::engine::words::word;
use crate::http::{Headers, Pool};

/// Fields that an agent passes on to its model, so that the calls are known as parts of one.
const PASSED_ON: [&str; 3] = ["traceparent", "tracestate", "x-hopscope-call"];
/// Most pieces of one answer.
const MAX_PIECES: u64 = 1_000_000;

/// The words that the agent says of itself.
pub(super) fn script(options: &AgentCoreOptions, number: u64) -> Vec<String> {
    let mut random = StdRng::seed_from_u64(options.seed.wrapping_add(number));
    (0..options.pieces.min(MAX_PIECES))
        .map(|_| word(&mut random).to_owned())
        .collect()
}

/// Calls the model, one call after another, and gives the words of the last answer; the error says what failed.
pub(super) async fn ask(
    engine: &Pool,
    options: &AgentCoreOptions,
    prompt: &str,
    headers: &Headers,
) -> Result<Vec<String>, String> {
    let mut messages = vec![json!({"role": "user", "content": prompt})];
    let mut said = String::new();
    for _ in 0..options.model_calls {
        let body = json!({"model": options.model, "messages": messages}).to_string();
        said = call(engine, &body, headers)
            .await
            .map_err(|why| format!("the agent's call of {} failed: {why}", engine.address()))?;
        messages.push(json!({"role": "assistant", "content": said}));
        messages.push(json!({"role": "user", "content": "go on"}));
    }
    Ok(said.split_inclusive(' ').map(str::to_owned).collect())
}

async fn call(engine: &Pool, body: &str, headers: &Headers) -> Result<String, String> {
    let mut conn = match engine.take_idle() {
        Some(conn) => conn,
        None => engine.connect().await.map_err(|error| error.to_string())?,
    };
    let passed: String = PASSED_ON
        .iter()
        .filter_map(|name| Some(format!("{name}: {}\r\n", headers.get(name)?)))
        .collect();
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n{passed}content-length: {}\r\n\r\n{body}",
        engine.address(),
        body.len()
    );
    conn.write(request.as_bytes())
        .await
        .map_err(|error| error.to_string())?;
    let head = conn
        .response_head()
        .await
        .map_err(|error| error.to_string())?;
    let framing = head.framing("POST").map_err(|error| error.to_string())?;
    let (body, _) = conn
        .body(framing, None)
        .await
        .map_err(|error| error.to_string())?;
    if head.keeps_alive() {
        engine.put(conn);
    }
    if head.status != 200 {
        return Err(format!("HTTP {}", head.status));
    }
    let answer: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
    let said = answer["choices"][0]["message"]["content"].as_str();
    Ok(said.unwrap_or_default().to_owned())
}

/// The events before the text.
pub(super) fn opening(form: Form) -> Vec<Value> {
    match form {
        Form::Strings | Form::Json => Vec::new(),
        Form::Strands => vec![
            json!({"init_event_loop": true}),
            json!({"start_event_loop": true}),
            json!({"event": {"messageStart": {"role": "assistant"}}}),
        ],
    }
}

/// The events of one piece of text; the last of them is the one that says it for clients of this form.
pub(super) fn piece(form: Form, text: &str) -> Vec<Value> {
    match form {
        Form::Strings | Form::Json => vec![text.into()],
        Form::Strands => {
            let delta = json!({"text": text});
            vec![
                json!({"event": {"contentBlockDelta": {"contentBlockIndex": 0, "delta": delta}}}),
                json!({"data": text, "delta": delta}),
            ]
        }
    }
}

/// The events after it.
pub(super) fn closing(form: Form, text: &str) -> Vec<Value> {
    match form {
        Form::Strings | Form::Json => Vec::new(),
        Form::Strands => {
            let message = json!({"role": "assistant", "content": [{"text": text}]});
            vec![
                json!({"event": {"contentBlockStop": {"contentBlockIndex": 0}}}),
                json!({"event": {"messageStop": {"stopReason": "end_turn"}}}),
                json!({"message": message}),
                json!({"result": {"stop_reason": "end_turn", "message": message}}),
            ]
        }
    }
}
