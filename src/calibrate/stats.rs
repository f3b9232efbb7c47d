//! The few statistics that a calibration needs.

/// Puts `items` in the random order of `seed` (Fisher and Yates; splitmix64).
pub(super) fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    for last in (1..items.len()).rev() {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        items.swap(last, (z % (last as u64 + 1)) as usize);
    }
}

/// The quantile `q` of `values`, interpolated; `None` of none.
pub(super) fn quantile(values: &[f64], q: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let rank = q * sorted.len().checked_sub(1)? as f64;
    let below = rank.floor() as usize;
    let low = *sorted.get(below)?;
    let high = sorted.get(below + 1).copied().unwrap_or(low);
    Some(low + (high - low) * (rank - below as f64))
}

/// Mean and 95 % interval of it by Student's t; no interval with fewer than two values.
pub(super) fn mean(values: &[f64]) -> Option<(f64, Option<(f64, f64)>)> {
    /// Two-sided 95 % points of Student's t for 1 to 9 degrees of freedom; beyond, 2.1 is safe to 20.
    const T: [f64; 9] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262,
    ];
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 {
        return Some((mean, None));
    }
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = T.get(values.len() - 2).copied().unwrap_or(2.1) * (variance / n).sqrt();
    Some((mean, Some((mean - half, mean + half))))
}

/// Least squares of y on x: slope and intercept; `None` without spread in x.
pub(super) fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    let (mx, my) = (
        points.iter().map(|p| p.0).sum::<f64>() / n,
        points.iter().map(|p| p.1).sum::<f64>() / n,
    );
    let sxx: f64 = points.iter().map(|p| (p.0 - mx).powi(2)).sum();
    let sxy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    (sxx > 0.0).then(|| (sxy / sxx, my - sxy / sxx * mx))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_found_and_quantiles_interpolate() {
        assert_eq!(
            line(&[(1.0, 12.0), (2.0, 14.0), (4.0, 18.0)]),
            Some((2.0, 10.0))
        );
        assert_eq!(line(&[(1.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(quantile(&[3.0, 1.0, 2.0, 4.0], 0.5), Some(2.5));
        assert_eq!(quantile(&[], 0.5), None);
    }

    #[test]
    fn the_interval_of_a_mean_needs_two_values() {
        assert_eq!(mean(&[5.0]), Some((5.0, None)));
        let (value, interval) = mean(&[4.0, 6.0]).unwrap();
        let (low, high) = interval.unwrap();
        assert!(
            (value - 5.0).abs() < 1e-9
                && (high - 17.706).abs() < 1e-3
                && (low + 7.706).abs() < 1e-3
        );
    }

    #[test]
    fn an_order_depends_on_its_seed_only_and_loses_nothing() {
        let (mut a, mut b, mut c) = (
            (0..50).collect::<Vec<_>>(),
            (0..50).collect::<Vec<_>>(),
            (0..50).collect::<Vec<_>>(),
        );
        shuffle(&mut a, 1);
        shuffle(&mut b, 1);
        shuffle(&mut c, 2);
        assert!(a == b && a != c);
        a.sort_unstable();
        assert_eq!(a, (0..50).collect::<Vec<_>>());
    }
}
