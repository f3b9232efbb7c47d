//! From values to places on an axis.

use crate::number::digits;

/// An axis: the values at its ends and where these are drawn.
pub(super) struct Scale {
    from: f64,
    to: f64,
    log: bool,
    places: (f64, f64),
}

impl Scale {
    /// Over all `values`; `None` of none. A linear axis begins at 0 where its values do not lie below.
    pub(super) fn over(
        values: impl Iterator<Item = f64>,
        log: bool,
        places: (f64, f64),
    ) -> Option<Self> {
        let fits = |value: &f64| value.is_finite() && (!log || *value > 0.0);
        let (mut low, mut high) = values
            .filter(fits)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        if low > high {
            return None;
        }
        match log {
            true => (low, high) = (low / 1.15, high * 1.15),
            false => {
                low = low.min(0.0);
                high += 0.05 * (high - low);
                if (high - low).abs() < f64::EPSILON {
                    high = low + 1.0;
                }
            }
        }
        Some(Self {
            from: low,
            to: high,
            log,
            places,
        })
    }

    pub(super) fn low(&self) -> f64 {
        self.from
    }

    pub(super) fn high(&self) -> f64 {
        self.to
    }

    pub(super) fn holds(&self, value: f64) -> bool {
        (self.from..=self.to).contains(&value)
    }

    /// Where `value` is drawn.
    pub(super) fn at(&self, value: f64) -> f64 {
        let along = match self.log {
            true => (value / self.from).ln() / (self.to / self.from).ln(),
            false => (value - self.from) / (self.to - self.from),
        };
        let (begin, end) = self.places;
        ((begin + (end - begin) * along) * 10.0).round() / 10.0
    }

    /// Round values to draw lines at, with their texts.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let values = match self.log {
            true => self.decades(),
            false => self.steps(),
        };
        let held = values.into_iter().filter(|value| self.holds(*value));
        held.map(|value| (value, short(value))).collect()
    }

    fn steps(&self) -> Vec<f64> {
        let rough = (self.to - self.from) / 5.0;
        let size = 10_f64.powf(rough.log10().floor());
        let factors = [1.0, 2.0, 5.0, 10.0];
        let step = factors.into_iter().find(|f| f * size >= rough);
        let step = step.unwrap_or(10.0) * size;
        let first = (self.from / step).ceil() as i64;
        let last = (self.to / step).floor() as i64;
        (first..=last).map(|n| n as f64 * step).collect()
    }

    /// Powers of ten; where these are few, their doubles and fives too.
    fn decades(&self) -> Vec<f64> {
        let (first, last) = (
            self.from.log10().floor() as i32,
            self.to.log10().ceil() as i32,
        );
        let factors: &[f64] = match last - first {
            ..=3 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let of = |power: i32| {
            factors
                .iter()
                .map(move |factor| factor * 10_f64.powi(power))
        };
        (first..=last).flat_map(of).collect()
    }
}

/// 12000 as 12k.
fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{}M", digits(value / 1e6)),
        size if size >= 1e4 => format!("{}k", digits(value / 1e3)),
        _ => digits(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lie_between_the_ends_in_their_order() {
        for log in [false, true] {
            let scale = Scale::over([2.0, 90.0, 7.0].into_iter(), log, (10.0, 110.0)).unwrap();
            let places: Vec<f64> = [2.0, 7.0, 90.0].map(|v| scale.at(v)).into();
            assert!(places.is_sorted(), "{places:?}");
            assert!(places[0] >= 10.0 && places[2] <= 110.0, "{places:?}");
            assert!(scale.ticks().len() >= 3, "{:?}", scale.ticks());
        }
    }

    #[test]
    fn nothing_has_no_scale_and_one_value_has_one() {
        assert!(Scale::over([].into_iter(), true, (0.0, 1.0)).is_none());
        assert!(Scale::over([-1.0].into_iter(), true, (0.0, 1.0)).is_none());
        let one = Scale::over([0.0].into_iter(), false, (0.0, 1.0)).unwrap();
        assert!(one.at(0.0).is_finite());
    }

    #[test]
    fn steps_are_round() {
        let scale = Scale::over([0.0, 0.93].into_iter(), false, (0.0, 1.0)).unwrap();
        let texts: Vec<String> = scale.ticks().into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["0", "0.2", "0.4", "0.6", "0.8"]);
        assert_eq!(short(12_000.0), "12k");
    }
}
