//! Probes of tenants: what limits let through, whether a cache tells one of another, what guardrails do, and
//! whether a cache that goes by meaning answers what it must not.
//!
//! They come before anything is measured, one after the other. What each saw is written down as soon as it
//! is over; one that the run is stopped or killed in is made anew when the run is taken up again.

mod cache;
mod guardrail;
mod limit;
mod semantic;

use crate::cell::Stage;
use crate::client::{Ask, Client, Cut, NO_CELL, Told};
use crate::progress::Phase;
use crate::prompt::{Body, Message, Vocabulary};
use crate::seed::derive;
use crate::target::Target;
use crate::{LoadError, Plan};
use config::scenario::{LimitProbe, Probes, Tenant};
use record::clock::{now, wall};
use record::rundir::RunDir;
use std::future::Future;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// How soon a probe notices that the run is to stop.
const GLANCE: Duration = Duration::from_millis(50);

/// Makes the scenario's probes, if it has any, on every chain that each is for.
///
/// # Errors
/// A key is not set, or what was seen cannot be written.
pub(crate) fn run(
    plan: &Plan,
    stage: &Stage<'_>,
    targets: &[Arc<Target>],
    run: &RunDir,
) -> Result<(), LoadError> {
    let tenants = plan.scenario.tenants.as_ref();
    let Some((tenants, probes)) = tenants.and_then(|t| Some((t, t.probes.as_ref()?))) else {
        return Ok(());
    };
    let prober = Prober {
        plan,
        stage,
        targets,
        members: &tenants.members,
        salt: derive(plan.seed, &[plan.name.as_bytes(), &wall().to_le_bytes()]),
    };
    prober.warn_of_strangers(probes);
    let limits = prober.limits(probes)?;
    let pairs = prober.cache_timing(probes)?;
    let policies = prober.guardrails(probes)?;
    let caches = prober.semantic(probes)?;
    let mut seen = run.read_probes()?;
    for job in &limits {
        let known = |one: &record::probe::LimitRun| job.is(one);
        if !seen.limits.iter().any(known)
            && let Some(made) = prober.drive(job)
        {
            seen.limits.push(made);
            run.write_probes(&seen)?;
        }
    }
    for job in &pairs {
        let known = |one: &record::probe::CacheRun| job.is(one);
        if !seen.cache_timing.iter().any(known)
            && let Some(made) = prober.time(job)
        {
            seen.cache_timing.push(made);
            run.write_probes(&seen)?;
        }
    }
    for job in &policies {
        let known = |one: &record::probe::GuardrailRun| job.is(one);
        if !seen.guardrails.iter().any(known)
            && let Some(made) = prober.try_policy(job)
        {
            seen.guardrails.push(made);
            run.write_probes(&seen)?;
        }
    }
    for job in &caches {
        let known = |one: &record::probe::SemanticRun| job.is(one);
        if !seen.semantic.iter().any(known)
            && let Some(made) = prober.try_cache(job)
        {
            seen.semantic.push(made);
            run.write_probes(&seen)?;
        }
    }
    Ok(())
}

/// Checks before anything is made that the keys of tenants and probes are there.
///
/// # Errors
/// One is not set, or cannot be sent.
pub(crate) fn check_keys(plan: &Plan, targets: &[Arc<Target>]) -> Result<(), LoadError> {
    let Some((tenants, target)) = plan.scenario.tenants.as_ref().zip(targets.first()) else {
        return Ok(());
    };
    for tenant in &tenants.members {
        target.for_tenant(tenant)?;
    }
    for probe in tenants.probes.iter().flat_map(|probes| &probes.limits) {
        of_probe(target, probe)?;
    }
    Ok(())
}

/// The chain of `target` with the key of a probe.
fn of_probe(target: &Target, probe: &LimitProbe) -> Result<Target, LoadError> {
    let who = format!("probe {}", probe.name);
    target.with_key(probe.key_env.as_ref(), &probe.headers, &who)
}

/// What all probes of a run share.
struct Prober<'a> {
    plan: &'a Plan,
    stage: &'a Stage<'a>,
    targets: &'a [Arc<Target>],
    members: &'a [Tenant],
    /// Of the prompts. Another in each process: a prompt that a killed probe had sent is no longer one that
    /// nobody knows.
    salt: u64,
}

