//! The verdict of a run: every limit of its scenario, held against what was measured.

mod seen;

use config::scenario::VerdictLimits;
use record::client::ClientCall;
use record::clock::Nanos;
use record::histogram::quantile;
use record::manifest::{Calibration, Cell, Drive, TapHealth};
use record::pairing::Call;
use record::verdict::{Check, Verdict};
use seen::{Pace, Seen};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// What a run came to beside its calls, as far as the verdict needs it.
pub(crate) struct Evidence<'a> {
    pub(crate) limits: &'a VerdictLimits,
    pub(crate) cells: &'a [Cell],
    pub(crate) taps: &'a [TapHealth],
    pub(crate) calibration: Option<&'a Calibration>,
    /// Chains with an outer and an inner tap.
    pub(crate) legged: &'a HashSet<String>,
    /// Of these, the ones with a component to be measured.
    pub(crate) gateways: &'a HashSet<String>,
    /// A tap has a part in what is measured.
    pub(crate) tapped: bool,
    /// CPUs that the generator may use.
    pub(crate) cpus: u32,
    /// The run was asked to stop before its end.
    pub(crate) stopped: bool,
    /// The most that a cell of a part began after its slot; `None` for a run of one part.
    pub(crate) late: Option<Nanos>,
}

/// Judges the run of `calls`, which the taps saw as `paired`.
///
/// A check is left out only where the run has nothing of its kind: no schedule in closed loops alone, no
/// legs in chains without a component between taps, no taps in an experiment without any. What the run
/// should have and was not measured fails.
pub(crate) fn verdict(
    e: &Evidence<'_>,
    calls: impl Iterator<Item = ClientCall>,
    paired: impl Iterator<Item = Call>,
) -> Verdict {
    let seen = &Seen::of(e, calls, paired);
    let mut checks = Vec::new();
    if !by_schedule(e).is_empty() {
        checks.extend([schedule_lag(e, seen), lag_share(e, seen)]);
    }
    if headline(e).any(|c| c.scheduled.is_some()) || e.cells.is_empty() {
        checks.push(sent(e));
    }
    checks.push(generator_cpu(e));
    if e.tapped {
        checks.push(tap_cpu(e));
    }
    if !e.legged.is_empty() {
        checks.push(pairing(e, seen));
    }
    if !e.gateways.is_empty() {
        checks.extend([lateness(e, seen), floor(e, seen), stamp_class(e, seen)]);
    }
    if e.tapped {
        checks.extend([lost(e), clock_steps(e)]);
    }
    checks.extend([answered(e, seen), came_to_its_end(e)]);
    checks.extend(e.late.map(together));
    Verdict { checks }
}

/// Cells that count: not the steps of a capacity search, which overload on purpose, and nothing
/// beyond capacity, where the schedule itself is not what is measured.
fn headline<'a>(e: &'a Evidence<'_>) -> impl Iterator<Item = &'a Cell> {
    e.cells
        .iter()
        .filter(|c| !matches!(c.drive, Drive::Capacity { .. }) && c.saturated != Some(true))
}

/// Cells whose calls come when they are due, whatever the answers do. The floor probe is none: no figure
/// of it counts from the schedule.
fn by_schedule(e: &Evidence<'_>) -> HashSet<u32> {
    let floors = floors(e);
    let due = |c: &&Cell| {
        let drive = &c.drive;
        matches!(
            drive,
            Drive::Open { .. }
                | Drive::Profile { .. }
                | Drive::Trace { .. }
                | Drive::Tenant { .. }
                | Drive::Experiment { .. }
        ) && !floors.contains(&c.id)
    };
    headline(e).filter(due).map(|c| c.id).collect()
}

/// Cells of the floor probe.
fn floors(e: &Evidence<'_>) -> HashSet<u32> {
    e.cells.iter().filter_map(|c| c.floor_cell).collect()
}

/// Calls that a 99th percentile needs, for one of them to lie beyond it.
const SUPPORTED: u64 = 100;

/// The largest of what `figure` says of any cell, and of which one: one late cell is not made good by the
/// others. Cells with fewer calls than [`SUPPORTED`] are taken together.
fn least_punctual(
    e: &Evidence<'_>,
    seen: &Seen,
    figure: impl Fn(&Pace) -> Option<f64>,
) -> (Option<f64>, String) {
    let mut small = Pace::default();
    let mut found = Vec::new();
    for (id, pace) in &seen.paces {
        if pace.lag.len() < SUPPORTED {
            small.join(pace);
            continue;
        }
        let chain = e.cells.iter().find(|cell| cell.id == *id);
        let chain = chain.map_or("", |cell| cell.chain.as_str());
        found.push((figure(pace), format!("cell {id} ({chain})")));
    }
    let together = format!("cells of fewer than {SUPPORTED} calls together");
    found.push((figure(&small), together));
    let measured = found.into_iter().filter_map(|(f, name)| Some((f?, name)));
    let most = measured.max_by(|a, b| a.0.total_cmp(&b.0));
    most.map_or((None, String::new()), |(most, name)| (Some(most), name))
}

