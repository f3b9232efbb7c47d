//! What an answer looks like on the wire.

mod anthropic;
mod block;
mod chunks;
mod events;
mod frames;
mod llama;

use serde_json::{Value, json};

use super::converse;
use super::invoke::Native;
use super::plan::Plan;
use super::request::Dialect;
use super::text::Addition;
use super::tool_call::Call;
use crate::http::Headers;
use chunks::Chunks;
use events::Events;
use frames::Frames;

/// Token counts of one answer.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) prompt: u64,
    pub(super) completion: u64,
    pub(super) cached: u64,
    /// Prompt tokens put into the cache.
    pub(super) written: u64,
}

impl Counts {
    /// Prompt tokens that were neither read from the cache nor written to it.
    pub(super) fn uncached(self) -> u64 {
        self.prompt.saturating_sub(self.cached + self.written)
    }

    pub(super) fn json(self) -> Value {
        json!({
            "prompt_tokens": self.prompt,
            "total_tokens": self.prompt + self.completion,
            "completion_tokens": self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached}
        })
    }
}

/// Builds the pieces of an answer into a buffer of its own.
pub(super) enum Shape {
    /// OpenAI's events, and its bodies.
    Events(Events),
    /// Bedrock's frames of Converse, and its bodies.
    Frames(Frames),
    /// Bedrock's chunks of a model's own API, and its bodies.
    Chunks(Chunks),
}

impl Shape {
    /// Of the answer to a request that was read at `begun` ns.
    pub(super) fn of(plan: &Plan, begun: u64) -> Self {
        match plan.dialect {
            Dialect::Converse { .. } => Self::Frames(Frames::new(plan, begun)),
            Dialect::Invoke { native, .. } => Self::Chunks(Chunks::new(plan, native, begun)),
            _ => Self::Events(
                Events::new(plan.dialect, &plan.id, &plan.model, plan.faults.crlf)
                    .calling(plan.call.as_ref()),
            ),
        }
    }

