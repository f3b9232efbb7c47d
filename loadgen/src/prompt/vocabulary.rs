//! Words that are one token each.

mod coder;

use crate::LoadError;
use coder::{Coder, Words};
use config::scenario::Tokenizer;

/// Fewer words than this would repeat prompts; no real tokenizer comes near.
const FEWEST: usize = 100;

/// The words of one tokenizer, and the tokenizer itself to count with.
pub struct Vocabulary {
    name: String,
    coder: Coder,
    /// With a space before.
    words: Vec<Box<str>>,
    /// Without: one token also at the start of a text.
    openings: Vec<Box<str>>,
}

impl Vocabulary {
    /// Builds the words of `tokenizer`. Takes a few tenths of a second.
    ///
    /// # Errors
    /// The tokenizer cannot be read or built, or holds too few words.
    pub fn load(tokenizer: &Tokenizer) -> Result<Self, LoadError> {
        let (name, size) = match tokenizer {
            Tokenizer::O200k => ("o200k_base".to_owned(), 199_998),
            Tokenizer::Cl100k => ("cl100k_base".to_owned(), 100_256),
            Tokenizer::File(path) => (path.display().to_string(), 0),
        };
        let coder = match tokenizer {
            Tokenizer::O200k => tiktoken_rs::o200k_base().map_err(Into::into),
            Tokenizer::Cl100k => tiktoken_rs::cl100k_base().map_err(Into::into),
            Tokenizer::File(path) => {
                let read = Coder::read(path).map_err(|error| {
                    format!("{error}; name a model's tokenizer.json, or one that is built in: o200k, cl100k")
                });
                return Self::of(name, read.map_err(Into::into), size);
            }
        };
        Self::of(name, coder.map(Coder::BuiltIn), size)
    }

    /// Of the tokenizer `coder`, whose tokens are numbered up to `size`.
    fn of(name: String, coder: tokenizers::Result<Coder>, size: u32) -> Result<Self, LoadError> {
        let broken = |what: String| LoadError::Tokenizer {
            name: name.clone(),
            what,
        };
        let coder = coder.map_err(|error| broken(error.to_string()))?;
        let Words { words, openings } = coder.words(coder.candidates(size).into_iter());
        if words.len() < FEWEST || openings.len() < FEWEST {
            return Err(broken(format!(
                "only {} words of five letters are one token each, and {FEWEST} are needed to make prompts that differ; use one that is built in",
                words.len().min(openings.len())
            )));
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
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tokens of `text`.
    #[must_use]
    pub fn count(&self, text: &str) -> u32 {
        u32::try_from(self.coder.count(text)).unwrap_or(u32::MAX)
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
