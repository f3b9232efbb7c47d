//! A cache that answers what means the same: prompts that it should know, and near misses that it must not.

use super::{Caller, Prober};
use crate::LoadError;
use crate::client::{Cut, Told};
use crate::prompt::Message;
use crate::target::Target;
use config::scenario::{Probes, SemanticProbe, SemanticSet};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use record::client::CallOutcome;
use record::probe::{SemanticCall, SemanticRole, SemanticRun};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// One cache to try.
pub(super) struct Job<'a> {
    probe: &'a SemanticProbe,
    chain: usize,
    name: &'a str,
    target: Arc<Target>,
}

impl Job<'_> {
    pub(super) fn is(&self, made: &SemanticRun) -> bool {
        made.chain == self.name && made.tenant == self.probe.tenant
    }
}

impl<'a> Prober<'a> {
    /// The caches that are to be tried.
    pub(super) fn semantic(&self, probes: &'a Probes) -> Result<Vec<Job<'a>>, LoadError> {
        let mut jobs = Vec::new();
        for probe in &probes.semantic {
            for chain in self.chains(&probe.chains) {
                jobs.push(Job {
                    probe,
                    chain,
                    name: self.chain(chain),
                    target: self.tenant(chain, &probe.tenant)?,
                });
            }
        }
        Ok(jobs)
    }

    /// Asks every prompt once; `None` where the run was stopped meanwhile.
    pub(super) fn try_cache(&self, job: &Job<'_>) -> Option<SemanticRun> {
        let probe = job.probe;
        let what = format!("semantic cache for {}", probe.tenant);
        self.at(job.chain, what.clone());
        let cut = Cut::default();
        let series = Series {
            caller: self.caller(job.chain, &job.target, &cut, what.as_bytes()),
            lots: StdRng::seed_from_u64(self.salt),
            wait: probe.wait.get(),
            cut: cut.clone(),
            seen: HashMap::new(),
            calls: Vec::new(),
        };
        let sets = probe.sets.clone();
        let calls = self.wait(&cut, async move { series.make(&sets).await })?;
        Some(SemanticRun {
            chain: job.name.to_owned(),
            tenant: probe.tenant.clone(),
            calls,
        })
    }
}

struct Series {
    caller: Caller,
    lots: StdRng,
    /// Until a cache may be asked for what was answered last.
    wait: Duration,
    cut: Cut,
    /// Which call brought a response id first.
    seen: HashMap<String, u32>,
    calls: Vec<SemanticCall>,
}

impl Series {
    /// One call after the other: of each set what is to be remembered, then the others in an order drawn by lot.
    async fn make(mut self, sets: &[SemanticSet]) -> Vec<SemanticCall> {
        // The first call counts nowhere: connections, lazy imports.
        let first = self.caller.text(8, 0);
        self.caller.ask(0, 8, &[Message::user(&first)]).await;
        for (set, prompts) in (0..).zip(sets) {
            self.ask(set, SemanticRole::Ask, 0, &prompts.ask).await;
            let same = (0..).zip(&prompts.same);
            let near = (0..).zip(&prompts.near);
            let mut others: Vec<_> = same
                .map(|(number, text)| (SemanticRole::Same, number, text))
                .chain(near.map(|(number, text)| (SemanticRole::Near, number, text)))
                .collect();
            others.shuffle(&mut self.lots);
            for (role, number, text) in others {
                if self.cut.is_done() {
                    return self.calls;
                }
                tokio::time::sleep(self.wait).await;
                self.ask(set, role, number, text).await;
            }
        }
        self.calls
    }

    async fn ask(&mut self, set: u32, role: SemanticRole, prompt: u32, text: &str) {
        let tokens = self.caller.vocabulary.count(text);
        let told = self.caller.ask(0, tokens, &[Message::user(text)]).await;
        let at = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
        let whole = told.call.outcome == CallOutcome::Complete;
        let Told { call, .. } = told;
        let id = call.response_id.clone().filter(|_| whole);
        let of = id.as_ref().and_then(|id| self.seen.get(id).copied());
        self.calls.push(SemanticCall {
            set,
            role,
            prompt,
            answered: whole,
            named: id.is_some(),
            of,
            ttft: call.ttft().filter(|_| whole),
        });
        if let Some(id) = id {
            self.seen.entry(id).or_insert(at);
        }
    }
}
