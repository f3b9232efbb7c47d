//! The request body: OpenAI chat completions.

use crate::client::CalledTool;
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;

/// One message of a chat.
#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct Message<'a> {
    pub(crate) role: &'static str,
    pub(crate) content: Cow<'a, str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tool_calls: &'a [CalledTool],
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
}

impl<'a> Message<'a> {
    /// What a user says.
    pub(crate) fn user(content: impl Into<Cow<'a, str>>) -> Self {
        Self {
            role: "user",
            content: content.into(),
            ..Self::default()
        }
    }

    /// What goes before everything.
    pub(crate) fn system(content: impl Into<Cow<'a, str>>) -> Self {
        Self {
            role: "system",
            content: content.into(),
            ..Self::default()
        }
    }

    /// What the model said.
    pub(crate) fn assistant(content: impl Into<Cow<'a, str>>) -> Self {
        Self {
            role: "assistant",
            content: content.into(),
            ..Self::default()
        }
    }
}

impl<'a> Message<'a> {
    /// The same, with the tool calls that the model made.
    pub(crate) fn calling(mut self, calls: &'a [CalledTool]) -> Self {
        self.tool_calls = calls;
        self
    }

    /// What the tool of the call `id` said.
    pub(crate) fn tool(id: &'a str, content: &'a str) -> Self {
        Self {
            role: "tool",
            content: content.into(),
            tool_call_id: Some(id),
            ..Self::default()
        }
    }
}

/// The tools that a request offers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tools<'a> {
    /// As the API has them: a list of functions.
    pub(crate) offer: &'a Value,
    /// The one that the model must call; `None`: none, it must answer in text.
    pub(crate) call: Option<&'a str>,
}

impl Tools<'_> {
    fn choice(&self) -> Value {
        match self.call {
            Some(name) => json!({"type": "function", "function": {"name": name}}),
            None => "none".into(),
        }
    }
}

/// What all bodies of a chain have in common.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) max_tokens: u32,
    pub(crate) ignore_eos: bool,
}

#[derive(Serialize)]
struct Wire<'a> {
    model: &'a str,
    messages: &'a [Message<'a>],
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

/// The `seed` of a request: nine digits for every value, so that bodies keep their length.
fn nine_digits(seed: u64) -> u32 {
    100_000_000 + u32::try_from(seed % 900_000_000).unwrap_or_default()
}

impl Body {
    /// The body that asks `messages`, with the sampling seed `seed`.
    pub(crate) fn of(&self, messages: &[Message<'_>], seed: u64) -> Bytes {
        self.offering(messages, seed, None)
    }

    /// The same, with tools.
    pub(crate) fn offering(
        &self,
        messages: &[Message<'_>],
        seed: u64,
        tools: Option<Tools<'_>>,
    ) -> Bytes {
        // The arguments of a call end where their grammar does: going on after it would break them.
        let calls = tools.is_some_and(|tools| tools.call.is_some());
        let wire = Wire {
            model: &self.model,
            messages,
            stream: self.stream,
            stream_options: self.stream.then_some(StreamOptions {
                include_usage: true,
            }),
            max_tokens: self.max_tokens,
            ignore_eos: (self.ignore_eos && !calls).then_some(true),
            temperature: 0,
            seed: nine_digits(seed),
            tools: tools.map(|tools| tools.offer),
            tool_choice: tools.map(|tools| tools.choice()),
        };
        // Strings and numbers into memory: there is nothing in it that can fail.
        serde_json::to_vec(&wire).unwrap_or_default().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_is_what_the_method_asks_for() {
        let body = Body {
            model: "m \"x\"".to_owned(),
            stream: true,
            max_tokens: 16,
            ignore_eos: true,
        };
        let bytes = body.of(&[Message::user("table chair")], 7);
        assert_eq!(
            std::str::from_utf8(&bytes).unwrap(),
            r#"{"model":"m \"x\"","messages":[{"role":"user","content":"table chair"}],"stream":true,"stream_options":{"include_usage":true},"max_tokens":16,"ignore_eos":true,"temperature":0,"seed":100000007}"#
        );
        assert_eq!(
            body.of(&[Message::user("a")], u64::MAX).len(),
            body.of(&[Message::user("b")], 0).len()
        );
        let whole = Body {
            stream: false,
            ignore_eos: false,
            ..body
        };
        let text = String::from_utf8(whole.of(&[], 0).to_vec()).unwrap();
        assert!(
            !text.contains("stream_options") && !text.contains("ignore_eos"),
            "{text}"
        );
    }

    #[test]
    fn a_body_with_tools_says_which_one_is_to_be_called() {
        let body = Body {
            model: "m".to_owned(),
            stream: true,
            max_tokens: 16,
            ignore_eos: true,
        };
        let offer = json!([{"type": "function", "function": {"name": "f"}}]);
        let text = |call| {
            let tools = Tools {
                offer: &offer,
                call,
            };
            let messages = [Message::tool("c", "7"), Message::assistant("").calling(&[])];
            String::from_utf8(body.offering(&messages, 7, Some(tools)).to_vec()).unwrap()
        };
        let named = text(Some("f"));
        assert!(named.contains(r#"{"role":"tool","content":"7","tool_call_id":"c"},{"role":"assistant","content":""}"#), "{named}");
        assert!(
            named.contains(r#""tool_choice":{"function":{"name":"f"},"type":"function"}"#),
            "{named}"
        );
        assert!(!named.contains("ignore_eos"), "{named}");
        let none = text(None);
        assert!(
            none.contains(r#""tool_choice":"none""#) && none.contains("ignore_eos"),
            "{none}"
        );
    }
}
