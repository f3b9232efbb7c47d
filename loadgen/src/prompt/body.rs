//! What a request says, in no API's form yet.

use crate::api::{Api, Asked};
use crate::client::CalledTool;
use bytes::Bytes;
use serde_json::Value;
use std::borrow::Cow;

/// Who says a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    System,
    User,
    Assistant,
    Tool,
}

impl Role {
    /// The word of the chat API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// One message of a chat.
#[derive(Debug, Clone)]
pub(crate) struct Message<'a> {
    pub(crate) role: Role,
    pub(crate) content: Cow<'a, str>,
    pub(crate) tool_calls: &'a [CalledTool],
    pub(crate) tool_call_id: Option<&'a str>,
}

impl<'a> Message<'a> {
    fn of(role: Role, content: impl Into<Cow<'a, str>>) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: &[],
            tool_call_id: None,
        }
    }

    /// What a user says.
    pub(crate) fn user(content: impl Into<Cow<'a, str>>) -> Self {
        Self::of(Role::User, content)
    }

    /// What goes before everything.
    pub(crate) fn system(content: impl Into<Cow<'a, str>>) -> Self {
        Self::of(Role::System, content)
    }

    /// What the model said.
    pub(crate) fn assistant(content: impl Into<Cow<'a, str>>) -> Self {
        Self::of(Role::Assistant, content)
    }

    /// The same, with the tool calls that the model made.
    pub(crate) fn calling(mut self, calls: &'a [CalledTool]) -> Self {
        self.tool_calls = calls;
        self
    }

    /// What the tool of the call `id` said.
    pub(crate) fn tool(id: &'a str, content: &'a str) -> Self {
        Self {
            tool_call_id: Some(id),
            ..Self::of(Role::Tool, content)
        }
    }
}

/// The tools that a request offers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tools<'a> {
    /// As the API has them.
    pub(crate) offer: &'a Value,
    /// The one that the model must call; `None`: none, it must answer in text.
    pub(crate) call: Option<&'a str>,
}

/// What all bodies of a chain have in common.
#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub(crate) api: Api,
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) max_tokens: u32,
    pub(crate) ignore_eos: bool,
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
        let asked = Asked {
            model: &self.model,
            stream: self.stream,
            max_tokens: self.max_tokens,
            ignore_eos: self.ignore_eos,
            seed,
            tools,
        };
        self.api.body(messages, &asked)
    }
}
