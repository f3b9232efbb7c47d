//! The frames of a `ConverseStream` into chunks of a chat completion, as they come.
//!
//! Texts are copied as the JSON strings that they are, neither unescaped nor escaped anew, and what all chunks of an
//! answer share is written once: an event costs a copy.

use crate::Naming;
use crate::error::{self, Original};
use crate::finish;
use crate::usage::{Ours, Theirs};
use serde::Deserialize;
use serde_json::value::RawValue;
use wire::eventstream::{Frame, FrameDecoder, MAX_FRAME_BYTES};

const DAMAGED: &str = "a frame of the stream is damaged or too large";

/// One answer.
#[derive(Debug)]
pub struct Stream {
    frames: FrameDecoder,
    chunks: Chunks,
}

impl Stream {
    /// An answer that is named so; its last chunk has the usage where the client asked for it.
    #[must_use]
    pub fn new(naming: &Naming, include_usage: bool) -> Self {
        let text = |value: &str| serde_json::Value::from(value).to_string();
        let prefix = format!(
            "data: {{\"id\":{},\"object\":\"chat.completion.chunk\",\"created\":{},\"model\":{},\"choices\":[",
            text(&naming.id),
            naming.created,
            text(&naming.model)
        );
        Self {
            frames: FrameDecoder::new(MAX_FRAME_BYTES),
            chunks: Chunks {
                prefix: prefix.into_bytes(),
                include_usage,
                tools: Vec::new(),
                finished: false,
                ended: false,
                read: 0,
            },
        }
    }

    /// Takes the next bytes of the stream, and writes what they complete to `out`.
    pub fn feed(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let chunks = &mut self.chunks;
        self.frames
            .feed(bytes, &mut |frame| chunks.take(&frame, out));
        let losses = self.frames.losses();
        if losses.malformed + losses.oversized > 0 {
            self.chunks.fail(DAMAGED, out);
        }
    }

    /// The stream has ended: where it ended before its time, says so.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.chunks.fail("the stream ended before its end", out);
    }
}

/// What chunks are written from.
#[derive(Debug)]
struct Chunks {
    /// Up to the first choice.
    prefix: Vec<u8>,
    include_usage: bool,
    /// The tools that were called; the place of one is its `index`.
    tools: Vec<Called>,
    /// The finish reason is written.
    finished: bool,
    /// The terminal marker or an error is written.
    ended: bool,
    /// Where the last frame ended.
    read: u64,
}

/// A tool that was called.
#[derive(Debug)]
struct Called {
    /// Its content block.
    block: u64,
    /// It was given arguments.
    given: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockStart<'a> {
    #[serde(default)]
    content_block_index: u64,
    #[serde(borrow)]
    start: Start<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start<'a> {
    #[serde(borrow, default)]
    tool_use: Option<ToolUse<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ToolUse<'a> {
    #[serde(borrow)]
    tool_use_id: &'a RawValue,
    #[serde(borrow)]
    name: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockStop {
    #[serde(default)]
    content_block_index: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BlockDelta<'a> {
    #[serde(default)]
    content_block_index: u64,
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Delta<'a> {
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_use: Option<Input<'a>>,
    #[serde(borrow, default)]
    reasoning_content: Option<Reasoning<'a>>,
}

#[derive(Deserialize)]
struct Input<'a> {
    #[serde(borrow)]
    input: &'a RawValue,
}

#[derive(Deserialize)]
struct Reasoning<'a> {
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stop {
    stop_reason: String,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    usage: Option<Theirs>,
}

impl Chunks {
    fn take(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>) {
        // What was passed over between two frames may have held text.
        if frame.start() != self.read {
            self.fail(DAMAGED, out);
        }
        self.read = frame.end;
        if self.ended {
            return;
        }
        let read = match frame.header(":message-type") {
            Some("exception" | "error") => {
                self.exception(frame, out);
                return;
            }
            _ => self.event(
                frame.header(":event-type").unwrap_or_default(),
                frame.payload,
                out,
            ),
        };
        if read.is_err() {
            self.fail("an event of the stream cannot be read", out);
        }
    }

