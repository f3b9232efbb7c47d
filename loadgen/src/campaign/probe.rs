//! The usage probe: brings prompts to the length that was asked for by the backend's own count.
//!
//! Calls of three lengths give a line, the line the lengths, and fresh prompts of those show what the
//! backend counts. Where their mean is not within [`PRECISION`] of what was asked for, all that was seen
//! gives a better line. The other chains of the same text are then asked the same prompts.

use super::resume::Earlier;
use crate::client::{Ask, Client, Cut, NO_CELL};
use crate::lanes::Lanes;
use crate::progress::Update;
use crate::prompt::{Body, Lengths, Line, Message, Vocabulary};
use crate::seed::derive;
use crate::target::Target;
use crate::{LoadError, Plan, PreflightFailure, Progress};
use record::client::{CallOutcome, ClientCall};
use record::clock::now;
use record::token_probe::{Counted, TokenProbe};
use std::collections::HashMap;
use std::sync::Arc;

/// By this share the mean of the backend's counts may differ from what was asked for.
const PRECISION: f64 = 0.01;
/// Lengths that the first line goes through, as shares of what was asked for; and prompts of each.
const SHARES: [f64; 3] = [0.25, 0.5, 1.0];
const EACH: usize = 2;
/// Prompts that a pair of lengths is tried with: at the least, and at the most while their mean is not yet
/// known to half of the precision.
const FEWEST: usize = 4;
const MOST: usize = 32;
/// Corrections before it is given up.
const ROUNDS: usize = 5;
/// Tokens asked for: the least that every gateway passes on unchanged.
const TOKENS: u32 = 16;

/// What the run's prompts are corrected by, told to whoever watches. A run that is taken up again goes on
/// with the texts that it began with.
pub(super) fn found(
    plan: &Plan,
    earlier: Option<&Earlier>,
    (targets, lanes, vocabulary): (&[Arc<Target>], &Lanes, &Vocabulary),
    progress: &dyn Progress,
) -> Result<Vec<TokenProbe>, LoadError> {
    let probes = match earlier {
        Some(earlier) => earlier.token_probes().to_vec(),
        None => probe(plan, targets, lanes, vocabulary)?,
    };
    for found in &probes {
        progress.update(&Update::note(found.words(vocabulary.name())));
    }
    Ok(probes)
}

/// A probe of every reference of the run; none where the scenario wants none.
fn probe(
    plan: &Plan,
    targets: &[Arc<Target>],
    lanes: &Lanes,
    vocabulary: &Vocabulary,
) -> Result<Vec<TokenProbe>, LoadError> {
    let prober = Prober {
        plan,
        targets,
        lanes,
        vocabulary,
    };
    let probes = groups(plan).into_iter().map(|group| prober.group(&group));
    probes.collect()
}

/// The chains of each reference, the reference first: numbers of the plan's chains.
fn groups(plan: &Plan) -> Vec<Vec<usize>> {
    let Some(wanted) = &plan.scenario.workload.usage_probe else {
        return Vec::new();
    };
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (number, one) in plan.chains.iter().enumerate() {
        let same = |group: &&mut Vec<usize>| {
            let of = &plan.chains[group[0]].chain;
            wanted.reference.is_some() || of.model == one.chain.model
        };
        match groups.iter_mut().find(same) {
            Some(group) => group.push(number),
            None => groups.push(vec![number]),
        }
    }
    for group in &mut groups {
        let first = group.iter().position(|number| {
            let chain = &plan.chains[*number].chain;
            match &wanted.reference {
                Some(name) => chain.name == *name,
                None => !chain.kind.is_control(),
            }
        });
        group[..=first.unwrap_or(0)].rotate_right(1);
    }
    groups
}

/// The lengths of each chain's prompts, by its name: what was asked for, where no probe corrects it.
pub(super) fn lengths(plan: &Plan, probes: &[TokenProbe]) -> HashMap<String, Lengths> {
    let asked = Lengths::asked(&plan.scenario.workload);
    let names = plan.chains.iter().map(|one| one.chain.name.clone());
    names
        .map(|name| {
            let of = |probe: &&TokenProbe| probe.counted.iter().any(|c| c.chain == name);
            let lengths = probes.iter().find(of).map_or(asked, Lengths::from);
            (name, lengths)
        })
        .collect()
}

struct Prober<'a> {
    plan: &'a Plan,
    targets: &'a [Arc<Target>],
    lanes: &'a Lanes,
    vocabulary: &'a Vocabulary,
}

/// Lengths that were found, and what showed them.
struct Found {
    lengths: Lengths,
    line: Line,
    /// The number of the first prompt of the last round.
    from: u64,
    counts: Vec<u32>,
}

