//! What one exchange will say, decided before its first byte.

use super::guardrail::{Guardrail, INTERVENED, MESSAGE, Verdict};
use super::model::Job;
use super::request::{Dialect, Generation};
use super::shape::Counts;
use super::stop::Stopped;
use super::text::Text;
use super::tool_call::Call;
use super::{EngineOptions, Faults};
use crate::managed::Reusable;
use crate::prompt::{BLOCK_TOKENS, Blocks, Point};
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
    /// The guardrail that the request names.
    pub(super) guardrail: Option<Guardrail>,
    /// Said in place of the answer.
    instead: Option<&'static str>,
    tokens: u64,
    /// Completion tokens that the request may come to, which a quota reserves.
    pub(super) most_tokens: u64,
    /// Where the text comes upon a stop sequence.
    stopped: Option<Stopped>,
    /// Words that the content begins with.
    echo: Vec<String>,
    /// Blocks of the prompt, for the modelled engine.
    blocks: Option<Blocks>,
    /// Its cache points.
    points: Vec<Point>,
}

impl Plan {
    pub(super) fn new(
        base: &EngineOptions,
        asked: Generation,
        faults: Faults,
        request_id: &str,
    ) -> Self {
        let mut options = asked.wishes.over(base);
        if asked.dialect.is_plain() {
            // The dialect has neither.
            options.tool_calls = 0;
            options.reasoning_tokens = 0;
        }
        if asked.dialect.is_bedrock() {
            // The reason never rides on a text there.
            options.finish_apart = true;
        }
        let mut tokens = asked.max_tokens.unwrap_or(options.tokens).max(1);
        let most_tokens = tokens * u64::from(asked.choices);
        let call = match asked.dialect.is_plain() {
            true => None,
            false => asked.wanted.call(options.call_tools, request_id),
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
        let seed = options.seed ^ asked.prompt_hash;
        let echo = match options.echo_system {
            true => asked.system_words,
            false => Vec::new(),
        };
        // Several choices would each end elsewhere: not modelled.
        let stopped = match (&call, asked.choices) {
            (None, 1) if !asked.stop.is_empty() => {
                let single = EngineOptions {
                    tokens_per_chunk: 1,
                    ..options.clone()
                };
                let text = Text::new(&single, tokens, seed).beginning_with(&echo);
                Stopped::find(text, &asked.stop)
            }
            _ => None,
        };
        let made = stopped.as_ref().map_or(tokens, |stopped| stopped.made);
        tokens = stopped.as_ref().map_or(tokens, |stopped| stopped.said);
        let finish_reason = match (&call, options.tool_calls, asked.max_tokens) {
            (Some(call), ..) if tokens < call.tokens() => "length",
            (Some(_), ..) | (None, 1.., _) => "tool_calls",
            (None, 0, Some(_)) => "length",
            (None, 0, None) => "stop",
        };
        let finish_reason = match &stopped {
            Some(_) if asked.dialect.is_bedrock() => "stop_sequence",
            Some(_) => "stop",
            None => finish_reason,
        };
        let include_usage = match asked.dialect {
            // Their last event, and so what a stream without an end lacks.
            Dialect::Converse { .. } | Dialect::Invoke { .. } => !faults.no_done,
            Dialect::Chat | Dialect::Completions => asked.include_usage,
        };
        let prefix = match asked.dialect {
            Dialect::Chat => "chatcmpl",
            Dialect::Completions => "cmpl",
            Dialect::Converse { .. } => "converse",
            Dialect::Invoke { .. } => "msg",
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
                completion: made * u64::from(asked.choices),
                cached,
                written: 0,
            },
            finish_reason,
            seed,
            call,
            guardrail: asked
                .guardrail
                .map(|asked| Guardrail::new(asked, &options.guardrail)),
            instead: None,
            tokens,
            most_tokens,
            stopped,
            echo,
            blocks: asked.blocks,
            points: asked.points,
            options,
        }
    }

    /// The text of one choice.
    pub(super) fn text(&self, choice: u16) -> Text {
        if let Some(instead) = self.instead {
            return Text::saying(instead);
        }
        if let Some(call) = &self.call {
            return Text::calling(call, self.tokens, self.options.tokens_per_chunk);
        }
        let seed = self.seed.wrapping_add(u64::from(choice) << 32);
        let text = Text::new(&self.options, self.tokens, seed).beginning_with(&self.echo);
        match &self.stopped {
            Some(stopped) => text.cut(stopped.bytes),
            None => text,
        }
    }

    /// The stop sequence that the text comes upon.
    pub(super) fn stop_sequence(&self) -> Option<&str> {
        self.stopped.as_ref().map(|stopped| &*stopped.sequence)
    }

    /// Has the guardrail speak in place of the model, which was asked (and is paid for) or not.
    pub(super) fn intervene(&mut self, asked_model: bool) {
        self.instead = Some(MESSAGE);
        self.finish_reason = INTERVENED;
        self.call = None;
        self.stopped = None;
        self.choices = 1;
        if !asked_model {
            self.counts = Counts::default();
        }
    }

    /// What the guardrail said.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        self.guardrail.as_ref().map(Guardrail::verdict)
    }

    /// What of the prompt a managed service may reuse.
    pub(super) fn reusable(&self) -> Reusable {
        if self.dialect.is_bedrock() {
            return Reusable::Points(self.points.clone());
        }
        let blocks = self.blocks.clone();
        Reusable::Blocks(blocks.map_or_else(Vec::new, Blocks::into_hashes))
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
            output: self.stopped.as_ref().map_or(self.tokens, |it| it.made),
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
