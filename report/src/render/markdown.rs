//! The report as Markdown.

use super::probes::Table;
use super::server::{self, COMPONENTS, LEAKS, RATES};
use super::words::{self, ABSENT, leg, maybe, range, reading, time};
use crate::DEFINITIONS;
use crate::model::{Arm, LegRow, Report, ServerSide, VariantSeen};
use std::fmt::Write as _;

/// The report as Markdown.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write(&mut out, report);
    out
}

fn write(out: &mut String, report: &Report) -> std::fmt::Result {
    let (_, verdict) = words::verdict(report);
    writeln!(
        out,
        "# {}{}\n",
        words::title(report),
        if report.simulated { " (simulated)" } else { "" }
    )?;
    writeln!(out, "**{verdict}**\n")?;
    for run in &report.runs {
        for check in run
            .verdict
            .iter()
            .flat_map(record::verdict::Verdict::broken)
        {
            writeln!(out, "- {}: {}", run.name, words::check(check))?;
        }
    }
    for loss in &report.losses {
        writeln!(out, "- left out: {loss}")?;
    }
    if report.simulated {
        writeln!(
            out,
            "\nParts of these chains are stand-ins: figures marked *simulated* say nothing about a product."
        )?;
    }
    for run in &report.runs {
        let cpu = run.host.cpu.as_deref().unwrap_or(ABSENT);
        writeln!(
            out,
            "\n{}: hopscope {}, {}, {} CPUs of {cpu}{}; {}.",
            run.name,
            run.version,
            run.started,
            run.host.cpus,
            if run.shared_cpu { ", *shared CPU*" } else { "" },
            words::workload(&run.workload),
        )?;
        for probe in &run.token_probes {
            writeln!(out, "\n{}.", probe.words(&run.workload.tokenizer))?;
        }
        if let Some(cpu) = run.scrape_cpu {
            writeln!(
                out,
                "\nReading the components' metrics took {} of CPU.",
                time(cpu * 1e9)
            )?;
        }
        if let Some(filter) = &run.tool_filter {
            writeln!(out, "\n{}.", words::filter(filter))?;
        }
    }
    if report.arms.iter().any(|a| a.kind == "gateway") {
        headline(out, report)?;
    }
    tables(out, &super::contrasts::tables(report))?;
    tables(out, &super::capacity::tables(report))?;
    experiments(out, report)?;
    variants(out, report)?;
    if !report.arms.is_empty() {
        clients(out, report)?;
    }
    for arm in &report.arms {
        arm_section(out, arm)?;
    }
    perturbations(out, report)?;
    tables(out, &super::probes::tables(report))?;
    drifts(out, report)?;
    leaks(out, report)?;
    writeln!(out, "\n## Definitions\n")?;
    for definition in DEFINITIONS {
        writeln!(out, "- **{}**: {}", definition.name, definition.meaning)?;
    }
    Ok(())
}

fn headline(out: &mut String, report: &Report) -> std::fmt::Result {
    writeln!(out, "\n## Headline\n")?;
    writeln!(
        out,
        "| chain | driven | added TTFT p50 | p95 | interval of p50 | floor | added E2E p50 |\n|---|---|---|---|---|---|---|"
    )?;
    for arm in report.arms.iter().filter(|a| a.kind == "gateway") {
        let (ttft, e2e) = (leg(arm, "added TTFT"), leg(arm, "added E2E (text)"));
        let show = |row: Option<&LegRow>, pick: fn(&LegRow) -> &crate::Reading| {
            row.map_or("–".to_owned(), |r| reading(pick(r)))
        };
        writeln!(
            out,
            "| {} | {}{} | {} | {} | {} | {} | {} |",
            words::marked(&arm.chain, arm.simulated),
            arm.label,
            if arm.saturated {
                ", *saturated: queueing*"
            } else {
                ""
            },
            show(ttft, |r| &r.p50),
            show(ttft, |r| &r.p95),
            range(ttft.and_then(|r| r.interval)),
            maybe(ttft.and_then(|r| r.floor)),
            show(e2e, |r| &r.p50),
        )?;
    }
    Ok(())
}

