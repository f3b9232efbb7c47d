//! One short call a chain, before anything is measured.

use crate::agent::body_for;
use crate::client::{Ask, Client, Cut, NO_CELL};
use crate::lanes::Lanes;
use crate::prompt::{Body, Message, Vocabulary};
use crate::target::Target;
use crate::{LoadError, Plan, PlannedChain, PreflightFailure};
use config::ChainKind;
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

fn failure(planned: &PlannedChain, target: &Target, call: &ClientCall) -> Option<PreflightFailure> {
    if call.outcome == CallOutcome::Complete {
        return None;
    }
    let key = planned
        .chain
        .key_env
        .as_ref()
        .map_or("`key_env`", |k| k.as_str());
    let remedy = match (call.status, call.outcome) {
        (Some(401 | 403), _) => format!("check the key in {key}"),
        (Some(404), _) => format!("check `model` ({}) and `path_prefix`", planned.chain.model),
        (Some(400 | 422), _) => "the component refuses the request: see its log; --no-ignore-eos leaves the field out".to_owned(),
        (Some(500..), _) => "see the log of the component, and of what stands behind it".to_owned(),
        (_, CallOutcome::Connect) => "start the chain first: taps, component and engine".to_owned(),
        (_, CallOutcome::Truncated) => "the answer has no proper end: does the component stream, and does the engine send [DONE]?".to_owned(),
        _ => "see the log of the component".to_owned(),
    };
    Some(PreflightFailure {
        chain: planned.chain.name.clone(),
        address: target.place(),
        status: call.status,
        what: call
            .fault
            .clone()
            .unwrap_or_else(|| call.outcome.name().to_owned()),
        remedy,
    })
}
