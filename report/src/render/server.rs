//! What components say of themselves, and what they keep, in words.

use super::words::{ABSENT, marked, maybe, number, percent};
use crate::model::{ComponentRow, Gauge, HitRate, Leak, LeakFinding, ServerSide};

/// The columns of the hit rates.
pub(super) const RATES: [&str; 4] = ["cache", "hit rate (over blocks)", "hits of all", "from"];
/// The columns of the components.
pub(super) const COMPONENTS: [&str; 9] = [
    "component",
    "requests",
    "running, mean (max)",
    "waiting, mean (max)",
    "KV in use, mean (max)",
    "preemptions",
    "restarts",
    "looks (failed)",
    "longest look",
];
/// The columns of the slopes.
pub(super) const LEAKS: [&str; 8] = [
    "chain",
    "figure",
    "median",
    "change an hour",
    "interval",
    "hours",
    "seconds (stretches)",
    "finding",
];

/// One hit rate.
pub(super) fn rate(rate: &HitRate) -> [String; 4] {
    let count = |n: f64| format!("{n:.*}", usize::from(n.fract() != 0.0) * 2);
    [
        rate.name.to_owned(),
        match rate.interval {
            Some((low, high)) => format!(
                "{} ({:.2} … {:.2} %)",
                percent(rate.share()),
                low * 100.0,
                high * 100.0
            ),
            None => percent(rate.share()),
        },
        format!("{} of {} {}", count(rate.hits), count(rate.of), rate.unit),
        match (rate.whole, rate.stated) {
            (true, _) => rate.source.clone(),
            (false, Some((stated, all))) => {
                format!("{}; {stated} of {all} calls state it", rate.source)
            }
            (false, None) => format!("{}; a part of it is missing", rate.source),
        },
    ]
}

/// One component.
pub(super) fn component(row: &ComponentRow) -> [String; 9] {
    let count = |n: Option<f64>| n.map_or_else(|| ABSENT.to_owned(), |n| format!("{n:.0}"));
    let gauge = |gauge: Option<Gauge>, show: fn(f64) -> String| {
        gauge.map_or_else(
            || ABSENT.to_owned(),
            |g| format!("{} ({})", show(g.mean), show(g.max)),
        )
    };
    let restarts = row.restarts.map(f64::from);
    [
        format!("{} ({})", row.component, row.kind),
        count(row.requests),
        gauge(row.running, |n| format!("{n:.1}")),
        gauge(row.waiting, |n| format!("{n:.1}")),
        gauge(row.kv_usage, |n| percent(Some(n))),
        count(row.preemptions),
        count(restarts),
        format!("{} ({})", row.looks, row.gaps),
        maybe(row.longest_look),
    ]
}

/// What else the counters hold.
pub(super) fn company(side: &ServerSide) -> Option<String> {
    let calls = side.calls?;
    let probes = side.probes.filter(|n| *n > 0);
    Some(format!(
        "Counters are of the whole cells, warm-up included: {calls} calls{}. A component that counts more requests served others, too.",
        probes.map_or_else(String::new, |n| format!(
            ", and {n} of the floor probe where it leads there"
        ))
    ))
}

/// What there is for caches to serve.
pub(super) fn repetition(side: &ServerSide) -> Option<String> {
    let all = side.repetition.filter(|_| !side.rates.is_empty())?;
    let share = |part: u64, of: u64| percent((of > 0).then(|| part as f64 / of as f64));
    Some(format!(
        "By the recipe of the prompts {} of their tokens repeat the beginning of an earlier prompt of the cell, and {} of the calls are equal to an earlier one: that is what there is for a prefix cache, and for a cache of equal prompts, to serve. A chat template begins alike each time, too.",
        share(all.prefix_tokens, all.tokens),
        share(all.equal_calls, all.calls)
    ))
}

/// One slope.
pub(super) fn leak(leak: &Leak) -> [String; 8] {
    let amount = |value: f64, sign: bool| {
        let plus = if sign && value > 0.0 { "+" } else { "" };
        match leak.unit {
            "bytes" => format!("{plus}{} MB", number(value / 1e6)),
            _ => format!("{plus}{}", number(value)),
        }
    };
    [
        marked(&leak.chain, leak.simulated),
        leak.figure.to_owned(),
        amount(leak.level, false),
        amount(leak.slope_per_hour, true),
        format!(
            "{} … {}",
            amount(leak.interval.0, true),
            amount(leak.interval.1, true)
        ),
        number(leak.hours),
        format!("{} ({})", leak.samples, leak.stretches),
        match leak.finding {
            LeakFinding::Grows => "grows".to_owned(),
            LeakFinding::Shrinks => "shrinks".to_owned(),
            LeakFinding::NoneShown => "no growth shown".to_owned(),
            LeakFinding::TooShort => "not judged: too short a course".to_owned(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kv(whole: bool, of: f64) -> HitRate {
        HitRate {
            name: "KV cache",
            hits: 3.0,
            of,
            unit: "prompt tokens looked up",
            source: "vllm: a ÷ b".to_owned(),
            whole,
            stated: None,
            interval: (of > 3.0).then_some((0.5, 1.0)),
        }
    }

    #[test]
    fn a_rate_names_its_counts_and_what_is_missing_is_never_0() {
        assert_eq!(
            rate(&kv(true, 4.0)),
            [
                "KV cache",
                "75.00 % (50.00 … 100.00 %)",
                "3 of 4 prompt tokens looked up",
                "vllm: a ÷ b"
            ]
        );
        let [_, share, _, from] = rate(&kv(false, 0.0));
        assert_eq!(share, ABSENT);
        assert!(from.ends_with("missing"));
        let told = HitRate {
            stated: Some((9, 10)),
            ..kv(false, 4.0)
        };
        assert_eq!(rate(&told)[3], "vllm: a ÷ b; 9 of 10 calls state it");
        let row = component(&ComponentRow {
            component: "epp".to_owned(),
            kind: "llm-d-epp".to_owned(),
            requests: None,
            preemptions: None,
            running: None,
            waiting: None,
            kv_usage: Some(Gauge {
                mean: 0.25,
                max: 0.5,
                looks: 4,
            }),
            looks: 6,
            gaps: 6,
            restarts: None,
            longest_look: None,
        });
        assert_eq!(row.iter().filter(|cell| *cell == ABSENT).count(), 5);
        assert_eq!(row[4], "25.00 % (50.00 %)");
        assert_eq!(row[7], "6 (6)");
    }

    #[test]
    fn a_slope_has_its_unit_sign_and_finding() {
        let mut one = Leak {
            run: "r".to_owned(),
            chain: "c".to_owned(),
            simulated: true,
            figure: "resident memory",
            unit: "bytes",
            samples: 3600,
            stretches: 95,
            hours: 1.5,
            level: 50e6,
            slope_per_hour: 2.5e6,
            interval: (-1e6, 3e6),
            finding: LeakFinding::NoneShown,
        };
        assert_eq!(
            leak(&one),
            [
                "c · simulated",
                "resident memory",
                "50 MB",
                "+2.5 MB",
                "-1 MB … +3 MB",
                "1.5",
                "3600 (95)",
                "no growth shown"
            ]
        );
        one.finding = LeakFinding::TooShort;
        assert!(leak(&one)[7].starts_with("not judged"));
    }
}
