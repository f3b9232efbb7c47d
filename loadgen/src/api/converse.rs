//! Bedrock's Converse (service model `bedrock-runtime` 2023-09-30). Turns of users and assistants alternate, results of
//! tools stand in a user's turn, a system prompt apart. `maxTokens` is always set: the quota of tokens is reserved by it.

use super::Asked;
use crate::client::CalledTool;
use crate::prompt::{Message, Role};
use bytes::Bytes;
use rmcp::model::Tool;
use serde::Serialize;
use serde_json::{Value, json};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Block<'a>>,
    messages: Vec<Turn<'a>>,
    inference_config: InferenceConfig,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InferenceConfig {
    max_tokens: u32,
    temperature: u8,
}

/// A block of content: an object with the one member that its kind is.
#[derive(Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Block<'a> {
    Text(&'a str),
    ToolUse {
        tool_use_id: &'a str,
        name: &'a str,
        input: Value,
    },
    ToolResult {
        tool_use_id: &'a str,
        content: Vec<Block<'a>>,
    },
    Json(Value),
    CachePoint {
        #[serde(rename = "type")]
        kind: &'static str,
    },
}

/// The body that asks `messages`; a system prompt of `cache_from` characters or more ends in a cache point.
pub(super) fn body(messages: &[Message<'_>], asked: &Asked<'_>, cache_from: Option<u64>) -> Bytes {
    let mut system = Vec::new();
    let mut characters = 0;
    let mut turns: Vec<Turn<'_>> = Vec::new();
    for message in messages {
        let role = match message.role {
            Role::System => {
                characters += message.content.chars().count() as u64;
                system.extend(text(&message.content));
                continue;
            }
            Role::Assistant => "assistant",
            Role::User | Role::Tool => "user",
        };
        let content = blocks(message);
        match turns.last_mut() {
            Some(turn) if turn.role == role => turn.content.extend(content),
            // Converse takes no empty turn: its neighbours become one.
            _ if content.is_empty() => {}
            _ => turns.push(Turn { role, content }),
        }
    }
    if !system.is_empty() && cache_from.is_some_and(|from| characters >= from) {
        system.push(Block::CachePoint { kind: "default" });
    }
    let request = Request {
        system,
        messages: turns,
        inference_config: InferenceConfig {
            max_tokens: asked.max_tokens,
            temperature: 0,
        },
        tool_config: asked.tools.map(|tools| match tools.call {
            Some(name) => json!({"tools": tools.offer, "toolChoice": {"tool": {"name": name}}}),
            // There is no word for *none*, and a conversation that used tools must offer them.
            None => json!({"tools": tools.offer}),
        }),
    };
    // Strings and numbers into memory: there is nothing in it that can fail.
    serde_json::to_vec(&request).unwrap_or_default().into()
}

fn blocks<'a>(message: &'a Message<'_>) -> Vec<Block<'a>> {
    let Some(id) = message.tool_call_id else {
        let calls = message.tool_calls.iter().map(called);
        return text(&message.content).into_iter().chain(calls).collect();
    };
    // A tool may have nothing to say, and its result must be told all the same.
    let said = text(&message.content).unwrap_or(Block::Json(json!({})));
    vec![Block::ToolResult {
        tool_use_id: id,
        content: vec![said],
    }]
}

/// A text without anything in it is refused.
fn text(said: &str) -> Option<Block<'_>> {
    (!said.trim().is_empty()).then_some(Block::Text(said))
}

fn called(call: &CalledTool) -> Block<'_> {
    let input = serde_json::from_str(&call.arguments).ok();
    Block::ToolUse {
        tool_use_id: &call.id,
        name: &call.name,
        // Only an object may be said; what the model wrote instead was not followed either.
        input: input.filter(Value::is_object).unwrap_or_else(|| json!({})),
    }
}

/// An MCP tool as the API has it. An empty description is refused, none is not.
pub(super) fn offered(tool: &Tool) -> Value {
    let mut spec = json!({"name": tool.name, "inputSchema": {"json": *tool.input_schema}});
    if let Some(text) = tool.description.as_deref().filter(|text| !text.is_empty()) {
        spec["description"] = text.into();
    }
    json!({"toolSpec": spec})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::Tools;

    fn asked(tools: Option<Tools<'_>>) -> Asked<'_> {
        Asked {
            model: "us.m:0",
            stream: true,
            max_tokens: 16,
            ignore_eos: true,
            seed: 7,
            tools,
        }
    }

    fn value(messages: &[Message<'_>], tools: Option<Tools<'_>>, cache: Option<u64>) -> Value {
        serde_json::from_slice(&body(messages, &asked(tools), cache)).unwrap()
    }

    #[test]
    fn the_body_has_the_most_tokens_that_are_reserved_and_nothing_that_converse_refuses() {
        let text = body(&[Message::user("table chair")], &asked(None), None);
        assert_eq!(
            std::str::from_utf8(&text).unwrap(),
            r#"{"messages":[{"role":"user","content":[{"text":"table chair"}]}],"inferenceConfig":{"maxTokens":16,"temperature":0}}"#
        );
    }

    #[test]
    fn a_long_system_prompt_ends_in_a_cache_point() {
        let messages = [Message::system("größe"), Message::user("a")];
        let long = value(&messages, None, Some(5));
        assert_eq!(
            long["system"],
            json!([{"text": "größe"}, {"cachePoint": {"type": "default"}}])
        );
        for cache in [None, Some(6)] {
            assert_eq!(
                value(&messages, None, cache)["system"],
                json!([{"text": "größe"}])
            );
        }
        let none = value(&[Message::user("a")], None, Some(0));
        assert!(none.get("system").is_none());
    }

    #[test]
    fn turns_alternate_and_results_stand_before_the_next_question() {
        let calls = [
            CalledTool {
                id: "1".to_owned(),
                name: "f".to_owned(),
                arguments: "{\"x\":1}".to_owned(),
            },
            CalledTool {
                id: "2".to_owned(),
                name: "g".to_owned(),
                arguments: "[".to_owned(),
            },
        ];
        let offer = json!([{"toolSpec": {"name": "f"}}]);
        let messages = [
            Message::user("a"),
            Message::assistant(" ").calling(&calls),
            Message::tool("1", "one"),
            Message::tool("2", ""),
            Message::user("b"),
            Message::assistant(""),
            Message::user("c"),
        ];
        let tools = |call| {
            Some(Tools {
                offer: &offer,
                call,
            })
        };
        let said = value(&messages, tools(Some("f")), None);
        assert_eq!(
            said["messages"],
            json!([
                {"role": "user", "content": [{"text": "a"}]},
                {"role": "assistant", "content": [
                    {"toolUse": {"toolUseId": "1", "name": "f", "input": {"x": 1}}},
                    {"toolUse": {"toolUseId": "2", "name": "g", "input": {}}},
                ]},
                {"role": "user", "content": [
                    {"toolResult": {"toolUseId": "1", "content": [{"text": "one"}]}},
                    {"toolResult": {"toolUseId": "2", "content": [{"json": {}}]}},
                    {"text": "b"}, {"text": "c"},
                ]},
            ])
        );
        assert_eq!(
            said["toolConfig"],
            json!({"tools": offer, "toolChoice": {"tool": {"name": "f"}}})
        );
        let free = value(&messages, tools(None), None);
        assert_eq!(free["toolConfig"], json!({"tools": offer}));
    }
}