fn experiments(out: &mut String, report: &Report) -> std::fmt::Result {
    use words::experiment as word;
    if report.experiments.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n## Experiments of operation\n\n| chain | experiment | event | measured | median | between | over repetitions | calls from the event on |\n|---|---|---|---|---|---|---|---|"
    )?;
    for row in &report.experiments {
        writeln!(
            out,
            "| {}{} | {} | `{}` | {} | {} | {} | {} | {} |",
            word::chain(row, report.runs.len() > 1),
            if row.simulated { ", *simulated*" } else { "" },
            word::setup(&row.setup),
            // A bar would end the cell.
            word::event(row).replace('|', "\\|"),
            row.quantity,
            word::found(&row.median),
            word::bounds(&row.median),
            word::repetitions(row),
            word::outcomes(row),
        )?;
    }
    writeln!(out, "\n{}", word::NOTE)
}

fn variants(out: &mut String, report: &Report) -> std::fmt::Result {
    if report.variants.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n## Quantisation and engine controls\n\n| variant | kind | sets | on | driven | TTFT p50 | TPOT p50 | tokens/s |\n|---|---|---|---|---|---|---|---|"
    )?;
    for row in &report.variants {
        let seen = match &row.seen {
            VariantSeen::Measured {
                label,
                simulated,
                ttft_p50,
                tpot_p50,
                tokens_rate,
            } => format!(
                "{label}{} | {} | {} | {}",
                if *simulated { ", *simulated*" } else { "" },
                reading(ttft_p50),
                reading(tpot_p50),
                words::rate(*tokens_rate)
            ),
            VariantSeen::NotMeasured { command } => format!("not measured: `{command}` | | | "),
            VariantSeen::NotOffered(why) => format!("not offered: {why} | | | "),
        };
        writeln!(
            out,
            "| {} | {} | `{}` | {} | {seen} |",
            row.variant, row.kind, row.sets, row.on
        )?;
    }
    Ok(())
}

/// What a client sees of every arm.
fn clients(out: &mut String, report: &Report) -> std::fmt::Result {
    writeln!(
        out,
        "\n## What the client sees\n\n| arm | calls | answered/s | goodput/s | tokens/s | TTFT p50 | p95 | TPOT p50 | E2E p50 | p95 | cached prompt tokens | outcomes |\n|---|---|---|---|---|---|---|---|---|---|---|---|"
    )?;
    for arm in &report.arms {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            words::arm(arm),
            words::sent(&arm.strata),
            words::rate(arm.rate),
            words::rate(arm.goodput),
            words::rate(arm.tokens_rate),
            reading(&arm.ttft.p50),
            reading(&arm.ttft.p95),
            reading(&arm.tpot.p50),
            reading(&arm.e2e.p50),
            reading(&arm.e2e.p95),
            words::cached(arm),
            words::counts(&arm.strata.outcomes),
        )?;
    }
    Ok(())
}

fn arm_section(out: &mut String, arm: &Arm) -> std::fmt::Result {
    writeln!(out, "\n## {}\n", words::arm(arm))?;
    let pairing = arm
        .strata
        .pairing
        .map(|share| format!("; pairing {}", words::percent(Some(share))));
    writeln!(
        out,
        "{} calls in {} blocks: {}{}.",
        words::sent(&arm.strata),
        arm.blocks,
        words::counts(&arm.strata.outcomes),
        pairing.unwrap_or_default()
    )?;
    let client = [&arm.ttft, &arm.e2e, &arm.tpot];
    rows(
        out,
        arm.legs
            .iter()
            .chain(arm.task_added.as_ref())
            .chain(words::agent(arm))
            .chain(client),
    )?;
    for tool in arm.agent.iter().flat_map(|agent| &agent.tools) {
        writeln!(
            out,
            "\nTool `{}`: {}.",
            tool.tool,
            words::counts(&tool.outcomes)
        )?;
        rows(out, std::iter::once(&tool.latency))?;
    }
    if !arm.recovered.is_empty() {
        writeln!(
            out,
            "\nCalls that took several attempts, in none of the legs above:"
        )?;
        rows(out, arm.recovered.iter())?;
    }
    if let Some(claimed) = arm.claimed {
        writeln!(out, "\nThe gateway claims {} (median).", time(claimed))?;
    }
    server_side(out, &arm.server)
}

