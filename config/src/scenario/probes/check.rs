//! What must hold of probes before they could show anything.

use super::super::Tenant;
use super::{CacheTimingProbe, GuardrailProbe, Limit, LimitProbe, Probes, SemanticProbe};
use crate::load::Report;
use crate::names;

/// Checks the probes of a scenario with these tenants.
pub(in crate::scenario) fn check(probes: &Probes, members: &[Tenant], report: &mut Report<'_>) {
    let all = probes.limits.iter().enumerate();
    for (at, probe) in all.clone() {
        names::check(
            report,
            &format!("tenants.probes.limits[{at}].name"),
            &probe.name,
        );
        limit(probe, &format!("tenants.probes.limits[{at}]"), report);
    }
    names::unique(
        report,
        all.map(|(at, probe)| {
            (
                format!("tenants.probes.limits[{at}].name"),
                probe.name.as_str(),
            )
        }),
    );
    let known = |at: &str, name: &str, report: &mut Report<'_>| {
        if members.iter().all(|tenant| tenant.name != name) {
            report.add(
                at,
                format!("no tenant is called `{name}`; correct the name"),
            );
        }
    };
    for (at, probe) in probes.cache_timing.iter().enumerate() {
        let place = format!("tenants.probes.cache_timing[{at}]");
        known(&format!("{place}.primer"), &probe.primer, report);
        known(&format!("{place}.observer"), &probe.observer, report);
        cache_timing(probe, &place, report);
    }
    for (at, probe) in probes.guardrails.iter().enumerate() {
        let place = format!("tenants.probes.guardrails[{at}]");
        known(&format!("{place}.tenant"), &probe.tenant, report);
        if let Some(unguarded) = &probe.unguarded {
            known(&format!("{place}.unguarded"), unguarded, report);
        }
        guardrail(probe, &place, report);
    }
    for (at, probe) in probes.semantic.iter().enumerate() {
        let place = format!("tenants.probes.semantic[{at}]");
        known(&format!("{place}.tenant"), &probe.tenant, report);
        semantic(probe, &place, report);
    }
}

fn semantic(probe: &SemanticProbe, place: &str, report: &mut Report<'_>) {
    let mut before: Vec<&String> = Vec::new();
    for (at, set) in probe.sets.iter().enumerate() {
        let place = format!("{place}.sets[{at}]");
        if set.same.is_empty() && set.near.is_empty() {
            report.add(
                &place,
                "there is nothing to try the cache with; add `same` and `near`".to_owned(),
            );
        }
        let lists = [("same", &set.same), ("near", &set.near)];
        let others = lists.iter().flat_map(|(key, prompts)| {
            let prompts = prompts.iter().enumerate();
            prompts.map(move |(n, text)| (format!("{key}[{n}]"), text))
        });
        for (key, text) in std::iter::once(("ask".to_owned(), &set.ask)).chain(others) {
            let place = format!("{place}.{key}");
            if text.trim().is_empty() {
                report.add(&place, "an empty prompt; write one".to_owned());
            } else if before.contains(&text) {
                report.add(
                    &place,
                    "this prompt is listed twice: any cache would know it; change one".to_owned(),
                );
            }
            before.push(text);
        }
    }
}

fn limit(probe: &LimitProbe, place: &str, report: &mut Report<'_>) {
    let renewed = probe.window.is_some();
    match probe.limit {
        Limit::Requests(_) | Limit::Tokens(_) if !renewed => report.add(
            place,
            "a rate needs the time it is for; add `window`, for example `60s`".to_owned(),
        ),
        Limit::Usd(budget) => {
            let prices = [budget.per_million_in, budget.per_million_out];
            let amount = budget.amount > 0.0 && budget.amount.is_finite();
            let priced = prices
                .iter()
                .all(|price| *price >= 0.0 && price.is_finite());
            if !amount || !priced || prices == [0.0, 0.0] {
                report.add(
                    &format!("{place}.limit"),
                    "a budget that no call could use up; `amount` and a price must be above 0, and no price below"
                        .to_owned(),
                );
            }
            if !renewed && probe.concurrency.len() > 1 {
                report.add(
                    &format!("{place}.concurrency"),
                    "a budget that is not renewed can be used up once; give each number of callers a probe and a key of its own, or name its `window`"
                        .to_owned(),
                );
            }
        }
        _ => {}
    }
    for (key, time) in [
        ("window", probe.window),
        ("lasts", Some(probe.lasts)),
        ("poll", probe.poll),
    ] {
        if time.is_some_and(|time| time.is_zero()) {
            report.add(
                &format!("{place}.{key}"),
                format!("`{key}` is 0; write a longer time"),
            );
        }
    }
    for (at, count) in probe.concurrency.iter().enumerate() {
        if probe.concurrency[..at].contains(count) {
            report.add(
                &format!("{place}.concurrency[{at}]"),
                format!("{count} is listed twice; remove one"),
            );
        }
    }
}

fn cache_timing(probe: &CacheTimingProbe, place: &str, report: &mut Report<'_>) {
    if probe.primer == probe.observer {
        report.add(
            &format!("{place}.observer"),
            "a tenant may know its own cache; name another".to_owned(),
        );
    }
    // The widest interval there is lies between the smallest and the largest difference.
    let surest = 1.0 - 0.5_f64.powi(i32::try_from(probe.pairs).unwrap_or(i32::MAX) - 1);
    if !(0.5..1.0).contains(&probe.confidence) {
        report.add(
            &format!("{place}.confidence"),
            format!(
                "{} is no confidence; write a number from 0.5 and below 1",
                probe.confidence
            ),
        );
    } else if probe.confidence > surest {
        report.add(
            &format!("{place}.confidence"),
            format!(
                "{} pairs can show nothing with a confidence of {}; add pairs",
                probe.pairs, probe.confidence
            ),
        );
    }
}

fn guardrail(probe: &GuardrailProbe, place: &str, report: &mut Report<'_>) {
    if probe.unguarded.as_ref() == Some(&probe.tenant) {
        report.add(
            &format!("{place}.unguarded"),
            "the tenant cannot be compared with itself; name one without guardrails".to_owned(),
        );
    }
    if probe.block.is_empty() && probe.pass.is_empty() {
        report.add(
            place,
            "there is no prompt to try; add `block` and `pass`".to_owned(),
        );
    }
    let all = [("block", &probe.block), ("pass", &probe.pass)];
    let mut before: Vec<&String> = Vec::new();
    for (key, prompts) in all {
        for (at, prompt) in prompts.iter().enumerate() {
            let place = format!("{place}.{key}[{at}]");
            if prompt.trim().is_empty() {
                report.add(
                    &place,
                    "an empty prompt; write one, or remove it".to_owned(),
                );
            } else if before.contains(&prompt) {
                report.add(&place, "the prompt is listed twice; remove one".to_owned());
            }
            before.push(prompt);
        }
    }
}
