//! One arm: a chain driven one way, over its blocks.

use super::pace::taken;
use super::row::{Block, counted, row, values};
use super::strata::strata;
use super::{agent, label, server, task, unsent};
use crate::gather::{CacheUsage, Gathered, Joined, Tapped};
use crate::model::{Arm, LegRow, Reading, SampledCall};
use crate::quantile::{Rules, plain, rests_on_few, sort};
use config::scenario::Slo;
use record::client::{CallOutcome, ClientCall};
use record::clock::Nanos;
use record::leg::Legs;
use record::manifest::{Cell, Drive};
use record::span::Span;
use std::collections::BTreeMap;

type Pick = fn(&Legs) -> Option<Span>;

/// The legs of one value a call, in the order in which they are shown.
pub(super) const LEGS: [(&str, Pick); 10] = [
    ("head", |l| l.head),
    ("request", |l| l.request),
    ("first token", |l| l.first_token),
    ("last token", |l| l.last_token),
    ("finish", |l| l.finish),
    ("terminal", |l| l.terminal),
    ("end", |l| l.end),
    ("added TTFT", |l| l.added_ttft),
    ("added E2E (text)", |l| l.added_text),
    ("added E2E (end)", |l| l.added_end),
];

/// The calls of one block.
pub(super) type Calls<'a> = Vec<&'a Joined>;

/// A cell's window, or that of one of its phases.
pub(crate) fn window(cell: &Cell, phase: Option<usize>) -> (Nanos, Nanos) {
    match (&cell.drive, phase) {
        (Drive::Profile { phases }, Some(at)) => {
            let begin: Nanos = phases.iter().take(at).map(|p| p.lasts).sum();
            let lasts = phases.get(at).map_or(0, |p| p.lasts);
            // A course that was taken up again began before its cell did.
            let into = |at: Nanos| cell.from.saturating_add(at.saturating_sub(cell.skipped));
            let last = match cell.cut {
                true => cell.to.max(cell.from).saturating_add(1),
                false => Nanos::MAX,
            };
            let own = |at: Nanos| at.clamp(cell.from, last);
            (own(into(begin)), own(into(begin + lasts)))
        }
        _ => (cell.from, cell.to),
    }
}

/// A drive, or one phase of it.
fn part(drive: &Drive, phase: Option<usize>) -> Drive {
    match (drive, phase) {
        (Drive::Profile { phases }, Some(at)) => Drive::Profile {
            phases: phases.get(at).cloned().into_iter().collect(),
        },
        _ => drive.clone(),
    }
}

fn due_in<'a>(cell: &Cell, phase: Option<usize>, calls: &'a [Joined]) -> Calls<'a> {
    let (from, to) = window(cell, phase);
    let due = |j: &&Joined| phase.is_none() || (from..to).contains(&j.client.intended);
    calls.iter().filter(due).collect()
}

/// How many calls of `cell` were due, in that phase, and not sent; `None` where that is not known.
fn unsent_in(cell: &Cell, phase: Option<usize>, calls: &[Joined]) -> Option<u64> {
    match phase {
        None => Some(unsent::of_cell(cell)),
        Some(_) => unsent::within(cell, calls, window(cell, phase)),
    }
}

/// The calls of an arm, warm-up left out.
pub(super) fn calls<'a>(
    run: &'a Gathered,
    cells: &'a [&'a Cell],
    phase: Option<usize>,
) -> impl Iterator<Item = &'a Joined> {
    let of = move |cell: &&'a Cell| due_in(cell, phase, run.calls_of(cell.id));
    cells.iter().flat_map(of)
}

/// Legs that stand for one call with one inner exchange: the others are strata of their own.
pub(super) fn headline(tapped: &Tapped) -> Option<&Legs> {
    let single = tapped.class == record::pairing::CallClass::Served && !tapped.resent;
    tapped.legs.as_ref().filter(|_| single)
}

