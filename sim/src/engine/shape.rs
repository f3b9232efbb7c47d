//! What an answer looks like on the wire.

mod events;
mod frames;

use serde_json::{Value, json};

use super::converse;
use super::plan::Plan;
use super::request::Dialect;
use super::text::Addition;
use super::tool_call::Call;
use events::Events;
use frames::Frames;

/// Token counts of one answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    pub(super) prompt: u64,
    pub(super) completion: u64,
    pub(super) cached: u64,
}

impl Counts {
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
    /// Bedrock's frames, and its bodies.
    Frames(Frames),
}

impl Shape {
    pub(super) fn of(plan: &Plan) -> Self {
        match plan.dialect {
            Dialect::Converse { .. } => Self::Frames(Frames::new(plan.call.as_ref())),
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
            Self::Frames(_) => "application/vnd.amazon.eventstream",
        }
    }

    /// Whether this dialect has role chunks.
    pub(super) fn has_role(&self) -> bool {
        match self {
            Self::Events(events) => events.has_role(),
            Self::Frames(_) => true,
        }
    }

    /// The piece that names the role.
    pub(super) fn role(&mut self, choice: u16) -> &[u8] {
        match self {
            Self::Events(events) => events.role(choice),
            Self::Frames(frames) => frames.role(),
        }
    }

    /// A piece with text, with the finish reason if it rides along, padded by a field of `padding` bytes.
    pub(super) fn text(
        &mut self,
        choice: u16,
        added: &Addition,
        finish: Option<&str>,
        padding: u64,
    ) -> &[u8] {
        match self {
            Self::Events(events) => events.text(choice, added, finish, padding),
            Self::Frames(frames) => frames.text(added, padding),
        }
    }

    /// The piece with nothing but the finish reason.
    pub(super) fn finish_apart(&mut self, choice: u16, reason: &str) -> &[u8] {
        match self {
            Self::Events(events) => events.finish_apart(choice, reason),
            Self::Frames(frames) => frames.finish(reason),
        }
    }

    /// The piece with the usage.
    pub(super) fn usage(&mut self, counts: Counts) -> &[u8] {
        match self {
            Self::Events(events) => events.usage(counts),
            Self::Frames(frames) => frames.usage(counts),
        }
    }

    /// What says that the stream is over, where that is a piece of its own; else the usage says so.
    pub(super) fn terminal(&mut self) -> Option<&[u8]> {
        match self {
            Self::Events(events) => Some(events.data("[DONE]")),
            Self::Frames(_) => None,
        }
    }

    /// An error inside the stream.
    pub(super) fn error(&mut self) -> &[u8] {
        match self {
            Self::Events(events) => events.data(
                r#"{"error":{"message":"injected by the stand-in","type":"InternalServerError","param":null,"code":500}}"#,
            ),
            Self::Frames(frames) => frames.exception(),
        }
    }

    /// A piece that no client can read.
    pub(super) fn broken(&mut self) -> &[u8] {
        match self {
            Self::Events(events) => {
                events.data(r#"{"id":"chatcmpl-broken","choices":[{"index":0,"delta":{"content":"#)
            }
            Self::Frames(frames) => frames.broken(),
        }
    }

    /// A piece that says nothing.
    pub(super) fn ping(&mut self) -> &[u8] {
        match self {
            Self::Events(events) => events.comment("ping"),
            Self::Frames(frames) => frames.nothing(),
        }
    }

    /// The body of an answer that is not streamed.
    pub(super) fn answer(&self, choices: &[Value], reason: &str, counts: Counts) -> String {
        match self {
            Self::Events(events) => events.answer(choices, counts),
            Self::Frames(frames) => frames.answer(choices, reason, counts),
        }
    }

    /// One choice of such a body.
    pub(super) fn choice(&self, plan: &Plan, index: u16, said: &Said) -> Value {
        match self {
            Self::Events(_) => events::choice(plan, index, said),
            Self::Frames(_) => converse::message(said),
        }
    }

    /// Id and name of a tool call.
    pub(super) fn named(&self, tool: u16) -> (String, String) {
        let call = match self {
            Self::Events(events) => events.call.as_ref(),
            Self::Frames(frames) => frames.call.as_ref(),
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

/// Id and name of a tool call: those of the tool that is called by its name; the others have made-up ones.
fn named(call: Option<&Call>, tool: u16) -> (String, String) {
    match call {
        Some(call) => (call.id.clone(), call.name.clone()),
        None => (format!("call_{tool}"), format!("tool_{tool}")),
    }
}
