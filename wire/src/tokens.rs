//! Token counts of services whose input leaves out what a cache held: Converse, Anthropic's messages,
//! InvokeModel.

use crate::event::Usage;

/// Counts as the service splits them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tokens {
    /// Neither read from a cache nor written to one.
    pub(crate) input: Option<u64>,
    pub(crate) cache_read: Option<u64>,
    pub(crate) cache_write: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) total: Option<u64>,
}

impl Tokens {
    /// Takes what `later` says in place of what was said before.
    pub(crate) fn update(&mut self, later: Self) {
        *self = Self {
            input: later.input.or(self.input),
            cache_read: later.cache_read.or(self.cache_read),
            cache_write: later.cache_write.or(self.cache_write),
            output: later.output.or(self.output),
            total: later.total.or(self.total),
        };
    }

    /// Adds those of another call.
    pub(crate) fn add(&mut self, other: Self) {
        let sum = |mine: Option<u64>, other: Option<u64>| match (mine, other) {
            (Some(mine), Some(other)) => Some(mine.saturating_add(other)),
            (one, another) => one.or(another),
        };
        *self = Self {
            input: sum(self.input, other.input),
            cache_read: sum(self.cache_read, other.cache_read),
            cache_write: sum(self.cache_write, other.cache_write),
            output: sum(self.output, other.output),
            total: sum(self.total, other.total),
        };
    }

    /// The prompt is the sum of the three (<https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html>,
    /// <https://platform.claude.com/docs/en/build-with-claude/prompt-caching>). A model family that counts the
    /// cached part twice would show here as a longer prompt: `total_tokens` is given as sent. `None` where
    /// nothing is known.
    pub(crate) fn usage(self) -> Option<Usage> {
        let (read, written) = (self.cache_read.unwrap_or(0), self.cache_write.unwrap_or(0));
        let usage = Usage {
            prompt_tokens: self
                .input
                .map(|new| new.saturating_add(read).saturating_add(written)),
            completion_tokens: self.output,
            cached_tokens: self.cache_read,
            reasoning_tokens: None,
            total_tokens: self.total,
            cache_write_tokens: self.cache_write,
        };
        (usage != Usage::default()).then_some(usage)
    }
}
