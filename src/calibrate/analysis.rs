//! From joined samples to the figures of a calibration.
//!
//! Which floor goes where: the *error* of a line is its raw residual less the residual of the
//! relay's own cells with the same number of streams in the same block, so that both saw the same
//! load of the host. The relay's probe, one call after the other beside every cell, is the floor
//! that a run of `load` has too: it gives the range in which a run's floor is plausible.

use super::Outcome;
use super::bounds;
use super::remarks;
use super::samples::{Cell, Kind, Samples};
use super::stats::{line, mean, quantile};
use crate::truth::Pair;
use config::Calibration as Settings;
use config::standin::StreamMode;
use record::manifest::{Calibration, CalibrationLine};

/// The legs of a calibration, in the order in which they are printed.
const LEGS: [&str; 6] = [
    "request",
    "first token",
    "token",
    "finish",
    "terminal",
    "end",
];

/// A run's floor is plausible within this factor of the floors that were seen here.
pub const FLOOR_MARGIN: f64 = 3.0;

/// The cells of the checks, by their index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Checks {
    /// A thousand tokens, each delayed.
    pub(super) long: u32,
    /// A client that reads slowly.
    pub(super) slow: Option<u32>,
}

pub(super) fn outcome(settings: &Settings, samples: &Samples, checks: Checks) -> Outcome {
    let idle = idle(settings);
    let mut lines = Vec::new();
    for &streams in &settings.streams {
        for &mode in &settings.modes {
            let one = |leg| one_line(settings, samples, leg, (streams, mode, idle));
            lines.extend(LEGS.into_iter().filter_map(one));
        }
    }
    let (slope, intercept) = slope(settings, samples, idle);
    let mut calibration = Calibration {
        at: record::host::now_rfc3339(),
        host: record::host::describe(),
        class: "socket".to_owned(),
        passed: false,
        lines,
        slope,
        intercept,
        pairing: samples.account.pairing.rate(),
        merge_error: samples.merge_error,
        floor_range: floor_range(settings, samples, idle),
    };
    let beyond = bounds::beyond(settings, samples, &calibration, checks);
    calibration.passed = beyond.is_empty();
    Outcome {
        calibration,
        beyond,
        remarks: remarks::all(settings, samples, checks),
    }
}

/// The least host load: what the lines and bounds are of.
pub(super) fn idle(settings: &Settings) -> f64 {
    let loads = settings.host_load.iter().copied();
    loads.fold(f64::INFINITY, f64::min)
}

/// Residuals in nanoseconds.
pub(super) fn residuals(pairs: &[Pair]) -> Vec<f64> {
    pairs.iter().map(|p| p.residual() as f64).collect()
}

/// Median and 99th percentile.
pub(super) fn spread(values: &[f64]) -> Option<(f64, f64)> {
    Some((quantile(values, 0.5)?, quantile(values, 0.99)?))
}

/// The error in each block: quantiles of raw less the same quantiles of the floor, where `raw` and
/// `floor` give the residuals of one block.
pub(super) fn errors(
    blocks: u32,
    raw: impl Fn(u32) -> Vec<f64>,
    floor: impl Fn(u32) -> Vec<f64>,
) -> Vec<(f64, f64)> {
    (0..blocks)
        .filter_map(|block| {
            let (raw, floor) = (spread(&raw(block))?, spread(&floor(block))?);
            Some((raw.0 - floor.0, raw.1 - floor.1))
        })
        .collect()
}

