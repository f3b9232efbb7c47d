//! What one exchange will say, decided before its first byte.

use super::request::{Dialect, Generation};
use super::shape::Counts;
use super::text::Text;
use super::{EngineOptions, Faults};

/// A generation request resolved against the engine's options.
pub(super) struct Plan {
    pub(super) options: EngineOptions,
    pub(super) faults: Faults,
    pub(super) id: String,
    pub(super) model: String,
    pub(super) dialect: Dialect,
    pub(super) choices: u16,
    pub(super) include_usage: bool,
    pub(super) counts: Counts,
    pub(super) finish_reason: &'static str,
    pub(super) seed: u64,
    tokens: u64,
}

impl Plan {
    pub(super) fn new(
        base: &EngineOptions,
        asked: Generation,
        faults: Faults,
        request_id: &str,
    ) -> Self {
        let mut options = asked.wishes.over(base);
        if asked.dialect == Dialect::Completions {
            // The dialect has neither.
            options.tool_calls = 0;
            options.reasoning_tokens = 0;
        }
        let tokens = asked.max_tokens.unwrap_or(options.tokens).max(1);
        let prompt = asked.wishes.prompt_tokens.unwrap_or(asked.prompt_words);
        let blocks = (prompt as f64 * options.cached_share) as u64 / 16 * 16;
        let cached = asked.wishes.cached_tokens.unwrap_or(blocks).min(prompt);
        let finish_reason = match (options.tool_calls, asked.max_tokens) {
            (1.., _) => "tool_calls",
            (0, Some(_)) => "length",
            (0, None) => "stop",
        };
        let prefix = match asked.dialect {
            Dialect::Chat => "chatcmpl",
            Dialect::Completions => "cmpl",
        };
        Self {
            faults,
            id: format!("{prefix}-{request_id}"),
            model: asked.model.unwrap_or_else(|| options.model.clone()),
            dialect: asked.dialect,
            choices: asked.choices,
            include_usage: asked.include_usage,
            counts: Counts {
                prompt,
                completion: tokens * u64::from(asked.choices),
                cached,
            },
            finish_reason,
            seed: options.seed ^ asked.prompt_hash,
            tokens,
            options,
        }
    }

    /// The text of one choice.
    pub(super) fn text(&self, choice: u16) -> Text {
        let seed = self.seed.wrapping_add(u64::from(choice) << 32);
        Text::new(&self.options, self.tokens, seed)
    }
}
