//! The gateway: tools over MCP, as JSON-RPC in one request and one answer.

use std::time::Duration;

use serde_json::{Value, json};

use super::{JSON, Service, failure, plain};
use crate::http::{Headers, simple_response};

/// Spoken where a client asks for no version.
const VERSION: &str = "2025-03-26";

/// Answers one message.
pub(super) async fn answer(service: &Service, body: &[u8], keep_alive: bool) -> Vec<u8> {
    let Ok(message) = serde_json::from_slice::<Value>(body) else {
        let said = error(&Value::Null, -32700, "the body is not JSON");
        return plain(JSON, said.to_string().as_bytes(), keep_alive);
    };
    let id = &message["id"];
    if id.is_null() {
        // A notification: there is nothing to say.
        return simple_response(202, JSON, &Headers::default(), b"", keep_alive);
    }
    let parameters = &message["params"];
    let said = match message["method"].as_str() {
        Some("initialize") => result(id, &initialized(parameters)),
        Some("ping") => result(id, &json!({})),
        Some("tools/list") => result(id, &json!({"tools": tools()})),
        Some("tools/call") => {
            if !service.takes_tool_call() {
                service.count_refused();
                return failure(429, "ThrottlingException", "Rate exceeded", keep_alive);
            }
            call(service, id, parameters).await
        }
        _ => error(
            id,
            -32601,
            "no such method; there are initialize, ping, tools/list, tools/call",
        ),
    };
    plain(JSON, said.to_string().as_bytes(), keep_alive)
}

fn initialized(parameters: &Value) -> Value {
    json!({
        "protocolVersion": parameters["protocolVersion"].as_str().unwrap_or(VERSION),
        "capabilities": {"tools": {"listChanged": false}},
        "serverInfo": {"name": "sim-agentcore-gateway", "version": env!("CARGO_PKG_VERSION")}
    })
}

/// Each is named after its target.
fn tools() -> Value {
    let number = json!({"type": "number", "examples": [2]});
    let text = json!({"type": "string", "examples": ["one two three"]});
    json!([
        {
            "name": "calculator___add",
            "description": "Adds two numbers.",
            "inputSchema": {"type": "object", "required": ["a", "b"], "properties": {"a": number, "b": number}}
        },
        {
            "name": "text___count_words",
            "description": "Counts the words of a text.",
            "inputSchema": {"type": "object", "required": ["text"], "properties": {"text": text}}
        }
    ])
}

async fn call(service: &Service, id: &Value, parameters: &Value) -> Value {
    let arguments = &parameters["arguments"];
    let (a, b) = (arguments["a"].as_f64(), arguments["b"].as_f64());
    let found = match parameters["name"].as_str().unwrap_or_default() {
        "calculator___add" => a
            .zip(b)
            .map(|(a, b)| (a + b).to_string())
            .ok_or("the arguments `a` and `b` must be numbers"),
        "text___count_words" => arguments["text"]
            .as_str()
            .map(|text| text.split_whitespace().count().to_string())
            .ok_or("the argument `text` must be a text"),
        _ => {
            let said = "no such tool; tools/list has those that are, as target___tool";
            return error(id, -32602, said);
        }
    };
    tokio::time::sleep(Duration::from_micros(service.options.tool_us)).await;
    let is_error = found.is_err();
    let text = found.unwrap_or_else(str::to_owned);
    let content = json!([{"type": "text", "text": text}]);
    result(id, &json!({"isError": is_error, "content": content}))
}

fn result(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

fn error(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}