fn schedule_lag(e: &Evidence<'_>, seen: &Seen) -> Check {
    let limit = e.limits.schedule_lag_p99.nanos() as f64 / 1e6;
    let lag = |pace: &Pace| quantile(&pace.lag, 0.99).map(|ns| ns as f64 / 1e6);
    let (measured, name) = least_punctual(e, seen, lag);
    let detail = match measured {
        Some(_) => format!("open-loop calls, taken up against due; {name}"),
        None => "no open-loop call".to_owned(),
    };
    Check::at_most("schedule-lag-p99", "ms", limit, measured, detail)
}

fn lag_share(e: &Evidence<'_>, seen: &Seen) -> Check {
    let share = |pace: &Pace| {
        let (lag, ttft) = quantile(&pace.lag, 0.99).zip(quantile(&pace.ttft, 0.5))?;
        Some(lag as f64 / ttft.max(1) as f64)
    };
    let (measured, detail) = least_punctual(e, seen, share);
    Check::at_most(
        "schedule-lag-share-of-ttft",
        "of TTFT p50",
        e.limits.schedule_lag_share_of_ttft,
        measured,
        detail,
    )
}

fn sent(e: &Evidence<'_>) -> Check {
    let scheduled: u64 = headline(e).filter_map(|c| c.scheduled).sum();
    let sent: u64 = headline(e)
        .filter(|c| c.scheduled.is_some())
        .map(|c| c.sent)
        .sum();
    let measured = (scheduled > 0).then(|| sent as f64 / scheduled as f64);
    Check::at_least(
        "sent-share",
        "of scheduled",
        e.limits.sent_share_min,
        measured,
        format!("{sent} of {scheduled}"),
    )
}

/// The largest share of `cpus` that `pick` used in any cell that lasted long enough to tell.
fn largest_share(
    e: &Evidence<'_>,
    cpus: u32,
    pick: fn(&Cell) -> Option<f64>,
) -> Option<(f64, String)> {
    let share = |c: &Cell| {
        // What was used behind the window is in it too: rather too large than too small.
        let seconds = c.counted.driven.unwrap_or(c.counted.seconds);
        let used = pick(c).filter(|_| seconds > 0.2 && cpus > 0)?;
        Some((
            used / seconds / f64::from(cpus),
            format!("cell {} ({})", c.id, c.chain),
        ))
    };
    headline(e)
        .filter_map(share)
        .max_by(|a, b| a.0.total_cmp(&b.0))
}

fn generator_cpu(e: &Evidence<'_>) -> Check {
    let found = largest_share(e, e.cpus, |c| c.generator_cpu);
    let (measured, detail) = found
        .map_or((None, "its CPU was not counted".to_owned()), |(s, d)| {
            (Some(s), d)
        });
    Check::at_most(
        "generator-cpu",
        "of its CPUs",
        e.limits.generator_cpu_max,
        measured,
        detail,
    )
}

fn tap_cpu(e: &Evidence<'_>) -> Check {
    let cpus = e.taps.iter().map(|t| t.cpus).max().unwrap_or(0);
    let found = largest_share(e, cpus, |c| c.tap_cpu);
    let unknown = "name the tap's process: --tap DIR:PID".to_owned();
    let (measured, detail) = found.map_or((None, unknown), |(s, d)| (Some(s), d));
    Check::at_most(
        "tap-cpu",
        "of its CPUs",
        e.limits.tap_cpu_max,
        measured,
        detail,
    )
}

fn lateness(e: &Evidence<'_>, seen: &Seen) -> Check {
    let late = e
        .taps
        .iter()
        .filter_map(|t| t.lateness)
        .map(|(_, p99, _)| p99)
        .reduce(f64::max);
    // The quickest gateway is the one whose figures the lateness spoils first.
    let legs = seen.added_ttft.iter();
    let legs = legs.filter_map(|(chain, added)| Some((quantile(added, 0.99)?, chain)));
    let quickest = legs.min();
    let measured = late.zip(quickest);
    let measured = measured.map(|(late, (leg, _))| late / leg.max(1) as f64);
    let limit = e.limits.lateness_share_of_leg_p99;
    let of = quickest.map_or(String::new(), |(_, chain)| format!(", against {chain}"));
    Check::at_most(
        "tap-lateness-p99",
        "of added TTFT p99",
        limit,
        measured,
        format!("how late the tap's threads wake{of}"),
    )
}

