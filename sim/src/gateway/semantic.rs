//! Answers kept for requests that mean about the same.
//!
//! Two requests are compared by the cosine of the angle between the word counts of their last user
//! messages (lower case, letters and digits only): 1 for the same words in any order, 0 for none in common.
//! So "refund order 17" and "refund order 18" are alike at 2/3 (a false hit under a low threshold), while
//! a paraphrase in other words is not alike at all, which an embedding would see. What is not a message
//! (model, limits, tools, …) must be equal, as `LiteLLM`'s semantic cache demands; the other messages,
//! system prompts too, are not compared.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::cache::{Answer, MAX_ANSWER};
use crate::prompt::visit_texts;

/// Words of a message that are compared: later ones do not count.
const MAX_WORDS: usize = 4096;

/// The semantic cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, default)]
pub struct SemanticOptions {
    /// Answers a request whose last user message is like that of an earlier one of the same tenant (without
    /// a key file: of the same credential) from memory, with `x-cache-hit` and `x-semantic-similarity`.
    #[arg(long)]
    pub semantic_cache: bool,
    /// Least cosine similarity of the word counts for a hit, 0 to 1. (0.8 is the default of Bifrost's
    /// semantic cache, which compares embeddings.)
    #[arg(long, default_value_t = Self::default().semantic_threshold, value_parser = super::options::share)]
    pub semantic_threshold: f64,
    /// How long an answer is kept, ms. (Five minutes is Bifrost's default.)
    #[arg(long, default_value_t = Self::default().semantic_ttl_ms, value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    pub semantic_ttl_ms: u64,
    /// Most answers kept; each has at most 256 KiB, and the oldest goes first.
    #[arg(long, default_value_t = Self::default().semantic_entries, value_parser = clap::value_parser!(u64).range(1..=16_384))]
    pub semantic_entries: u64,
    /// Time of each look-up, µs, on the request leg: a real cache asks an embedding model first.
    #[arg(long, default_value_t = Self::default().semantic_lookup_us)]
    pub semantic_lookup_us: u64,
    /// The fault that a canary must catch: the semantic cache does not tell tenants apart.
    #[arg(long, requires = "semantic_cache")]
    pub leak_across_tenants: bool,
}

impl Default for SemanticOptions {
    /// Off.
    fn default() -> Self {
        Self {
            semantic_cache: false,
            semantic_threshold: 0.8,
            semantic_ttl_ms: 300_000,
            semantic_entries: 1024,
            semantic_lookup_us: 0,
            leak_across_tenants: false,
        }
    }
}

/// What a request asks the cache for.
#[derive(Debug, Clone)]
pub(super) struct Question {
    /// Names everything that must be equal.
    bucket: u64,
    /// How often each word occurs, by its hash.
    words: BTreeMap<u64, u32>,
}

impl Question {
    /// The question of a request, `None` where it has no user message with words. `tenant` is `None` where
    /// tenants are not told apart.
    pub(super) fn new(tenant: Option<&str>, target: &str, body: &[u8]) -> Option<Self> {
        let mut form: Value = serde_json::from_slice(body).ok()?;
        let messages = form.as_object_mut()?.remove("messages")?;
        let is_users = |message: &&Value| message["role"] == "user";
        let last = messages.as_array()?.iter().rev().find(is_users)?;
        let mut words = BTreeMap::new();
        let mut seen = 0;
        visit_texts(last, &mut |text| {
            for word in words_of(text).take(MAX_WORDS - seen) {
                *words.entry(hash(&word)).or_insert(0) += 1;
                seen += 1;
            }
        });
        // Objects are sorted maps, so that equal parameters in another order are equal here.
        let bucket = hash(&(tenant, target, form.to_string()));
        (!words.is_empty()).then_some(Self { bucket, words })
    }

