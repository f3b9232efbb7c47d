//! Events and bodies of Anthropic's messages at Bedrock.

use serde_json::{Value, json};

use super::block::OpenBlock;
use super::{Counts, Said, input, named};
use crate::engine::bedrock;
use crate::engine::guardrail::INTERVENED;
use crate::engine::plan::Plan;
use crate::engine::text::Addition;
use crate::engine::tool_call::Call;
use crate::truth::Field;

/// Makes the events of one message.
pub(super) struct Anthropic {
    id: String,
    model: String,
    block: OpenBlock,
    stop_sequence: Option<String>,
    pub(super) call: Option<Call>,
}

impl Anthropic {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            id: plan.id.clone(),
            model: plan.model.clone(),
            block: OpenBlock::default(),
            stop_sequence: plan.stop_sequence().map(str::to_owned),
            call: plan.call.clone(),
        }
    }

    /// The event that opens the message. Its output token is one that is about to come, as in Anthropic's API.
    pub(super) fn start(&self, counts: Counts) -> Value {
        let mut usage = usage(counts);
        usage["output_tokens"] = counts.completion.min(1).into();
        let message = self.message(&json!([]), &Value::Null, &usage);
        json!({"type": "message_start", "message": message})
    }

    /// The events of a piece of text.
    pub(super) fn text(&mut self, added: &Addition) -> Vec<Value> {
        let mut events = Vec::new();
        let kind = (added.field, added.tool);
        if self.block.needs_another(kind) {
            events.extend(self.close_block());
            self.block.open(kind);
            let opened = match added.field {
                Field::Content => json!({"type": "text", "text": ""}),
                Field::Reasoning => json!({"type": "thinking", "thinking": "", "signature": ""}),
                Field::ToolArguments => {
                    let (id, name) = named(self.call.as_ref(), added.tool);
                    json!({"type": "tool_use", "id": id, "name": name, "input": {}})
                }
            };
            events.push(json!({
                "type": "content_block_start", "index": self.block.index(), "content_block": opened
            }));
        }
        let text = &added.text;
        let delta = match added.field {
            Field::Content => json!({"type": "text_delta", "text": text}),
            Field::Reasoning => json!({"type": "thinking_delta", "thinking": text}),
            Field::ToolArguments => json!({"type": "input_json_delta", "partial_json": text}),
        };
        events.push(json!({
            "type": "content_block_delta", "index": self.block.index(), "delta": delta
        }));
        events
    }

    /// The events between the text and the last one.
    pub(super) fn finish(&mut self, reason: &str, counts: Counts) -> Vec<Value> {
        let mut events = Vec::from_iter(self.close_block());
        events.push(json!({
            "type": "message_delta",
            "delta": {"stop_reason": stop_reason(reason), "stop_sequence": self.stop_sequence},
            "usage": {"output_tokens": counts.completion}
        }));
        events
    }

    /// The body of an answer that is not streamed.
    pub(super) fn answer(&self, content: &Value, reason: &str, counts: Counts) -> Value {
        self.message(content, &stop_reason(reason).into(), &usage(counts))
    }

    fn message(&self, content: &Value, reason: &Value, usage: &Value) -> Value {
        json!({
            "id": self.id, "type": "message", "role": "assistant", "model": self.model,
            "content": content, "stop_reason": reason,
            "stop_sequence": self.stop_sequence.as_ref().filter(|_| reason.is_string()), "usage": usage
        })
    }

    fn close_block(&mut self) -> Option<Value> {
        let index = self.block.close()?;
        Some(json!({"type": "content_block_stop", "index": index}))
    }
}

/// What a choice has said.
pub(super) fn said(said: &Said) -> Value {
    let mut content = Vec::new();
    if !said.reasoning.is_empty() {
        content
            .push(json!({"type": "thinking", "thinking": said.reasoning, "signature": "stand-in"}));
    }
    if !said.content.is_empty() {
        content.push(json!({"type": "text", "text": said.content}));
    }
    for call in &said.calls {
        content.push(json!({
            "type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": input(call)
        }));
    }
    content.into()
}

/// A guardrail's intervention has no reason of its own in this form: Bedrock tells it beside the message.
fn stop_reason(reason: &str) -> &str {
    match reason {
        INTERVENED => "end_turn",
        reason => bedrock::stop_reason(reason),
    }
}

/// `input_tokens` holds only what was neither read from the cache nor written to it.
fn usage(counts: Counts) -> Value {
    json!({
        "input_tokens": counts.uncached(),
        "cache_creation_input_tokens": counts.written,
        "cache_read_input_tokens": counts.cached,
        "output_tokens": counts.completion
    })
}
