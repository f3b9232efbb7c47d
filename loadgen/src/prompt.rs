//! What calls ask: prompts of an exact token count, no two alike, all of one length in bytes.
//!
//! A prompt is a row of words that are one token each under the named tokenizer, and all of five
//! letters: its token count is exact by construction, counted again for a sample of prompts, and
//! compared arms send bodies of equal size although no two prompts are equal. Counted is the text
//! of the messages; what a chat template adds is the engine's own affair.

mod body;
mod feed;
mod vocabulary;

pub(crate) use body::{Body, Message};
pub(crate) use feed::{Feed, Recipe, Systems};
pub use vocabulary::Vocabulary;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

impl Vocabulary {
    /// A text of exactly `tokens` tokens (at least one), chosen by `seed`.
    #[must_use]
    pub fn text(&self, tokens: u32, seed: u64) -> String {
        let mut rng = StdRng::seed_from_u64(seed);
        let tokens = usize::try_from(tokens).unwrap_or(usize::MAX).max(1);
        let mut text = String::with_capacity(tokens.saturating_mul(6));
        text.push_str(self.opening(rng.random_range(0..self.openings())));
        for _ in 1..tokens {
            text.push_str(self.word(rng.random_range(0..self.words())));
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
            let vocabulary = Vocabulary::load(tokenizer).unwrap();
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
}
