//! The highest rate that a chain serves within its objective: up by a factor while it holds, then
//! halving, then once more afresh.

use config::scenario::{Capacity as Search, Slo};
use record::manifest::Capacity;

/// Whether a rate held, and of how many calls that is told.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(crate) met: bool,
    /// Calls that were due.
    pub(crate) calls: u64,
}

/// What one step showed. In its percentiles, calls that were not answered, not sent or not paired are
/// slower than all others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    /// 95th percentile of TTFT from the intended send, nanoseconds; `None` where losses reach it.
    pub(crate) ttft_p95: Option<u64>,
    /// The same of added TTFT.
    pub(crate) added_p95: Option<i64>,
    /// The same of TPOT.
    pub(crate) tpot_p95: Option<f64>,
    /// Calls that failed, of all.
    pub(crate) error_share: f64,
    /// Calls that were answered, of all that were due.
    pub(crate) answered: f64,
}

impl Step {
    /// Does the objective hold? What could not be measured does not.
    pub(crate) fn meets(&self, slo: &Slo) -> bool {
        let holds = |bound: Option<config::Period>, value: Option<f64>| {
            bound.is_none_or(|b| value.is_some_and(|v| v <= b.nanos() as f64))
        };
        holds(slo.ttft_p95, self.ttft_p95.map(|v| v as f64))
            && holds(slo.added_ttft_p95, self.added_p95.map(|v| v as f64))
            && holds(slo.tpot_p95, self.tpot_p95)
            && self.error_share <= slo.error_share_max
            && self.answered >= 1.0 - slo.error_share_max
    }
}

/// Searches with `probe`, which runs a rate and tells whether it held. `None`: not even the first
/// rate held, or the run is to stop.
pub(crate) fn search<E>(
    search: &Search,
    mut probe: impl FnMut(f64) -> Result<Option<Held>, E>,
) -> Result<Option<Capacity>, E> {
    let (mut met, mut missed) = (None, None);
    let mut fewest: Option<u64> = None;
    let mut probe = |rate| {
        let held = probe(rate)?;
        if let Some(held) = held {
            fewest = Some(fewest.map_or(held.calls, |fewest| fewest.min(held.calls)));
        }
        Ok(held.map(|held| held.met))
    };
    let mut rate = search.start_rate;
    while missed.is_none() && rate <= search.max_rate * 1.000_001 {
        match probe(rate)? {
            None => return Ok(None),
            Some(true) => {
                met = Some(rate);
                let next = rate * search.step;
                rate = if rate < search.max_rate {
                    next.min(search.max_rate)
                } else {
                    f64::INFINITY
                };
            }
            Some(false) => missed = Some(rate),
        }
    }
    while let (Some(low), Some(high)) = (met, missed) {
        if (high - low) / high <= search.precision {
            break;
        }
        let middle = f64::midpoint(low, high);
        match probe(middle)? {
            None => return Ok(None),
            Some(true) => met = Some(middle),
            Some(false) => missed = Some(middle),
        }
    }
    let Some(low) = met else { return Ok(None) };
    let confirmed = probe(low)? == Some(true);
    Ok(Some(Capacity {
        met: low,
        missed,
        confirmed,
        calls: fewest,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::Period;

    fn settings() -> Search {
        Search {
            slo: Slo {
                ttft_p95: Some(Period::millis(100)),
                added_ttft_p95: None,
                tpot_p95: None,
                error_share_max: 0.01,
            },
            start_rate: 2.0,
            step: 2.0,
            max_rate: 100.0,
            hold: Period::secs(1),
            precision: 0.1,
        }
    }

    fn find(limit: f64) -> Option<Capacity> {
        let probe = |rate: f64| {
            Ok(Some(Held {
                met: rate <= limit,
                calls: (rate * 10.0) as u64,
            }))
        };
        search::<()>(&settings(), probe).unwrap()
    }

    #[test]
    fn the_edge_is_bracketed_to_the_precision_asked_for() {
        let found = find(23.0).unwrap();
        let missed = found.missed.unwrap();
        assert!(
            found.met <= 23.0 && missed > 23.0 && (missed - found.met) / missed <= 0.1,
            "{found:?}"
        );
        assert!(found.confirmed);
        assert_eq!(found.calls, Some(20), "its first step was the shortest");
    }

    #[test]
    fn a_chain_that_holds_everywhere_is_at_least_the_last_rate() {
        let found = find(1e9).unwrap();
        assert_eq!((found.met, found.missed), (100.0, None));
    }

    #[test]
    fn a_chain_that_never_holds_has_no_capacity() {
        assert_eq!(find(1.0), None);
    }

    #[test]
    fn what_was_not_measured_does_not_meet() {
        let step = Step {
            ttft_p95: None,
            added_p95: None,
            tpot_p95: None,
            error_share: 0.0,
            answered: 1.0,
        };
        assert!(!step.meets(&settings().slo));
        assert!(
            Step {
                ttft_p95: Some(99_000_000),
                ..step
            }
            .meets(&settings().slo)
        );
        assert!(
            !Step {
                ttft_p95: Some(1),
                error_share: 0.02,
                ..step
            }
            .meets(&settings().slo)
        );
    }
}
