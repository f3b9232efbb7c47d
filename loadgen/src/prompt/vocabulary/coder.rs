//! Counting tokens: by a tokenizer that is built in, or by a model's own file.

use std::path::Path;
use tiktoken_rs::CoreBPE;
use tokenizers::Tokenizer as FileTokenizer;

/// Letters of a word: all alike, so that prompts of equal token count have equal length.
const LETTERS: usize = 5;

/// What counts.
pub(super) enum Coder {
    BuiltIn(CoreBPE),
    File(Box<FileTokenizer>),
}

/// Words of one token each: with a space before, and as the beginning of a text.
pub(super) struct Words {
    pub(super) words: Vec<Box<str>>,
    pub(super) openings: Vec<Box<str>>,
}

impl Coder {
    /// Reads a `tokenizer.json` of Hugging Face's tokenizers.
    pub(super) fn read(path: &Path) -> tokenizers::Result<Self> {
        Ok(Self::File(Box::new(FileTokenizer::from_file(path)?)))
    }

    /// Tokens of `text`, without those that a chat template or a model adds.
    pub(super) fn count(&self, text: &str) -> usize {
        match self {
            Self::BuiltIn(coder) => coder.encode_ordinary(text).len(),
            // An error is a text that the tokenizer cannot take: then it counts nothing, and the check of
            // the prompts tells.
            Self::File(coder) => coder
                .encode_fast(text, false)
                .map_or(0, |found| found.len()),
        }
    }

    /// All words of five small letters that are one token wherever a prompt has them.
    pub(super) fn words(&self, candidates: impl Iterator<Item = String>) -> Words {
        let bare: Vec<String> = candidates.filter(|word| fits(word)).collect();
        let openings = bare.iter().filter(|word| self.count(word) == 1);
        let openings: Vec<Box<str>> = openings.map(|word| word.as_str().into()).collect();
        let Some(first) = openings.first() else {
            return Words {
                words: Vec::new(),
                openings,
            };
        };
        // Behind another word, as in a prompt: some tokenizers put a space of their own before a text.
        let words = bare.iter().map(|word| format!(" {word}"));
        let words = words.filter(|word| self.count(&format!("{first}{word}")) == 2);
        Words {
            words: words.map(String::into_boxed_str).collect(),
            openings,
        }
    }

    /// The texts of the tokens, in the order of their numbers, without a space before.
    pub(super) fn candidates(&self, size: u32) -> Vec<String> {
        match self {
            Self::BuiltIn(coder) => (0..size)
                .filter_map(|rank| String::from_utf8(coder.decode_bytes(&[rank]).ok()?).ok())
                .filter_map(|text| Some(text.strip_prefix(' ')?.to_owned()))
                .collect(),
            Self::File(coder) => {
                let mut all: Vec<(u32, String)> = coder
                    .get_vocab(false)
                    .into_iter()
                    .filter_map(|(text, id)| Some((id, bare(&text)?.to_owned())))
                    .collect();
                all.sort_unstable();
                all.into_iter().map(|(_, text)| text).collect()
            }
        }
    }
}

/// A token's text without the sign for a space before it: byte-level vocabularies write `Ġ`, those of
/// SentencePiece `▁`.
fn bare(text: &str) -> Option<&str> {
    text.strip_prefix('Ġ').or_else(|| text.strip_prefix('▁'))
}

fn fits(word: &str) -> bool {
    word.len() == LETTERS && word.bytes().all(|b| b.is_ascii_lowercase())
}