impl<'a> Prober<'a> {
    /// The chains that a probe is for, of those that the run has.
    fn chains(&self, named: &[String]) -> Vec<usize> {
        let chains = self.plan.chains.iter().enumerate();
        chains
            .filter(|(_, c)| !c.chain.kind.is_control())
            .filter(|(_, c)| named.is_empty() || named.contains(&c.chain.name))
            .map(|(at, _)| at)
            .collect()
    }

    /// A probe may name chains that are left out of this run; all of them misspelt would show nothing.
    fn warn_of_strangers(&self, probes: &Probes) {
        let named = probes.limits.iter().map(|p| &p.chains);
        let named = named.chain(probes.cache_timing.iter().map(|p| &p.chains));
        let named = named.chain(probes.guardrails.iter().map(|p| &p.chains));
        for chains in named.chain(probes.semantic.iter().map(|p| &p.chains)) {
            if self.chains(chains).is_empty() {
                tracing::warn!(chains = ?chains, "a probe is for none of the run's chains, and is left out");
            }
        }
    }

    /// The chain `at` as a tenant sees it.
    fn tenant(&self, at: usize, name: &str) -> Result<Arc<Target>, LoadError> {
        let tenant = self.members.iter().find(|tenant| tenant.name == name);
        // The scenario's check has found it.
        tenant.map_or_else(
            || Ok(self.targets[at].clone()),
            |tenant| self.targets[at].for_tenant(tenant).map(Arc::new),
        )
    }

    fn chain(&self, at: usize) -> &'a str {
        &self.plan.chains[at].chain.name
    }

    /// Someone who asks `target`, a chain's entry, until `cut`.
    fn caller(&self, at: usize, target: &Arc<Target>, cut: &Cut, salt: &[u8]) -> Caller {
        let workload = &self.plan.scenario.workload;
        let lanes = self.stage.lanes.count();
        Caller {
            client: Arc::new(Client::new(target.clone(), lanes, cut.clone())),
            vocabulary: self.stage.vocabulary.clone(),
            body: Body {
                api: target.api,
                model: self.plan.chains[at].chain.model.clone(),
                stream: workload.stream,
                max_tokens: workload.output_tokens,
                ignore_eos: self.plan.ignore_eos,
            },
            salt: derive(self.salt, &[self.chain(at).as_bytes(), salt]),
        }
    }

    /// Says what the run is at.
    fn at(&self, chain: usize, what: String) {
        self.stage.recorder.at(|c| {
            c.phase = Phase::Probes;
            self.chain(chain).clone_into(&mut c.chain);
            c.cell = what;
            c.asked = 0.0;
        });
    }

    /// Runs `task` on a lane and waits for it; `None` where the run was stopped meanwhile.
    fn wait<T: Send + 'static>(
        &self,
        cut: &Cut,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = sync_channel(1);
        self.stage.lanes.spawn(0, async move {
            // The receiver waits below for as long as this runs.
            let _ = sender.send(task.await);
        });
        loop {
            match receiver.recv_timeout(GLANCE) {
                Ok(done) => return (!self.stage.stop.requested()).then_some(done),
                Err(RecvTimeoutError::Timeout) if self.stage.stop.requested() => cut.now(),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }
}

/// Someone who asks one chain with one key.
#[derive(Clone)]
struct Caller {
    client: Arc<Client>,
    vocabulary: Arc<Vocabulary>,
    body: Body,
    salt: u64,
}

impl Caller {
    /// A text of `tokens` tokens that no other number of this caller has.
    fn text(&self, tokens: u32, number: u64) -> String {
        let seed = derive(self.salt, &[&number.to_le_bytes()]);
        self.vocabulary.text(tokens, seed)
    }

    /// Asks once, on `lane`. The call is in no cell and no figure but the probe's.
    async fn ask(&self, lane: usize, tokens: u32, messages: &[Message<'_>]) -> Told {
        let ask = Ask {
            cell: NO_CELL,
            seq: 0,
            task: None,
            warmup: false,
            intended: now(),
            prompt_tokens: tokens,
            body: self.body.of(messages, 0),
            collect: false,
            session: None,
        };
        self.client.call(lane, ask).await
    }
}
