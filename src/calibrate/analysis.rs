//! From paired calls and truth logs to the figures of a calibration.

use super::Outcome;
use super::rig::{LONG, Special};
use super::stats::{line, mean, quantile};
use crate::truth::{legs_of, tokens_of};
use config::Calibration as Settings;
use config::standin::StreamMode;
use record::client::ClientCall;
use record::manifest::{Calibration, CalibrationLine, TapHealth};
use record::pairing::{Call, PairingCounts};
use sim::truth::{ExchangeTruth, Role};
use std::collections::{BTreeMap, HashMap};

/// One cell that ran.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cell {
    pub(super) block: u32,
    pub(super) load: f64,
    pub(super) streams: u32,
    pub(super) kind: Kind,
}

/// What a cell drove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A gateway stand-in, with the n-th delay.
    Gateway { mode: StreamMode, delay: usize },
    /// The relay, with as many streams.
    Floor,
    /// A check of its own, or warm-up.
    Special,
}

impl Cell {
    fn mode(&self) -> Option<StreamMode> {
        if let Kind::Gateway { mode, .. } = self.kind {
            Some(mode)
        } else {
            None
        }
    }
}

/// The legs of a calibration, in the order in which they are printed.
const LEGS: [&str; 6] = [
    "request",
    "first token",
    "token",
    "finish",
    "terminal",
    "end",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    leg: &'static str,
    cell: u32,
    floor: bool,
}

/// Measured and true, by leg and cell.
#[derive(Debug, Default)]
pub(super) struct Samples {
    cells: Vec<Cell>,
    pairs: BTreeMap<Key, Vec<(i64, i64)>>,
    /// Largest error of the merge ratio, as a share.
    merge_error: Option<f64>,
    pairing: Option<f64>,
    broken: usize,
    health: Option<TapHealth>,
    losses: Vec<String>,
    /// Text positions under back-pressure, by cell.
    pressured: HashMap<u32, u64>,
    /// Added E2E of text: measured, by cell.
    added: HashMap<u32, Vec<f64>>,
}

impl Samples {
    pub(super) fn new(
        cells: &[Cell],
        calls: &[Call],
        truths: &HashMap<String, ExchangeTruth>,
        (counts, health, losses): (PairingCounts, Option<TapHealth>, Vec<String>),
    ) -> Self {
        let mut samples = Self {
            cells: cells.to_vec(),
            pairing: counts.rate(),
            health,
            losses,
            ..Self::default()
        };
        for call in calls {
            let cell = call
                .outer
                .keys
                .client
                .as_deref()
                .and_then(ClientCall::parse_key)
                .map(|(cell, _)| cell);
            let truth = call.outer.keys.call.as_ref().and_then(|id| truths.get(id));
            // The relay's last call of a cell is cut when the cell ends: it is no sample.
            if let (Some(cell), Some(truth), true) = (cell, truth, call.outer.complete()) {
                samples.take(cell, call, truth);
            }
        }
        samples
    }

    fn take(&mut self, cell: u32, call: &Call, truth: &ExchangeTruth) {
        let exchanges = || std::iter::once(&call.outer).chain(&call.attempts);
        let reused = exchanges().all(|e| e.connection.upstream_reused == Some(true));
        let Some(legs) = call.legs().filter(|_| reused) else {
            return;
        };
        let floor = truth.role == Role::Relay;
        for (leg, found, measured) in legs_of(truth, &legs) {
            if let (Some(found), Some(measured)) = (found, measured) {
                self.pairs
                    .entry(Key { leg, cell, floor })
                    .or_default()
                    .push((found, measured));
            }
        }
        self.pairs
            .entry(Key {
                leg: "token",
                cell,
                floor,
            })
            .or_default()
            .extend(tokens_of(truth, &legs));
        *self.pressured.entry(cell).or_default() += u64::from(legs.tokens.pressured);
        if floor {
            return;
        }
        if let Some(added) = legs.added_text {
            self.added.entry(cell).or_default().push(added.value as f64);
        }
        let inner = call.served_by();
        let broken = inner
            .and_then(|i| record::leg::identity_error(&call.outer, i, &legs))
            .is_some_and(|e| e != 0);
        self.broken += usize::from(broken);
        if truth.text_events_written > 0
            && let Some(ratio) = legs.merge_ratio
        {
            let real = truth.text_events_read as f64 / truth.text_events_written as f64;
            let error = (ratio - real).abs() / real;
            self.merge_error = Some(self.merge_error.map_or(error, |e| e.max(error)));
        }
    }

