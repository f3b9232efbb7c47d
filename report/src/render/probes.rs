//! What probes of tenants showed, as tables of words.

use super::words::{ABSENT, counts, marked, maybe, number, range, time};
use crate::model::{
    CacheFinding, CacheShare, GuardrailFinding, LimitFinding, LimitVerdict, PolicyCount, Report,
    RunInfo, SemanticFinding,
};
use record::probe::LimitUnit;

/// A table, whatever it is shown in.
pub(super) struct Table {
    pub(super) title: &'static str,
    pub(super) head: &'static [&'static str],
    pub(super) rows: Vec<Vec<String>>,
    pub(super) note: &'static str,
}

/// The run that a finding is of.
struct Of<'a> {
    run: &'a RunInfo,
    /// There are others: it is named.
    many: bool,
}

impl Of<'_> {
    /// A finding's name: the run where there are several, the chain, and what was probed.
    fn name(&self, chain: &str, what: &str) -> String {
        let of = match self.many {
            true => format!("{}: ", self.run.name),
            false => String::new(),
        };
        let mut chains = self.run.chains.iter();
        let simulated = chains.any(|c| c.name == chain && c.simulated);
        marked(&format!("{of}{chain} · {what}"), simulated)
    }
}

/// The tables of all runs; empty where nothing was probed.
pub(super) fn tables(report: &Report) -> Vec<Table> {
    let many = report.runs.len() > 1;
    let all = || {
        let runs = report.runs.iter();
        runs.filter_map(move |run| Some((Of { run, many }, run.probes.as_ref()?)))
    };
    let limits = all().flat_map(|(of, p)| p.limits.iter().map(move |f| limit(&of, f)));
    let caches = all().flat_map(|(of, p)| p.cache_timing.iter().map(move |f| cache(&of, f)));
    let rails = all().flat_map(|(of, p)| p.guardrails.iter().map(move |f| guardrail(&of, f)));
    let meanings = all().flat_map(|(of, p)| p.semantic.iter().map(move |f| semantic(&of, f)));
    let tables = [
        Table {
            title: "Precision of limits and budgets",
            head: &[
                "chain, probe",
                "limit",
                "at once",
                "let through",
                "beyond",
                "calls beyond",
                "first refusal after",
                "passed again after",
                "retry-after",
                "refusals",
                "finding",
            ],
            rows: limits.collect(),
            note: "One key driven beyond its limit, after a rest of one window. Counted is what was decided within one window of the first send. Calls beyond a limit of tokens or money: sent when answers read to their end had used it up. Times are from the first send; “passed again” lies between two tries. A gateway whose windows begin elsewhere lets as much as a whole limit through beyond it at their border: it then passes again before the window is over.",
        },
        Table {
            title: "Can a tenant tell that another's prompt is cached?",
            head: &[
                "chain, who looks",
                "prompt tokens",
                "pairs",
                "fresh TTFT p50",
                "faster by",
                "interval",
                "advantage",
                "by usage",
                "finding",
            ],
            rows: caches.collect(),
            note: "One tenant has a prompt answered; another sends it and one that nobody ever sent, in random order. Faster by: median of the paired differences of TTFT, with its exact interval. Advantage: how often the known prompt is the faster one, 0.5 is chance, with its 95 % interval over pairs. By usage: pairs in which the answer itself states more cached tokens for the known prompt.",
        },
        Table {
            title: "What guardrails do",
            head: &[
                "chain, tenant",
                "must be blocked: missed",
                "share of prompts",
                "must pass: blocked",
                "share of prompts",
                "added TTFT p50",
                "interval",
                "added E2E p50",
                "interval",
                "refusals",
                "finding",
            ],
            rows: rails.collect(),
            note: "A prompt counts as wrong where any of its calls was; shares have exact 95 % intervals, as if the prompts were drawn from all such prompts. Added: a call under the policy less the same call of a tenant without one, where both passed, median with its exact 95 % interval.",
        },
        Table {
            title: "What a semantic cache answers",
            head: &[
                "chain, tenant",
                "same meaning: from the cache",
                "share of prompts",
                "near misses: from the cache",
                "false hits, share of prompts",
                "TTFT p50 of hits",
                "of the others",
                "finding",
            ],
            rows: meanings.collect(),
            note: "An answer came from the cache where its response id was that of an earlier answer. Shares have exact 95 % intervals, as if the prompts were drawn from all such prompts: they are of these prompts, not of a workload.",
        },
    ];
    tables.into_iter().filter(|t| !t.rows.is_empty()).collect()
}