fn server_side(out: &mut String, side: &ServerSide) -> std::fmt::Result {
    if !side.rates.is_empty() {
        table(out, RATES, side.rates.iter().map(server::rate))?;
    }
    if let Some(text) = server::repetition(side) {
        writeln!(out, "\n{text}")?;
    }
    if !side.components.is_empty() {
        let rows = side.components.iter().map(server::component);
        table(out, COMPONENTS, rows)?;
    }
    if let Some(text) = server::company(side) {
        writeln!(out, "\n{text}")?;
    }
    Ok(())
}

fn leaks(out: &mut String, report: &Report) -> std::fmt::Result {
    if report.leaks.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## What the component keeps")?;
    table(out, LEAKS, report.leaks.iter().map(server::leak))
}

fn table<const N: usize>(
    out: &mut String,
    columns: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> std::fmt::Result {
    writeln!(out, "\n| {} |\n|{}", columns.join(" | "), "---|".repeat(N))?;
    for row in rows {
        writeln!(out, "| {} |", row.join(" | "))?;
    }
    Ok(())
}

fn rows<'a>(out: &mut String, rows: impl Iterator<Item = &'a LegRow>) -> std::fmt::Result {
    writeln!(
        out,
        "\n| | calls | p50 | p95 | p99 | bounds of p50 | interval of p50 | floor |\n|---|---|---|---|---|---|---|---|"
    )?;
    for row in rows {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            row.leg,
            row.calls,
            reading(&row.p50),
            reading(&row.p95),
            reading(&row.p99),
            range(row.bounds),
            range(row.interval),
            maybe(row.floor)
        )?;
    }
    Ok(())
}

fn tables(out: &mut String, tables: &[Table]) -> std::fmt::Result {
    for table in tables {
        writeln!(
            out,
            "\n## {}\n\n| {} |",
            table.title,
            table.head.join(" | ")
        )?;
        writeln!(out, "|{}", "---|".repeat(table.head.len()))?;
        for row in &table.rows {
            writeln!(out, "| {} |", row.join(" | "))?;
        }
        writeln!(out, "\n{}", table.note)?;
    }
    Ok(())
}

fn drifts(out: &mut String, report: &Report) -> std::fmt::Result {
    if report.drifts.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n## Drift over the course\n\n| chain | figure | phases | change an hour | p | finding |\n|---|---|---|---|---|---|"
    )?;
    for drift in &report.drifts {
        writeln!(
            out,
            "| {} | {} | {} | {} | {:.3} | {} |",
            words::marked(&drift.chain, drift.simulated),
            drift.figure,
            words::phases(drift),
            words::slope(drift),
            drift.p,
            words::trend(drift)
        )?;
    }
    writeln!(out, "\n{}", words::DRIFT)
}

fn perturbations(out: &mut String, report: &Report) -> std::fmt::Result {
    if report.perturbations.is_empty() {
        return Ok(());
    }
    writeln!(out, "\n## What inserting the taps did\n")?;
    writeln!(
        out,
        "| chain | driven | tapped − untapped | interval | accounted for | perturbation |\n|---|---|---|---|---|---|"
    )?;
    for p in &report.perturbations {
        writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            words::marked(&p.chain, p.simulated),
            p.label,
            maybe(p.difference.as_ref().map(|d| d.value)),
            range(p.difference.as_ref().and_then(|d| d.interval)),
            maybe(p.expected),
            p.refused.clone().unwrap_or_else(|| maybe(p.excess)),
        )?;
    }
    Ok(())
}
