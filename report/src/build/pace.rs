//! How long a chain took for its calls, where it could not keep up with what was asked of it.
//!
//! Calls due in a window, divided by the window, are the rate that was *asked for*: beyond a chain's
//! capacity the answers come after the window, and the rate would be one that it never delivered.

use record::clock::Nanos;

/// This share of the answers at either end is left out: one call that hangs is no pace.
const TAIL: f64 = 0.05;

/// The time in which the calls that were due in `window` were answered, at the pace of their `ends`: the
/// window, or longer where the answers came more slowly than the calls were due. Nanoseconds.
pub(super) fn taken(mut ends: Vec<Nanos>, window: Nanos) -> f64 {
    ends.sort_unstable();
    let last = ends.len().saturating_sub(1);
    // Whole ranks: outwards, so that few answers are all used.
    let low = (TAIL * last as f64).floor() as usize;
    let high = last - low;
    let (Some(first), Some(second)) = (ends.get(low), ends.get(high)) else {
        return window as f64;
    };
    if high <= low {
        return window as f64;
    }
    let each = (second - first) as f64 / (high - low) as f64;
    (each * ends.len() as f64).max(window as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_that_keeps_up_takes_the_window_however_late_its_answers_are() {
        // Due each ten from five on, each answered 700 later.
        let ends: Vec<Nanos> = (0..100).map(|n| n * 10 + 705).collect();
        assert!((taken(ends, 1_000) - 1_000.0).abs() < 1e-6);
        assert_eq!(taken(vec![], 1_000), 1_000.0);
        assert_eq!(taken(vec![7], 1_000), 1_000.0);
    }

    #[test]
    fn a_chain_that_falls_behind_takes_as_long_as_its_answers_do() {
        // Due each ten, answered one after the other in twenty each.
        let ends: Vec<Nanos> = (0..100).map(|n| 1_000 + n * 20).collect();
        assert!((taken(ends, 1_000) - 2_000.0).abs() < 1e-6);
    }

    #[test]
    fn one_answer_that_hangs_is_no_pace() {
        let mut ends: Vec<Nanos> = (0..100).map(|n| n * 10).collect();
        ends[99] = 60_000;
        assert!((taken(ends, 1_000) - 1_000.0).abs() < 1e-6);
    }
}
