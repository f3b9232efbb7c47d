//! A measured stretch of time that says how far it can be trusted.

use crate::clock::Nanos;
use crate::stamp::{Arrival, Departure};
use serde::{Deserialize, Serialize};

/// Nanoseconds from a write's begin to an arrival: the best estimate inside `[low, high]`.
/// Negative values are kept: they are findings, not noise to hide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Best estimate.
    pub value: i64,
    /// It cannot be less.
    pub low: i64,
    /// It cannot be more.
    pub high: i64,
}

fn minus(a: Nanos, b: Nanos) -> i64 {
    a.cast_signed().wrapping_sub(b.cast_signed())
}

impl Span {
    /// From the instant `departure` began to the arrival `arrival`.
    ///
    /// The start is exact. What the write caused cannot have arrived before the write began, so
    /// the lower bound stops there, unless the estimate itself lies before it: then cause and
    /// effect are not what they seem, and the whole interval is shown.
    #[must_use]
    pub fn between(departure: &Departure, arrival: &Arrival) -> Self {
        let high = minus(arrival.at, departure.begin);
        let value = minus(arrival.latest(), departure.begin);
        let low = minus(arrival.earliest(), departure.begin);
        let low = if value >= 0 { low.max(0) } else { low };
        Self { value, low, high }
    }

    /// From one arrival to another: both ends uncertain.
    #[must_use]
    pub fn arrivals(from: &Arrival, to: &Arrival) -> Self {
        Self {
            value: minus(to.latest(), from.latest()),
            low: minus(to.earliest(), from.at),
            high: minus(to.at, from.earliest()),
        }
    }

    /// The sum, bounds added: correct whatever the parts' errors have in common.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            value: self.value + other.value,
            low: self.low + other.low,
            high: self.high + other.high,
        }
    }

    /// Width of the interval.
    #[must_use]
    pub fn width(&self) -> u64 {
        self.high.abs_diff(self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_negative_leg_is_kept_and_bounds_hold_the_value() {
        let out = Departure {
            begin: 1_000,
            end: 1_040,
            blocked: false,
        };
        let early = Arrival {
            at: 900,
            earliest: 700,
            kernel: None,
            waited: true,
        };
        let span = Span::between(&out, &early);
        assert_eq!((span.value, span.low, span.high), (-100, -300, -100));
        let late = Arrival {
            at: 1_300,
            earliest: 100,
            kernel: Some(1_250),
            waited: false,
        };
        let span = Span::between(&out, &late);
        assert_eq!((span.value, span.low, span.high), (250, 0, 300));
    }
}