fn amount(unit: LimitUnit, value: f64) -> String {
    match unit {
        LimitUnit::Requests => format!("{value:.0} calls"),
        LimitUnit::Tokens => format!("{value:.0} tokens"),
        LimitUnit::Usd { .. } => format!("${value:.6}"),
    }
}

fn limit(of: &Of<'_>, found: &LimitFinding) -> Vec<String> {
    let window = found.window.map_or_else(
        || "never renewed".to_owned(),
        |window| format!("in {}", time(window as f64)),
    );
    let unknown = match (found.unclear, found.without_usage) {
        (0, 0) => "",
        _ => " or more",
    };
    let passed = match (found.passed_again, found.tried_again) {
        (Some((from, to)), _) => format!("{} … {}", time(from as f64), time(to as f64)),
        (None, true) => "not within two windows".to_owned(),
        (None, false) => ABSENT.to_owned(),
    };
    vec![
        of.name(&found.chain, &found.probe),
        format!("{} {window}", amount(found.unit, found.limit)),
        found.concurrency.to_string(),
        format!("{}{unknown}", through(found)),
        format!(
            "{} ({:.1} %){unknown}",
            amount(found.unit, found.beyond),
            found.beyond_share * 100.0
        ),
        found.calls_beyond.to_string(),
        found
            .first_refusal
            .map_or_else(|| "none came".to_owned(), |ns| time(ns as f64)),
        passed,
        match found.retry_after {
            Some((low, high)) if low < high => format!("{} … {} s", number(low), number(high)),
            Some((low, _)) => format!("{} s", number(low)),
            None => "none".to_owned(),
        },
        counts(&found.refusals),
        finding(found),
    ]
}

fn through(found: &LimitFinding) -> String {
    match found.unit {
        LimitUnit::Requests => amount(found.unit, found.used),
        unit => format!("{} in {} calls", amount(unit, found.used), found.admitted),
    }
}

fn finding(found: &LimitFinding) -> String {
    let mut text = match found.verdict {
        LimitVerdict::Beyond => "lets more through than its limit",
        LimitVerdict::Held => "holds",
        LimitVerdict::Early => {
            "refuses before the limit is used up: another limit, or somebody else uses the key"
        }
        LimitVerdict::NotReached => "not shown: the drive never met a refusal of this limit",
        LimitVerdict::Unclear => "not shown: it cannot be told what was refused or used",
        LimitVerdict::Unusable => {
            "not shown: nothing was let through; check the key, and that nothing of its limit is used"
        }
    }
    .to_owned();
    let early = found
        .window
        .zip(found.passed_again)
        .is_some_and(|(window, (_, to))| to < window);
    if early {
        text.push_str("; passes again before the window is over");
    }
    for (count, what) in [
        (found.after_refusal, "let through after the first refusal"),
        (found.other, "refused for another reason"),
        (
            found.unclear,
            "refused or lost without a reason that is known, and in no count",
        ),
        (found.without_usage, "let through without a usage"),
        (found.late, "answered after the window, and in no count"),
    ] {
        if count > 0 {
            text.push_str(&format!("; {count} {what}"));
        }
    }
    text
}

