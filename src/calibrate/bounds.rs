//! What of a calibration is beyond its bounds, one line each.

use super::analysis::Checks;
use super::rig::{LONG, SLOW_GAP};
use super::samples::Samples;
use super::stats::quantile;
use config::Calibration as Settings;
use config::standin::StreamMode;
use record::manifest::{Calibration, CalibrationLine};

pub(super) fn beyond(
    settings: &Settings,
    samples: &Samples,
    found: &Calibration,
    checks: Checks,
) -> Vec<String> {
    let mut beyond = errors(settings, found);
    beyond.extend(slope(settings, found));
    beyond.extend(shares(settings, found));
    beyond.extend(account(samples));
    beyond.extend(long(settings, samples, checks.long));
    beyond.extend(checks.slow.and_then(|cell| slow(settings, samples, cell)));
    beyond
}

fn errors(settings: &Settings, found: &Calibration) -> Vec<String> {
    let bounds = &settings.bounds;
    let mut beyond = Vec::new();
    if found.lines.is_empty() {
        beyond.push("no leg was measured together with its floor".to_owned());
    }
    let few = |l: &&CalibrationLine| l.streams <= bounds.error_streams_max;
    for line in found.lines.iter().filter(few) {
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
    beyond
}

fn slope(settings: &Settings, found: &Calibration) -> Option<String> {
    let Some((slope, low, high)) = found.slope else {
        return Some("slope: not measured".to_owned());
    };
    let off = (low - 1.0).max(1.0 - high).max(0.0);
    let bound = settings.bounds.slope_error;
    (off > bound)
        .then(|| format!("slope {slope:.5} ({low:.5} … {high:.5}): off 1 by more than {bound}"))
}

fn shares(settings: &Settings, found: &Calibration) -> Vec<String> {
    let bounds = &settings.bounds;
    let mut beyond = Vec::new();
    let least = bounds.pairing_share_min;
    match found.pairing {
        Some(share) if share >= least => {}
        Some(share) => beyond.push(format!("pairing {share:.6}, at least {least}")),
        None => beyond.push("pairing: no call could be paired".to_owned()),
    }
    let most = bounds.merge_ratio_error;
    match found.merge_error {
        Some(error) if error <= most => {}
        Some(error) => beyond.push(format!(
            "merge ratio: off by {error:.6} of it, at most {most}"
        )),
        None => beyond.push("merge ratio: not measured".to_owned()),
    }
    beyond
}

/// What no calibration may have at all.
fn account(samples: &Samples) -> Vec<String> {
    let account = &samples.account;
    let lost = account.health.as_ref().map_or(0, |h| h.lost);
    let steps = account.health.as_ref().map_or(0, |h| h.clock_steps);
    [
        (
            samples.broken as u64,
            "calls on which the identity of the legs does not hold",
        ),
        (
            samples.unjoined as u64,
            "calls whose text positions are not those of the stand-in",
        ),
        (lost, "records that the meter lost"),
        (steps, "steps of the wall clock while it ran; run it again"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .chain(account.losses.iter().map(|l| format!("unreadable: {l}")))
    .collect()
}

/// A delay on each token must not add up over the call.
fn long(settings: &Settings, samples: &Samples, cell: u32) -> Option<String> {
    let delay = settings.delays.iter().min()?;
    let sum = delay.nanos() as f64 * f64::from(LONG);
    match quantile(samples.added(cell), 0.5) {
        Some(added) if added < sum / 10.0 => None,
        Some(added) => Some(format!(
            "{delay} on each of {LONG} tokens adds {:.1} ms to the call",
            added / 1e6
        )),
        None => Some(format!("{LONG} tokens: not measured")),
    }
}

/// A slow client must be seen, and must not become the gateway's delay.
fn slow(settings: &Settings, samples: &Samples, cell: u32) -> Option<String> {
    if samples.pressured(cell) == 0 {
        return Some("slow client: no text position was seen under back-pressure".to_owned());
    }
    let largest = samples.unpressured(cell).iter().copied().reduce(f64::max);
    let most = slow_limit(settings);
    match largest {
        Some(largest) if largest <= most => None,
        Some(largest) => Some(format!(
            "slow client: a token leg of {:.2} ms stands in the headline, at most {:.2} ms",
            largest / 1e6,
            most / 1e6
        )),
        None => Some("slow client: no token leg was left to look at".to_owned()),
    }
}

/// The longest that a token leg of the slow client's call may be: what was injected, the merged
/// tokens' wait for each other, and the bound of the tail. Nanoseconds.
fn slow_limit(settings: &Settings) -> f64 {
    let merged = if settings.modes.first() == Some(&StreamMode::Merge) {
        SLOW_GAP * u64::from(settings.merge_every)
    } else {
        0
    };
    let injected = settings.delays.iter().min().map_or(0, |d| d.nanos());
    (injected + merged + settings.bounds.error_p99.nanos()) as f64
}
