//! The text of one choice, chunk by chunk.

use rand::SeedableRng;
use rand::rngs::StdRng;

use std::collections::VecDeque;

use super::EngineOptions;
use super::tool_call::Call;
use super::words::word;
use crate::truth::Field;

/// What one chunk adds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Addition {
    pub(super) field: Field,
    pub(super) tool: u16,
    /// Opens a tool call.
    pub(super) opens: bool,
    pub(super) text: String,
    /// Nothing follows.
    pub(super) last: bool,
}

/// A seeded text of an exact number of tokens: reasoning first, then content or the arguments of tool
/// calls. Arguments are wrapped in `{"text":"…"}`, which is not counted.
pub(super) struct Text {
    random: StdRng,
    per_chunk: u64,
    /// Tokens of each section that are still to come, the current section last.
    sections: Vec<(Field, u16, u64)>,
    opened: bool,
    /// Words that the content begins with, the next one last.
    echo: Vec<String>,
    /// Bytes of content that may still be said.
    content_left: usize,
    /// What is said word for word, piece by piece: the arguments of a call, a guardrail's message.
    script: Option<VecDeque<String>>,
}

impl Text {
    /// A text of `tokens` tokens.
    pub(super) fn new(options: &EngineOptions, tokens: u64, seed: u64) -> Self {
        let reasoning = options.reasoning_tokens.min(tokens);
        let rest = tokens - reasoning;
        let mut sections = vec![(Field::Reasoning, 0, reasoning)];
        let tools = u64::from(options.tool_calls).min(rest);
        if tools == 0 {
            sections.push((Field::Content, 0, rest));
        }
        for tool in 0..tools {
            let share = rest / tools + u64::from(tool < rest % tools);
            let index = u16::try_from(tool).unwrap_or(u16::MAX);
            sections.push((Field::ToolArguments, index, share));
        }
        sections.retain(|(_, _, tokens)| *tokens > 0);
        sections.reverse();
        Self {
            random: StdRng::seed_from_u64(seed),
            per_chunk: options.tokens_per_chunk.max(1),
            sections,
            opened: false,
            echo: Vec::new(),
            content_left: usize::MAX,
            script: None,
        }
    }

    /// The first `tokens` tokens of a call's arguments.
    pub(super) fn calling(call: &Call, tokens: u64, per_chunk: u64) -> Self {
        Self {
            random: StdRng::seed_from_u64(0),
            per_chunk: per_chunk.max(1),
            sections: vec![(Field::ToolArguments, 0, tokens)],
            opened: false,
            echo: Vec::new(),
            content_left: usize::MAX,
            script: Some(call.pieces().collect()),
        }
    }

    /// Just this, in one piece.
    pub(super) fn saying(text: &str) -> Self {
        Self {
            random: StdRng::seed_from_u64(0),
            per_chunk: 1,
            sections: vec![(Field::Content, 0, 1)],
            opened: false,
            echo: Vec::new(),
            content_left: usize::MAX,
            script: Some([text.to_owned()].into()),
        }
    }

    /// The same text, but its content begins with these words.
    pub(super) fn beginning_with(mut self, words: &[String]) -> Self {
        self.echo = words.iter().rev().cloned().collect();
        self
    }

    /// The same text, of whose content only so many bytes are said.
    pub(super) fn cut(mut self, bytes: usize) -> Self {
        self.content_left = bytes;
        self
    }

    fn push_token(&mut self, field: Field, text: &mut String) {
        if let Some(script) = &mut self.script {
            text.extend(script.pop_front());
            return;
        }
        let echoed = match field {
            Field::Content => self.echo.pop(),
            Field::Reasoning | Field::ToolArguments => None,
        };
        match echoed {
            Some(word) => {
                text.push(' ');
                text.push_str(&word);
            }
            None => text.push_str(word(&mut self.random)),
        }
    }
}

impl Iterator for Text {
    type Item = Addition;

    fn next(&mut self) -> Option<Addition> {
        let (field, tool, left) = self.sections.last_mut()?;
        let (field, tool) = (*field, *tool);
        let opens = field == Field::ToolArguments && !self.opened;
        let take = self.per_chunk.min(*left);
        *left -= take;
        let closes = *left == 0;
        let wrapped = field == Field::ToolArguments && self.script.is_none();
        let mut text = String::new();
        if wrapped && opens {
            text.push_str("{\"text\":\"");
        }
        for _ in 0..take {
            self.push_token(field, &mut text);
        }
        if field == Field::Content {
            // Cut where a stop sequence begins, which is between characters.
            text.truncate(self.content_left);
            self.content_left -= text.len();
        }
        self.opened = true;
        if closes {
            self.sections.pop();
            self.opened = false;
            if wrapped {
                text.push_str("\"}");
            }
        }
        Some(Addition {
            field,
            tool,
            opens,
            text,
            last: self.sections.is_empty(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{EngineOptions, Field, Text};

    #[test]
    fn sections_have_their_exact_number_of_tokens() {
        let options = EngineOptions {
            reasoning_tokens: 5,
            tool_calls: 2,
            tokens_per_chunk: 2,
            ..EngineOptions::default()
        };
        let additions: Vec<_> = Text::new(&options, 12, 1).collect();
        let text = |field, tool| -> String {
            additions
                .iter()
                .filter(|addition| (addition.field, addition.tool) == (field, tool))
                .map(|addition| addition.text.as_str())
                .collect()
        };
        assert_eq!(text(Field::Reasoning, 0).split_whitespace().count(), 5);
        for (tool, words) in [(0, 4), (1, 3)] {
            let arguments: serde_json::Value =
                serde_json::from_str(&text(Field::ToolArguments, tool)).unwrap();
            let said = arguments["text"].as_str().unwrap();
            assert_eq!(said.split_whitespace().count(), words);
        }
        assert_eq!(
            additions.iter().filter(|addition| addition.opens).count(),
            2
        );
        assert_eq!(additions.iter().filter(|addition| addition.last).count(), 1);
        assert!(additions.last().unwrap().last);
    }

    #[test]
    fn the_same_seed_gives_the_same_text_whatever_the_chunks() {
        let text = |tokens_per_chunk, seed| -> String {
            let options = EngineOptions {
                tokens_per_chunk,
                ..EngineOptions::default()
            };
            Text::new(&options, 40, seed)
                .map(|addition| addition.text)
                .collect()
        };
        assert_eq!(text(1, 3), text(7, 3));
        assert_ne!(text(1, 3), text(1, 4));
    }
}
