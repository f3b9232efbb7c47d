//! Bedrock's Converse as a form of the same requests and answers. Modelled: messages, system prompts, tools and
//! their results, `maxTokens`, usage with what was read from a cache, exceptions and errors by their type. Not
//! modelled: images, documents, guardrails, traces, citations, cache points, InvokeModel.

use serde_json::{Value, json};

use super::shape::Said;

/// The model that a path names, and whether the answer is to be streamed.
pub(super) fn asked(path: &str) -> Option<(String, bool)> {
    let rest = path.strip_prefix("/model/")?;
    let (model, operation) = rest.split_once('/')?;
    let stream = match operation {
        "converse" => false,
        "converse-stream" => true,
        _ => return None,
    };
    (!model.is_empty()).then(|| (decoded(model), stream))
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        let hex = behind
            .get(..2)
            .and_then(|two| std::str::from_utf8(two).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A request in the form of a chat completion.
pub(super) fn as_chat(path: &str, body: &[u8]) -> Result<Value, String> {
    let asked_for: Value = serde_json::from_slice(body)
        .map_err(|error| format!("request body is not a Converse request: {error}"))?;
    let mut messages = Vec::new();
    if let Some(system) = asked_for["system"].as_array() {
        messages.push(json!({"role": "system", "content": system}));
    }
    let given = asked_for["messages"].as_array();
    for message in given.ok_or("field `messages` is missing")? {
        add_message(message, &mut messages);
    }
    let config = &asked_for["toolConfig"];
    let tools: Vec<Value> = config["tools"].as_array().map_or_else(Vec::new, |tools| {
        tools.iter().filter_map(as_function).collect()
    });
    let choice = &config["toolChoice"];
    let choice = match (choice["tool"]["name"].as_str(), &choice["any"]) {
        (Some(name), _) => json!({"type": "function", "function": {"name": name}}),
        (None, Value::Object(_)) => json!("required"),
        _ => json!("auto"),
    };
    Ok(json!({
        "model": asked(path).map(|(model, _)| model),
        "messages": messages,
        "max_tokens": asked_for["inferenceConfig"]["maxTokens"],
        "tools": tools,
        "tool_choice": choice,
        "sim": asked_for["additionalModelRequestFields"]["sim"]
    }))
}

/// A message, and the results of tools in it as messages of their own.
fn add_message(message: &Value, messages: &mut Vec<Value>) {
    let parts = message["content"].as_array().map_or(&[][..], Vec::as_slice);
    let (results, others): (Vec<&Value>, Vec<&Value>) = parts
        .iter()
        .partition(|part| part["toolResult"].is_object());
    for result in results {
        let content = &result["toolResult"]["content"];
        messages.push(json!({"role": "tool", "content": content}));
    }
    if !others.is_empty() {
        messages.push(json!({"role": message["role"], "content": others}));
    }
}

fn as_function(tool: &Value) -> Option<Value> {
    let tool = tool["toolSpec"].as_object()?;
    let schema = tool.get("inputSchema").map(|schema| &schema["json"]);
    Some(json!({"type": "function", "function": {
        "name": tool.get("name"), "parameters": schema.filter(|s| s.is_object()).unwrap_or(&json!({}))
    }}))
}

/// The message of an answer that is not streamed.
pub(super) fn message(said: &Said) -> Value {
    let mut content = Vec::new();
    if !said.reasoning.is_empty() {
        let text = json!({"text": said.reasoning, "signature": "stand-in"});
        content.push(json!({"reasoningContent": {"reasoningText": text}}));
    }
    if !said.content.is_empty() {
        content.push(json!({"text": said.content}));
    }
    for call in &said.calls {
        let arguments = call["function"]["arguments"].as_str().unwrap_or("{}");
        // What a token limit cut is no JSON.
        let input = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
        content.push(json!({"toolUse": {
            "toolUseId": call["id"], "name": call["function"]["name"], "input": Value::clone(&input)
        }}));
    }
    json!({"role": "assistant", "content": content})
}

/// A finish reason of OpenAI as Bedrock names it.
pub(super) fn stop_reason(reason: &str) -> &'static str {
    match reason {
        "length" => "max_tokens",
        "tool_calls" => "tool_use",
        _ => "end_turn",
    }
}

/// The type of an error, by its status, as the service model has them.
pub(super) fn error_type(status: u16) -> &'static str {
    match status {
        400 => "ValidationException",
        403 => "AccessDeniedException",
        404 => "ResourceNotFoundException",
        408 => "ModelTimeoutException",
        424 => "ModelErrorException",
        429 => "ThrottlingException",
        503 => "ServiceUnavailableException",
        _ => "InternalServerException",
    }
}

/// The value of `x-amzn-ErrorType` for an error of this type.
pub(super) fn error_field(kind: &str) -> Vec<u8> {
    format!("{kind}:http://internal.amazon.com/coral/com.amazon.bedrock/").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_the_same_chat() {
        let path =
            "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aimported-model%2Fab/converse-stream";
        let chat = as_chat(
            path,
            br#"{"system":[{"text":"be brief"}],"messages":[{"role":"user","content":[{"text":"hi"}]},
                {"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"sum","input":{}}}]},
                {"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"3"}]}}]}],
                "inferenceConfig":{"maxTokens":7},
                "toolConfig":{"tools":[{"toolSpec":{"name":"sum","inputSchema":{"json":{"required":["x"]}}}}],
                "toolChoice":{"any":{}}}}"#,
        )
        .unwrap();
        assert_eq!(
            chat["model"],
            "arn:aws:bedrock:us-east-1:1:imported-model/ab"
        );
        let roles: Vec<&str> = chat["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|message| message["role"].as_str().unwrap())
            .collect();
        assert_eq!(roles, ["system", "user", "assistant", "tool"]);
        assert_eq!(
            chat["tools"][0]["function"]["parameters"]["required"][0],
            "x"
        );
        assert_eq!(
            (&chat["max_tokens"], &chat["tool_choice"]),
            (&json!(7), &json!("required"))
        );
        assert!(asked(path).unwrap().1);
        assert_eq!(asked("/model/m/invoke"), None);
        assert!(as_chat(path, b"{}").unwrap_err().contains("messages"));
    }
}