/// The calls of an arm by block, and how many were due and not sent. The parts of a course that was taken up again are
/// one block.
pub(super) fn by_block<'a>(
    run: &'a Gathered,
    cells: &[&Cell],
    phase: Option<usize>,
) -> BTreeMap<u32, (Calls<'a>, Option<u64>)> {
    let mut found: BTreeMap<u32, (Calls<'a>, Option<u64>)> = BTreeMap::new();
    for cell in cells {
        let calls = run.calls_of(cell.id);
        let (sent, unsent) = found
            .entry(cell.block)
            .or_insert_with(|| (Vec::new(), Some(0)));
        sent.extend(due_in(cell, phase, calls));
        *unsent = unsent
            .zip(unsent_in(cell, phase, calls))
            .map(|(a, b)| a + b);
    }
    found
}

/// `phase`: only the calls that were due in that phase of a course of load, and what is known of them
/// alone.
pub(super) fn arm(run: &Gathered, cells: &[&Cell], phase: Option<usize>) -> Arm {
    let chain = cells.first().map(|c| c.chain.clone()).unwrap_or_default();
    let drive = cells.first().map(|c| part(&c.drive, phase));
    let info = run.manifest.chains.iter().find(|c| c.name == chain);
    let by_block = by_block(run, cells, phase);
    let (blocks, unsent): (Vec<Calls<'_>>, Vec<Option<u64>>) = by_block.into_values().unzip();
    let all = || blocks.iter().flat_map(|b| b.iter());
    let floors: Vec<Calls<'_>> = cells
        .iter()
        .filter_map(|c| c.floor_cell)
        .map(|id| run.calls_of(id).iter().collect())
        .collect();
    let lasts = |c: &Cell| {
        let (from, to) = window(c, phase);
        to.saturating_sub(from)
    };
    let due: f64 = cells.iter().map(|c| lasts(c) as f64 / 1e9).sum();
    let seconds: f64 = cells
        .iter()
        .map(|c| {
            let calls = due_in(c, phase, run.calls_of(c.id));
            let full = calls.iter().map(|j| &j.client);
            let ends = full
                .filter(|c| c.outcome == CallOutcome::Complete)
                .map(|c| c.end);
            taken(ends.collect(), lasts(c)) / 1e9
        })
        .sum();
    // Where no call was due none was answered, which says nothing: not 0 a second.
    let asked = all().next().is_some() || unsent.iter().any(|unsent| *unsent != Some(0));
    let complete = all()
        .filter(|j| j.client.outcome == CallOutcome::Complete)
        .count();
    let rules = &run.rules;
    // Absent where any answered call lacks the count: a sum of some would be too low.
    let tokens: Option<u64> = all()
        .filter(|j| j.client.outcome == CallOutcome::Complete)
        .map(|j| j.client.usage_completion.map(u64::from))
        .sum();
    // CPU and memory are counted over whole cells.
    let whole = phase.is_none();
    let cpu: Option<f64> = cells.iter().map(|c| c.gateway_cpu).sum();
    let cpu = cpu.filter(|_| whole);
    // All that the CPU was spent on, warm-up included.
    let answered: u64 = cells.iter().map(|c| c.counted.answered).sum();
    let events: u64 = all()
        .filter_map(|j| j.taps.as_ref())
        .map(|t| u64::from(t.events))
        .sum();
    let joined: u64 = all()
        .filter_map(|j| j.taps.as_ref())
        .map(|t| u64::from(t.joined))
        .sum();
    let ratios: Vec<f64> = all()
        .filter_map(|j| j.taps.as_ref()?.legs.as_ref()?.merge_ratio)
        .collect();
    let mut cache = CacheUsage::default();
    all().for_each(|j| cache.add_call(&j.client));
    // Only these have an inner tap (the configuration check sees to it).
    let kind = info.map(|i| i.kind.as_str());
    let two_taps = matches!(kind, Some("gateway" | "loop" | "relay"));
    let drive = drive.unwrap_or(Drive::Closed { concurrency: 0 });
    let client =
        |name, pick: fn(&ClientCall) -> Option<f64>| client(name, (&blocks, &unsent), rules, pick);
    Arm {
        simulated: info.map_or(run.manifest.simulated, |i| i.simulated),
        kind: info.map(|i| i.kind.clone()).unwrap_or_default(),
        run: run.name.clone(),
        label: label(&drive),
        saturated: cells.iter().any(|c| c.saturated == Some(true)),
        blocks: blocks.len(),
        strata: strata(&blocks, &unsent, two_taps),
        legs: legs(&blocks, &floors, rules),
        recovered: recovered(&blocks, rules),
        ttft: client("TTFT", |c| c.ttft().map(|n| n as f64)),
        ttft_spread: spread(&blocks, &unsent, rules),
        ttft_intended: client("TTFT from intended send", |c| {
            c.ttft_intended().map(|n| n as f64)
        }),
        e2e: client("E2E", |c| c.e2e().map(|n| n as f64)),
        tpot: client("TPOT", ClientCall::tpot),
        rate: (asked && seconds > 0.0).then(|| complete as f64 / seconds),
        tokens_rate: tokens
            .filter(|_| asked && seconds > 0.0)
            .map(|tokens| tokens as f64 / seconds),
        goodput: run
            .slo()
            .filter(|slo| asked && due > 0.0 && bounds_a_call(slo))
            .map(|slo| all().filter(|j| meets(&j.client, slo)).count() as f64 / due),
        leaked: cells.iter().map(|c| c.leaked).sum(),
        cached_share: cache.share(),
        cached_stated: cache.stated,
        merge_ratio: (!ratios.is_empty()).then(|| ratios.iter().sum::<f64>() / ratios.len() as f64),
        joined_percent: (events > 0).then(|| 100.0 * joined as f64 / events as f64),
        gateway_cpu: cpu
            .filter(|_| answered > 0)
            .map(|cpu| cpu / answered as f64),
        gateway_memory: memory(cells).filter(|_| whole),
        claimed: middle(
            all().filter_map(|j| j.taps.as_ref()?.claimed.or(j.client.claimed_overhead)),
        ),
        task_added: task::added(&blocks, &drive, rules),
        agent: agent::rows(run, cells, rules),
        server: server::server(run, cells, phase),
        prompt_tokens: middle(all().filter_map(|j| j.client.usage_prompt.map(u64::from))),
        sample: first_sample(run, cells).filter(|_| whole),
        chain,
        drive,
    }
}

fn first_sample(run: &Gathered, cells: &[&Cell]) -> Option<SampledCall> {
    let mut samples = cells.iter().filter_map(|cell| run.samples.get(&cell.id));
    samples.next().cloned()
}

/// Quantiles of TTFT for a drawing, by the rules by which single ones are printed.
fn spread(blocks: &[Calls<'_>], unsent: &[Option<u64>], rules: &Rules) -> Vec<(f64, f64)> {
    let made: Option<Vec<Block>> = blocks
        .iter()
        .zip(unsent)
        .map(|(calls, unsent)| {
            let ttft = |call: &ClientCall| call.ttft().map(|n| n as f64);
            Some(of_client(calls, (*unsent)?, ttft))
        })
        .collect();
    let Some(made) = made else {
        return Vec::new();
    };
    let (all, lost) = counted(&made.iter().collect::<Vec<_>>());
    let pool = values(&made);
    let once = pool.once();
    SPREAD
        .into_iter()
        .filter(|q| rests_on_few(all, lost, *q, rules).is_ok())
        .filter_map(|q| Some((q, pool.at(q, &once)?)))
        .collect()
}

/// The quantiles of a drawing.
const SPREAD: [f64; 13] = [
    0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99,
];

/// The largest of the cells' memory; `None` where one was not measured, for it may be the largest.
fn memory(cells: &[&Cell]) -> Option<u64> {
    let all: Option<Vec<u64>> = cells.iter().map(|c| c.gateway_memory).collect();
    all?.into_iter().max()
}

/// The objective bounds what a single call can meet or miss.
fn bounds_a_call(slo: &Slo) -> bool {
    slo.ttft_p95.is_some() || slo.tpot_p95.is_some()
}

/// Answered in full, within the objective's bounds on TTFT (from the intended send) and TPOT.
fn meets(call: &ClientCall, slo: &Slo) -> bool {
    let within = |bound: Option<config::Period>, value: Option<f64>| {
        bound.is_none_or(|b| value.is_some_and(|v| v <= b.nanos() as f64))
    };
    call.outcome == CallOutcome::Complete
        && within(slo.ttft_p95, call.ttft_intended().map(|n| n as f64))
        && within(slo.tpot_p95, call.tpot())
}

fn middle(values: impl Iterator<Item = u64>) -> Option<f64> {
    let mut values: Vec<f64> = values.map(|v| v as f64).collect();
    sort(&mut values);
    plain(&values, 0.5)
}

/// A figure of the client's: calls that did not end well, or were due and not sent, enter as lower bounds.
fn client(
    name: &'static str,
    (blocks, unsent): (&[Calls<'_>], &[Option<u64>]),
    rules: &Rules,
    pick: fn(&ClientCall) -> Option<f64>,
) -> LegRow {
    let blocks = blocks.iter().zip(unsent);
    let made: Vec<Block> = blocks
        .map(|(calls, unsent)| of_client(calls, unsent.unwrap_or(0), pick))
        .collect();
    let mut found = row(name, &made, rules);
    if unsent.iter().any(Option::is_none) {
        refuse(&mut found);
    }
    found
}

/// A figure of the client's, of the calls of a block.
pub(super) fn of_client(
    calls: &Calls<'_>,
    unsent: u64,
    pick: fn(&ClientCall) -> Option<f64>,
) -> Block {
    let mut block = Block::default();
    for call in calls.iter().map(|j| &j.client) {
        match pick(call).filter(|_| !call.outcome.censored()) {
            Some(value) => block.value(value),
            None if call.outcome.censored() => block.censor(),
            None => {}
        }
    }
    block.censor_all(usize::try_from(unsent).unwrap_or(usize::MAX));
    block
}

/// Takes the quantiles out: those of calls of which some are missing, nobody knows how many, are too good.
fn refuse(row: &mut LegRow) {
    let why = "calls were due and not sent; how many of this phase is not known";
    for reading in [&mut row.p50, &mut row.p95, &mut row.p99] {
        *reading = Reading::Refused(why.to_owned());
    }
    (row.bounds, row.interval) = (None, None);
}

fn legs(blocks: &[Calls<'_>], floors: &[Calls<'_>], rules: &Rules) -> Vec<LegRow> {
    let mut rows: Vec<LegRow> = LEGS
        .iter()
        .map(|(name, pick)| {
            let made = |blocks: &[Calls<'_>]| -> Vec<Block> {
                blocks.iter().map(|calls| of_calls(calls, *pick)).collect()
            };
            let mut found = row(name, &made(blocks), rules);
            found.floor = row(name, &made(floors), rules).p50.value();
            found
        })
        .collect();
    let tokens = |blocks: &[Calls<'_>]| -> Vec<Block> {
        let of = |calls: &Calls<'_>| {
            let mut block = Block::default();
            for joined in calls {
                match joined.taps.as_ref().and_then(headline) {
                    Some(legs) => block.spans(&legs.tokens.delays),
                    None if lost(joined) => block.censor(),
                    None => {}
                }
            }
            block
        };
        blocks.iter().map(of).collect()
    };
    let mut token = row("token", &tokens(blocks), rules);
    token.floor = row("token", &tokens(floors), rules).p50.value();
    let at = rows
        .iter()
        .position(|r| r.leg == "last token")
        .unwrap_or(rows.len());
    rows.insert(at, token);
    rows.retain(|r| r.samples > 0);
    rows
}

/// One leg of the calls of a block. A call that was not answered in full, or whose counterpart is
/// missing, has no leg and is not left out: it may have been the slowest, and ranks as a lower
/// bound at the top. Strata of their own (several attempts, cache hits, changed text) are counted apart.
pub(super) fn of_calls(calls: &Calls<'_>, pick: Pick) -> Block {
    let mut block = Block::default();
    for joined in calls {
        match joined.taps.as_ref().and_then(headline).and_then(pick) {
            Some(span) => block.span(span),
            None if lost(joined) => block.censor(),
            None => {}
        }
    }
    block
}

/// Calls that took several attempts: a stratum of their own, in no headline leg.
fn recovered(blocks: &[Calls<'_>], rules: &Rules) -> Vec<LegRow> {
    let outside = |l: &Legs| {
        l.outside_attempts.map(|value| Span {
            value,
            low: value,
            high: value,
        })
    };
    let of = |leg: &'static str, pick: &dyn Fn(&Legs) -> Option<Span>| {
        let made: Vec<Block> = blocks
            .iter()
            .map(|calls| {
                let mut block = Block::default();
                calls
                    .iter()
                    .filter_map(|j| j.taps.as_ref())
                    .filter(|t| t.class == record::pairing::CallClass::Recovered)
                    .filter_map(|t| pick(t.legs.as_ref()?))
                    .for_each(|span| block.span(span));
                block
            })
            .collect();
        row(leg, &made, rules)
    };
    let mut rows = vec![
        of("recovery", &|l| l.recovery),
        of("outside the attempts", &outside),
        of("added TTFT", &|l| l.added_ttft),
    ];
    rows.retain(|r| r.samples > 0);
    rows
}

fn lost(joined: &Joined) -> bool {
    use record::pairing::CallClass::{Conflict, Unexplained};
    let unpaired = |t: &Tapped| matches!(t.class, Conflict | Unexplained);
    joined.client.outcome.censored() || joined.taps.as_ref().is_none_or(unpaired)
}
