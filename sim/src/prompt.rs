//! What a prompt says, and its blocks as a prefix cache names them.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

/// Tokens of one KV block: vLLM's default `--block-size` on GPUs.
pub(crate) const BLOCK_TOKENS: u64 = 16;

/// Calls `see` with every text of a prompt: strings themselves, and `content` and `text` of objects.
pub(crate) fn visit_texts(value: &Value, see: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => see(text),
        Value::Array(items) => items.iter().for_each(|item| visit_texts(item, see)),
        Value::Object(fields) => ["content", "text"]
            .iter()
            .filter_map(|name| fields.get(*name))
            .for_each(|field| visit_texts(field, see)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The words of a text and the chained hashes of its full blocks: equal hashes mean equal beginnings, as
/// in vLLM's prefix cache. One whitespace-separated word counts as one token, which is exact for the
/// load generator's prompts (each of their words is one token of o200k) and for the stand-in's answers.
/// What a chat template adds is not counted, and the borders of messages are not seen.
#[derive(Debug, Clone)]
pub(crate) struct Blocks {
    /// Full blocks, in order.
    hashes: Vec<u64>,
    open: DefaultHasher,
    words: u64,
}

impl Blocks {
    /// No words yet. Only prompts with the same `salt` share blocks, as with vLLM's `cache_salt`.
    pub(crate) fn new(salt: Option<&str>) -> Self {
        let mut open = DefaultHasher::new();
        salt.hash(&mut open);
        Self {
            hashes: Vec::new(),
            open,
            words: 0,
        }
    }

    /// Appends the words of `text`.
    pub(crate) fn add(&mut self, text: &str) {
        for word in text.split_whitespace() {
            word.hash(&mut self.open);
            self.words += 1;
            if self.words.is_multiple_of(BLOCK_TOKENS) {
                // The hasher goes on over the next block, so that each hash names all that came before.
                self.hashes.push(self.open.finish());
            }
        }
    }

    /// Words so far.
    pub(crate) fn words(&self) -> u64 {
        self.words
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
    let mut blocks = Blocks::new(form.cache_salt.as_deref());
    if let Some(prompt) = form.messages.or(form.prompt) {
        visit_texts(&prompt, &mut |text| blocks.add(text));
    }
    blocks.into_hashes()
}

#[cfg(test)]
mod tests {
    use super::Blocks;

    fn hashes(salt: Option<&str>, text: &str) -> Vec<u64> {
        let mut blocks = Blocks::new(salt);
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
}
