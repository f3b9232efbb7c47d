//! What a difference between two configurations comes to: more than noise, and large enough to matter.

use report::{Contrast, Difference};

use crate::drive::driven_both;
use crate::key::Key;
use crate::number;
use crate::view::View;

/// What one figure says of the other chain against the one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compared {
    /// The other is slower, by more than noise and by enough to matter.
    Slower,
    /// It is faster.
    Faster,
    /// The whole interval is too small to matter.
    Alike,
    /// The interval holds differences that would matter and such that would not.
    Open,
}

/// The size from which on a difference matters, nanoseconds: both thresholds must be exceeded.
fn matters(view: &View<'_>, difference: &Difference) -> Option<f64> {
    let objective = &view.given.objectives.overhead;
    let slower = difference.a?.max(difference.b?);
    Some((objective.difference.nanos() as f64).max(objective.share * slower))
}

pub(crate) fn compare(view: &View<'_>, difference: &Difference) -> Compared {
    let Some(((low, high), least)) = difference.interval.zip(matters(view, difference)) else {
        return Compared::Open;
    };
    match () {
        () if low >= least => Compared::Slower,
        () if high <= -least => Compared::Faster,
        () if low > -least && high < least => Compared::Alike,
        () => Compared::Open,
    }
}

/// A difference in words.
pub(crate) fn told(view: &View<'_>, contrast: &Contrast, difference: &Difference) -> String {
    let time = |value: Option<f64>| value.map_or_else(|| view.get(Key::NotTold), number::time);
    let interval = difference.interval.map_or_else(
        || view.get(Key::NoInterval),
        |(low, high)| format!("{} … {}", number::time(low), number::time(high)),
    );
    view.say(
        Key::DifferenceSeen,
        &[
            ("figure", difference.figure.to_owned()),
            ("quantile", format!("p{:.0}", difference.quantile * 100.0)),
            ("a", contrast.a.clone()),
            ("b", contrast.b.clone()),
            ("va", time(difference.a)),
            ("vb", time(difference.b)),
            ("difference", time(difference.difference)),
            ("interval", interval),
            ("label", driven_both(view, &contrast.drive)),
            ("blocks", contrast.blocks.to_string()),
        ],
    )
}

/// The figure of a contrast by name and quantile.
pub(crate) fn figure<'a>(contrast: &'a Contrast, name: &str, q: f64) -> Option<&'a Difference> {
    let mut all = contrast.differences.iter();
    all.find(|one| one.figure == name && (one.quantile - q).abs() < 1e-9 && one.refused.is_none())
}

/// The thresholds in words.
pub(super) fn thresholds(view: &View<'_>) -> String {
    let objective = &view.given.objectives.overhead;
    view.say(
        Key::OverheadThresholds,
        &[
            (
                "difference",
                number::time(objective.difference.nanos() as f64),
            ),
            ("share", number::share(objective.share)),
        ],
    )
}
