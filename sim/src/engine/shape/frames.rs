//! The frames of Bedrock's ConverseStream, and the bodies of Converse.

use serde_json::{Value, json};

use super::block::OpenBlock;
use super::{Counts, named};
use crate::aws::frame;
use crate::clock::now;
use crate::engine::bedrock::stop_reason;
use crate::engine::guardrail::Verdict;
use crate::engine::plan::Plan;
use crate::engine::text::Addition;
use crate::engine::tool_call::Call;
use crate::truth::Field;

/// Builds frames into a buffer of its own.
pub(in crate::engine) struct Frames {
    pieces: Vec<u8>,
    block: OpenBlock,
    made: usize,
    /// When the request was read, ns.
    begun: u64,
    pub(super) call: Option<Call>,
    verdict: Option<Verdict>,
}

impl Frames {
    pub(super) fn new(plan: &Plan, begun: u64) -> Self {
        Self {
            pieces: Vec::with_capacity(512),
            block: OpenBlock::default(),
            made: 0,
            begun,
            call: plan.call.clone(),
            verdict: plan.verdict(),
        }
    }

    pub(super) fn role(&mut self) -> &[u8] {
        self.pieces.clear();
        self.event("messageStart", json!({"role": "assistant"}));
        &self.pieces
    }

    pub(super) fn text(&mut self, added: &Addition, padding: u64) -> &[u8] {
        self.pieces.clear();
        let kind = (added.field, added.tool);
        if self.block.needs_another(kind) {
            self.close_block();
            self.block.open(kind);
            if added.field == Field::ToolArguments {
                let (id, name) = named(self.call.as_ref(), added.tool);
                let start = json!({"toolUse": {"toolUseId": id, "name": name}});
                let start = json!({"contentBlockIndex": self.block.index(), "start": start});
                self.event("contentBlockStart", start);
            }
        }
        let text = &added.text;
        let delta = match added.field {
            Field::Content => json!({"text": text}),
            Field::Reasoning => json!({"reasoningContent": {"text": text}}),
            Field::ToolArguments => json!({"toolUse": {"input": text}}),
        };
        let mut payload = json!({"contentBlockIndex": self.block.index(), "delta": delta});
        if padding > 0 {
            payload["padding"] = "x".repeat(usize::try_from(padding).unwrap_or(0)).into();
        }
        self.event("contentBlockDelta", payload);
        &self.pieces
    }

    pub(super) fn finish(&mut self, reason: &str) -> &[u8] {
        self.pieces.clear();
        self.close_block();
        self.event("messageStop", json!({"stopReason": stop_reason(reason)}));
        &self.pieces
    }

    pub(super) fn usage(&mut self, counts: Counts) -> &[u8] {
        self.pieces.clear();
        let mut payload = json!({"usage": usage(counts), "metrics": self.metrics()});
        self.add_trace(&mut payload);
        self.event("metadata", payload);
        &self.pieces
    }

    pub(super) fn exception(&mut self) -> &[u8] {
        self.pieces = frame::exception("internalServerException", "injected by the stand-in");
        &self.pieces
    }

    pub(super) fn broken(&mut self) -> &[u8] {
        self.nothing();
        if let Some(last) = self.pieces.last_mut() {
            *last ^= 1;
        }
        &self.pieces
    }

    pub(super) fn nothing(&mut self) -> &[u8] {
        self.pieces.clear();
        let payload = json!({"contentBlockIndex": self.block.index(), "delta": {"text": ""}});
        self.event("contentBlockDelta", payload);
        &self.pieces
    }

    pub(super) fn answer(&self, choices: &[Value], reason: &str, counts: Counts) -> String {
        let mut answer = json!({
            "output": {"message": choices.first()},
            "stopReason": stop_reason(reason),
            "usage": usage(counts),
            "metrics": self.metrics()
        });
        self.add_trace(&mut answer);
        answer.to_string()
    }

    fn metrics(&self) -> Value {
        json!({"latencyMs": now().saturating_sub(self.begun) / 1_000_000})
    }

    fn add_trace(&self, payload: &mut Value) {
        if let Some(trace) = self.verdict.as_ref().and_then(|it| it.trace.as_ref()) {
            payload["trace"] = json!({"guardrail": trace});
        }
    }

    fn close_block(&mut self) {
        if let Some(index) = self.block.close() {
            self.event("contentBlockStop", json!({"contentBlockIndex": index}));
        }
    }

    fn event(&mut self, kind: &str, mut payload: Value) {
        self.made += 1;
        payload["p"] = frame::padding(self.made).into();
        let bytes = frame::event(kind, payload.to_string().as_bytes());
        self.pieces.extend_from_slice(&bytes);
    }
}

/// `inputTokens` holds only what was neither read from the cache nor written to it.
fn usage(counts: Counts) -> Value {
    json!({
        "inputTokens": counts.uncached(),
        "outputTokens": counts.completion,
        "totalTokens": counts.prompt + counts.completion,
        "cacheReadInputTokens": counts.cached,
        "cacheWriteInputTokens": counts.written
    })
}
