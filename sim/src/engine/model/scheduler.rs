//! The step scheduler: which sequences advance in a step and how long it takes. It knows no clock.
//!
//! As vLLM's V1 scheduler with chunked prefill: sequences that run go first, in the order of their
//! admission; each gets what is left of the step's token budget. Where a block is missing, the sequence
//! admitted last loses its blocks and waits again, first in the queue, to be computed anew. Then waiting
//! sequences are admitted in their order as long as sequences, tokens and blocks last; not in a step that
//! took a sequence's blocks.

use std::collections::{BTreeMap, VecDeque};

use super::blocks::{BlockId, Pool};
use super::options::ModelOptions;
use crate::prompt::BLOCK_TOKENS;

/// Names a sequence.
pub(super) type SequenceId = u64;

/// What is to be computed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Job {
    /// Prompt tokens; an empty prompt counts as one.
    pub(crate) prompt: u64,
    /// Tokens to generate, at least 1.
    pub(crate) output: u64,
    /// Hashes of the full blocks of the prompt and of the answer after it, as far as they are known.
    pub(crate) hashes: Vec<u64>,
}

#[derive(Debug)]
struct Sequence {
    job: Job,
    blocks: Vec<BlockId>,
    /// Tokens whose keys and values are in the blocks.
    computed: u64,
    generated: u64,
    /// Prompt tokens found in the cache at the first admission.
    cached: Option<u64>,
}

impl Sequence {
    fn length(&self) -> u64 {
        self.job.prompt + self.generated
    }

    /// Everything but the token generated last is computed.
    fn decodes(&self) -> bool {
        self.generated > 0 && self.computed + 1 == self.length()
    }
}

/// A step that has begun.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// How long it takes, ns.
    pub(super) duration: u64,
    /// Sequences admitted by it for the first time.
    pub(super) admitted: Vec<SequenceId>,
}

/// A token that a step gave.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) sequence: SequenceId,
    /// Its number, from 1.
    pub(super) number: u64,
    /// Prompt tokens that were found in the cache.
    pub(super) cached: u64,
    /// It is the last one.
    pub(super) last: bool,
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) preemptions: u64,
    /// Tokens looked up in the prefix cache.
    pub(super) queried: u64,
    /// Tokens found there.
    pub(super) found: u64,
}

/// Sequences, their blocks, and the step under way.
#[derive(Debug)]
pub(super) struct Scheduler {
    options: ModelOptions,
    pool: Pool,
    sequences: BTreeMap<SequenceId, Sequence>,
    waiting: VecDeque<SequenceId>,
    /// In the order of admission.
    running: Vec<SequenceId>,
    /// Sequences of the step under way and how many tokens of each it computes.
    step: Vec<(SequenceId, u64)>,
    given: SequenceId,
    pub(super) tally: Tally,
}

impl Scheduler {
    pub(super) fn new(options: ModelOptions) -> Self {
        Self {
            pool: Pool::new(options.kv_blocks, !options.no_prefix_cache),
            options,
            sequences: BTreeMap::new(),
            waiting: VecDeque::new(),
            running: Vec::new(),
            step: Vec::new(),
            given: 0,
            tally: Tally::default(),
        }
    }

    /// Queues a job; `None` where it could never fit into the blocks.
    pub(super) fn arrive(&mut self, mut job: Job) -> Option<SequenceId> {
        job.prompt = job.prompt.max(1);
        job.output = job.output.max(1);
        if (job.prompt + job.output).div_ceil(BLOCK_TOKENS) > self.pool.total() {
            return None;
        }
        self.given += 1;
        let sequence = Sequence {
            job,
            blocks: Vec::new(),
            computed: 0,
            generated: 0,
            cached: None,
        };
        self.sequences.insert(self.given, sequence);
        self.waiting.push_back(self.given);
        Some(self.given)
    }

    /// Ends a sequence, also one in the middle of a step. Nothing happens where it has ended.
    pub(super) fn leave(&mut self, id: SequenceId) {
        if let Some(sequence) = self.sequences.remove(&id) {
            self.pool.release(sequence.blocks);
            self.waiting.retain(|waiting| *waiting != id);
            self.running.retain(|running| *running != id);
        }
    }

    pub(super) fn running(&self) -> u64 {
        self.running.len() as u64
    }

    pub(super) fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Share of the blocks that sequences use.
    pub(super) fn kv_usage(&self) -> f64 {
        1.0 - self.pool.free() as f64 / self.pool.total() as f64
    }

    /// Begins the next step; `None` when there is nothing to do.
    pub(super) fn begin(&mut self) -> Option<Step> {
        self.step.clear();
        let mut budget = self.options.max_num_batched_tokens;
        let preempted = self.advance_running(&mut budget);
        let mut admitted = Vec::new();
        while !preempted && budget > 0 && self.running() < self.options.max_num_seqs {
            let Some(id) = self.waiting.front().copied() else {
                break;
            };
            let Some((tokens, first)) = self.admit(id, budget) else {
                break;
            };
            self.waiting.pop_front();
            self.running.push(id);
            self.step.push((id, tokens));
            budget -= tokens;
            if first {
                admitted.push(id);
            }
        }
        (!self.step.is_empty()).then(|| Step {
            duration: self.duration(),
            admitted,
        })
    }

