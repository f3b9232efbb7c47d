//! Bedrock's InvokeModel: requests in the form of a model's own API. Modelled: Anthropic's messages (system
//! prompts, tools and their results, `max_tokens`, `stop_sequences`, `cache_control`) and Llama's prompt
//! (`max_gen_len`). Not modelled: images, citations, the template tokens in a Llama prompt (they are words of it).

use serde_json::{Value, json};

use super::converse::add_message;

/// Whose form a body has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Native {
    #[default]
    Anthropic,
    Llama,
}

/// Whose form a request has, and the request in the form of a chat completion.
pub(super) fn as_chat(model: &str, body: &[u8]) -> Result<(Native, Value), String> {
    let asked: Value = serde_json::from_slice(body)
        .map_err(|error| format!("request body is not JSON: {error}"))?;
    let (native, mut chat) = if asked["anthropic_version"].is_string() {
        (Native::Anthropic, anthropic(&asked)?)
    } else if asked["prompt"].is_string() {
        (Native::Llama, llama(&asked))
    } else {
        return Err("request body has neither `anthropic_version` (Anthropic's messages) nor `prompt` (Llama)".to_owned());
    };
    chat["model"] = model.into();
    chat["sim"] = asked["sim"].clone();
    Ok((native, chat))
}

fn llama(asked: &Value) -> Value {
    json!({
        "messages": [{"role": "user", "content": asked["prompt"]}],
        "max_tokens": asked["max_gen_len"]
    })
}

fn anthropic(asked: &Value) -> Result<Value, String> {
    if !asked["max_tokens"].is_u64() {
        return Err("field `max_tokens` is missing".to_owned());
    }
    let mut messages = Vec::new();
    if !asked["system"].is_null() {
        messages.push(json!({"role": "system", "content": asked["system"]}));
    }
    let given = asked["messages"].as_array();
    for message in given.ok_or("field `messages` is missing")? {
        add_message(message, &mut messages, |part| {
            (part["type"] == "tool_result").then(|| &part["content"])
        });
    }
    let tools = asked["tools"].as_array().map_or(&[][..], Vec::as_slice);
    let tools: Vec<Value> = tools
        .iter()
        .filter(|tool| tool["name"].is_string())
        .map(|tool| {
            let schema = tool.get("input_schema").filter(|schema| schema.is_object());
            json!({"type": "function", "function": {
                "name": tool["name"], "parameters": schema.unwrap_or(&json!({}))
            }})
        })
        .collect();
    let choice = &asked["tool_choice"];
    let choice = match choice["type"].as_str() {
        Some("tool") => json!({"type": "function", "function": {"name": choice["name"]}}),
        Some("any") => json!("required"),
        Some("none") => json!("none"),
        _ => json!("auto"),
    };
    Ok(json!({
        "messages": messages,
        "max_tokens": asked["max_tokens"],
        "stop": asked["stop_sequences"],
        "tools": tools,
        "tool_choice": choice
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_the_same_chat() {
        let (native, chat) = as_chat(
            "m",
            br#"{"anthropic_version":"bedrock-2023-05-31","max_tokens":7,"system":"be brief",
                "messages":[{"role":"user","content":"hi"},
                {"role":"assistant","content":[{"type":"tool_use","id":"a","name":"sum","input":{}}]},
                {"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"3"}],
                    "cache_control":{"type":"ephemeral"}}]}],
                "tools":[{"name":"sum","input_schema":{"required":["x"]}}],"tool_choice":{"type":"any"}}"#,
        )
        .unwrap();
        assert_eq!((native, &chat["model"]), (Native::Anthropic, &json!("m")));
        let messages = chat["messages"].as_array().unwrap();
        let roles: Vec<&str> = messages
            .iter()
            .map(|m| m["role"].as_str().unwrap())
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
        let (native, chat) = as_chat("m", br#"{"prompt":"hi there","max_gen_len":3}"#).unwrap();
        assert_eq!((native, &chat["max_tokens"]), (Native::Llama, &json!(3)));
        for (wrong, why) in [
            ("{", "JSON"),
            ("{}", "neither"),
            (r#"{"anthropic_version":"x","messages":[]}"#, "`max_tokens`"),
            (r#"{"anthropic_version":"x","max_tokens":1}"#, "`messages`"),
        ] {
            assert!(as_chat("m", wrong.as_bytes()).unwrap_err().contains(why));
        }
    }
}
