//! The highest rate that a chain serves within its objective: up by a factor while it holds, then halving; a
//! monotone fit over all runs; then afresh at the rate that the fit tells.

mod fit;
mod run;

pub(crate) use run::{Driven, Run};

use config::scenario::Capacity as Search;
use record::manifest::{Capacity, CapacityStep, Fit};
use run::Part;

/// Fresh runs, each at a lower rate than the one before, until one holds.
const FRESH: usize = 3;

/// Searches with `probe`, which drives a rate and tells what came of it; `None` where the run is to stop.
/// `seed` draws the resamples.
pub(crate) fn search<E>(
    search: &Search,
    seed: u64,
    mut probe: impl FnMut(f64) -> Result<Option<Run>, E>,
) -> Result<Option<Capacity>, E> {
    let mut runs: Vec<Run> = Vec::new();
    let (mut met, mut missed) = (None, None);
    let mut rate = Some(search.start_rate);
    while let Some(at) = rate {
        let Some(run) = probe(at)? else {
            return Ok(None);
        };
        match run.held(&search.slo) {
            true => met = Some(at),
            false => missed = Some(at),
        }
        runs.push(run);
        rate = next(search, met, missed);
    }
    let wanted: Vec<f64> = Part::of(&search.slo)
        .iter()
        .map(|(_, wanted)| *wanted)
        .collect();
    let fitted = fit::fit(&runs, &wanted, seed);
    let mut steps: Vec<CapacityStep> = runs.iter().map(|run| step(search, run, false)).collect();
    let mut confirmed = None;
    for at in fitted.iter().flat_map(|fit| rates_to_confirm(search, fit)) {
        let Some(run) = probe(at)? else {
            return Ok(None);
        };
        let held = run.held(&search.slo);
        steps.push(step(search, &run, true));
        if held {
            confirmed = Some(at);
            break;
        }
    }
    Ok(Some(Capacity {
        rate: confirmed.or(fitted.map(|fit| fit.low).filter(|low| *low > 0.0)),
        confirmed: confirmed.is_some(),
        fit: fitted,
        missed,
        calls: steps.iter().map(|step| step.calls).min(),
        steps,
    }))
}

/// The next rate: up while all held, between the two that bracket the edge else. `None` at the search's end.
fn next(search: &Search, met: Option<f64>, missed: Option<f64>) -> Option<f64> {
    match (met, missed) {
        (None, _) => None,
        (Some(met), None) => (met < search.max_rate).then(|| {
            let next = met * search.step;
            // The last factor may be any.
            if next > search.max_rate * 0.999_999 {
                search.max_rate
            } else {
                next
            }
        }),
        (Some(met), Some(missed)) => {
            ((missed - met) / missed > search.precision).then(|| f64::midpoint(met, missed))
        }
    }
}

/// Where fresh runs are made: at the rate of the fit, at the lower end of its interval, and below both. A chain that
/// is right at its edge holds in half of its runs: what is handed on must have held.
fn rates_to_confirm(search: &Search, fit: &Fit) -> Vec<f64> {
    let below = fit.low.min(fit.rate * (1.0 - search.precision));
    let mut rates = vec![fit.rate, below, below * (1.0 - search.precision)];
    rates.truncate(FRESH);
    rates.retain(|rate| *rate > 0.0);
    rates
}

fn step(search: &Search, run: &Run, fresh: bool) -> CapacityStep {
    CapacityStep {
        rate: run.rate,
        calls: run.due,
        attained: run.attained(&search.slo),
        held: run.held(&search.slo),
        fresh,
    }
}

#[cfg(test)]
mod tests {
    use super::run::{STRETCHES, Share};
    use super::*;
    use config::Period;
    use config::scenario::Slo;

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

    /// A chain whose calls meet TTFT up to `limit`; beyond, as many as it serves.
    fn run(rate: f64, limit: f64) -> Run {
        let of = 1_000;
        let met = ((limit / rate).min(1.0) * of as f64) as u64;
        Run {
            rate,
            due: of * STRETCHES as u64,
            stretches: vec![vec![Share { met, of }, Share { met: of, of }]; STRETCHES],
        }
    }

    fn find(limit: f64) -> Capacity {
        let probe = |rate| Ok(Some(run(rate, limit)));
        search::<()>(&settings(), 1, probe).unwrap().unwrap()
    }

    #[test]
    fn the_edge_is_fitted_and_upheld_afresh() {
        let found = find(23.0);
        let fit = found.fit.unwrap();
        // Nineteen of twenty are met up to 23 / 0.95.
        assert!((fit.rate - 24.2).abs() < 1.0, "{found:?}");
        assert!(found.confirmed && found.rate.unwrap() <= fit.rate + 1e-9);
        assert!(found.rate.unwrap() > 20.0, "{found:?}");
        assert!(found.missed.unwrap() > 23.0);
        assert_eq!(found.calls, Some(10_000));
        assert!(found.steps.last().unwrap().fresh);
    }

    #[test]
    fn a_chain_that_holds_everywhere_is_at_least_the_last_rate() {
        let found = find(1e9);
        assert_eq!((found.rate, found.missed), (Some(100.0), None));
        assert!(found.confirmed);
    }

    #[test]
    fn a_chain_that_never_holds_has_no_rate_and_says_where_it_was_tried() {
        let found = find(1.0);
        assert_eq!(
            (found.rate, found.missed, found.confirmed),
            (None, Some(2.0), false)
        );
        assert_eq!(found.fit.unwrap().rate, 0.0);
    }

    #[test]
    fn a_fresh_run_that_fails_is_followed_by_a_lower_one_and_then_by_the_end() {
        let mut seen = 0;
        // A chain that is worn out by the search.
        let mut probe = |rate| {
            seen += 1;
            Ok::<_, ()>(Some(run(rate, if seen > 8 { 1.0 } else { 23.0 })))
        };
        let found = search(&settings(), 1, &mut probe).unwrap().unwrap();
        let fresh: Vec<f64> = found
            .steps
            .iter()
            .filter(|s| s.fresh)
            .map(|s| s.rate)
            .collect();
        assert_eq!(fresh.len(), FRESH, "{found:?}");
        assert!(fresh.windows(2).all(|w| w[1] < w[0]));
        assert!(!found.confirmed);
        assert_eq!(found.rate, found.fit.map(|fit| fit.low));
    }

    #[test]
    fn a_run_that_is_stopped_has_no_capacity() {
        let mut left = 3;
        let probe = |rate| {
            left -= 1;
            Ok::<_, ()>((left > 0).then(|| run(rate, 23.0)))
        };
        assert_eq!(search(&settings(), 1, probe).unwrap(), None);
    }
}