fn pairing(e: &Evidence<'_>, seen: &Seen) -> Check {
    let paired = seen.paired;
    let lost: u64 = e.taps.iter().map(|t| t.lost).sum();
    let total = seen.pairable as f64 + lost as f64;
    let measured = (total > 0.0).then(|| paired as f64 / total);
    Check::at_least(
        "pairing",
        "of calls",
        e.limits.pairing_share_min,
        measured,
        format!("{paired} of {total:.0}"),
    )
}

fn lost(e: &Evidence<'_>) -> Check {
    let lost: u64 = e.taps.iter().map(|t| t.lost).sum();
    let measured = (!e.taps.is_empty()).then_some(lost as f64);
    Check::at_most(
        "records-lost",
        "records",
        e.limits.records_lost_max as f64,
        measured,
        String::new(),
    )
}

fn floor(e: &Evidence<'_>, seen: &Seen) -> Check {
    let measured = quantile(&seen.floor, 0.5).map(|ns| ns as f64);
    let range = e.calibration.and_then(|c| c.floor_range);
    let (outside, detail) = match (measured, range) {
        (Some(floor), Some((low, high))) => {
            let factor = if floor > high { floor / high } else if floor < low { low / floor.max(1.0) } else { 1.0 };
            (Some(factor), format!("floor {:.1} µs, calibrated {:.1} … {:.1} µs", floor / 1e3, low / 1e3, high / 1e3))
        }
        (_, None) => (None, "no calibration of this machine: `hopscope calibrate --out FILE`, then --calibration FILE".to_owned()),
        (None, _) => (None, "no floor probe ran: the scenario's `floor_probe`".to_owned()),
    };
    Check::at_most(
        "floor",
        "times its range",
        e.limits.floor_factor_max,
        outside,
        detail,
    )
}

/// Bounds and calibration hold per stamp class: a gateway whose inner faces speak TLS or HTTP/2 is
/// measured with an instrument that nobody calibrated.
fn stamp_class(e: &Evidence<'_>, seen: &Seen) -> Check {
    let (measured, detail) = match e.calibration {
        Some(calibration) if !seen.faces.is_empty() => {
            let (share, detail) = uncalibrated(&seen.faces, &calibration.class);
            (Some(share), detail)
        }
        _ => (None, "no calibration, or no paired call".to_owned()),
    };
    Check::at_most(
        "stamp-class",
        "of inner faces uncalibrated",
        0.0,
        measured,
        detail,
    )
}

/// The share of `faces`, counted by class, that are not of the calibrated class, and what to do about it.
fn uncalibrated(faces: &BTreeMap<&str, u64>, calibrated: &str) -> (f64, String) {
    let all: u64 = faces.values().sum();
    let others = || faces.iter().filter(|(name, _)| **name != calibrated);
    let count: u64 = others().map(|(_, count)| count).sum();
    let others: Vec<&str> = others().map(|(name, _)| *name).collect();
    let detail = if others.is_empty() {
        format!("all of class {calibrated}")
    } else {
        format!(
            "calibrated is {calibrated}, measured also {}: use cleartext HTTP/1.1 between taps and gateway",
            others.join(", ")
        )
    };
    (count as f64 / all as f64, detail)
}

fn clock_steps(e: &Evidence<'_>) -> Check {
    let steps: u64 = e.taps.iter().map(|t| t.clock_steps).sum();
    let measured = (!e.taps.is_empty()).then_some(steps as f64);
    Check::at_most(
        "clock-steps",
        "steps",
        e.limits.clock_steps_max as f64,
        measured,
        String::new(),
    )
}

/// Parts of a run that begin a cell apart do not put its load on the chain together.
fn together(late: Nanos) -> Check {
    Check::at_most(
        "shards-late",
        "ms",
        100.0,
        Some(late as f64 / 1e6),
        "the latest begin of a cell after its slot".to_owned(),
    )
}

/// A cell without one full answer has no figure, however punctual its load was.
fn answered(e: &Evidence<'_>, seen: &Seen) -> Check {
    let without: Vec<&Cell> = headline(e)
        .filter(|c| c.sent > 0 && !seen.answered.contains(&c.id))
        .collect();
    let chains: BTreeSet<&str> = without.iter().map(|c| c.chain.as_str()).collect();
    let chains: Vec<&str> = chains.into_iter().collect();
    Check::at_most(
        "cells-without-answer",
        "cells",
        0.0,
        Some(without.len() as f64),
        chains.join(", "),
    )
}

fn came_to_its_end(e: &Evidence<'_>) -> Check {
    Check::at_most(
        "stopped-early",
        "times",
        0.0,
        Some(f64::from(u8::from(e.stopped))),
        String::new(),
    )
}

#[cfg(test)]
mod tests;
