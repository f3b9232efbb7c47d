//! From what probes saw to what they showed.

mod cache;
mod guardrail;
mod limit;
mod semantic;

use crate::model::ProbeFindings;
use crate::quantile::{plain, sort};
use record::probe::{Answer, Probes};
use std::collections::BTreeMap;

/// The findings; `None` where nothing was probed.
pub(super) fn findings(seen: &Probes) -> Option<ProbeFindings> {
    (!seen.is_empty()).then(|| ProbeFindings {
        limits: seen.limits.iter().map(limit::finding).collect(),
        cache_timing: seen.cache_timing.iter().map(cache::finding).collect(),
        guardrails: seen.guardrails.iter().map(guardrail::finding).collect(),
        semantic: seen.semantic.iter().map(semantic::finding).collect(),
    })
}

/// What these answers looked like, and how many, the most frequent first.
fn looks<'a>(answers: impl Iterator<Item = &'a Answer>) -> Vec<(String, usize)> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for answer in answers {
        *counts.entry(answer.words()).or_default() += 1;
    }
    let mut all: Vec<_> = counts.into_iter().collect();
    all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    all
}

fn median(mut values: Vec<f64>) -> (Vec<f64>, Option<f64>) {
    sort(&mut values);
    let median = plain(&values, 0.5);
    (values, median)
}
