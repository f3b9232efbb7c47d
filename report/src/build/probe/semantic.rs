//! What a cache that goes by meaning answers, and what it must not have.

use super::median;
use crate::exact::share_interval;
use crate::model::{CacheShare, SemanticFinding};
use record::probe::{SemanticCall, SemanticRole, SemanticRun};

/// An answer that came before, by the call that it was first given to.
fn hit<'a>(run: &'a SemanticRun, call: &SemanticCall) -> Option<&'a SemanticCall> {
    run.calls.get(call.of? as usize)
}

/// Whether that answer is to a prompt of the same meaning.
fn right(call: &SemanticCall, first: &SemanticCall) -> bool {
    let meant = |role| matches!(role, SemanticRole::Ask | SemanticRole::Same);
    call.set == first.set && meant(call.role) && meant(first.role)
}

/// The finding of one cache.
pub(super) fn finding(run: &SemanticRun) -> SemanticFinding {
    // Where the first prompt was not answered there was nothing to be remembered.
    let remembered = |set: u32| {
        let mut asks = run
            .calls
            .iter()
            .filter(|call| call.role == SemanticRole::Ask);
        asks.any(|call| call.set == set && call.named)
    };
    let judged: Vec<_> = run
        .calls
        .iter()
        .filter(|call| call.named && remembered(call.set))
        .map(|call| (call, hit(run, call)))
        .collect();
    let share = |role: SemanticRole, counts: fn(&SemanticCall, &SemanticCall) -> bool| {
        let all = judged.iter().filter(|(call, _)| call.role == role);
        let hits = |(call, first): &&(&SemanticCall, Option<&SemanticCall>)| {
            first.is_some_and(|first| counts(call, first))
        };
        let (prompts, hits) = (all.clone().count(), all.filter(hits).count());
        CacheShare {
            prompts,
            hits,
            interval: share_interval(hits, prompts),
        }
    };
    let near = |call: &SemanticCall| call.role == SemanticRole::Near;
    let astray = judged
        .iter()
        .filter(|(call, first)| !near(call) && first.is_some_and(|first| !right(call, first)));
    let ttft = |from_cache: bool| {
        let those = judged
            .iter()
            .filter(|(_, first)| first.is_some() == from_cache);
        let times = those.filter_map(|(call, _)| call.ttft.map(|ns| ns as f64));
        median(times.collect()).1
    };
    let answered = run.calls.iter().filter(|call| call.answered);
    SemanticFinding {
        chain: run.chain.clone(),
        tenant: run.tenant.clone(),
        same: share(SemanticRole::Same, right),
        near: share(SemanticRole::Near, |_, _| true),
        astray: astray.count(),
        nameless: answered.clone().filter(|call| !call.named).count(),
        failed: run.calls.len() - answered.count(),
        hit_ttft: ttft(true),
        miss_ttft: ttft(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SemanticRole::{Ask, Near, Same};

    #[test]
    fn a_hit_is_right_only_within_its_own_meaning() {
        let call = |set, role, of: Option<u32>| SemanticCall {
            set,
            role,
            prompt: 0,
            answered: true,
            named: true,
            of,
            ttft: Some(if of.is_some() { 10 } else { 50 }),
        };
        let nameless = SemanticCall {
            named: false,
            ..call(1, Same, None)
        };
        let failed = SemanticCall {
            answered: false,
            ttft: None,
            ..nameless.clone()
        };
        let calls = vec![
            call(0, Ask, None),
            call(0, Same, Some(0)),
            call(0, Near, None),
            // The answer to the near miss before it.
            call(0, Same, Some(2)),
            call(0, Near, Some(0)),
            // Another set altogether.
            call(1, Ask, Some(0)),
            call(1, Same, None),
            nameless,
            failed.clone(),
            // A set whose first prompt was not answered shows nothing.
            SemanticCall {
                set: 2,
                role: Ask,
                ..failed
            },
            call(2, Near, None),
        ];
        let found = finding(&SemanticRun {
            chain: "c".to_owned(),
            tenant: "t".to_owned(),
            calls,
        });
        assert_eq!((found.same.prompts, found.same.hits), (3, 1));
        assert_eq!((found.near.prompts, found.near.hits), (2, 1));
        assert_eq!((found.astray, found.nameless, found.failed), (2, 1, 2));
        assert_eq!((found.hit_ttft, found.miss_ttft), (Some(10.0), Some(50.0)));
        assert_eq!(found.near.interval, share_interval(1, 2));
    }
}
