//! What a prompt says, and its blocks as a prefix cache names them.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// Tokens of one KV block: vLLM's default `--block-size` on GPUs.
pub(crate) const BLOCK_TOKENS: u64 = 16;

/// A part of a prompt.
pub(crate) enum Part<'a> {
    Text(&'a str),
    /// What comes before may be kept: Bedrock's `cachePoint`, Anthropic's `cache_control`.
    CachePoint,
}

/// Calls `see` with every text of a prompt: strings themselves, and `content` and `text` of objects; and with
/// every cache point, in their order.
pub(crate) fn visit_parts(value: &Value, see: &mut impl FnMut(Part<'_>)) {
    match value {
        Value::String(text) => see(Part::Text(text)),
        Value::Array(items) => items.iter().for_each(|item| visit_parts(item, see)),
        Value::Object(fields) => {
            ["content", "text"]
                .iter()
                .filter_map(|name| fields.get(*name))
                .for_each(|field| visit_parts(field, see));
            let points = ["cachePoint", "cache_control"];
            if points
                .iter()
                .any(|name| fields.get(*name).is_some_and(Value::is_object))
            {
                see(Part::CachePoint);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Calls `see` with every text of a prompt.
pub(crate) fn visit_texts(value: &Value, see: &mut impl FnMut(&str)) {
    visit_parts(value, &mut |part| {
        if let Part::Text(text) = part {
            see(text);
        }
    });
}

/// The beginning of a prompt up to a cache point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Point {
    /// Names all its texts.
    pub(crate) hash: u64,
    pub(crate) tokens: u64,
}

/// The words of a text and the chained hashes of its full blocks: equal hashes mean equal beginnings, as
/// in vLLM's prefix cache. One whitespace-separated word counts as one token unless told otherwise, which is
/// exact for the load generator's prompts (each of their words is one token of o200k) and for the stand-in's
/// answers. What a chat template adds is not counted unless told so, and the borders of messages are not seen.
#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    /// Full blocks, in order.
    hashes: Vec<u64>,
    open: DefaultHasher,
    tokens: u64,
    count: Count,
}

/// How many tokens a text has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Count {
    /// Tokens of a word, on average over many: which words have more depends on the word alone.
    pub(crate) per_word: f64,
    /// Tokens before any text, as of a chat template.
    pub(crate) template: u64,
}

impl Count {
    /// One word is one token.
    pub(crate) const WORDS: Self = Self {
        per_word: 1.0,
        template: 0,
    };

    fn word(self, word: &str) -> u64 {
        let whole = self.per_word.floor();
        let part = self.per_word - whole;
        if part == 0.0 {
            return whole as u64;
        }
        let mut hasher = DefaultHasher::new();
        word.hash(&mut hasher);
        let place = hasher.finish() as f64 / u64::MAX as f64;
        whole as u64 + u64::from(place < part)
    }

    /// Tokens of the words of `text`.
    pub(crate) fn text(self, text: &str) -> u64 {
        text.split_whitespace().map(|word| self.word(word)).sum()
    }
}

impl Blocks {
    /// No words yet. Only prompts with the same `salt` share blocks, as with vLLM's `cache_salt`.
    pub(crate) fn new(salt: Option<&str>, count: Count) -> Self {
        let mut open = DefaultHasher::new();
        salt.hash(&mut open);
        let mut blocks = Self {
            hashes: Vec::new(),
            open,
            tokens: 0,
            count,
        };
        (0..count.template).for_each(|_| blocks.push("template"));
        blocks
    }

    /// Appends the words of `text`.
    pub(crate) fn add(&mut self, text: &str) {
        for word in text.split_whitespace() {
            (0..self.count.word(word)).for_each(|_| self.push(word));
        }
    }

    /// Appends one token.
    fn push(&mut self, token: &str) {
        token.hash(&mut self.open);
        self.tokens += 1;
        if self.tokens.is_multiple_of(BLOCK_TOKENS) {
            // The hasher goes on over the next block, so that each hash names all that came before.
            self.hashes.push(self.open.finish());
        }
    }

    /// Tokens so far.
    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// All so far, as a cache point names it.
    pub(crate) fn point(&self) -> Point {
        Point {
            hash: self.open.finish(),
            tokens: self.tokens,
        }
    }

    /// The hashes of the full blocks.
    pub(crate) fn into_hashes(self) -> Vec<u64> {
        self.hashes
    }
}

/// The hashes of the full blocks of a request's prompt, none where the body is no generation request.
pub(crate) fn prompt_hashes(body: &[u8]) -> Vec<u64> {
    #[derive(serde::Deserialize)]
    struct Form {
        messages: Option<Value>,
        prompt: Option<Value>,
        cache_salt: Option<String>,
    }
    let Ok(form) = serde_json::from_slice::<Form>(body) else {
        return Vec::new();
    };
    let mut blocks = Blocks::new(form.cache_salt.as_deref(), Count::WORDS);
    if let Some(prompt) = form.messages.or(form.prompt) {
        visit_texts(&prompt, &mut |text| blocks.add(text));
    }
    blocks.into_hashes()
}

#[cfg(test)]
mod tests {
    use super::{Blocks, Count};

    fn hashes(salt: Option<&str>, text: &str) -> Vec<u64> {
        let mut blocks = Blocks::new(salt, Count::WORDS);
        blocks.add(text);
        blocks.into_hashes()
    }

    #[test]
    fn equal_beginnings_have_equal_hashes_and_only_they() {
        let common = "a ".repeat(32);
        let one = hashes(None, &format!("{common}{}", "b ".repeat(17)));
        let two = hashes(None, &format!("{common}{}", "c ".repeat(16)));
        assert_eq!((one.len(), two.len()), (3, 3));
        assert_eq!(one[..2], two[..2]);
        assert_ne!(one[2], two[2]);
        // The same words at another place are another block.
        assert_ne!(one[0], one[1]);
        assert_ne!(hashes(Some("tenant"), &common), one[..2]);
    }

    #[test]
    fn another_tokenizer_counts_the_same_words_otherwise_and_always_alike() {
        let count = Count {
            per_word: 1.25,
            template: 7,
        };
        let text: Vec<String> = (0..4_000).map(|n| format!("word{n}")).collect();
        let text = text.join(" ");
        let tokens = count.text(&text);
        // Standard deviation: sqrt(4000 · 0.25 · 0.75) = 27.
        assert!(tokens.abs_diff(5_000) < 150, "{tokens}");
        assert_eq!(count.text(&text), tokens);
        let mut blocks = Blocks::new(None, count);
        blocks.add(&text);
        assert_eq!(blocks.tokens(), tokens + 7);
        assert_eq!(blocks.into_hashes().len() as u64, (tokens + 7) / 16);
        assert_eq!(Count::WORDS.text("a b  c"), 3);
    }
}
