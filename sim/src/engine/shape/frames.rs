//! The frames of Bedrock's ConverseStream. Written with code of its own, so that an error of the decoder under
//! test cannot cancel out.

use std::time::Instant;

use serde_json::{Value, json};

use super::{Counts, named};
use crate::engine::converse::stop_reason;
use crate::engine::text::Addition;
use crate::engine::tool_call::Call;
use crate::truth::Field;

/// What pads the frames of the service, so that their sizes do not tell their texts.
const PADDING: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// Builds frames into a buffer of its own.
pub(in crate::engine) struct Frames {
    pieces: Vec<u8>,
    /// The content block that is open: its kind and tool.
    open: Option<(Field, u16)>,
    block: u64,
    made: usize,
    begun: Instant,
    pub(super) call: Option<Call>,
}

impl Frames {
    pub(super) fn new(call: Option<&Call>) -> Self {
        Self {
            pieces: Vec::with_capacity(512),
            open: None,
            block: 0,
            made: 0,
            begun: Instant::now(),
            call: call.cloned(),
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
        if self.open != Some(kind) {
            self.close_block();
            self.open = Some(kind);
            if added.field == Field::ToolArguments {
                let (id, name) = named(self.call.as_ref(), added.tool);
                let start = json!({"toolUse": {"toolUseId": id, "name": name}});
                let start = json!({"contentBlockIndex": self.block, "start": start});
                self.event("contentBlockStart", start);
            }
        }
        let text = &added.text;
        let delta = match added.field {
            Field::Content => json!({"text": text}),
            Field::Reasoning => json!({"reasoningContent": {"text": text}}),
            Field::ToolArguments => json!({"toolUse": {"input": text}}),
        };
        let mut payload = json!({"contentBlockIndex": self.block, "delta": delta});
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
        let payload = json!({"usage": usage(counts), "metrics": self.metrics()});
        self.event("metadata", payload);
        &self.pieces
    }

    pub(super) fn exception(&mut self) -> &[u8] {
        let headers = [
            (":exception-type", "internalServerException"),
            (":content-type", "application/json"),
            (":message-type", "exception"),
        ];
        self.pieces = frame(&headers, br#"{"message":"injected by the stand-in"}"#);
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
        let payload = json!({"contentBlockIndex": self.block, "delta": {"text": ""}});
        self.event("contentBlockDelta", payload);
        &self.pieces
    }

    pub(super) fn answer(&self, choices: &[Value], reason: &str, counts: Counts) -> String {
        json!({
            "output": {"message": choices.first()},
            "stopReason": stop_reason(reason),
            "usage": usage(counts),
            "metrics": self.metrics()
        })
        .to_string()
    }

    fn metrics(&self) -> Value {
        json!({"latencyMs": self.begun.elapsed().as_millis() as u64})
    }

    fn close_block(&mut self) {
        if self.open.take().is_some() {
            self.event("contentBlockStop", json!({"contentBlockIndex": self.block}));
            self.block += 1;
        }
    }

    fn event(&mut self, kind: &str, mut payload: Value) {
        self.made += 1;
        payload["p"] = PADDING[..1 + self.made * 7 % PADDING.len()].into();
        let headers = [
            (":event-type", kind),
            (":content-type", "application/json"),
            (":message-type", "event"),
        ];
        let bytes = frame(&headers, payload.to_string().as_bytes());
        self.pieces.extend_from_slice(&bytes);
    }
}

/// `inputTokens` holds only what was not read from the cache.
fn usage(counts: Counts) -> Value {
    json!({
        "inputTokens": counts.prompt - counts.cached,
        "outputTokens": counts.completion,
        "totalTokens": counts.prompt + counts.completion,
        "cacheReadInputTokens": counts.cached,
        "cacheWriteInputTokens": 0
    })
}

/// One frame: total length, length of the headers, their CRC-32, headers, payload, CRC-32 of all.
fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut lines = Vec::new();
    for (name, value) in headers {
        lines.push(name.len() as u8);
        lines.extend_from_slice(name.as_bytes());
        // A string of so many bytes.
        lines.push(7);
        lines.extend_from_slice(&(value.len() as u16).to_be_bytes());
        lines.extend_from_slice(value.as_bytes());
    }
    let total = 12 + lines.len() + payload.len() + 4;
    let mut frame = Vec::with_capacity(total);
    frame.extend_from_slice(&(total as u32).to_be_bytes());
    frame.extend_from_slice(&(lines.len() as u32).to_be_bytes());
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(&lines);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use super::frame;

    #[test]
    fn a_frame_is_that_of_a_capture() {
        let headers = [
            (":event-type", "messageStart"),
            (":content-type", "application/json"),
            (":message-type", "event"),
        ];
        let made = frame(&headers, br#"{"p":"abcdefghij","role":"assistant"}"#);
        let hex: String = made.iter().map(|byte| format!("{byte:02x}")).collect();
        // Of a public capture of Bedrock (agentgateway's test data).
        assert!(hex.starts_with("0000008700000052e38183330b3a6576656e742d74797065"));
        assert!(hex.ends_with("22726f6c65223a22617373697374616e74227d7459264a"));
    }
}