    /// Residuals of a leg over the cells that `pick` takes.
    fn residuals(&self, leg: &'static str, floor: bool, pick: impl Fn(&Cell) -> bool) -> Vec<f64> {
        let of = |id: usize| {
            self.pairs.get(&Key {
                leg,
                cell: u32::try_from(id).ok()?,
                floor,
            })
        };
        let cells = self.cells.iter().enumerate().filter(|(_, c)| pick(c));
        cells
            .filter_map(|(id, _)| of(id))
            .flatten()
            .map(|(found, measured)| (measured - found) as f64)
            .collect()
    }
}

pub(super) fn outcome(
    settings: &Settings,
    samples: &Samples,
    special: (Special, Option<Special>),
) -> Outcome {
    let idle = settings
        .host_load
        .iter()
        .copied()
        .fold(f64::INFINITY, f64::min);
    let mut lines = Vec::new();
    for &streams in &settings.streams {
        for &mode in &settings.modes {
            for leg in LEGS {
                lines.extend(one_line(settings, samples, leg, (streams, mode, idle)));
            }
        }
    }
    let slopes: Vec<(f64, f64)> = (0..settings.blocks)
        .filter_map(|b| slope(settings, samples, b, idle))
        .collect();
    let slope = mean(&slopes.iter().map(|s| s.0).collect::<Vec<_>>());
    let floors: Vec<f64> = (0..settings.blocks)
        .filter_map(|b| {
            let of_block = samples.residuals("request", true, |c| {
                c.block == b && c.mode().is_some() && c.load == idle
            });
            quantile(&of_block, 0.5)
        })
        .collect();
    let spread = floors
        .iter()
        .copied()
        .reduce(f64::min)
        .zip(floors.iter().copied().reduce(f64::max));
    let mut calibration = Calibration {
        at: record::host::now_rfc3339(),
        host: record::host::describe(),
        class: "socket".to_owned(),
        passed: false,
        lines,
        slope: slope.map(|(s, interval)| {
            let (low, high) = interval.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
            (s, low, high)
        }),
        intercept: mean(&slopes.iter().map(|s| s.1).collect::<Vec<_>>()).map(|(i, _)| i),
        pairing: samples.pairing,
        merge_error: samples.merge_error,
        // A floor within a factor of four of what this machine showed is plausible; host load moves it.
        floor_range: spread.map(|(low, high)| (low / 4.0, high * 4.0)),
    };
    // One block has no interval: then the slope is told and not bounded.
    if settings.blocks < 2 {
        calibration.slope = slope.map(|(s, _)| (s, s, s));
    }
    let mut remarks = remarks(settings, samples, special);
    remarks.extend(loaded(settings, samples, idle));
    let beyond = beyond(settings, samples, &calibration, special);
    calibration.passed = beyond.is_empty();
    Outcome {
        calibration,
        beyond,
        remarks,
    }
}

