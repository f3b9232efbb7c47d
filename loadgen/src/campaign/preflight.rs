//! One short call a chain, before anything is measured.

use crate::agent::body_for;
use crate::client::{Ask, Client, Cut, NO_CELL, TOTAL};
use crate::lanes::Lanes;
use crate::prompt::{Body, Message, Vocabulary};
use crate::target::Target;
use crate::{LoadError, Plan, PlannedChain, PreflightFailure};
use config::scenario::Timeouts;
use config::{ChainKind, Period};
use record::client::{CallOutcome, ClientCall};
use record::clock::now;
use std::sync::Arc;

/// Tokens asked for: the least that every gateway passes on unchanged.
const TOKENS: u32 = 16;

pub(super) fn check(
    plan: &Plan,
    targets: &[Arc<Target>],
    lanes: &Lanes,
    vocabulary: &Vocabulary,
) -> Result<(), LoadError> {
    let mut failures = Vec::new();
    for (planned, target) in plan.chains.iter().zip(targets) {
        let body = Body {
            model: planned.chain.model.clone(),
            stream: plan.scenario.workload.stream,
            max_tokens: TOKENS,
            ignore_eos: plan.ignore_eos,
        };
        // A black box is asked as it will be: it knows no chat API.
        let agent = plan.scenario.agent.as_ref();
        let kind = planned.chain.kind;
        let driven = !kind.is_control() || kind == ChainKind::Untapped;
        let endpoint = agent.and_then(|a| a.endpoint.as_ref()).filter(|_| driven);
        let words = vocabulary.text(TOKENS, plan.seed);
        let (target, body) = match endpoint {
            Some(endpoint) => (
                Arc::new(target.at(&endpoint.path)?),
                body_for(endpoint, &words),
            ),
            None => (target.clone(), body.of(&[Message::user(words)], 0)),
        };
        let ask = Ask {
            cell: NO_CELL,
            seq: 0,
            task: None,
            warmup: true,
            intended: now(),
            prompt_tokens: TOKENS,
            body,
            collect: false,
            opaque: endpoint.is_some(),
        };
        let target = Arc::new(Target {
            timeouts: patience(&target.timeouts),
            ..Target::clone(&target)
        });
        let client = Client::new(target.clone(), lanes.count(), Cut::default());
        let told = lanes.block_on(async move { client.call(0, ask).await });
        if let Some(failure) = told.and_then(|t| failure(planned, &target, &t.call)) {
            failures.push(failure);
        }
    }
    if failures.is_empty() {
        Ok(())
    } else {
        Err(LoadError::Preflight(failures))
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