impl Prober<'_> {
    fn group(&self, group: &[usize]) -> Result<TokenProbe, LoadError> {
        let reference = group[0];
        let found = self.settle(reference)?;
        let name = |chain: usize| self.plan.chains[chain].chain.name.clone();
        let mut counted = vec![Counted {
            chain: name(reference),
            tokens: found.counts.clone(),
            deviation: Some(0.0),
        }];
        for chain in &group[1..] {
            counted.push(self.beside(*chain, &found)?);
        }
        Ok(TokenProbe {
            reference: name(reference),
            asked: Lengths::asked(&self.plan.scenario.workload).sum(),
            system: found.lengths.system,
            user: found.lengths.user,
            template: found.line.template,
            each: found.line.each,
            counted,
        })
    }

    /// Finds the lengths for which `chain` counts what was asked for.
    fn settle(&self, chain: usize) -> Result<Found, LoadError> {
        let asked = Lengths::asked(&self.plan.scenario.workload);
        let goal = f64::from(asked.sum());
        let mut number = 0..;
        let mut points: Vec<(u32, u32)> = Vec::new();
        for share in SHARES {
            let lengths = asked.share(share);
            for prompt in number.by_ref().take(EACH) {
                points.push((lengths.sum(), self.counted(chain, lengths, prompt)?));
            }
        }
        let mut off = 0.0;
        for _ in 0..ROUNDS {
            let line = Line::through(&points).map_err(|what| self.wrong(chain, &what))?;
            let lengths = line.solve(asked).map_err(|what| self.wrong(chain, &what))?;
            let from = number.start;
            let mut counts = Vec::new();
            while counts.len() < MOST && !enough(&counts, goal) {
                let prompt = number.next().unwrap_or_default();
                counts.push(self.counted(chain, lengths, prompt)?);
            }
            off = mean(&counts) / goal - 1.0;
            if off.abs() <= PRECISION && enough(&counts, goal) {
                return Ok(Found {
                    lengths,
                    line,
                    from,
                    counts,
                });
            }
            points.extend(counts.iter().map(|count| (lengths.sum(), *count)));
        }
        Err(self.wrong(
            chain,
            &format!(
                "after {ROUNDS} corrections its count still differs by {:.1} % from the {goal:.0} tokens asked for, or differs too much between prompts of one length",
                off * 100.0
            ),
        ))
    }

    /// What another chain counts for the same prompts. Stating nothing is no failure: nothing is corrected by it.
    fn beside(&self, chain: usize, found: &Found) -> Result<Counted, LoadError> {
        let mut tokens = Vec::new();
        for (prompt, _) in (found.from..).zip(&found.counts) {
            let call = self.call(chain, found.lengths, prompt)?;
            match call.usage_prompt {
                Some(count) => tokens.push(count),
                None => {
                    tokens.clear();
                    break;
                }
            }
        }
        let deviation = (!tokens.is_empty()).then(|| mean(&tokens) / mean(&found.counts) - 1.0);
        Ok(Counted {
            chain: self.plan.chains[chain].chain.name.clone(),
            tokens,
            deviation,
        })
    }

    fn counted(&self, chain: usize, lengths: Lengths, prompt: u64) -> Result<u32, LoadError> {
        let call = self.call(chain, lengths, prompt)?;
        call.usage_prompt.ok_or_else(|| {
            self.wrong(
                chain,
                "its answers state no `usage.prompt_tokens`: does the component take `stream_options` away?",
            )
        })
    }

    /// One call with a prompt of these lengths, of the form that the run's calls have.
    fn call(&self, chain: usize, lengths: Lengths, prompt: u64) -> Result<ClientCall, LoadError> {
        let body = Body {
            api: self.targets[chain].api,
            model: self.plan.chains[chain].chain.model.clone(),
            stream: self.plan.scenario.workload.stream,
            max_tokens: TOKENS,
            ignore_eos: self.plan.ignore_eos,
        };
        let text = |part: &[u8], tokens| {
            // A salt of its own: no prompt of the run is in a cache because of a probe.
            let name = self.plan.name.as_bytes();
            let salt = derive(
                self.plan.seed,
                &[b"usage probe", part, name, &prompt.to_le_bytes()],
            );
            self.vocabulary.text(tokens, salt)
        };
        let mut messages = Vec::new();
        if lengths.system > 0 {
            messages.push(Message::system(text(b"system", lengths.system)));
        }
        messages.push(Message::user(text(b"user", lengths.user)));
        let ask = Ask {
            cell: NO_CELL,
            seq: 0,
            task: None,
            warmup: true,
            intended: now(),
            prompt_tokens: lengths.sum(),
            body: body.of(&messages, 0),
            collect: false,
            session: None,
        };
        let client = Client::new(
            self.targets[chain].clone(),
            self.lanes.count(),
            Cut::default(),
        );
        let told = self
            .lanes
            .block_on(async move { client.call(0, ask).await });
        let call = told.map(|told| told.call);
        call.filter(|call| call.outcome == CallOutcome::Complete)
            .ok_or_else(|| {
                self.wrong(
                    chain,
                    "a call of the usage probe did not come to its end; see the component's log",
                )
            })
    }

    fn wrong(&self, chain: usize, what: &str) -> LoadError {
        LoadError::Preflight(vec![PreflightFailure {
            chain: self.plan.chains[chain].chain.name.clone(),
            address: self.targets[chain].place(),
            status: None,
            what: format!("the usage probe cannot correct prompts: {what}"),
            remedy: "or name the model's own tokenizer (`tokenizer: {file: …}`), or remove `usage_probe`".to_owned(),
        }])
    }
}

fn mean(counts: &[u32]) -> f64 {
    let sum: f64 = counts.iter().map(|count| f64::from(*count)).sum();
    sum / counts.len().max(1) as f64
}

/// The mean of `counts` is known to half of the precision: its standard error is below that.
fn enough(counts: &[u32], goal: f64) -> bool {
    if counts.len() < FEWEST {
        return false;
    }
    let (mean, count) = (mean(counts), counts.len() as f64);
    let squares: f64 = counts.iter().map(|c| (f64::from(*c) - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    error <= goal * PRECISION / 2.0
}

#[cfg(test)]
mod tests;