fn one_line(
    settings: &Settings,
    samples: &Samples,
    leg: &'static str,
    (streams, mode, load): (u32, StreamMode, f64),
) -> Option<CalibrationLine> {
    let of = |block: Option<u32>, floor: bool| {
        let same =
            |c: &Cell| c.streams == streams && c.load == load && block.is_none_or(|b| c.block == b);
        let kind = |c: &Cell| {
            if floor {
                c.kind == Kind::Floor
            } else {
                c.mode() == Some(mode)
            }
        };
        samples.residuals(leg, floor, |c| same(c) && kind(c))
    };
    let (raw, floor) = (of(None, false), of(None, true));
    let pair = |values: &[f64]| Some((quantile(values, 0.5)?, quantile(values, 0.99)?));
    let errors: Vec<(f64, f64)> = (0..settings.blocks)
        .filter_map(|block| {
            let (raw, floor) = (
                pair(&of(Some(block), false))?,
                pair(&of(Some(block), true))?,
            );
            Some((raw.0 - floor.0, raw.1 - floor.1))
        })
        .collect();
    let (p50, interval) = mean(&errors.iter().map(|e| e.0).collect::<Vec<_>>())?;
    let (p99, _) = mean(&errors.iter().map(|e| e.1).collect::<Vec<_>>())?;
    Some(CalibrationLine {
        leg: leg.to_owned(),
        streams,
        mode: mode.as_str().to_owned(),
        samples: raw.len() as u64,
        raw: pair(&raw)?,
        floor: pair(&floor)?,
        error: (p50, p99),
        interval,
    })
}

/// Slope and intercept of measured on true over the cells of a block, by their medians: the
/// request and the token leg at the numbers of streams that are bounded.
fn slope(settings: &Settings, samples: &Samples, block: u32, load: f64) -> Option<(f64, f64)> {
    let mut points = Vec::new();
    for (key, pairs) in &samples.pairs {
        let cell = samples.cells.get(key.cell as usize)?;
        let counts =
            cell.mode().is_some() && cell.block == block && cell.load == load && !key.floor;
        // Merged text waits for its fellows: its true delay is not the injected one alone, but the
        // stand-in's stamps say what it was.
        if counts
            && cell.streams <= settings.bounds.error_streams_max
            && matches!(key.leg, "request" | "token")
        {
            let found: Vec<f64> = pairs.iter().map(|p| p.0 as f64).collect();
            let measured: Vec<f64> = pairs.iter().map(|p| p.1 as f64).collect();
            points.extend(quantile(&found, 0.5).zip(quantile(&measured, 0.5)));
        }
    }
    line(&points)
}

fn remarks(
    settings: &Settings,
    samples: &Samples,
    (long, slow): (Special, Option<Special>),
) -> Vec<String> {
    let mut remarks = Vec::new();
    let ms = |ns: f64| ns / 1e6;
    if let (Some(delay), Some(added)) = (
        settings.delays.first(),
        samples.added.get(&long).and_then(|a| quantile(a, 0.5)),
    ) {
        remarks.push(format!(
            "{delay} injected on the request and on each of {LONG} tokens adds {:.2} ms of E2E, not {:.1} s",
            ms(added),
            delay.nanos() as f64 * f64::from(LONG) / 1e9
        ));
    }
    if let Some(slow) = slow {
        let rest = samples.residuals("token", false, |_| true).len();
        let pressured = samples.pressured.get(&slow).copied().unwrap_or(0);
        remarks.push(format!(
            "slow client: {pressured} text positions were under back-pressure and are in no leg ({rest} values are)"
        ));
    }
    let probe = samples.residuals("token", true, |c| c.mode().is_some());
    if let (Some(p50), Some(p99)) = (quantile(&probe, 0.5), quantile(&probe, 0.99)) {
        remarks.push(format!(
            "the one-stream relay probe beside every cell: token floor {:.1} µs (p50), {:.1} µs (p99)",
            p50 / 1e3,
            p99 / 1e3
        ));
    }
    match samples.health.as_ref().and_then(|h| h.lateness) {
        Some((p50, p99, max)) => remarks.push(format!(
            "the tap's threads woke late by {:.1} µs (p50), {:.1} µs (p99), {:.2} ms (largest)",
            p50 / 1e3,
            p99 / 1e3,
            ms(max)
        )),
        None => remarks.push("the tap's own lateness was not measured".to_owned()),
    }
    remarks.extend(samples.losses.iter().map(|l| format!("left out: {l}")));
    remarks
}

