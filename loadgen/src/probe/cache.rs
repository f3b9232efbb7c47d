//! Whether a tenant can tell that another's prompt is cached: pairs of a known prompt and a fresh one.

use super::{Caller, Prober};
use crate::LoadError;
use crate::client::{Cut, Told};
use crate::prompt::Message;
use crate::target::Target;
use config::scenario::{CacheTimingProbe, Probes};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use record::client::CallOutcome;
use record::probe::{CacheCall, CachePair, CacheRun};
use std::sync::Arc;

/// Calls of each before the first pair, which count nowhere: connections, lazy imports.
const WARMUP: u64 = 2;

/// One series of pairs to make.
pub(super) struct Job<'a> {
    probe: &'a CacheTimingProbe,
    chain: usize,
    name: &'a str,
    primer: Arc<Target>,
    observer: Arc<Target>,
}

impl Job<'_> {
    pub(super) fn is(&self, made: &CacheRun) -> bool {
        let (probe, tokens) = (self.probe, self.probe.prompt_tokens);
        made.chain == self.name
            && made.primer == probe.primer
            && made.observer == probe.observer
            && made.prompt_tokens == tokens
    }
}

impl<'a> Prober<'a> {
    /// The series that are asked for.
    pub(super) fn cache_timing(&self, probes: &'a Probes) -> Result<Vec<Job<'a>>, LoadError> {
        let mut jobs = Vec::new();
        for probe in &probes.cache_timing {
            for chain in self.chains(&probe.chains) {
                jobs.push(Job {
                    probe,
                    chain,
                    name: &self.plan.chains[chain].chain.name,
                    primer: self.tenant(chain, &probe.primer)?,
                    observer: self.tenant(chain, &probe.observer)?,
                });
            }
        }
        Ok(jobs)
    }

    /// Makes the pairs; `None` where the run was stopped meanwhile.
    pub(super) fn time(&self, job: &Job<'_>) -> Option<CacheRun> {
        let probe = job.probe;
        let between = format!("{} looks for {}'s prompts", probe.observer, probe.primer);
        self.at(job.chain, between.clone());
        let cut = Cut::default();
        let salt = [between.as_bytes(), &probe.prompt_tokens.to_le_bytes()].concat();
        let series = Series {
            primer: self.caller(job.chain, &job.primer, &cut, &salt),
            observer: self.caller(job.chain, &job.observer, &cut, &salt),
            tokens: probe.prompt_tokens,
            lots: StdRng::seed_from_u64(self.salt),
            cut: cut.clone(),
        };
        let pairs = u64::from(probe.pairs);
        let (pairs, unprimed) = self.wait(&cut, async move { series.make(pairs).await })?;
        Some(CacheRun {
            chain: job.name.to_owned(),
            primer: probe.primer.clone(),
            observer: probe.observer.clone(),
            prompt_tokens: probe.prompt_tokens,
            confidence: probe.confidence,
            pairs,
            unprimed,
        })
    }
}

struct Series {
    primer: Caller,
    observer: Caller,
    tokens: u32,
    lots: StdRng,
    cut: Cut,
}

impl Series {
    /// One pair after the other: nothing but the probe's own calls is in the way.
    async fn make(mut self, count: u64) -> (Vec<CachePair>, u32) {
        for number in 0..WARMUP {
            for caller in [&self.primer, &self.observer] {
                let text = caller.text(self.tokens, u64::MAX - number);
                self.say(caller, &text).await;
            }
        }
        let (mut pairs, mut unprimed) = (Vec::new(), 0);
        for number in 0..count {
            if self.cut.is_done() {
                break;
            }
            let known = self.primer.text(self.tokens, 2 * number);
            let fresh = self.primer.text(self.tokens, 2 * number + 1);
            let primed = self.say(&self.primer, &known).await;
            if primed.call.outcome != CallOutcome::Complete {
                unprimed += 1;
                continue;
            }
            let probe_first = self.lots.random_bool(0.5);
            let (first, second) = match probe_first {
                true => (&known, &fresh),
                false => (&fresh, &known),
            };
            let first = call_of(&self.say(&self.observer, first).await);
            let second = call_of(&self.say(&self.observer, second).await);
            let (probe, control) = match probe_first {
                true => (first, second),
                false => (second, first),
            };
            pairs.push(CachePair {
                probe,
                control,
                probe_first,
            });
        }
        (pairs, unprimed)
    }

    async fn say(&self, caller: &Caller, text: &str) -> Told {
        caller.ask(0, self.tokens, &[Message::user(text)]).await
    }
}

fn call_of(told: &Told) -> CacheCall {
    let whole = told.call.outcome == CallOutcome::Complete;
    CacheCall {
        ttft: told.call.ttft().filter(|_| whole),
        cached: told.call.usage_cached,
    }
}
