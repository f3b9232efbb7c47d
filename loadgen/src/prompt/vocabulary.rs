//! Words that are one token each.

use crate::LoadError;
use config::scenario::Tokenizer;
use tiktoken_rs::{CoreBPE, Rank};

/// Letters of a word: all alike, so that prompts of equal token count have equal length.
const LETTERS: usize = 5;
/// Fewer words than this would repeat prompts; no real tokenizer comes near.
const FEWEST: usize = 100;

/// The words of one tokenizer, and the tokenizer itself to count with.
pub struct Vocabulary {
    name: &'static str,
    coder: CoreBPE,
    /// With a space before.
    words: Vec<Box<str>>,
    /// Without: one token also at the start of a text.
    openings: Vec<Box<str>>,
}

impl Vocabulary {
    /// Builds the words of `tokenizer`. Takes a few tenths of a second.
    ///
    /// # Errors
    /// The tokenizer cannot be built, or holds too few words.
    pub fn load(tokenizer: Tokenizer) -> Result<Self, LoadError> {
        let (name, coder, size) = match tokenizer {
            Tokenizer::O200k => ("o200k_base", tiktoken_rs::o200k_base(), 199_998),
            Tokenizer::Cl100k => ("cl100k_base", tiktoken_rs::cl100k_base(), 100_256),
        };
        let broken = |what: String| LoadError::Tokenizer { name, what };
        let coder = coder.map_err(|error| broken(error.to_string()))?;
        let words: Vec<Box<str>> = (0..size).filter_map(|rank| word(&coder, rank)).collect();
        let openings: Vec<Box<str>> = words
            .iter()
            .map(|word| &word[1..])
            .filter(|bare| coder.encode_ordinary(bare).len() == 1)
            .map(Box::from)
            .collect();
        if words.len() < FEWEST || openings.len() < FEWEST {
            return Err(broken(format!("only {} words of one token", words.len())));
        }
        Ok(Self {
            name,
            coder,
            words,
            openings,
        })
    }

    /// The tokenizer's name, as results state it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Tokens of `text`.
    #[must_use]
    pub fn count(&self, text: &str) -> u32 {
        u32::try_from(self.coder.encode_ordinary(text).len()).unwrap_or(u32::MAX)
    }

    pub(super) fn words(&self) -> usize {
        self.words.len()
    }

    pub(super) fn openings(&self) -> usize {
        self.openings.len()
    }

    pub(super) fn word(&self, at: usize) -> &str {
        &self.words[at]
    }

    pub(super) fn opening(&self, at: usize) -> &str {
        &self.openings[at]
    }
}

/// The token `rank`, where it is a space and five small letters and encodes to itself.
fn word(coder: &CoreBPE, rank: Rank) -> Option<Box<str>> {
    let bytes = coder.decode_bytes(&[rank]).ok()?;
    let (space, letters) = bytes.split_first()?;
    let fits =
        *space == b' ' && letters.len() == LETTERS && letters.iter().all(u8::is_ascii_lowercase);
    if !fits {
        return None;
    }
    let text = String::from_utf8(bytes).ok()?;
    (coder.encode_ordinary(&text) == [rank]).then(|| text.into_boxed_str())
}
