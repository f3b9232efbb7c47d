//! What one exchange will say, decided before its first byte.

use super::model::Job;
use super::request::{Dialect, Generation};
use super::shape::Counts;
use super::text::Text;
use super::tool_call::Call;
use super::{EngineOptions, Faults};
use crate::prompt::{BLOCK_TOKENS, Blocks};
use crate::truth::{ExchangeTruth, Field};

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
    /// The tool that the answer calls, where the request offers tools.
    pub(super) call: Option<Call>,
    tokens: u64,
    /// Words that the content begins with.
    echo: Vec<String>,
    /// Blocks of the prompt, for the modelled engine.
    blocks: Option<Blocks>,
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
        if matches!(asked.dialect, Dialect::Converse { .. }) {
            // The reason is an event of its own there.
            options.finish_apart = true;
        }
        let mut tokens = asked.max_tokens.unwrap_or(options.tokens).max(1);
        let call = match asked.dialect {
            Dialect::Completions => None,
            Dialect::Chat | Dialect::Converse { .. } => {
                asked.wanted.call(options.call_tools, request_id)
            }
        };
        if let Some(call) = &call {
            options.reasoning_tokens = 0;
            tokens = tokens.min(call.tokens());
        }
        let (prompt, cached) = match &asked.blocks {
            // What is cached shows when the engine admits it.
            Some(blocks) => (blocks.tokens(), 0),
            None => claimed(&asked, options.cached_share),
        };
        let finish_reason = match (&call, options.tool_calls, asked.max_tokens) {
            (Some(call), ..) if tokens < call.tokens() => "length",
            (Some(_), ..) | (None, 1.., _) => "tool_calls",
            (None, 0, Some(_)) => "length",
            (None, 0, None) => "stop",
        };
        let include_usage = match asked.dialect {
            // Its last event, and so what a stream without an end lacks.
            Dialect::Converse { .. } => !faults.no_done,
            _ => asked.include_usage,
        };
        let prefix = match asked.dialect {
            Dialect::Chat => "chatcmpl",
            Dialect::Completions => "cmpl",
            Dialect::Converse { .. } => "converse",
        };
        Self {
            faults,
            id: format!("{prefix}-{request_id}"),
            model: asked.model.unwrap_or_else(|| options.model.clone()),
            dialect: asked.dialect,
            choices: asked.choices,
            include_usage,
            counts: Counts {
                prompt,
                completion: tokens * u64::from(asked.choices),
                cached,
            },
            finish_reason,
            seed: options.seed ^ asked.prompt_hash,
            call,
            tokens,
            echo: match options.echo_system {
                true => asked.system_words,
                false => Vec::new(),
            },
            blocks: asked.blocks,
            options,
        }
    }

    /// The text of one choice.
    pub(super) fn text(&self, choice: u16) -> Text {
        if let Some(call) = &self.call {
            return Text::calling(call, self.tokens, self.options.tokens_per_chunk);
        }
        let seed = self.seed.wrapping_add(u64::from(choice) << 32);
        Text::new(&self.options, self.tokens, seed).beginning_with(&self.echo)
    }

    /// The hashes of the blocks of the prompt, where they were asked for.
    pub(super) fn hashes(&self) -> Vec<u64> {
        let blocks = self.blocks.clone();
        blocks.map_or_else(Vec::new, Blocks::into_hashes)
    }

    /// The work of the modelled engine; `None` where the script gives the times.
    pub(super) fn job(&mut self) -> Option<Job> {
        let mut blocks = self.blocks.take()?;
        // A later turn of a conversation has this answer in its prompt.
        self.text(0)
            .take_while(|added| added.field == Field::Content)
            .for_each(|added| blocks.add(&added.text));
        Some(Job {
            prompt: self.counts.prompt,
            output: self.tokens,
            hashes: blocks.into_hashes(),
        })
    }

    /// The counts of usage, with what the engine found in its cache.
    pub(super) fn used(&self, truth: &ExchangeTruth) -> Counts {
        Counts {
            cached: truth.cached_tokens.unwrap_or(self.counts.cached),
            ..self.counts
        }
    }
}

/// Prompt and cached tokens as the script has them.
fn claimed(asked: &Generation, cached_share: f64) -> (u64, u64) {
    let prompt = asked.wishes.prompt_tokens.unwrap_or(asked.prompt_tokens);
    let blocks = (prompt as f64 * cached_share) as u64 / BLOCK_TOKENS * BLOCK_TOKENS;
    let cached = asked.wishes.cached_tokens.unwrap_or(blocks).min(prompt);
    (prompt, cached)
}
