//! The request body: OpenAI chat completions.

use bytes::Bytes;
use serde::Serialize;
use std::borrow::Cow;

/// One message of a chat.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Message<'a> {
    pub(crate) role: &'static str,
    pub(crate) content: Cow<'a, str>,
}

impl<'a> Message<'a> {
    /// What a user says.
    pub(crate) fn user(content: impl Into<Cow<'a, str>>) -> Self {
        Self {
            role: "user",
            content: content.into(),
        }
    }

    /// What goes before everything.
    pub(crate) fn system(content: impl Into<Cow<'a, str>>) -> Self {
        Self {
            role: "system",
            content: content.into(),
        }
    }

    /// What the model said.
    pub(crate) fn assistant(content: impl Into<Cow<'a, str>>) -> Self {
        Self {
            role: "assistant",
            content: content.into(),
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
        let wire = Wire {
            model: &self.model,
            messages,
            stream: self.stream,
            stream_options: self.stream.then_some(StreamOptions {
                include_usage: true,
            }),
            max_tokens: self.max_tokens,
            ignore_eos: self.ignore_eos.then_some(true),
            temperature: 0,
            seed: nine_digits(seed),
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
}
