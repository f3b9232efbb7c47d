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

/// Two-sided 95 % point of Student's t. Past ten degrees of freedom the point of ten, which is
/// never too small.
fn student(freedom: usize) -> f64 {
    const T: [f64; 10] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    ];
    let at = freedom.clamp(1, T.len()) - 1;
    T.get(at).copied().unwrap_or(f64::INFINITY)
}

/// Mean and 95 % interval of it by Student's t; no interval with fewer than two values.
pub(super) fn mean(values: &[f64]) -> Option<(f64, Option<(f64, f64)>)> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 {
        return Some((mean, None));
    }
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = student(values.len() - 1) * (variance / n).sqrt();
    Some((mean, Some((mean - half, mean + half))))
}

/// A straight line through several groups of points: one slope, an intercept a group.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Line {
    pub(super) slope: f64,
    /// Half of the slope's 95 % interval, from how far the points lie off the line.
    pub(super) half: f64,
    /// Mean of the groups' intercepts.
    pub(super) intercept: f64,
}

/// Least squares with an intercept for each group, so that groups with different floors do not
/// bend the slope. `None` without spread in x, or without a point to spare.
pub(super) fn line(groups: &[Vec<(f64, f64)>]) -> Option<Line> {
    let centres: Vec<(f64, f64)> = groups
        .iter()
        .map(|g| {
            let n = g.len() as f64;
            let sum = |of: fn(&(f64, f64)) -> f64| g.iter().map(of).sum::<f64>() / n;
            (sum(|p| p.0), sum(|p| p.1))
        })
        .collect();
    let centred = || {
        let each = groups.iter().zip(&centres);
        each.flat_map(|(g, c)| g.iter().map(|p| (p.0 - c.0, p.1 - c.1)))
    };
    let sxx: f64 = centred().map(|(x, _)| x * x).sum();
    let freedom = centred().count().checked_sub(groups.len() + 1)?;
    if sxx <= 0.0 || freedom == 0 {
        return None;
    }
    let slope = centred().map(|(x, y)| x * y).sum::<f64>() / sxx;
    let off: f64 = centred().map(|(x, y)| (y - slope * x).powi(2)).sum();
    let intercepts = centres.iter().map(|c| c.1 - slope * c.0);
    Some(Line {
        slope,
        half: student(freedom) * (off / freedom as f64 / sxx).sqrt(),
        intercept: intercepts.sum::<f64>() / centres.len() as f64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_with_different_floors_share_one_slope() {
        let low = vec![(1.0, 12.0), (2.0, 14.0), (4.0, 18.0)];
        let high = vec![(101.0, 300.0), (102.0, 302.0)];
        let found = line(&[low.clone(), high]).unwrap();
        assert!((found.slope - 2.0).abs() < 1e-9 && found.half < 1e-6);
        assert!((found.intercept - (10.0 + 98.0) / 2.0).abs() < 1e-9);
        let bent = line(&[vec![(1.0, 1.0), (2.0, 2.0), (3.0, 4.0)]]).unwrap();
        assert!(bent.half > 1.0, "points off the line widen its interval");
        assert_eq!(line(&[vec![(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]]), None);
        assert_eq!(line(&[low[..2].to_vec()]), None);
    }

    #[test]
    fn quantiles_interpolate() {
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
