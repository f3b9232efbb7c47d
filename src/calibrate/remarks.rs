//! What else a calibration saw, in words.

use super::analysis::{Checks, errors, idle, residuals, spread};
use super::rig::LONG;
use super::samples::{Cell, Kind, Samples};
use super::stats::quantile;
use crate::truth::Pair;
use config::Calibration as Settings;

pub(super) fn all(settings: &Settings, samples: &Samples, checks: Checks) -> Vec<String> {
    let mut remarks = Vec::new();
    for &streams in &settings.streams {
        remarks.extend(hops(settings, samples, streams));
        remarks.extend(probe(settings, samples, streams));
        remarks.extend(back_to_back(settings, samples, streams));
    }
    remarks.extend(loaded(settings, samples));
    remarks.extend(long(settings, samples, checks.long));
    remarks.extend(checks.slow.map(|cell| slow(samples, cell)));
    remarks.push(lateness(samples));
    if samples.fresh > 0 {
        remarks.push(format!(
            "{} calls on a fresh connection are in no figure: its accept is a stratum of its own",
            samples.fresh
        ));
    }
    remarks
}

fn micros(pairs: &[Pair], of: fn(&Pair) -> i64) -> Option<f64> {
    let values: Vec<f64> = pairs.iter().map(|p| of(p) as f64 / 1e3).collect();
    quantile(&values, 0.5)
}

/// What the residual consists of: the way in with the component's wake-up, and the way out.
fn hops(settings: &Settings, samples: &Samples, streams: u32) -> Vec<String> {
    let idle = idle(settings);
    let of = |leg, kind: fn(&Cell) -> bool| {
        samples.pairs(leg, false, |c| {
            (c.load, c.streams) == (idle, streams) && kind(c)
        })
    };
    ["request", "token"]
        .into_iter()
        .filter_map(|leg| {
            let raw = of(leg, |c| matches!(c.kind, Kind::Gateway { .. }));
            let floor = of(leg, |c| c.kind == Kind::Floor);
            Some(format!(
                "{leg}, {streams} streams: of the raw median {:.1} µs are the way in with the component's wake-up (relay {:.1}), {:.1} µs the way out (relay {:.1})",
                micros(&raw, |p| p.inward)?,
                micros(&floor, |p| p.inward)?,
                micros(&raw, Pair::outward)?,
                micros(&floor, Pair::outward)?,
            ))
        })
        .collect()
}

/// The relay's probe in situ: the floor as a run of `load` has it.
fn probe(settings: &Settings, samples: &Samples, streams: u32) -> Option<String> {
    let idle = idle(settings);
    let of = |leg| {
        let pairs = samples.pairs(leg, true, |c| {
            (c.load, c.streams) == (idle, streams) && c.kind != Kind::Check
        });
        spread(&residuals(&pairs)).map(|(p50, p99)| (p50 / 1e3, p99 / 1e3))
    };
    let (request, token) = (of("request")?, of("token")?);
    Some(format!(
        "one relay stream beside {streams}: floor p50/p99 {:.1}/{:.1} µs (request), {:.1}/{:.1} µs (token)",
        request.0, request.1, token.0, token.1
    ))
}

/// The end of a stream as an engine writes it. A gateway that is still busy with one piece reads the
/// next one late: that wait is a gateway's, is in its legs, and not in the truth of its own stamps.
fn back_to_back(settings: &Settings, samples: &Samples, streams: u32) -> Option<String> {
    let idle = idle(settings);
    let p50 = |leg, relay| {
        let pairs = samples.pairs(leg, false, |c| {
            (c.load, c.streams) == (idle, streams) && c.kind == Kind::BackToBack { relay }
        });
        spread(&residuals(&pairs)).map(|(p50, _)| p50 / 1e3)
    };
    let legs = ["last token", "terminal", "end"].into_iter().map(|leg| {
        let (gateway, relay) = (p50(leg, false)?, p50(leg, true)?);
        Some(format!("{leg} {gateway:.1} µs (relay {relay:.1})"))
    });
    let told: Vec<String> = legs.collect::<Option<_>>()?;
    Some(format!(
        "a stream's end written back to back, {streams} streams: raw median {}",
        told.join(", ")
    ))
}

/// The busy series: the errors at each further host load, over all modes and the bounded streams.
fn loaded(settings: &Settings, samples: &Samples) -> Vec<String> {
    let least = idle(settings);
    let most = settings.bounds.error_streams_max;
    let mut remarks = Vec::new();
    for load in settings.host_load.iter().copied().filter(|l| *l > least) {
        for &streams in settings.streams.iter().filter(|s| **s <= most) {
            for leg in ["request", "token"] {
                let of = |block, floor: bool| {
                    residuals(&samples.pairs(leg, false, |c| {
                        let kind = match floor {
                            true => c.kind == Kind::Floor,
                            false => matches!(c.kind, Kind::Gateway { .. }),
                        };
                        kind && (c.load, c.streams, c.block) == (load, streams, block)
                    }))
                };
                let errors = errors(settings.blocks, |b| of(b, false), |b| of(b, true));
                let over = |of: fn(&(f64, f64)) -> f64| {
                    quantile(&errors.iter().map(of).collect::<Vec<_>>(), 0.5).map(|e| e / 1e3)
                };
                if let (Some(p50), Some(p99)) = (over(|e| e.0), over(|e| e.1)) {
                    remarks.push(format!(
                        "{leg}, {streams} streams at {:.0} % host load: error p50 {p50:.1} µs, p99 {p99:.1} µs",
                        load * 100.0
                    ));
                }
            }
        }
    }
    remarks
}

fn long(settings: &Settings, samples: &Samples, cell: u32) -> Option<String> {
    let delay = settings.delays.iter().min()?;
    let added = quantile(samples.added(cell), 0.5)?;
    Some(format!(
        "{delay} injected on the request and on each of {LONG} tokens adds {:.2} ms of E2E, not {:.1} s",
        added / 1e6,
        delay.nanos() as f64 * f64::from(LONG) / 1e9
    ))
}

fn slow(samples: &Samples, cell: u32) -> String {
    let left = samples.unpressured(cell);
    let largest = left.iter().copied().reduce(f64::max);
    format!(
        "slow client: {} text positions under back-pressure are in no leg; the largest of the {} left is {}",
        samples.pressured(cell),
        left.len(),
        largest.map_or_else(|| "absent".to_owned(), |l| format!("{:.2} ms", l / 1e6))
    )
}

fn lateness(samples: &Samples) -> String {
    let health = samples.account.health.as_ref();
    match health.and_then(|h| h.lateness) {
        Some((p50, p99, max)) => format!(
            "the tap's threads woke late by {:.1} µs (p50), {:.1} µs (p99), {:.2} ms (largest), over everything that ran",
            p50 / 1e3,
            p99 / 1e3,
            max / 1e6
        ),
        None => "the tap's own lateness was not measured".to_owned(),
    }
}
