//! How a cost runs with the rate while the number of replicas stays.

use std::ops::{Add, Sub};

/// Seconds of the window in which an imported model is billed.
pub(crate) const WINDOW: f64 = 300.0;

/// `fixed + slope · rate + window · (1 − e^(−300 · rate))`, US dollars a month.
///
/// The last part is what is billed by five-minute windows with a call in them: with calls that come as in a Poisson
/// process, a window is empty with probability `e^(−300 · rate)`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Course {
    pub(crate) fixed: f64,
    pub(crate) slope: f64,
    pub(crate) window: f64,
}

impl Course {
    pub(crate) fn fixed(fixed: f64) -> Self {
        Self {
            fixed,
            ..Self::default()
        }
    }

    pub(crate) fn slope(slope: f64) -> Self {
        Self {
            slope,
            ..Self::default()
        }
    }

    pub(crate) fn at(self, rate: f64) -> f64 {
        self.fixed + self.slope * rate - self.window * (-WINDOW * rate).exp_m1()
    }

    /// The rate, above 0, at which it turns from rising to falling or back.
    pub(crate) fn turn(self) -> Option<f64> {
        let ratio = -self.window * WINDOW / self.slope;
        let rate = ratio.ln() / WINDOW;
        (rate.is_finite() && rate > 0.0).then_some(rate)
    }
}

impl Add for Course {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            fixed: self.fixed + other.fixed,
            slope: self.slope + other.slope,
            window: self.window + other.window,
        }
    }
}

impl Sub for Course {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            fixed: self.fixed - other.fixed,
            slope: self.slope - other.slope,
            window: self.window - other.window,
        }
    }
}

impl std::ops::Mul<f64> for Course {
    type Output = Self;

    fn mul(self, by: f64) -> Self {
        Self {
            fixed: self.fixed * by,
            slope: self.slope * by,
            window: self.window * by,
        }
    }
}
