//! What calls ask: prompts of an exact token count, no two alike, all of one length in bytes.
//!
//! A prompt is a row of words that are one token each under the named tokenizer, and all of five
//! letters: its token count is exact by construction, counted again for a sample of prompts, and
//! compared arms send bodies of equal size although no two prompts are equal. Counted is the text
//! of the messages; what a chat template adds is the engine's own affair.

mod body;
mod feed;
mod lengths;
mod vocabulary;

pub(crate) use body::{Body, Message, Role, Tools};
pub(crate) use feed::{Feed, Recipe, Systems};
pub(crate) use lengths::{Lengths, Line};
pub use vocabulary::Vocabulary;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

impl Vocabulary {
    /// A text of exactly `tokens` tokens (at least one), chosen by `seed`.
    #[must_use]
    pub fn text(&self, tokens: u32, seed: u64) -> String {
        self.blocks(std::iter::once((tokens.max(1), seed)))
    }

    /// A text of blocks of so many tokens, each chosen by its own seed: texts whose lists begin alike begin alike.
    pub(crate) fn blocks(&self, blocks: impl Iterator<Item = (u32, u64)>) -> String {
        let mut text = String::new();
        for (tokens, seed) in blocks {
            let mut rng = StdRng::seed_from_u64(seed);
            let tokens = usize::try_from(tokens).unwrap_or(usize::MAX);
            text.reserve(tokens.saturating_mul(6));
            for _ in 0..tokens {
                text.push_str(match text.is_empty() {
                    true => self.opening(rng.random_range(0..self.openings())),
                    false => self.word(rng.random_range(0..self.words())),
                });
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::scenario::Tokenizer;
    use std::collections::HashSet;

    #[test]
    fn counts_are_exact_and_lengths_equal_under_both_tokenizers() {
        for tokenizer in [Tokenizer::O200k, Tokenizer::Cl100k] {
            let vocabulary = Vocabulary::load(&tokenizer).unwrap();
            assert!(vocabulary.words() > 500 && vocabulary.openings() > 100);
            let mut seen = HashSet::new();
            for seed in 0..200 {
                let text = vocabulary.text(50, seed);
                assert_eq!(vocabulary.count(&text), 50, "{text}");
                assert_eq!(text.len(), 50 * 6 - 1);
                assert!(seen.insert(text));
            }
            for tokens in [1, 2, 16, 1000] {
                assert_eq!(vocabulary.count(&vocabulary.text(tokens, 9)), tokens);
            }
        }
    }

    /// A byte-level vocabulary of `words` made-up words of five letters, `first` of which can also begin a
    /// text, as a file.
    fn file(words: u32, first: u32) -> tempfile::NamedTempFile {
        let spelt = |n: u32| -> String {
            let letter =
                |at: u32| char::from(b'a' + u8::try_from(n / 26_u32.pow(at) % 26).unwrap());
            (0..5).map(letter).collect()
        };
        let letters = (b'a'..=b'z').map(|c| char::from(c).to_string());
        let bare = (0..first).map(spelt);
        let behind = (0..words).map(|n| format!("\u{120}{}", spelt(n)));
        let tokens = letters
            .chain(["\u{120}".to_owned()])
            .chain(bare)
            .chain(behind);
        let vocabulary: serde_json::Map<_, _> =
            tokens.zip((0..).map(serde_json::Value::from)).collect();
        let json = serde_json::json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
            "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
            "post_processor": null, "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
            "model": {"type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                      "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": true,
                      "vocab": vocabulary, "merges": []},
        });
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), json.to_string()).unwrap();
        file
    }

    #[test]
    fn counts_are_exact_under_the_tokenizer_of_a_file() {
        let file = file(400, 150);
        let tokenizer = Tokenizer::File(file.path().to_owned());
        let vocabulary = Vocabulary::load(&tokenizer).unwrap();
        assert_eq!((vocabulary.words(), vocabulary.openings()), (400, 150));
        assert_eq!(vocabulary.name(), file.path().display().to_string());
        for tokens in [1, 2, 300] {
            assert_eq!(vocabulary.count(&vocabulary.text(tokens, 9)), tokens);
        }
        // A word that it does not know falls into letters.
        assert_eq!(vocabulary.count("zzzzz"), 5);
    }

    #[test]
    fn a_tokenizer_that_cannot_be_used_is_refused_by_name() {
        let refused = |tokenizer: Tokenizer| match Vocabulary::load(&tokenizer) {
            Ok(_) => panic!("accepted"),
            Err(error) => error.to_string(),
        };
        let missing = refused(Tokenizer::File("no/such/tokenizer.json".into()));
        assert!(
            missing.contains("tokenizer no/such/tokenizer.json: "),
            "{missing}"
        );
        let few = file(400, 20);
        let few = refused(Tokenizer::File(few.path().to_owned()));
        assert!(
            few.contains("only 20 words") && few.contains("built in"),
            "{few}"
        );
        let broken = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(broken.path(), "{}").unwrap();
        refused(Tokenizer::File(broken.path().to_owned()));
    }
}