fn cache(of: &Of<'_>, found: &CacheFinding) -> Vec<String> {
    let sure = found.confidence * 100.0;
    let by_time = match found.by_time {
        Some(true) => format!("distinguishable by time (at {} %)", number(sure)),
        Some(false) => format!(
            "not shown by time at {} pairs (at {} %)",
            found.pairs,
            number(sure)
        ),
        None => "too few pairs to show anything by time".to_owned(),
    };
    let by_usage = match (found.usage_pairs, found.by_usage) {
        (0, _) => String::new(),
        (_, 0) => "; usage does not tell it".to_owned(),
        _ => "; usage tells it".to_owned(),
    };
    let lost = match found.lost {
        0 => String::new(),
        lost => format!("; {lost} pairs lost to failed calls"),
    };
    vec![
        of.name(
            &found.chain,
            &format!("{} at {}", found.observer, found.primer),
        ),
        found.prompt_tokens.to_string(),
        found.pairs.to_string(),
        maybe(found.control),
        maybe(found.difference),
        range(found.interval),
        found.advantage.map_or_else(
            || "–".to_owned(),
            |a| match found.advantage_interval {
                Some((low, high)) => format!("{a:.3} ({low:.3} … {high:.3})"),
                None => format!("{a:.3}"),
            },
        ),
        match found.usage_pairs {
            0 => "usage does not say".to_owned(),
            pairs => format!("{} of {pairs}", found.by_usage),
        },
        format!("{by_time}{by_usage}{lost}"),
    ]
}

fn share(count: &PolicyCount) -> String {
    count.interval.map_or_else(
        || ABSENT.to_owned(),
        |(low, high)| {
            format!(
                "{} of {} ({:.1} … {:.1} %)",
                count.wrong_prompts,
                count.prompts,
                low * 100.0,
                high * 100.0
            )
        },
    )
}

fn guardrail(of: &Of<'_>, found: &GuardrailFinding) -> Vec<String> {
    let mut text = match (found.block.wrong, found.pass.wrong) {
        _ if found.block.calls + found.pass.calls == 0 => "not shown: no call could be judged",
        (0, 0) => "as the policy says",
        (_, 0) => "lets through what it must block",
        (0, _) => "blocks what must pass",
        _ => "lets through what it must block, and blocks what must pass",
    }
    .to_owned();
    for (count, what) in [
        (
            found.inferred,
            "blocks that the gateway does not name, told from the same call without a policy",
        ),
        (
            found.unclear,
            "refused without a reason that is known, and in no count",
        ),
        (
            found.failed,
            "failed or refused for another reason, and in no count",
        ),
    ] {
        if count > 0 {
            text.push_str(&format!("; {count} {what}"));
        }
    }
    let calls = |count: &PolicyCount| match count.calls {
        0 => ABSENT.to_owned(),
        calls => format!("{} of {calls} calls", count.wrong),
    };
    vec![
        of.name(&found.chain, &found.tenant),
        calls(&found.block),
        share(&found.block),
        calls(&found.pass),
        share(&found.pass),
        maybe(found.added_ttft),
        range(found.added_ttft_interval),
        maybe(found.added_e2e),
        range(found.added_e2e_interval),
        counts(&found.refusals),
        text,
    ]
}

fn semantic(of: &Of<'_>, found: &SemanticFinding) -> Vec<String> {
    let calls = |share: &CacheShare| match share.prompts {
        0 => ABSENT.to_owned(),
        prompts => format!("{} of {prompts}", share.hits),
    };
    let percent = |share: &CacheShare| {
        share.interval.map_or_else(
            || ABSENT.to_owned(),
            |(low, high)| format!("{:.1} … {:.1} %", low * 100.0, high * 100.0),
        )
    };
    let mut text = match (found.same.hits, found.near.hits + found.astray) {
        _ if found.same.prompts + found.near.prompts == 0 => "not shown: no answer could be judged",
        (0, 0) => "no cache by meaning was seen at work",
        (_, 0) if found.near.prompts == 0 => {
            "false hits are not shown: no near miss could be judged"
        }
        (_, 0) => "no false hit among these prompts",
        _ => "gives answers to other questions",
    }
    .to_owned();
    for (count, what) in [
        (
            found.astray,
            "other prompts got the answer to one of another meaning",
        ),
        (
            found.nameless,
            "answers without a response id, and in no count",
        ),
        (found.failed, "calls failed, and in no count"),
    ] {
        if count > 0 {
            text.push_str(&format!("; {count} {what}"));
        }
    }
    vec![
        of.name(&found.chain, &found.tenant),
        calls(&found.same),
        percent(&found.same),
        calls(&found.near),
        percent(&found.near),
        maybe(found.hit_ttft),
        maybe(found.miss_ttft),
        text,
    ]
}