    /// Gives every running sequence its tokens; tells whether one lost its blocks.
    fn advance_running(&mut self, budget: &mut u64) -> bool {
        let mut preempted = false;
        let mut place = 0;
        while *budget > 0
            && let Some(id) = self.running.get(place).copied()
        {
            let Some(sequence) = self.sequences.get(&id) else {
                self.running.remove(place);
                continue;
            };
            let tokens = (sequence.length() - sequence.computed).min(*budget);
            let end = sequence.computed + tokens;
            if self.extend(id, end) {
                self.step.push((id, tokens));
                *budget -= tokens;
                place += 1;
            } else {
                // Always possible: this one runs.
                self.preempt_last();
                preempted = true;
            }
        }
        preempted
    }

    fn preempt_last(&mut self) {
        let Some(id) = self.running.pop() else {
            return;
        };
        if let Some(sequence) = self.sequences.get_mut(&id) {
            sequence.computed = 0;
            self.pool.release(std::mem::take(&mut sequence.blocks));
            self.waiting.push_front(id);
            self.tally.preemptions += 1;
        }
    }

    /// Gives a sequence the blocks for `tokens` tokens; all of them or none.
    fn extend(&mut self, id: SequenceId, tokens: u64) -> bool {
        let Some(sequence) = self.sequences.get_mut(&id) else {
            return false;
        };
        let missing = tokens
            .div_ceil(BLOCK_TOKENS)
            .saturating_sub(sequence.blocks.len() as u64);
        if missing > self.pool.free() {
            return false;
        }
        let pool = &mut self.pool;
        sequence
            .blocks
            .extend((0..missing).filter_map(|_| pool.take()));
        true
    }

    /// Gives a waiting sequence what the cache has and blocks for its first tokens. Tells how many tokens
    /// it computes and whether this is its first admission.
    fn admit(&mut self, id: SequenceId, budget: u64) -> Option<(u64, bool)> {
        let sequence = self.sequences.get_mut(&id)?;
        let length = sequence.length();
        // The last token is always computed: its result is the next one.
        let most = usize::try_from((length - 1) / BLOCK_TOKENS).unwrap_or(usize::MAX);
        let known = &sequence.job.hashes[..sequence.job.hashes.len().min(most)];
        let shared = self.pool.longest_prefix(known);
        let found = shared.len() as u64 * BLOCK_TOKENS;
        let tokens = (length - found).min(budget);
        let fresh = (found + tokens).div_ceil(BLOCK_TOKENS) - shared.len() as u64;
        if fresh + self.pool.unused(&shared) > self.pool.free() {
            return None;
        }
        shared.iter().for_each(|block| self.pool.share(*block));
        sequence.blocks = shared;
        sequence.computed = found;
        let first = sequence.cached.is_none();
        if first {
            // A sequence that was preempted finds its own blocks again: not counted, as in vLLM.
            sequence.cached = Some(found);
            self.tally.queried += length;
            self.tally.found += found;
        }
        self.extend(id, found + tokens);
        Some((tokens, first))
    }

    fn duration(&self) -> u64 {
        let it = &self.options;
        let mut nanoseconds = it.step_us * 1_000;
        for (id, tokens) in &self.step {
            nanoseconds += match self.sequences.get(id) {
                Some(sequence) if sequence.decodes() => {
                    it.decode_sequence_us * 1_000 + sequence.length() * it.context_token_ns
                }
                _ => tokens * it.prefill_token_us * 1_000,
            };
        }
        nanoseconds
    }

    /// Ends the step under way and gives its tokens.
    pub(super) fn end(&mut self) -> Vec<Token> {
        let step = std::mem::take(&mut self.step);
        let tokens = step.into_iter();
        tokens
            .filter_map(|(id, tokens)| self.computed(id, tokens))
            .collect()
    }

    fn computed(&mut self, id: SequenceId, tokens: u64) -> Option<Token> {
        let sequence = self.sequences.get_mut(&id)?;
        let full = |computed: u64| usize::try_from(computed / BLOCK_TOKENS).unwrap_or(usize::MAX);
        let before = full(sequence.computed);
        sequence.computed += tokens;
        let after = full(sequence.computed);
        let contents = sequence.blocks.iter().zip(&sequence.job.hashes);
        for (block, hash) in contents.take(after).skip(before) {
            self.pool.name(*block, *hash);
        }
        if sequence.computed < sequence.length() {
            return None;
        }
        sequence.generated += 1;
        let token = Token {
            sequence: id,
            number: sequence.generated,
            cached: sequence.cached.unwrap_or(0),
            last: sequence.generated == sequence.job.output,
        };
        if token.last {
            self.leave(id);
        }
        Some(token)
    }
}

#[cfg(test)]
mod tests;
