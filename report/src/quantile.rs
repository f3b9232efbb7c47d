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
    match rests_on_few(total, censored, q, rules) {
        Ok(few) => reading(ranked(sorted, total, q), sorted.last(), few),
        Err(refused) => refused,
    }
}

/// Whether the quantile `q` of `total` calls, `censored` of which have no end, rests on few of them.
///
/// # Errors
/// It is not to be printed, and why.
pub(crate) fn rests_on_few(
    total: usize,
    censored: usize,
    q: f64,
    rules: &Rules,
) -> Result<bool, Reading> {
    if total == 0 {
        return Err(Reading::NotMeasured);
    }
    if let Some(refused) = too_lossy(censored, total, q, rules) {
        return Err(refused);
    }
    let beyond = (1.0 - q) * total as f64;
    let least = if q <= 0.5 { 1.5 } else { rules.beyond };
    // A hair of rounding is no missing sample.
    if beyond + 1e-6 < least {
        return Err(Reading::Refused(format!(
            "{total} samples: too few beyond it"
        )));
    }
    Ok(beyond < FIRM_BEYOND)
}

/// `value`, or that it is more than the `largest` that was seen.
pub(crate) fn reading(value: Option<f64>, largest: Option<&f64>, few: bool) -> Reading {
    match (value, largest) {
        (Some(value), _) => Reading::Value { value, few },
        (None, Some(largest)) => Reading::AtLeast(*largest),
        (None, None) => Reading::NotMeasured,
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

/// Linear interpolation between order statistics (R's type 7) of `total` values, of which the smallest are
/// `sorted`; `None` where the rank falls on one of the others.
pub(crate) fn ranked(sorted: &[f64], total: usize, q: f64) -> Option<f64> {
    let rank = q * total.checked_sub(1)? as f64;
    // Truncation is the meaning: the order statistic below the rank.
    let below = rank.floor() as usize;
    let low = *sorted.get(below)?;
    let part = rank - below as f64;
    if part == 0.0 {
        return Some(low);
    }
    let high = *sorted.get(below + 1)?;
    // Equal ends may both be infinite: their difference is no number.
    Some(if low == high {
        low
    } else {
        low + (high - low) * part
    })
}

/// The quantile of a sorted slice without any rule, for inner work.
pub(crate) fn plain(sorted: &[f64], q: f64) -> Option<f64> {
    ranked(sorted, sorted.len(), q)
}

/// Sorts in place; no value is ever NaN.
pub(crate) fn sort(values: &mut [f64]) {
    values.sort_unstable_by(f64::total_cmp);
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
}