/// The busy series in words: the median and the tail of the errors at each further host load.
fn loaded(settings: &Settings, samples: &Samples, idle: f64) -> Vec<String> {
    let busy = settings.host_load.iter().copied().filter(|l| *l > idle);
    busy.flat_map(|load| {
        ["request", "token"].into_iter().filter_map(move |leg| {
            let of =
                |floor| samples.residuals(leg, floor, |c| c.mode().is_some() && c.load == load);
            let (raw, floor) = (of(false), of(true));
            let error = |q| Some((quantile(&raw, q)? - quantile(&floor, q)?) / 1e3);
            Some(format!(
                "{leg} at {:.0} % host load: error p50 {:.1} µs, p99 {:.1} µs",
                load * 100.0,
                error(0.5)?,
                error(0.99)?
            ))
        })
    })
    .collect()
}

/// The lines that the bounds bind. What follows the last token leaves an engine in several writes
/// back to back; a gateway that reads them a moment later than the relay joins them differently, so
/// the relay is no floor of theirs: those legs are printed without a bound.
fn bounded(found: &Calibration, streams: u32) -> impl Iterator<Item = &CalibrationLine> {
    let binds =
        |l: &&CalibrationLine| matches!(l.leg.as_str(), "request" | "first token" | "token");
    found
        .lines
        .iter()
        .filter(move |l| l.streams <= streams)
        .filter(binds)
}

fn beyond(
    settings: &Settings,
    samples: &Samples,
    found: &Calibration,
    (long, slow): (Special, Option<Special>),
) -> Vec<String> {
    let bounds = &settings.bounds;
    let mut beyond = Vec::new();
    for line in bounded(found, bounds.error_streams_max) {
        for (what, error, bound) in [
            ("p50", line.error.0, bounds.error_p50),
            ("p99", line.error.1, bounds.error_p99),
        ] {
            if error.abs() > bound.nanos() as f64 {
                beyond.push(format!(
                    "{} leg, {} streams, {}: error {what} {:.1} µs, bound {bound}",
                    line.leg,
                    line.streams,
                    line.mode,
                    error / 1e3
                ));
            }
        }
    }
    match found.slope {
        None => beyond.push("slope: not measured".to_owned()),
        Some((slope, low, high)) => {
            let off = (low - 1.0).max(1.0 - high).max(0.0);
            if off > bounds.slope_error {
                beyond.push(format!(
                    "slope {slope:.4} ({low:.4} … {high:.4}): off 1 by more than {}",
                    bounds.slope_error
                ));
            }
        }
    }
    if !found.pairing.is_some_and(|p| p >= bounds.pairing_share_min) {
        beyond.push(format!(
            "pairing {:?}, at least {}",
            found.pairing, bounds.pairing_share_min
        ));
    }
    if !found
        .merge_error
        .is_some_and(|e| e <= bounds.merge_ratio_error)
    {
        beyond.push(format!(
            "merge ratio off by {:?} of it, at most {}",
            found.merge_error, bounds.merge_ratio_error
        ));
    }
    if samples.broken > 0 {
        beyond.push(format!(
            "the identity of the legs is broken on {} calls",
            samples.broken
        ));
    }
    let sum = settings
        .delays
        .first()
        .map_or(0.0, |d| d.nanos() as f64 * f64::from(LONG));
    let added = samples.added.get(&long).and_then(|a| quantile(a, 0.5));
    if !added.is_some_and(|a| a < sum / 10.0) {
        beyond.push(format!(
            "a delay on each of {LONG} tokens adds {added:?} ns to the call"
        ));
    }
    if slow.is_some_and(|id| samples.pressured.get(&id).copied().unwrap_or(0) == 0) {
        beyond.push("slow client: no text position was seen under back-pressure".to_owned());
    }
    beyond
}
