//! What guardrails do to prompts, and what they cost.

use super::{looks, median};
use crate::exact::{median_interval, share_interval};
use crate::model::{GuardrailFinding, PolicyCount};
use record::client::CallOutcome;
use record::probe::{Fate, GuardrailRun, Reason, Trial, TrialCall};
use std::collections::BTreeMap;

/// What became of a prompt under the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Treated {
    Blocked { named: bool },
    Passed,
    Unclear,
    Failed,
}

fn complete(call: &TrialCall) -> bool {
    call.answer.outcome == CallOutcome::Complete && call.answer.fate() == Fate::Admitted
}

/// A refusal without a reason that is known is a block only where the same call without a policy passed.
fn treated(trial: &Trial) -> Treated {
    let call = &trial.guarded;
    match call.answer.fate() {
        Fate::Refused(Reason::Guardrail) => Treated::Blocked { named: true },
        Fate::Admitted if complete(call) => Treated::Passed,
        // Unless it is a rate: those who are refused for one may be asked again.
        Fate::Unclear if call.answer.status != Some(429) => match &trial.unguarded {
            Some(other) if complete(other) => Treated::Blocked { named: false },
            _ => Treated::Unclear,
        },
        Fate::Unclear => Treated::Unclear,
        Fate::Admitted | Fate::Refused(_) | Fate::Failed => Treated::Failed,
    }
}

/// The finding of one policy.
pub(super) fn finding(run: &GuardrailRun) -> GuardrailFinding {
    let all: Vec<(&Trial, Treated)> = run.trials.iter().map(|t| (t, treated(t))).collect();
    let many = |is: Treated| all.iter().filter(|(_, treated)| *treated == is).count();
    let twos: Vec<(&TrialCall, &TrialCall)> = all
        .iter()
        .filter(|(_, treated)| *treated == Treated::Passed)
        .filter_map(|(trial, _)| Some((&trial.guarded, trial.unguarded.as_ref()?)))
        .filter(|(_, other)| complete(other))
        .collect();
    let added = |of: fn(&TrialCall) -> Option<u64>| {
        let differences = twos
            .iter()
            .filter_map(|(guarded, other)| Some(of(guarded)? as f64 - of(other)? as f64));
        let (sorted, median) = median(differences.collect());
        (median, median_interval(&sorted, 0.95))
    };
    let (added_ttft, added_ttft_interval) = added(|call| call.ttft);
    let (added_e2e, added_e2e_interval) = added(|call| call.e2e);
    let refused = run.trials.iter().map(|trial| &trial.guarded.answer);
    GuardrailFinding {
        chain: run.chain.clone(),
        tenant: run.tenant.clone(),
        unguarded: run.unguarded.clone(),
        block: count(&all, true),
        pass: count(&all, false),
        inferred: many(Treated::Blocked { named: false }),
        unclear: many(Treated::Unclear),
        failed: many(Treated::Failed),
        refusals: looks(refused.filter(|answer| answer.fate() != Fate::Admitted)),
        pairs: twos.len(),
        added_ttft,
        added_ttft_interval,
        added_e2e,
        added_e2e_interval,
    }
}

/// Prompts that must be blocked, or those that must pass.
fn count(all: &[(&Trial, Treated)], must_block: bool) -> PolicyCount {
    let mut wrong: BTreeMap<u32, bool> = BTreeMap::new();
    let mut found = PolicyCount::default();
    for (trial, treated) in all.iter().filter(|(t, _)| t.must_block == must_block) {
        let blocked = match treated {
            Treated::Blocked { .. } => true,
            Treated::Passed => false,
            Treated::Unclear | Treated::Failed => continue,
        };
        found.calls += 1;
        found.wrong += usize::from(blocked != must_block);
        *wrong.entry(trial.prompt).or_default() |= blocked != must_block;
    }
    found.prompts = wrong.len();
    found.wrong_prompts = wrong.into_values().filter(|wrong| *wrong).count();
    found.interval = share_interval(found.wrong_prompts, found.prompts);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::probe::Answer;

    fn call(status: u16, error: Option<&str>, ttft: u64) -> TrialCall {
        let passed = status == 200;
        TrialCall {
            answer: Answer {
                status: Some(status),
                outcome: if passed {
                    CallOutcome::Complete
                } else {
                    CallOutcome::Status
                },
                error: error.map(str::to_owned),
                limit_type: None,
                retry_after: None,
                finish: None,
            },
            ttft: passed.then_some(ttft),
            e2e: passed.then_some(2 * ttft),
        }
    }

    fn trial(prompt: u32, must_block: bool, guarded: TrialCall, other: Option<TrialCall>) -> Trial {
        Trial {
            prompt,
            must_block,
            guarded_first: false,
            guarded,
            unguarded: other,
        }
    }

    #[test]
    fn misses_and_false_blocks_are_counted_and_what_is_not_known_is_neither() {
        let named = || call(400, Some("guardrail_violation"), 0);
        let plain = || call(400, None, 0);
        let passed = |ttft| call(200, None, ttft);
        let trials = vec![
            trial(0, true, named(), Some(passed(10))),
            // The same call without a policy passed: a block, though nobody says so.
            trial(1, true, plain(), Some(passed(10))),
            // It was refused without one too: a fault of the request.
            trial(2, true, plain(), Some(plain())),
            trial(3, true, plain(), None),
            trial(4, true, passed(10), Some(passed(10))),
            trial(4, true, named(), Some(passed(10))),
            trial(0, false, passed(15), Some(passed(10))),
            trial(0, false, passed(17), Some(passed(10))),
            trial(1, false, named(), Some(passed(10))),
            trial(2, false, call(429, Some("request_limited"), 0), None),
            trial(3, false, call(429, None, 0), Some(passed(10))),
        ];
        let found = finding(&GuardrailRun {
            chain: "c".to_owned(),
            tenant: "t".to_owned(),
            unguarded: Some("u".to_owned()),
            trials,
        });
        let block = &found.block;
        assert_eq!((block.prompts, block.wrong_prompts), (3, 1));
        assert_eq!((block.calls, block.wrong), (4, 1));
        let pass = &found.pass;
        assert_eq!((pass.prompts, pass.wrong_prompts), (2, 1));
        assert_eq!((pass.calls, pass.wrong), (3, 1));
        assert_eq!((found.inferred, found.unclear, found.failed), (1, 3, 1));
        // Two prompts that passed, and one that should not have: 5, 7 and 0 more.
        assert_eq!((found.pairs, found.added_ttft), (3, Some(5.0)));
        assert_eq!(found.added_e2e, Some(10.0));
        assert_eq!(found.added_ttft_interval, None, "three are too few");
    }
}
