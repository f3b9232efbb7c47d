//! The outcome as a table for people.

use std::fmt::Write;

use crate::outcome::{ArmOutcome, DIRECT, Outcome};
use crate::samples::Estimate;

/// CPU share from which an arm is called saturated.
const SATURATED: f64 = 0.9;

/// Renders a run as GitHub Markdown.
pub(crate) fn render(run: &Outcome) -> String {
    let mut text = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}", preface(run));
    for level in &run.levels {
        let _ = writeln!(
            text,
            "### {} stream{}\n\n\
             | arm | added p50 µs | added p99 µs | CPU µs/event | CPU share | joined | memory MB \
             | {r} ÷ arm: p50 | p99 | CPU |\n\
             |---|---|---|---|---|---|---|---|---|---|",
            level.streams,
            if level.streams == 1 { "" } else { "s" },
            r = run.reference,
        );
        for arm in &level.arms {
            let _ = writeln!(text, "{}", row(arm, &run.reference));
        }
        let _ = writeln!(text);
    }
    text
}

fn preface(run: &Outcome) -> String {
    let place = match (run.placement.harness_cpu, run.placement.subject_cpu) {
        (Some(h), Some(s)) => {
            format!("harness (client and server) pinned to CPU {h}, each proxy to CPU {s}")
        }
        _ => "nothing pinned: harness and proxies share the CPUs".to_owned(),
    };
    let p = &run.parameters;
    let interval = if p.rounds >= 10 {
        "brackets: 95 % interval over blocks"
    } else {
        "fewer than ten blocks: no intervals"
    };
    let lag = worst(run, |block| block.0);
    let turn = worst(run, |block| block.1);
    let verdict = match run.verdict.is_empty() {
        true => "Verdict: valid.".to_owned(),
        false => format!("**Verdict: NOT A RESULT: {}.**", run.verdict.join("; ")),
    };
    let (busy, steal) = others_share(run);
    format!(
        "{verdict}\n\nDelay that a proxy adds to a streamed token: its quantile less that of the direct path \
         (no proxy), {} blocks of {} s an arm, interleaved in random order; one token every {} ms \
         a stream, {} phases; {interval}. Placement: {place}; the proxies that wait are paused. \
         Worst p99 of a block: schedule lag {} µs, turn of the harness's loop {} µs (a receive \
         stamp can be that late, in every arm alike). Others took {busy:.2} % of a CPU (mean; {} \
         blocks over 5 % were run again), other guests {steal:.2} %. {} × {}, kernel {}. {}.\n",
        p.rounds,
        p.window_ns as f64 / 1e9,
        p.gap_ns as f64 / 1e6,
        p.phases,
        optional(lag),
        optional(turn),
        run.repeated_blocks,
        run.machine.cpus,
        run.machine.cpu,
        run.machine.kernel,
        run.notes.join("; "),
    )
}

/// Mean shares of one CPU, in percent.
fn others_share(run: &Outcome) -> (f64, f64) {
    let wall = run.blocks().count() as f64 * run.parameters.window_ns as f64 / 100.0;
    let (busy, steal) = run
        .blocks()
        .map(|block| block.others())
        .fold((0, 0), |sum, block| (sum.0 + block.0, sum.1 + block.1));
    (busy as f64 / wall, steal as f64 / wall)
}

fn worst(run: &Outcome, pick: impl Fn((Option<f64>, Option<f64>)) -> Option<f64>) -> Option<f64> {
    run.blocks()
        .filter_map(|b| pick(b.lag_and_turn_p99()))
        .max_by(f64::total_cmp)
}

fn optional(nanoseconds: Option<f64>) -> String {
    nanoseconds.map_or("–".to_owned(), |ns| format!("{:.1}", ns / 1e3))
}

fn row(arm: &ArmOutcome, reference: &str) -> String {
    let micro = |e: &Option<Estimate>| told(e, 1e3, 1);
    let share = match arm.cpu_share {
        Some(share) if share >= SATURATED => format!("{:.0} % *saturated*", share * 100.0),
        Some(share) => format!("{:.1} %", share * 100.0),
        None => "–".to_owned(),
    };
    let memory = arm
        .memory_bytes
        .map_or("–".to_owned(), |b| format!("{:.1}", b as f64 / 1e6));
    if arm.name == DIRECT {
        return format!(
            "| direct (control) | itself {} | itself {} | – | – | {:.2} % | – | – | – | – |",
            micro(&arm.delay_p50),
            micro(&arm.delay_p99),
            arm.joined_share * 100.0
        );
    }
    let ratio = |e: &Option<Estimate>| match arm.name == reference {
        true => "1".to_owned(),
        false => told(e, 1.0, 2),
    };
    format!(
        "| {} | {} | {} | {} | {share} | {:.2} % | {memory} | {} | {} | {} |",
        arm.name,
        micro(&arm.added_p50),
        micro(&arm.added_p99),
        micro(&arm.cpu_ns_per_event),
        arm.joined_share * 100.0,
        ratio(&arm.reference_ratio.added_p50),
        ratio(&arm.reference_ratio.added_p99),
        ratio(&arm.reference_ratio.cpu),
    )
}

fn told(estimate: &Option<Estimate>, unit: f64, digits: usize) -> String {
    let Some(e) = estimate else {
        return "–".to_owned();
    };
    let value = e.value / unit;
    match e.low.zip(e.high) {
        Some((low, high)) => format!(
            "{value:.digits$} [{:.digits$}, {:.digits$}]",
            low / unit,
            high / unit
        ),
        None => format!("{value:.digits$}"),
    }
}
