//! One short call a chain, before anything is measured.

use crate::agent::body_for;
use crate::api::Session;
use crate::client::{Ask, Client, Cut, NO_CELL, TOTAL};
use crate::lanes::Lanes;
use crate::progress::Update;
use crate::prompt::{Body, Message, Vocabulary};
use crate::target::Target;
use crate::{LoadError, Plan, PlannedChain, PreflightFailure, Progress, Stop, pacer};
use bytes::Bytes;
use config::scenario::Timeouts;
use config::{ChainKind, Period};
use record::client::{CallOutcome, ClientCall};
use record::clock::{Nanos, now};
use record::service::ServiceFault;
use std::sync::Arc;

/// Tokens asked for: the least that every gateway passes on unchanged.
const TOKENS: u32 = 16;

/// Between two calls of a model that is not ready yet.
const AGAIN: Nanos = 1_000_000_000;

/// Whether each chain answers.
///
/// # Errors
/// Those that do not, or the user asked to stop.
pub(super) fn check(
    plan: &Plan,
    targets: &[Arc<Target>],
    (lanes, vocabulary): (&Lanes, &Vocabulary),
    (progress, stop): (&dyn Progress, &Stop),
) -> Result<(), LoadError> {
    let mut failures = Vec::new();
    for (planned, target) in plan.chains.iter().zip(targets) {
        let first = First::of(plan, planned, target, vocabulary)?;
        let until = now().saturating_add(target.timeouts.first_byte.nanos());
        let mut told = false;
        let call = loop {
            let call = first.ask(lanes);
            let asleep = call
                .as_ref()
                .is_some_and(|call| call.outcome == CallOutcome::Service(ServiceFault::NotReady));
            if !asleep || now() >= until {
                break call;
            }
            if !std::mem::replace(&mut told, true) {
                progress.update(&Update::note(format!(
                    "chain {}: its model is not ready; asked again each second, for at most `timeouts.first_byte`",
                    planned.chain.name
                )));
            }
            if !pacer::sleep_while(now() + AGAIN, || !stop.requested()) {
                return Err(LoadError::Stopped);
            }
        };
        failures.extend(call.and_then(|call| failure(planned, &first.target, &call)));
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(LoadError::Preflight(failures))
    }
}

/// The short call of a chain.
struct First {
    target: Arc<Target>,
    body: Bytes,
    /// It is one of a session, which is no other call's.
    sessions: bool,
}

impl First {
    /// A black box is asked as it will be: it knows no chat API.
    fn of(
        plan: &Plan,
        planned: &PlannedChain,
        target: &Target,
        vocabulary: &Vocabulary,
    ) -> Result<Self, LoadError> {
        let agent = plan.scenario.agent.as_ref();
        let kind = planned.chain.kind;
        let driven = !kind.is_control() || kind == ChainKind::Untapped;
        let endpoint = agent.and_then(|a| a.endpoint.as_ref()).filter(|_| driven);
        let words = vocabulary.text(TOKENS, plan.seed);
        let body = Body {
            api: target.api,
            model: planned.chain.model.clone(),
            stream: plan.scenario.workload.stream,
            max_tokens: TOKENS,
            ignore_eos: plan.ignore_eos,
        };
        let (target, body) = match endpoint {
            Some(endpoint) => (target.agent(endpoint)?, body_for(endpoint, &words)),
            None => (target.clone(), body.of(&[Message::user(words)], 0)),
        };
        Ok(Self {
            target: Arc::new(Target {
                timeouts: patience(&target.timeouts),
                ..target
            }),
            body,
            sessions: endpoint.is_some_and(|endpoint| endpoint.agentcore.is_some()),
        })
    }

    /// Makes the call; `None` only where the thread that makes it is gone.
    fn ask(&self, lanes: &Lanes) -> Option<ClientCall> {
        let ask = Ask {
            cell: NO_CELL,
            seq: 0,
            task: None,
            warmup: true,
            intended: now(),
            prompt_tokens: TOKENS,
            body: self.body.clone(),
            collect: false,
            session: self.sessions.then(|| Session::new().next()),
        };
        let client = Client::new(self.target.clone(), lanes.count(), Cut::default());
        let told = lanes.block_on(async move { client.call(0, ask).await });
        told.map(|told| told.call)
    }
}

/// A few tokens need not as long as the longest answer: who waits for a stream that never ends is told soon.
fn patience(timeouts: &Timeouts) -> Timeouts {
    let enough = Period::sum([timeouts.first_byte, timeouts.silence].into_iter());
    Timeouts {
        total: timeouts.total.min(enough),
        ..timeouts.clone()
    }
}

fn failure(planned: &PlannedChain, target: &Target, call: &ClientCall) -> Option<PreflightFailure> {
    if call.outcome == CallOutcome::Complete {
        return None;
    }
    let model = &planned.chain.model;
    let remedy = match (call.status, call.outcome) {
        (_, CallOutcome::Service(fault)) => said(fault, model),
        (Some(401 | 403), _) => match &planned.chain.key_env {
            Some(key) => format!("check the key in {}", key.as_str()),
            None => "name the variable that holds the key: the chain's `key_env`".to_owned(),
        },
        (Some(404), _) => format!("check `model` ({model}) and `path_prefix`"),
        (Some(400 | 422), _) => format!("the component refuses the request: check `model` ({model}) and see its log; --no-ignore-eos leaves that field out"),
        (Some(500..), _) => "see the log of the component, and of what stands behind it".to_owned(),
        (_, CallOutcome::Connect) => "start the chain first: taps, component and engine".to_owned(),
        (_, CallOutcome::TimedOut) if call.fault.as_deref() == Some(TOTAL) => format!(
            "{TOKENS} tokens were asked for and {} events came: does the engine keep to `max_tokens`, and send [DONE]?",
            call.text_events
        ),
        (_, CallOutcome::Truncated) => "the answer has no proper end: does the component stream, and does the engine send [DONE]?".to_owned(),
        _ => "see the log of the component".to_owned(),
    };
    Some(PreflightFailure {
        chain: planned.chain.name.clone(),
        address: target.place(),
        status: call.status,
        what: match call.fault.as_deref() {
            Some(TOTAL) => format!("not over within {:?}", target.timeouts.total.get()),
            Some(fault) => fault.to_owned(),
            None => call.outcome.name().to_owned(),
        },
        remedy,
    })
}

/// What to do about what a managed service said.
fn said(fault: ServiceFault, model: &str) -> String {
    match fault {
        ServiceFault::ThrottledRequests
        | ServiceFault::ThrottledTokens
        | ServiceFault::Throttled => {
            "its quota is used up before the run: wait a minute, or see the account's quotas".to_owned()
        }
        ServiceFault::NotReady => {
            "no copy of the model came up: raise `timeouts.first_byte`".to_owned()
        }
        ServiceFault::Invalid | ServiceFault::NotFound => {
            format!("check `model` ({model}), its region, and that it takes this API")
        }
        ServiceFault::Denied => {
            "check the keys of the tap that signs, their role, and access to the model; the tap's record has the cause as `fault`".to_owned()
        }
        ServiceFault::Quota | ServiceFault::Conflict => {
            "end sessions that are still open, or see the account's quotas".to_owned()
        }
        ServiceFault::AgentError => "see the log of the agent".to_owned(),
        ServiceFault::Capacity
        | ServiceFault::ModelTimeout
        | ServiceFault::ModelError
        | ServiceFault::Internal => "it is the service's own: try again later".to_owned(),
    }
}
