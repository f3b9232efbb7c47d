//! The chunks of Bedrock's InvokeModelWithResponseStream, and the bodies of InvokeModel: events and bodies of a
//! model's own API, with what Bedrock adds to them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::anthropic::Anthropic;
use super::{Counts, llama};
use crate::aws::frame;
use crate::clock::now;
use crate::engine::guardrail::Verdict;
use crate::engine::invoke::Native;
use crate::engine::plan::Plan;
use crate::engine::text::Addition;
use crate::http::Headers;

/// Builds chunks into a buffer of its own.
pub(in crate::engine) struct Chunks {
    pieces: Vec<u8>,
    native: Native,
    pub(super) anthropic: Anthropic,
    made: usize,
    /// Tokens of text so far.
    tokens: u64,
    /// When the request was read, ns.
    begun: u64,
    /// When the first text was made, ns.
    first_text: Option<u64>,
    reason: &'static str,
    verdict: Option<Verdict>,
}

impl Chunks {
    pub(super) fn new(plan: &Plan, native: Native, begun: u64) -> Self {
        Self {
            pieces: Vec::with_capacity(512),
            native,
            anthropic: Anthropic::new(plan),
            made: 0,
            tokens: 0,
            begun,
            first_text: None,
            reason: plan.finish_reason,
            verdict: plan.verdict(),
        }
    }

    pub(super) fn has_role(&self) -> bool {
        self.native == Native::Anthropic
    }

    pub(super) fn role(&mut self, counts: Counts) -> &[u8] {
        self.pieces.clear();
        let event = self.anthropic.start(counts);
        self.chunk(&event);
        &self.pieces
    }

    pub(super) fn text(&mut self, added: &Addition, counts: Counts, padding: u64) -> &[u8] {
        self.pieces.clear();
        self.tokens += added.text.split_whitespace().count() as u64;
        let mut events = match self.native {
            Native::Anthropic => self.anthropic.text(added),
            Native::Llama => {
                let prompt = self.first_text.is_none().then_some(counts.prompt);
                vec![llama::event(&added.text, prompt, self.tokens, None)]
            }
        };
        self.first_text.get_or_insert_with(now);
        if let Some(event) = events.last_mut().filter(|_| padding > 0) {
            event["padding"] = "x".repeat(usize::try_from(padding).unwrap_or(0)).into();
        }
        events.iter().for_each(|event| self.chunk(event));
        &self.pieces
    }

    /// The event with the reason for the end, `None` where the last one has it too.
    pub(super) fn finish(&mut self, counts: Counts) -> Option<&[u8]> {
        if self.native == Native::Llama {
            return None;
        }
        self.pieces.clear();
        let events = self.anthropic.finish(self.reason, counts);
        events.iter().for_each(|event| self.chunk(event));
        Some(&self.pieces)
    }

    /// The last event, with what Bedrock counted.
    pub(super) fn usage(&mut self, counts: Counts) -> &[u8] {
        self.pieces.clear();
        let mut event = match self.native {
            Native::Anthropic => json!({"type": "message_stop"}),
            Native::Llama => llama::event("", None, self.tokens, Some(self.reason)),
        };
        event["amazon-bedrock-invocationMetrics"] = self.metrics(counts);
        self.add_verdict(&mut event);
        self.chunk(&event);
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
        let event = match self.native {
            Native::Anthropic => json!({"type": "ping"}),
            Native::Llama => llama::event("", None, self.tokens, None),
        };
        self.chunk(&event);
        &self.pieces
    }

    /// The body of an answer that is not streamed; `content` is what a choice has said.
    pub(super) fn answer(&self, content: &Value, counts: Counts) -> String {
        let mut answer = match self.native {
            Native::Anthropic => self.anthropic.answer(content, self.reason, counts),
            Native::Llama => llama::answer(content, self.reason, counts),
        };
        self.add_verdict(&mut answer);
        answer.to_string()
    }

    /// The fields that go with it.
    pub(super) fn fields(&self, counts: Counts) -> Headers {
        let field = |name: &str, value: u64| {
            let name = format!("x-amzn-bedrock-{name}");
            (name, value.to_string().into_bytes())
        };
        let mut fields = vec![
            field("invocation-latency", self.since(now())),
            field("input-token-count", counts.uncached()),
            field("output-token-count", counts.completion),
        ];
        if counts.cached + counts.written > 0 {
            fields.push(field("cache-read-input-token-count", counts.cached));
            fields.push(field("cache-write-input-token-count", counts.written));
        }
        Headers(fields)
    }

    fn metrics(&self, counts: Counts) -> Value {
        let ended = now();
        let mut metrics = json!({
            "inputTokenCount": counts.uncached(),
            "outputTokenCount": counts.completion,
            "invocationLatency": self.since(ended),
            "firstByteLatency": self.since(self.first_text.unwrap_or(ended))
        });
        if counts.cached + counts.written > 0 {
            metrics["cacheReadInputTokenCount"] = counts.cached.into();
            metrics["cacheWriteInputTokenCount"] = counts.written.into();
        }
        metrics
    }

    /// From the request to an instant, ms.
    fn since(&self, at: u64) -> u64 {
        at.saturating_sub(self.begun) / 1_000_000
    }

    fn add_verdict(&self, event: &mut Value) {
        let Some(verdict) = &self.verdict else {
            return;
        };
        let action = match verdict.intervened {
            true => "INTERVENED",
            false => "NONE",
        };
        event["amazon-bedrock-guardrailAction"] = action.into();
        if let Some(trace) = &verdict.trace {
            event["amazon-bedrock-trace"] = json!({"guardrail": trace});
        }
    }

    fn chunk(&mut self, event: &Value) {
        self.made += 1;
        let bytes = STANDARD.encode(event.to_string());
        let payload = json!({"bytes": bytes, "p": frame::padding(self.made)});
        let bytes = frame::event("chunk", payload.to_string().as_bytes());
        self.pieces.extend_from_slice(&bytes);
    }
}
