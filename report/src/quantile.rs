//! When a quantile may be printed, and what it is.

use crate::model::Reading;
use config::scenario::VerdictLimits;

/// When a quantile is printed at all; each scenario may say otherwise under `limits`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rules {
    /// Samples beyond it, at the least (`samples_beyond_min`).
    pub(crate) beyond: f64,
    /// The loss must be below this share of 1 − q (`loss_share_of_tail`).
    pub(crate) loss: f64,
}

impl Default for Rules {
    fn default() -> Self {
        Self::from(&VerdictLimits::default())
    }
}

impl From<&VerdictLimits> for Rules {
    fn from(limits: &VerdictLimits) -> Self {
        Self {
            beyond: limits.samples_beyond_min as f64,
            loss: limits.loss_share_of_tail,
        }
    }
}

/// Below this many it is printed as resting on few.
const FIRM_BEYOND: f64 = 100.0;

/// The quantile `q` of `sorted` values and `censored` further ones that are only known to be
/// larger than any value they reached (lost, cut or failed calls rank at the top).
///
/// Not printed where the loss is too large or too few samples lie beyond, by `rules`. The median is
/// printed from three samples on.
pub(crate) fn quantile(sorted: &[f64], censored: usize, q: f64, rules: &Rules) -> Reading {
    let total = sorted.len() + censored;
    if total == 0 {
        return Reading::NotMeasured;
    }
    if let Some(refused) = too_lossy(censored, total, q, rules) {
        return refused;
    }
    let beyond = (1.0 - q) * total as f64;
    let least = if q <= 0.5 { 1.5 } else { rules.beyond };
    // A hair of rounding is no missing sample.
    if beyond + 1e-6 < least {
        return Reading::Refused(format!("{total} samples: too few beyond it"));
    }
    match at(sorted, total, q) {
        Some(value) => Reading::Value {
            value,
            few: beyond < FIRM_BEYOND,
        },
        None => sorted
            .last()
            .map_or(Reading::NotMeasured, |largest| Reading::AtLeast(*largest)),
    }
}

/// Refuses a quantile whose loss, as a share of all `total` calls, is too large a part of its tail.
pub(crate) fn too_lossy(censored: usize, total: usize, q: f64, rules: &Rules) -> Option<Reading> {
    let loss = rules.loss;
    let lossy = censored > 0 && censored as f64 / total as f64 >= (1.0 - q) * loss;
    lossy.then(|| {
        Reading::Refused(format!(
            "{censored} of {total} calls have no end: not below {loss} × (1 − q)"
        ))
    })
}

/// Linear interpolation between order statistics (R's type 7); `None` where the rank falls on a
/// censored sample.
fn at(sorted: &[f64], total: usize, q: f64) -> Option<f64> {
    let rank = q * (total - 1) as f64;
    // Truncation is the meaning: the order statistic below the rank.
    let below = rank.floor() as usize;
    let low = *sorted.get(below)?;
    let part = rank - below as f64;
    if part == 0.0 {
        return Some(low);
    }
    Some(low + (*sorted.get(below + 1)? - low) * part)
}

/// The quantile of a sorted slice without any rule, for inner work.
pub(crate) fn plain(sorted: &[f64], q: f64) -> Option<f64> {
    if sorted.is_empty() {
        None
    } else {
        at(sorted, sorted.len(), q)
    }
}

/// Sorts in place; no value is ever NaN.
pub(crate) fn sort(values: &mut [f64]) {
    values.sort_unstable_by(f64::total_cmp);
}

/// The quantile of values with weights, `beyond` being the weight of what is only known to be larger
/// than all of them: the smallest value at which the weight reaches `q`; `None` where it lies beyond.
pub(crate) fn weighted(sorted: &[(f64, f64)], beyond: f64, q: f64) -> Option<f64> {
    let total: f64 = sorted.iter().map(|(_, w)| w).sum::<f64>() + beyond;
    let mut sum = 0.0;
    sorted.iter().find_map(|(value, weight)| {
        sum += weight;
        // A hair of rounding is no missing weight.
        (sum + 1e-9 >= q * total).then_some(*value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tail_needs_samples_and_few_losses() {
        let values: Vec<f64> = (0..200).map(f64::from).collect();
        assert_eq!(
            quantile(&values, 0, 0.5, &Rules::default()),
            Reading::Value {
                value: 99.5,
                few: false
            }
        );
        assert!(matches!(
            quantile(&values, 0, 0.95, &Rules::default()),
            Reading::Value { few: true, .. }
        ));
        assert!(matches!(
            quantile(&values, 0, 0.99, &Rules::default()),
            Reading::Refused(_)
        ));
        assert!(matches!(
            quantile(&values[..199], 0, 0.95, &Rules::default()),
            Reading::Refused(_)
        ));
        assert!(
            matches!(
                quantile(&values, 3, 0.95, &Rules::default()),
                Reading::Refused(_)
            ),
            "3 of 203 is above 0.5 %"
        );
        assert!(matches!(
            quantile(&values, 3, 0.5, &Rules::default()),
            Reading::Value { .. }
        ));
        assert_eq!(
            quantile(&[], 0, 0.5, &Rules::default()),
            Reading::NotMeasured
        );
    }

    #[test]
    fn a_scenario_may_ask_for_more_samples_or_bear_more_loss() {
        let values: Vec<f64> = (0..200).map(f64::from).collect();
        let strict = Rules {
            beyond: 20.0,
            loss: 0.1,
        };
        assert!(matches!(
            quantile(&values, 0, 0.95, &strict),
            Reading::Refused(_)
        ));
        let lax = Rules {
            beyond: 10.0,
            loss: 0.5,
        };
        assert!(matches!(
            quantile(&values, 3, 0.95, &lax),
            Reading::Value { .. }
        ));
    }

    #[test]
    fn censored_calls_rank_at_the_top() {
        let values: Vec<f64> = (0..1_000).map(f64::from).collect();
        let with = quantile(&values, 40, 0.5, &Rules::default());
        assert_eq!(
            with,
            Reading::Value {
                value: 519.5,
                few: false
            }
        );
    }

    #[test]
    fn weights_make_calls_equal() {
        // One call of 1000 quick tokens, two calls of one slow token each.
        let mut all: Vec<(f64, f64)> = (0..1_000).map(|_| (1.0, 0.001)).collect();
        all.extend([(9.0, 1.0), (9.0, 1.0)]);
        assert_eq!(weighted(&all, 0.0, 0.5), Some(9.0));
        assert_eq!(weighted(&all, 4.0, 0.5), None, "beyond what was seen");
    }
}
