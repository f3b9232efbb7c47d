//! Search over a corpus that is built in: BM25, as search engines without embeddings rank.

use std::collections::HashMap;

use serde_json::{Value, json};

/// Hits of an answer, at the most.
pub(crate) const HITS: u64 = 10;
/// Words of a query that are looked at.
const WORDS: usize = 64;
/// How quickly a word's repetition stops counting, and how much a document's length counts.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Documents are divided by blank lines; the first line of each is its title.
const CORPUS: &str = include_str!("corpus.txt");

struct Document {
    title: &'static str,
    text: &'static str,
    /// How often each word stands in it.
    counts: HashMap<String, u32>,
    length: u32,
}

/// The corpus, indexed.
pub(crate) struct Index {
    documents: Vec<Document>,
    /// In how many documents each word stands.
    spread: HashMap<String, u32>,
    mean: f64,
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}

impl Index {
    /// Indexes the corpus.
    pub(crate) fn new() -> Self {
        let mut spread: HashMap<String, u32> = HashMap::new();
        let documents: Vec<Document> = CORPUS
            .split("\n\n")
            .filter_map(|part| part.trim().split_once('\n'))
            .map(|(title, text)| {
                let mut counts: HashMap<String, u32> = HashMap::new();
                let all = words(title).chain(words(text));
                let length = all.fold(0, |length, word| {
                    *counts.entry(word).or_default() += 1;
                    length + 1
                });
                for word in counts.keys() {
                    *spread.entry(word.clone()).or_default() += 1;
                }
                Document {
                    title,
                    text,
                    counts,
                    length,
                }
            })
            .collect();
        let whole: u32 = documents.iter().map(|d| d.length).sum();
        let mean = f64::from(whole) / (documents.len().max(1) as f64);
        Self {
            documents,
            spread,
            mean,
        }
    }

    /// The best `limit` documents for `query`, best first, as JSON.
    pub(crate) fn search(&self, query: &str, limit: u64) -> Value {
        let query: Vec<String> = words(query).take(WORDS).collect();
        let mut hits: Vec<(f64, &Document)> = self
            .documents
            .iter()
            .map(|document| (self.score(document, &query), document))
            .filter(|(score, _)| *score > 0.0)
            .collect();
        // Equal scores stay in the order of the corpus.
        hits.sort_by(|a, b| b.0.total_cmp(&a.0));
        let most = usize::try_from(limit.clamp(1, HITS)).unwrap_or(1);
        let shown: Vec<Value> = hits
            .iter()
            .take(most)
            .map(|(score, document)| {
                json!({
                    "title": document.title,
                    "text": document.text,
                    "score": (score * 1000.0).round() / 1000.0
                })
            })
            .collect();
        json!({"found": hits.len(), "hits": shown})
    }

    fn score(&self, document: &Document, query: &[String]) -> f64 {
        let count = self.documents.len() as f64;
        query
            .iter()
            .filter_map(|word| Some((document.counts.get(word)?, self.spread.get(word)?)))
            .map(|(times, spread)| {
                let (times, spread) = (f64::from(*times), f64::from(*spread));
                let rare = (1.0 + (count - spread + 0.5) / (spread + 0.5)).ln();
                let long = 1.0 - B + B * f64::from(document.length) / self.mean;
                rare * times * (K1 + 1.0) / (times + K1 * long)
            })
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_that_is_meant_comes_first() {
        let index = Index::new();
        assert!(index.documents.len() >= 12);
        for document in &index.documents {
            let answer = index.search(document.title, 3);
            assert_eq!(answer["hits"][0]["title"], document.title);
            let hits = answer["hits"].as_array().unwrap();
            assert!((1..=3).contains(&hits.len()));
            let scores: Vec<f64> = hits.iter().map(|h| h["score"].as_f64().unwrap()).collect();
            assert!(scores.is_sorted_by(|a, b| a >= b), "{scores:?}");
        }
    }

    #[test]
    fn what_nobody_wrote_is_not_found_and_limits_hold() {
        let index = Index::new();
        assert_eq!(index.search("zyzzyva", 5), json!({"found": 0, "hits": []}));
        assert_eq!(index.search("", 5)["found"], 0);
        let most = index.search("the a of token latency gateway", 1_000);
        assert!(most["hits"].as_array().unwrap().len() as u64 <= HITS);
    }
}
