//! Bedrock's Converse as a form of the same requests and answers. Modelled: messages, system prompts, tools and
//! their results, `maxTokens`, `stopSequences`, cache points in messages and system prompts, guardrails, exceptions and
//! errors by their type. Not modelled: images, documents, citations, cache points among tools (tools are not counted).

use serde_json::{Value, json};

use super::shape::{Said, input};

/// A request in the form of a chat completion.
pub(super) fn as_chat(model: &str, body: &[u8]) -> Result<Value, String> {
    let asked_for: Value = serde_json::from_slice(body)
        .map_err(|error| format!("request body is not a Converse request: {error}"))?;
    let mut messages = Vec::new();
    if let Some(system) = asked_for["system"].as_array() {
        messages.push(json!({"role": "system", "content": system}));
    }
    let given = asked_for["messages"].as_array();
    for message in given.ok_or("field `messages` is missing")? {
        add_message(message, &mut messages, |part| {
            part["toolResult"].get("content")
        });
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
        "model": model,
        "messages": messages,
        "max_tokens": asked_for["inferenceConfig"]["maxTokens"],
        "stop": asked_for["inferenceConfig"]["stopSequences"],
        "tools": tools,
        "tool_choice": choice,
        "guardrailConfig": asked_for["guardrailConfig"],
        "sim": asked_for["additionalModelRequestFields"]["sim"]
    }))
}

/// Adds a message, and the results of tools in it, of which `result` gives the content, as messages of their own.
pub(super) fn add_message<'m>(
    message: &'m Value,
    messages: &mut Vec<Value>,
    result: impl Fn(&'m Value) -> Option<&'m Value>,
) {
    let Some(parts) = message["content"].as_array() else {
        messages.push(json!({"role": message["role"], "content": message["content"]}));
        return;
    };
    let mut others = Vec::new();
    let mut last_was_result = false;
    for part in parts {
        if let Some(content) = result(part) {
            // With what marks the result itself as a cache point.
            let mark = &part["cache_control"];
            messages.push(
                json!({"role": "tool", "content": [{"content": content, "cache_control": mark}]}),
            );
            last_was_result = true;
            continue;
        }
        match messages.last_mut().map(|last| &mut last["content"]) {
            // It belongs to the result before it: a message of its own would be a word of the user.
            Some(Value::Array(content)) if last_was_result && part["cachePoint"].is_object() => {
                content.push(part.clone());
            }
            _ => {
                others.push(part);
                last_was_result = false;
            }
        }
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
        content.push(json!({"toolUse": {
            "toolUseId": call["id"], "name": call["function"]["name"], "input": input(call)
        }}));
    }
    json!({"role": "assistant", "content": content})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_the_same_chat() {
        let chat = as_chat(
            "arn:aws:bedrock:us-east-1:1:imported-model/ab",
            br#"{"system":[{"text":"be brief"}],"messages":[{"role":"user","content":[{"text":"hi"}]},
                {"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"sum","input":{}}}]},
                {"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"text":"3"}]}},{"cachePoint":{"type":"default"}}]}],
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
        assert!(chat["messages"][3]["content"][1]["cachePoint"].is_object());
        assert!(as_chat("m", b"{}").unwrap_err().contains("messages"));
    }
}
