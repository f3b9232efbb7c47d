//! What a chunk of the OpenAI streaming dialects says, as far as a stand-in must know it.

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::truth::Field;

/// Token counts as a response reports them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) prompt: u64,
    pub(crate) completion: u64,
    pub(crate) cached: Option<u64>,
}

/// A piece of text in a chunk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) choice: u16,
    pub(crate) field: Field,
    pub(crate) tool: u16,
    pub(crate) text: String,
}

/// The content of one chunk.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Delta {
    pub(crate) id: Option<String>,
    pub(crate) role: bool,
    pub(crate) finish: bool,
    pub(crate) error: bool,
    /// Opens a tool call: carries its id or name.
    pub(crate) opens_tool: bool,
    pub(crate) choices: usize,
    pub(crate) usage: Option<Usage>,
    /// Texts, none of them empty.
    pub(crate) pieces: Vec<Piece>,
}

impl Delta {
    /// Parses a chunk or a whole answer; `None` when it is neither.
    pub(crate) fn parse(data: &[u8]) -> Option<Self> {
        let chunk: Chunk = serde_json::from_slice(data).ok()?;
        let mut delta = Self {
            id: chunk.id,
            error: chunk.error.is_some(),
            choices: chunk.choices.len(),
            usage: chunk.usage.map(Usage::from),
            ..Self::default()
        };
        for choice in chunk.choices {
            delta.add(choice);
        }
        Some(delta)
    }

    fn add(&mut self, choice: Choice) {
        self.finish |= choice.finish_reason.is_some();
        let index = choice.index;
        self.text(index, Field::Content, 0, choice.text);
        let Some(said) = choice.delta.or(choice.message) else {
            return;
        };
        self.role |= said.role.is_some();
        let reasoning = said.reasoning_content.or(said.reasoning);
        self.text(index, Field::Reasoning, 0, reasoning);
        self.text(index, Field::Content, 0, said.content);
        for (at, call) in said.tool_calls.unwrap_or_default().into_iter().enumerate() {
            let tool = call.index.unwrap_or(u16::try_from(at).unwrap_or(u16::MAX));
            let function = call.function.unwrap_or_default();
            self.opens_tool |= call.id.is_some() || function.name.is_some();
            self.text(index, Field::ToolArguments, tool, function.arguments);
        }
    }

    fn text(&mut self, choice: u16, field: Field, tool: u16, text: Option<String>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.pieces.push(Piece {
                choice,
                field,
                tool,
                text,
            });
        }
    }
}

/// Cumulative text positions: a stream has few texts, so that a list is faster than a map.
#[derive(Debug, Default)]
pub(crate) struct Positions(Vec<((u16, Field, u16), u64)>);

impl Positions {
    /// Adds `bytes` of decoded text and gives the new end.
    pub(crate) fn advance(&mut self, choice: u16, field: Field, tool: u16, bytes: usize) -> u64 {
        let text = (choice, field, tool);
        let bytes = bytes as u64;
        match self.0.iter_mut().find(|(known, _)| *known == text) {
            Some((_, end)) => {
                *end += bytes;
                *end
            }
            None => {
                self.0.push((text, bytes));
                bytes
            }
        }
    }
}

#[derive(Deserialize)]
struct Chunk {
    id: Option<String>,
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<UsageForm>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u16,
    delta: Option<Said>,
    message: Option<Said>,
    text: Option<String>,
    finish_reason: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Said {
    role: Option<IgnoredAny>,
    content: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
    tool_calls: Option<Vec<ToolCall>>,
}

#[derive(Deserialize)]
struct ToolCall {
    index: Option<u16>,
    id: Option<IgnoredAny>,
    function: Option<Function>,
}

#[derive(Default, Deserialize)]
struct Function {
    name: Option<IgnoredAny>,
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct UsageForm {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
    prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    cached_tokens: Option<u64>,
}

impl From<UsageForm> for Usage {
    fn from(form: UsageForm) -> Self {
        Self {
            prompt: form.prompt_tokens,
            completion: form.completion_tokens,
            cached: form
                .prompt_tokens_details
                .and_then(|details| details.cached_tokens),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Delta, Field};

    #[test]
    fn chunks_answers_and_nonsense() {
        let chunk = Delta::parse(
            br#"{"id":"x","choices":[{"index":1,"delta":{"content":"\u00e9","reasoning":"r"},
                "finish_reason":null}]}"#,
        )
        .unwrap();
        assert_eq!(chunk.pieces.len(), 2);
        assert_eq!(chunk.pieces[1].text.len(), 2);
        assert!(!chunk.finish && !chunk.role);
        let answer = Delta::parse(
            br#"{"choices":[{"message":{"role":"assistant","content":"hi","tool_calls":[
                {"id":"c","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"stop"}],
                "usage":{"prompt_tokens":3,"completion_tokens":1,
                "prompt_tokens_details":{"cached_tokens":2}}}"#,
        )
        .unwrap();
        assert!(answer.finish && answer.opens_tool && answer.role);
        assert_eq!(answer.pieces[1].field, Field::ToolArguments);
        assert_eq!(answer.usage.unwrap().cached, Some(2));
        assert!(Delta::parse(b"[DONE]").is_none());
    }
}
