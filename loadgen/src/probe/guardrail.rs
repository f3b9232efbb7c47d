//! Guardrails: prompts that must be blocked and prompts that must pass, beside a tenant without a policy.

use super::{Caller, Prober};
use crate::LoadError;
use crate::client::{Cut, Told};
use crate::prompt::Message;
use crate::target::Target;
use config::scenario::{GuardrailProbe, Probes};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use record::client::CallOutcome;
use record::probe::{GuardrailRun, Trial, TrialCall};
use std::sync::Arc;

/// One policy to try.
pub(super) struct Job<'a> {
    probe: &'a GuardrailProbe,
    chain: usize,
    name: &'a str,
    guarded: Arc<Target>,
    unguarded: Option<Arc<Target>>,
}

impl Job<'_> {
    pub(super) fn is(&self, made: &GuardrailRun) -> bool {
        made.chain == self.name
            && made.tenant == self.probe.tenant
            && made.unguarded == self.probe.unguarded
    }
}

impl<'a> Prober<'a> {
    /// The policies that are to be tried.
    pub(super) fn guardrails(&self, probes: &'a Probes) -> Result<Vec<Job<'a>>, LoadError> {
        let mut jobs = Vec::new();
        for probe in &probes.guardrails {
            for chain in self.chains(&probe.chains) {
                let unguarded = probe.unguarded.as_ref();
                jobs.push(Job {
                    probe,
                    chain,
                    name: &self.plan.chains[chain].chain.name,
                    guarded: self.tenant(chain, &probe.tenant)?,
                    unguarded: unguarded.map(|name| self.tenant(chain, name)).transpose()?,
                });
            }
        }
        Ok(jobs)
    }

    /// Tries every prompt as often as is asked for; `None` where the run was stopped meanwhile.
    pub(super) fn try_policy(&self, job: &Job<'_>) -> Option<GuardrailRun> {
        let probe = job.probe;
        let what = format!("guardrails of {}", probe.tenant);
        self.at(job.chain, what.clone());
        let cut = Cut::default();
        // Other words before the prompts of each: neither warms a cache for the other.
        let caller = |target: &Arc<Target>, who: &str| {
            let salt = format!("{what} {who}");
            self.caller(job.chain, target, &cut, salt.as_bytes())
        };
        let unguarded = job.unguarded.as_ref();
        let series = Series {
            guarded: caller(&job.guarded, "guarded"),
            unguarded: unguarded.map(|target| caller(target, "unguarded")),
            lots: StdRng::seed_from_u64(self.salt),
            cut: cut.clone(),
        };
        let mut turns = Vec::new();
        for (must_block, prompts) in [(true, &probe.block), (false, &probe.pass)] {
            let prompts = (0..).zip(prompts).map(|(number, text)| Turn {
                number,
                text: text.clone(),
                must_block,
            });
            turns.extend(prompts);
        }
        let repeats = probe.repeats;
        let trials = self.wait(&cut, async move { series.make(&turns, repeats).await })?;
        Some(GuardrailRun {
            chain: job.name.to_owned(),
            tenant: probe.tenant.clone(),
            unguarded: probe.unguarded.clone(),
            trials,
        })
    }
}

/// One prompt.
struct Turn {
    number: u32,
    text: String,
    must_block: bool,
}

struct Series {
    guarded: Caller,
    unguarded: Option<Caller>,
    lots: StdRng,
    cut: Cut,
}

impl Series {
    /// All prompts in a new order each time, one call after the other.
    async fn make(mut self, turns: &[Turn], repeats: u32) -> Vec<Trial> {
        let mut trials = Vec::new();
        // The first call of each counts nowhere: connections, lazy imports.
        for caller in std::iter::once(&self.guarded).chain(&self.unguarded) {
            ask(caller, "Good morning.", u64::MAX).await;
        }
        for repeat in 0..u64::from(repeats) {
            let mut order: Vec<&Turn> = turns.iter().collect();
            order.shuffle(&mut self.lots);
            for turn in order {
                if self.cut.is_done() {
                    return trials;
                }
                let number =
                    repeat << 32 | u64::from(turn.number) << 1 | u64::from(turn.must_block);
                let guarded_first = self.lots.random_bool(0.5);
                let (guarded, unguarded) = self.both(&turn.text, number, guarded_first).await;
                trials.push(Trial {
                    prompt: turn.number,
                    must_block: turn.must_block,
                    guarded_first,
                    guarded,
                    unguarded,
                });
            }
        }
        trials
    }

    async fn both(
        &self,
        text: &str,
        number: u64,
        guarded_first: bool,
    ) -> (TrialCall, Option<TrialCall>) {
        let Some(unguarded) = &self.unguarded else {
            return (ask(&self.guarded, text, number).await, None);
        };
        if guarded_first {
            let guarded = ask(&self.guarded, text, number).await;
            (guarded, Some(ask(unguarded, text, number).await))
        } else {
            let other = ask(unguarded, text, number).await;
            (ask(&self.guarded, text, number).await, Some(other))
        }
    }
}

/// Asks with words before the prompt that no other call of this caller has, so that no cache of prompts has
/// the answer to a repetition; both callers' calls are of one length.
async fn ask(caller: &Caller, text: &str, number: u64) -> TrialCall {
    let salt = caller.text(8, number);
    let tokens = caller.vocabulary.count(text) + 8;
    let messages = [Message::system(salt), Message::user(text)];
    call_of(&caller.ask(0, tokens, &messages).await)
}

fn call_of(told: &Told) -> TrialCall {
    let whole = told.call.outcome == CallOutcome::Complete;
    TrialCall {
        answer: told.said.answer(&told.call),
        ttft: told.call.ttft(),
        e2e: told.call.e2e().filter(|_| whole),
    }
}
