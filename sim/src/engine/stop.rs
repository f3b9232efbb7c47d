//! Stop sequences: what is said ends before the first of them.

use super::text::Text;
use crate::truth::Field;

/// An answer that comes upon a stop sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stopped {
    pub(super) sequence: String,
    /// Tokens that are said, the last of them perhaps in part.
    pub(super) said: u64,
    /// Tokens that the model makes: also those of the sequence, which are paid for.
    pub(super) made: u64,
    /// Bytes of content that are said.
    pub(super) bytes: usize,
}

impl Stopped {
    /// Where `text`, in pieces of one token, comes upon one of `sequences`. Only content is looked at.
    pub(super) fn find(text: Text, sequences: &[String]) -> Option<Self> {
        let longest = sequences.iter().map(String::len).max()?;
        let mut content = String::new();
        // Where the content of each token begins.
        let mut begins = Vec::new();
        let mut others = 0;
        for added in text {
            if added.field != Field::Content {
                others += 1;
                continue;
            }
            begins.push(content.len());
            // A sequence may have begun in what was looked at before.
            let from = content.len().saturating_sub(longest);
            let from = (from..=content.len()).find(|at| content.is_char_boundary(*at))?;
            content.push_str(&added.text);
            let found = sequences.iter().filter_map(|sequence| {
                let at = content[from..].find(sequence.as_str())?;
                Some((from + at, sequence))
            });
            if let Some((bytes, sequence)) = found.min() {
                let said = begins.iter().filter(|begin| **begin < bytes).count();
                return Some(Self {
                    sequence: sequence.clone(),
                    said: others + said as u64,
                    made: others + begins.len() as u64,
                    bytes,
                });
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::EngineOptions;

    fn text(reasoning_tokens: u64, echo: &[&str]) -> Text {
        let options = EngineOptions {
            reasoning_tokens,
            ..EngineOptions::default()
        };
        let echo: Vec<String> = echo.iter().map(|word| (*word).to_owned()).collect();
        Text::new(&options, reasoning_tokens + echo.len() as u64, 7).beginning_with(&echo)
    }

    fn found(reasoning: u64, sequences: &[&str]) -> Option<(u64, u64, usize)> {
        let sequences: Vec<String> = sequences.iter().map(|it| (*it).to_owned()).collect();
        let found = Stopped::find(text(reasoning, &["äb", "cd", "ef"]), &sequences)?;
        Some((found.said, found.made, found.bytes))
    }

    #[test]
    fn the_first_sequence_cuts_within_a_token_between_tokens_and_across_them() {
        // The content is ` äb cd ef`, in which `ä` has two bytes.
        assert_eq!(found(0, &["d"]), Some((2, 2, 6)));
        assert_eq!(found(0, &[" cd"]), Some((1, 2, 4)));
        assert_eq!(found(0, &["b c"]), Some((1, 2, 3)));
        assert_eq!(found(0, &["äb cd e"]), Some((1, 3, 1)));
        assert_eq!(found(0, &["ef", "c"]), Some((2, 2, 5)));
        assert_eq!(found(0, &[" "]), Some((0, 1, 0)));
        assert_eq!(found(2, &["d"]), Some((4, 4, 6)));
        assert_eq!(found(0, &["x"]), None);
        assert_eq!(found(0, &[]), None);
    }
}
