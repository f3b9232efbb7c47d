//! OpenAI's chat completions.

use super::Asked;
use crate::client::CalledTool;
use crate::prompt::Message;
use bytes::Bytes;
use rmcp::model::Tool;
use serde::Serialize;
use serde_json::{Value, json};

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: Vec<Said<'a>>,
    stream: bool,
    /// Gateways force it on their upstream side: direct arms must ask for it too, or the engine
    /// would have other work to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ignore_eos: Option<bool>,
    temperature: u8,
    seed: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Said<'a> {
    role: &'static str,
    content: &'a str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl<'a> From<&'a CalledTool> for Call<'a> {
    fn from(call: &'a CalledTool) -> Self {
        Self {
            id: &call.id,
            kind: "function",
            function: Function {
                name: &call.name,
                arguments: &call.arguments,
            },
        }
    }
}

impl<'a> From<&'a Message<'a>> for Said<'a> {
    fn from(message: &'a Message<'a>) -> Self {
        Self {
            role: message.role.name(),
            content: &message.content,
            tool_calls: message.tool_calls.iter().map(Call::from).collect(),
            tool_call_id: message.tool_call_id,
        }
    }
}

pub(super) fn body(messages: &[Message<'_>], asked: &Asked<'_>) -> Bytes {
    // The arguments of a call end where their grammar does: going on after it would break them.
    let calls = asked.tools.is_some_and(|tools| tools.call.is_some());
    let request = Request {
        model: asked.model,
        messages: messages.iter().map(Said::from).collect(),
        stream: asked.stream,
        stream_options: asked.stream.then_some(StreamOptions {
            include_usage: true,
        }),
        max_tokens: asked.max_tokens,
        ignore_eos: (asked.ignore_eos && !calls).then_some(true),
        temperature: 0,
        seed: nine_digits(asked.seed),
        tools: asked.tools.map(|tools| tools.offer),
        tool_choice: asked.tools.map(|tools| choice(tools.call)),
    };
    // Strings and numbers into memory: there is nothing in it that can fail.
    serde_json::to_vec(&request).unwrap_or_default().into()
}

/// The `seed` of a request: nine digits for every value, so that bodies keep their length.
fn nine_digits(seed: u64) -> u32 {
    100_000_000 + u32::try_from(seed % 900_000_000).unwrap_or_default()
}

fn choice(call: Option<&str>) -> Value {
    match call {
        Some(name) => json!({"type": "function", "function": {"name": name}}),
        None => "none".into(),
    }
}

/// An MCP tool as the API has it.
pub(super) fn offered(tool: &Tool) -> Value {
    json!({"type": "function", "function": {
        "name": tool.name,
        "description": tool.description.as_deref().unwrap_or_default(),
        "parameters": *tool.input_schema,
    }})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::Tools;

    const ASKED: Asked<'_> = Asked {
        model: "m \"x\"",
        stream: true,
        max_tokens: 16,
        ignore_eos: true,
        seed: 7,
        tools: None,
    };

    fn text(messages: &[Message<'_>], asked: Asked<'_>) -> String {
        String::from_utf8(body(messages, &asked).to_vec()).unwrap()
    }

    #[test]
    fn the_body_is_what_the_method_asks_for() {
        assert_eq!(
            text(&[Message::user("table chair")], ASKED),
            r#"{"model":"m \"x\"","messages":[{"role":"user","content":"table chair"}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":16,"ignore_eos":true,"temperature":0,"seed":100000007}"#
        );
        let seeded = |seed| text(&[Message::user("a")], Asked { seed, ..ASKED });
        assert_eq!(seeded(u64::MAX).len(), seeded(0).len());
        let whole = Asked {
            stream: false,
            ignore_eos: false,
            ..ASKED
        };
        let text = text(&[], whole);
        assert!(
            !text.contains("stream_options") && !text.contains("ignore_eos"),
            "{text}"
        );
    }

    #[test]
    fn a_body_with_tools_says_which_one_is_to_be_called() {
        let offer = json!([{"type": "function", "function": {"name": "f"}}]);
        let called = [CalledTool {
            id: "c".to_owned(),
            name: "f".to_owned(),
            arguments: "{\"x\": 1}".to_owned(),
        }];
        let with = |call| {
            let tools = Tools {
                offer: &offer,
                call,
            };
            let messages = [
                Message::assistant("").calling(&called),
                Message::tool("c", "7"),
            ];
            let asked = Asked {
                tools: Some(tools),
                ..ASKED
            };
            text(&messages, asked)
        };
        let named = with(Some("f"));
        assert!(named.contains(r#"{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"x\": 1}"}}]},{"role":"tool","content":"7","tool_call_id":"c"}"#), "{named}");
        assert!(
            named.contains(r#""tool_choice":{"function":{"name":"f"},"type":"function"}"#),
            "{named}"
        );
        assert!(!named.contains("ignore_eos"), "{named}");
        let none = with(None);
        assert!(
            none.contains(r#""tool_choice":"none""#) && none.contains("ignore_eos"),
            "{none}"
        );
    }
}