    /// Of a stream.
    pub(super) fn content_type(&self) -> &'static str {
        match self {
            Self::Events(_) => "text/event-stream; charset=utf-8",
            Self::Frames(_) | Self::Chunks(_) => "application/vnd.amazon.eventstream",
        }
    }

    /// A further field of a stream's head.
    pub(super) fn stream_field(&self) -> Option<(&'static str, &'static str)> {
        let told = ("x-amzn-bedrock-content-type", "application/json");
        matches!(self, Self::Chunks(_)).then_some(told)
    }

    /// Whether this dialect has role chunks.
    pub(super) fn has_role(&self) -> bool {
        match self {
            Self::Events(events) => events.has_role(),
            Self::Frames(_) => true,
            Self::Chunks(chunks) => chunks.has_role(),
        }
    }

    /// The piece that names the role.
    pub(super) fn role(&mut self, choice: u16, counts: Counts) -> &[u8] {
        match self {
            Self::Events(events) => events.role(choice),
            Self::Frames(frames) => frames.role(),
            Self::Chunks(chunks) => chunks.role(counts),
        }
    }

    /// A piece with text, with the finish reason if it rides along, padded by a field of `padding` bytes.
    pub(super) fn text(
        &mut self,
        choice: u16,
        added: &Addition,
        finish: Option<&str>,
        (counts, padding): (Counts, u64),
    ) -> &[u8] {
        match self {
            Self::Events(events) => events.text(choice, added, finish, padding),
            Self::Frames(frames) => frames.text(added, padding),
            Self::Chunks(chunks) => chunks.text(added, counts, padding),
        }
    }

    /// The piece with nothing but the finish reason, `None` where it comes with the usage.
    pub(super) fn finish_apart(
        &mut self,
        choice: u16,
        reason: &str,
        counts: Counts,
    ) -> Option<&[u8]> {
        match self {
            Self::Events(events) => Some(events.finish_apart(choice, reason)),
            Self::Frames(frames) => Some(frames.finish(reason)),
            Self::Chunks(chunks) => chunks.finish(counts),
        }
    }

    /// The piece with the usage.
    pub(super) fn usage(&mut self, counts: Counts) -> &[u8] {
        match self {
            Self::Events(events) => events.usage(counts),
            Self::Frames(frames) => frames.usage(counts),
            Self::Chunks(chunks) => chunks.usage(counts),
        }
    }

    /// What says that the stream is over, where that is a piece of its own; else the usage says so.
    pub(super) fn terminal(&mut self) -> Option<&[u8]> {
        match self {
            Self::Events(events) => Some(events.data("[DONE]")),
            Self::Frames(_) | Self::Chunks(_) => None,
        }
    }

    /// An error inside the stream.
    pub(super) fn error(&mut self) -> &[u8] {
        match self {
            Self::Events(events) => events.data(
                r#"{"error":{"message":"injected by the stand-in","type":"InternalServerError","param":null,"code":500}}"#,
            ),
            Self::Frames(frames) => frames.exception(),
            Self::Chunks(chunks) => chunks.exception(),
        }
    }

    /// A piece that no client can read.
    pub(super) fn broken(&mut self) -> &[u8] {
        match self {
            Self::Events(events) => {
                events.data(r#"{"id":"chatcmpl-broken","choices":[{"index":0,"delta":{"content":"#)
            }
            Self::Frames(frames) => frames.broken(),
            Self::Chunks(chunks) => chunks.broken(),
        }
    }

    /// A piece that says nothing.
    pub(super) fn ping(&mut self) -> &[u8] {
        match self {
            Self::Events(events) => events.comment("ping"),
            Self::Frames(frames) => frames.nothing(),
            Self::Chunks(chunks) => chunks.nothing(),
        }
    }

    /// The body of an answer that is not streamed.
    pub(super) fn answer(&self, choices: &[Value], reason: &str, counts: Counts) -> String {
        match self {
            Self::Events(events) => events.answer(choices, counts),
            Self::Frames(frames) => frames.answer(choices, reason, counts),
            Self::Chunks(chunks) => chunks.answer(choices.first().unwrap_or(&Value::Null), counts),
        }
    }

    /// Further fields of its head.
    pub(super) fn answer_fields(&self, counts: Counts) -> Headers {
        match self {
            Self::Events(_) | Self::Frames(_) => Headers::default(),
            Self::Chunks(chunks) => chunks.fields(counts),
        }
    }

    /// One choice of such a body.
    pub(super) fn choice(&self, plan: &Plan, index: u16, said: &Said) -> Value {
        match self {
            Self::Events(_) => events::choice(plan, index, said),
            Self::Frames(_) => converse::message(said),
            Self::Chunks(_) => match plan.dialect {
                Dialect::Invoke {
                    native: Native::Llama,
                    ..
                } => llama::said(said),
                _ => anthropic::said(said),
            },
        }
    }

    /// Id and name of a tool call.
    pub(super) fn named(&self, tool: u16) -> (String, String) {
        let call = match self {
            Self::Events(events) => events.call.as_ref(),
            Self::Frames(frames) => frames.call.as_ref(),
            Self::Chunks(chunks) => chunks.anthropic.call.as_ref(),
        };
        named(call, tool)
    }
}

/// The texts of one choice, whole, and its calls in OpenAI's form.
pub(super) struct Said {
    pub(super) content: String,
    pub(super) reasoning: String,
    pub(super) calls: Vec<Value>,
}

/// The arguments of a call in OpenAI's form. What a token limit cut is no JSON.
pub(super) fn input(call: &Value) -> Value {
    let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
    serde_json::from_str(arguments).unwrap_or_else(|_| json!({}))
}

/// Id and name of a tool call: those of the tool that is called by its name; the others have made-up ones.
fn named(call: Option<&Call>, tool: u16) -> (String, String) {
    match call {
        Some(call) => (call.id.clone(), call.name.clone()),
        None => (format!("call_{tool}"), format!("tool_{tool}")),
    }
}