    fn event(&mut self, kind: &str, payload: &[u8], out: &mut Vec<u8>) -> serde_json::Result<()> {
        match kind {
            "messageStart" => {
                self.delta(out, |out| {
                    out.extend_from_slice(br#""role":"assistant","content":"""#);
                });
            }
            "contentBlockStart" => {
                let block: BlockStart<'_> = serde_json::from_slice(payload)?;
                if let Some(tool) = block.start.tool_use {
                    let index = self.tools.len();
                    self.tools.push(Called {
                        block: block.content_block_index,
                        given: false,
                    });
                    self.delta(out, |out| {
                        tool_index(out, index);
                        out.extend_from_slice(br#","id":"#);
                        out.extend_from_slice(tool.tool_use_id.get().as_bytes());
                        out.extend_from_slice(br#","type":"function","function":{"name":"#);
                        out.extend_from_slice(tool.name.get().as_bytes());
                        out.extend_from_slice(br#","arguments":""}}]"#);
                    });
                }
            }
            "contentBlockDelta" => {
                let block: BlockDelta<'_> = serde_json::from_slice(payload)?;
                self.block(&block, out);
            }
            "contentBlockStop" => {
                let block: BlockStop = serde_json::from_slice(payload)?;
                // A tool without parameters gets no input, or an empty one: to OpenAI's clients that is `{}`.
                if let Some(tool) = self.tool(block.content_block_index)
                    && !self.tools[tool].given
                {
                    self.arguments(tool, "\"{}\"", out);
                }
            }
            "messageStop" => {
                let stop: Stop = serde_json::from_slice(payload)?;
                self.finished = true;
                out.extend_from_slice(&self.prefix);
                out.extend_from_slice(br#"{"index":0,"delta":{},"finish_reason":""#);
                out.extend_from_slice(finish::reason(&stop.stop_reason).as_bytes());
                out.extend_from_slice(br#"","stop_reason":"#);
                serde_json::to_writer(&mut *out, &stop.stop_reason)?;
                out.extend_from_slice(b"}]}\n\n");
            }
            "metadata" => {
                let metadata: Metadata = serde_json::from_slice(payload)?;
                if let Some(usage) = metadata.usage.filter(|_| self.include_usage) {
                    out.extend_from_slice(&self.prefix);
                    out.extend_from_slice(br#"],"usage":"#);
                    serde_json::to_writer(&mut *out, &Ours::from(usage))?;
                    out.extend_from_slice(b"}\n\n");
                }
                if self.finished {
                    self.ended = true;
                    out.extend_from_slice(b"data: [DONE]\n\n");
                }
            }
            // contentBlockStop has no counterpart, and of others nothing is known.
            _ => {}
        }
        Ok(())
    }

    fn block(&mut self, block: &BlockDelta<'_>, out: &mut Vec<u8>) {
        let reasoning = block.delta.reasoning_content.as_ref().and_then(|r| r.text);
        let texts = [
            (br#""content":"#.as_slice(), block.delta.text),
            (br#""reasoning_content":"#, reasoning),
        ];
        for (name, text) in texts {
            if let Some(text) = text.filter(|text| text.get() != "\"\"") {
                self.delta(out, |out| {
                    out.extend_from_slice(name);
                    out.extend_from_slice(text.get().as_bytes());
                });
            }
        }
        let tool = self.tool(block.content_block_index);
        if let (Some(input), Some(tool)) = (&block.delta.tool_use, tool)
            && input.input.get() != "\"\""
        {
            self.arguments(tool, input.input.get(), out);
        }
    }

    /// The tool that the content block at `index` calls.
    fn tool(&self, index: u64) -> Option<usize> {
        self.tools.iter().rposition(|tool| tool.block == index)
    }

    /// A piece of a tool's arguments: a JSON string.
    fn arguments(&mut self, tool: usize, piece: &str, out: &mut Vec<u8>) {
        self.tools[tool].given = true;
        self.delta(out, |out| {
            tool_index(out, tool);
            out.extend_from_slice(br#","function":{"arguments":"#);
            out.extend_from_slice(piece.as_bytes());
            out.extend_from_slice(b"}}]");
        });
    }

    /// A chunk with one choice, whose delta `write` writes.
    fn delta(&self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        out.extend_from_slice(&self.prefix);
        out.extend_from_slice(br#"{"index":0,"delta":{"#);
        write(out);
        out.extend_from_slice(b"},\"finish_reason\":null}]}\n\n");
    }

    fn exception(&mut self, frame: &Frame<'_>, out: &mut Vec<u8>) {
        let kind = frame
            .header(":exception-type")
            .or_else(|| frame.header(":error-code"));
        let message = frame.header(":error-message").map(str::to_owned);
        let original = Original {
            status: None,
            kind: kind.unwrap_or("unknown").to_owned(),
            message: message.unwrap_or_else(|| error::message(frame.payload)),
        };
        self.end_with(&original.openai(), out);
    }

    fn fail(&mut self, why: &str, out: &mut Vec<u8>) {
        if !self.ended {
            let error = serde_json::json!({"error": {
                "message": format!("hopscope: Bedrock's answer was cut: {why}"),
                "type": "server_error", "param": null, "code": "incomplete_stream",
            }});
            self.end_with(&error, out);
        }
    }

    fn end_with(&mut self, error: &serde_json::Value, out: &mut Vec<u8>) {
        self.ended = true;
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(error.to_string().as_bytes());
        out.extend_from_slice(b"\n\n");
    }
}

fn tool_index(out: &mut Vec<u8>, index: usize) {
    out.extend_from_slice(br#""tool_calls":[{"index":"#);
    out.extend_from_slice(index.to_string().as_bytes());
}

#[cfg(test)]
mod tests;
