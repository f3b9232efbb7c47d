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
    /// The content block of each tool that was called; its place here is its `index`.
    tools: Vec<u64>,
    /// The finish reason is written.
    finished: bool,
    /// The terminal marker or an error is written.
    ended: bool,
    /// Where the last frame ended.
    read: u64,
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
                    self.tools.push(block.content_block_index);
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
        let tool = self
            .tools
            .iter()
            .rposition(|at| *at == block.content_block_index);
        if let (Some(input), Some(tool)) = (&block.delta.tool_use, tool)
            && input.input.get() != "\"\""
        {
            self.delta(out, |out| {
                tool_index(out, tool);
                out.extend_from_slice(br#","function":{"arguments":"#);
                out.extend_from_slice(input.input.get().as_bytes());
                out.extend_from_slice(b"}}]");
            });
        }
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
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};
    use wire::eventstream::encode;
    use wire::{Decoder, Dialect, Limits, StreamEvent};

    fn event(kind: &str, payload: &Value) -> Vec<u8> {
        let headers = [
            (":event-type", kind),
            (":content-type", "application/json"),
            (":message-type", "event"),
        ];
        encode(&headers, payload.to_string().as_bytes())
    }

    fn naming() -> Naming {
        Naming {
            id: "chatcmpl-1".to_owned(),
            model: "a\"b".to_owned(),
            created: 7,
        }
    }

    fn written(bytes: &[u8], cuts: &[usize], include_usage: bool) -> String {
        let mut stream = Stream::new(&naming(), include_usage);
        let mut out = Vec::new();
        let mut from = 0;
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
        cuts.sort_unstable();
        for cut in cuts.into_iter().chain([bytes.len()]) {
            stream.feed(&bytes[from..cut], &mut out);
            from = cut;
        }
        stream.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn answer() -> Vec<u8> {
        [
            event("messageStart", &json!({"p": "abc", "role": "assistant"})),
            event("contentBlockDelta", &json!({"contentBlockIndex": 0, "delta": {"reasoningContent": {"text": "hm"}}})),
            event("contentBlockDelta", &json!({"contentBlockIndex": 1, "delta": {"text": "Gr\u{fc}\n\"x\""}, "p": "ab"})),
            event("contentBlockDelta", &json!({"contentBlockIndex": 1, "delta": {"text": ""}})),
            event("contentBlockStop", &json!({"contentBlockIndex": 1})),
            event("contentBlockStart", &json!({"contentBlockIndex": 2, "start": {"toolUse": {"toolUseId": "t1", "name": "f"}}})),
            event("contentBlockDelta", &json!({"contentBlockIndex": 2, "delta": {"toolUse": {"input": "{\"x\""}}})),
            event("contentBlockDelta", &json!({"contentBlockIndex": 2, "delta": {"toolUse": {"input": ": 1}"}}})),
            event("messageStop", &json!({"stopReason": "tool_use"})),
            event("metadata", &json!({"usage": {"inputTokens": 3, "outputTokens": 4, "totalTokens": 7, "cacheReadInputTokens": 2}, "metrics": {"latencyMs": 9}})),
        ]
        .concat()
    }

    fn data(text: &str) -> Vec<Value> {
        text.split("\n\n")
            .filter_map(|one| one.strip_prefix("data: "))
            .filter(|one| *one != "[DONE]")
            .map(|one| serde_json::from_str(one).unwrap())
            .collect()
    }

    #[test]
    fn frames_become_chunks() {
        let text = written(&answer(), &[], true);
        assert!(text.ends_with("data: [DONE]\n\n"));
        let chunks = data(&text);
        for chunk in &chunks {
            assert_eq!(chunk["id"], "chatcmpl-1");
            assert_eq!(
                (&chunk["model"], &chunk["created"]),
                (&json!("a\"b"), &json!(7))
            );
        }
        let deltas: Vec<&Value> = chunks
            .iter()
            .map(|chunk| &chunk["choices"][0]["delta"])
            .collect();
        assert_eq!(deltas[0], &json!({"role": "assistant", "content": ""}));
        assert_eq!(deltas[1], &json!({"reasoning_content": "hm"}));
        assert_eq!(deltas[2], &json!({"content": "Gr\u{fc}\n\"x\""}));
        assert_eq!(
            deltas[3],
            &json!({"tool_calls": [{"index": 0, "id": "t1", "type": "function", "function": {"name": "f", "arguments": ""}}]})
        );
        assert_eq!(
            deltas[5],
            &json!({"tool_calls": [{"index": 0, "function": {"arguments": ": 1}"}}]})
        );
        assert_eq!(chunks[6]["choices"][0]["finish_reason"], "tool_calls");
        assert_eq!(chunks[6]["choices"][0]["stop_reason"], "tool_use");
        assert_eq!(
            chunks[7]["usage"],
            json!({"prompt_tokens": 5, "completion_tokens": 4, "total_tokens": 9, "prompt_tokens_details": {"cached_tokens": 2}})
        );
        assert_eq!(chunks[7]["choices"], json!([]));
        assert_eq!(data(&written(&answer(), &[], false)).len(), 7);
    }

    /// What hopscope itself reads of the one and of the other is the same.
    #[test]
    fn both_dialects_say_the_same() {
        let read = |dialect, kind, bytes: &[u8]| {
            let mut decoder = Decoder::new(dialect, Some(kind), Limits::default());
            let (mut texts, mut finish, mut usage, mut done) = (Vec::new(), None, None, false);
            let mut sink = |framed: wire::Framed<'_>| {
                for event in framed.events {
                    match event {
                        StreamEvent::Text(text) => texts.push((text.field, text.text.to_owned())),
                        StreamEvent::Finish { reason, .. } => finish = Some(*reason),
                        StreamEvent::Usage(found) => {
                            usage = Some((
                                found.prompt_tokens,
                                found.completion_tokens,
                                found.cached_tokens,
                            ));
                        }
                        StreamEvent::Done => done = true,
                        _ => {}
                    }
                }
            };
            decoder.feed(bytes, &mut sink);
            decoder.finish(&mut sink);
            (texts, finish, usage, done)
        };
        let theirs = read(
            Dialect::Converse,
            "application/vnd.amazon.eventstream",
            &answer(),
        );
        let ours = read(
            Dialect::OpenAiChat,
            "text/event-stream",
            written(&answer(), &[], true).as_bytes(),
        );
        assert_eq!(theirs, ours);
        assert!(theirs.3 && theirs.0.len() == 4);
    }

    #[test]
    fn an_exception_is_an_error_in_the_stream_and_its_end() {
        let headers = [
            (":exception-type", "throttlingException"),
            (":content-type", "application/json"),
            (":message-type", "exception"),
        ];
        let bytes = [
            event("messageStart", &json!({"role": "assistant"})),
            encode(&headers, br#"{"message":"Too many tokens"}"#),
            event(
                "contentBlockDelta",
                &json!({"contentBlockIndex": 0, "delta": {"text": "late"}}),
            ),
        ]
        .concat();
        let text = written(&bytes, &[], true);
        let found = data(&text);
        assert_eq!(found.len(), 2);
        assert_eq!(found[1]["error"]["message"], "Too many tokens");
        assert_eq!(found[1]["error"]["code"], "rate_limit_exceeded");
        assert_eq!(found[1]["error"]["original"]["type"], "throttlingException");
        assert!(!text.contains("[DONE]") && !text.contains("late"));
    }

    #[test]
    fn a_stream_that_is_cut_or_damaged_says_so() {
        let whole = answer();
        let cut = written(&whole[..whole.len() - 20], &[], true);
        let mut damaged = whole.clone();
        damaged[200] ^= 1;
        for text in [cut, written(&damaged, &[], true)] {
            assert!(!text.contains("[DONE]"), "{text}");
            assert_eq!(
                data(&text).last().unwrap()["error"]["code"],
                "incomplete_stream"
            );
        }
    }

    proptest! {
        #[test]
        fn where_the_bytes_are_split_changes_nothing(cuts in prop::collection::vec(any::<usize>(), 0..20)) {
            prop_assert_eq!(written(&answer(), &cuts, true), written(&answer(), &[], true));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = written(&bytes, &[], true);
        }
    }
}