fn one_line(
    settings: &Settings,
    samples: &Samples,
    leg: &'static str,
    (streams, mode, load): (u32, StreamMode, f64),
) -> Option<CalibrationLine> {
    let own =
        |c: &Cell| matches!(c.kind, Kind::Gateway { mode: m, .. } if m == mode) && c.load == load;
    let floor = |c: &Cell| c.kind == Kind::Floor && c.load == load;
    let of = |kind: &dyn Fn(&Cell) -> bool, block: Option<u32>| {
        residuals(&samples.pairs(leg, false, |c| {
            c.streams == streams && kind(c) && block.is_none_or(|b| c.block == b)
        }))
    };
    let errors = errors(
        settings.blocks,
        |b| of(&own, Some(b)),
        |b| of(&floor, Some(b)),
    );
    let (p50, interval) = mean(&errors.iter().map(|e| e.0).collect::<Vec<_>>())?;
    // One disturbed block owns the mean of tails.
    let p99 = quantile(&errors.iter().map(|e| e.1).collect::<Vec<_>>(), 0.5)?;
    let raw = of(&own, None);
    Some(CalibrationLine {
        leg: leg.to_owned(),
        streams,
        mode: mode.as_str().to_owned(),
        samples: raw.len() as u64,
        raw: spread(&raw)?,
        raw_max: raw.iter().copied().reduce(f64::max),
        floor: spread(&of(&floor, None))?,
        error: (p50, p99),
        interval,
    })
}

/// Slope with its 95 % interval, and intercept, of measured on true delay over the medians of the
/// cells that are bounded: request and token legs. The interval is over blocks; with one block it
/// comes from how far the cells lie off the line.
fn slope(
    settings: &Settings,
    samples: &Samples,
    load: f64,
) -> (Option<(f64, f64, f64)>, Option<f64>) {
    let found: Vec<_> = (0..settings.blocks)
        .filter_map(|b| line(&groups(settings, samples, b, load)))
        .collect();
    let over = |of: fn(&super::stats::Line) -> f64| mean(&found.iter().map(of).collect::<Vec<_>>());
    let slope = over(|l| l.slope).map(|(slope, interval)| {
        let own = found.first().map_or(f64::INFINITY, |l| l.half);
        let (low, high) = interval.unwrap_or((slope - own, slope + own));
        (slope, low, high)
    });
    (slope, over(|l| l.intercept).map(|(i, _)| i))
}

/// True and measured medians of the cells of a block, by leg, streams and mode.
fn groups(settings: &Settings, samples: &Samples, block: u32, load: f64) -> Vec<Vec<(f64, f64)>> {
    let mut groups = Vec::new();
    let bounded = settings.bounds.error_streams_max;
    for &streams in settings.streams.iter().filter(|s| **s <= bounded) {
        for &mode in &settings.modes {
            for leg in ["request", "token"] {
                let cells = samples.by_cell(leg, |c| {
                    matches!(c.kind, Kind::Gateway { mode: m, .. } if m == mode)
                        && (c.block, c.load, c.streams) == (block, load, streams)
                });
                let median = |pairs: &[Pair], of: fn(&Pair) -> i64| {
                    quantile(&pairs.iter().map(|p| of(p) as f64).collect::<Vec<_>>(), 0.5)
                };
                let points = cells.into_iter().filter_map(|pairs| {
                    median(pairs, |p| p.truth).zip(median(pairs, |p| p.measured))
                });
                groups.push(points.collect::<Vec<_>>());
            }
        }
    }
    groups.retain(|g| !g.is_empty());
    groups
}

/// Around the medians of the probe's request leg, block by block and by number of streams, as a
/// run of `load` would print them: measured, the relay's own share included.
fn floor_range(settings: &Settings, samples: &Samples, load: f64) -> Option<(f64, f64)> {
    let mut floors = Vec::new();
    for block in 0..settings.blocks {
        for &streams in &settings.streams {
            let probe = samples.pairs("request", true, |c| {
                (c.block, c.load, c.streams) == (block, load, streams) && c.kind != Kind::Check
            });
            let legs: Vec<f64> = probe.iter().map(|p| p.measured as f64).collect();
            floors.extend(quantile(&legs, 0.5));
        }
    }
    let low = floors.iter().copied().reduce(f64::min)?;
    let high = floors.iter().copied().reduce(f64::max)?;
    Some((low / FLOOR_MARGIN, high * FLOOR_MARGIN))
}

#[cfg(test)]
mod tests;