    /// Cosine similarity, 0 to 1; 0 where anything else differs.
    fn similarity(&self, other: &Self) -> f64 {
        if self.bucket != other.bucket {
            return 0.0;
        }
        let count =
            |words: &BTreeMap<u64, u32>, word| words.get(word).copied().map_or(0.0, f64::from);
        let product: f64 = self
            .words
            .iter()
            .map(|(word, times)| f64::from(*times) * count(&other.words, word))
            .sum();
        let square = |words: &BTreeMap<u64, u32>| {
            words
                .values()
                .map(|times| f64::from(*times).powi(2))
                .sum::<f64>()
        };
        (product / (square(&self.words) * square(&other.words)).sqrt()).min(1.0)
    }
}

fn words_of(text: &str) -> impl Iterator<Item = String> {
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// A kept answer.
struct Entry {
    question: Question,
    answer: Arc<Answer>,
    /// ns.
    until: u64,
}

/// The kept answers, oldest first.
#[derive(Default)]
pub(super) struct SemanticCache(Mutex<VecDeque<Entry>>);

impl SemanticCache {
    /// The answer of the most similar question above the threshold at `at` ns, and how similar that is.
    pub(super) fn get(
        &self,
        options: &SemanticOptions,
        question: &Question,
        at: u64,
    ) -> Option<(Arc<Answer>, f64)> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|entry| entry.until > at);
        held.iter()
            .map(|entry| (entry, question.similarity(&entry.question)))
            // Rounding must not turn equal words into less than 1.
            .filter(|(_, alike)| *alike > 0.0 && alike + 1e-9 >= options.semantic_threshold)
            .max_by(|(_, one), (_, other)| one.total_cmp(other))
            .map(|(entry, alike)| (Arc::clone(&entry.answer), alike))
    }

    /// Keeps an answer from `at` ns on.
    pub(super) fn put(
        &self,
        options: &SemanticOptions,
        question: Question,
        answer: Arc<Answer>,
        at: u64,
    ) {
        if answer.body.len() > MAX_ANSWER {
            return;
        }
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while held.len() as u64 >= options.semantic_entries.max(1) {
            held.pop_front();
        }
        held.push_back(Entry {
            question,
            answer,
            until: at + options.semantic_ttl_ms * 1_000_000,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(tenant: Option<&str>, said: &str, model: &str) -> Question {
        let body = format!(
            r#"{{"model":"{model}","messages":[{{"role":"system","content":"{tenant:?}"}},{{"role":"user","content":"{said}"}}]}}"#
        )
        .replace("Some(\"", "").replace("\")", "");
        Question::new(tenant, "/", body.as_bytes()).unwrap()
    }

    fn answer() -> Arc<Answer> {
        Arc::new(Answer {
            streamed: false,
            content_type: String::new(),
            body: vec![0],
        })
    }

    #[test]
    fn similarity_is_the_cosine_of_word_counts_within_a_bucket() {
        let one = question(Some("a"), "Refund order 17!", "m");
        let alike = |said, tenant, model| one.similarity(&question(Some(tenant), said, model));
        assert!((alike("order 17: refund", "a", "m") - 1.0).abs() < 1e-9);
        assert!((alike("refund order 18", "a", "m") - 2.0 / 3.0).abs() < 1e-9);
        assert!(alike("hello there", "a", "m").abs() < 1e-9);
        assert!(
            alike("refund order 17", "b", "m").abs() < 1e-9,
            "tenants are apart"
        );
        assert!(
            alike("refund order 17", "a", "n").abs() < 1e-9,
            "models are apart"
        );
        let leaky = question(None, "refund", "m").similarity(&question(None, "refund", "m"));
        assert!((leaky - 1.0).abs() < 1e-9);
    }

    #[test]
    fn answers_age_and_are_bounded() {
        let options = SemanticOptions {
            semantic_entries: 2,
            semantic_ttl_ms: 1,
            ..SemanticOptions::default()
        };
        let cache = SemanticCache::default();
        for said in ["one", "two", "three"] {
            cache.put(&options, question(None, said, "m"), answer(), 0);
        }
        let hit = |said, at| {
            cache
                .get(&options, &question(None, said, "m"), at)
                .is_some()
        };
        assert!(!hit("one", 1), "the oldest went");
        assert!(hit("two", 999_999) && hit("three", 999_999));
        assert!(!hit("three", 1_000_000), "its time is over");
    }
}
