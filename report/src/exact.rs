//! Intervals that need no assumption about the shape of what is measured, and no luck of a resample: from the
//! binomial distribution.

/// The interval of the median of `sorted` values that covers it with at least `confidence`, by order
/// statistics: the values between which it lies unless a fair coin does what happens less often. It holds
/// zero exactly where the sign test does not reject. `None` where no interval of so few values is as sure.
pub(crate) fn median_interval(sorted: &[f64], confidence: f64) -> Option<(f64, f64)> {
    let n = sorted.len();
    let alpha = 1.0 - confidence;
    // The largest k with P(at most k − 1 of n heads) ≤ α/2.
    let mut k = 0;
    let mut below = 0.0;
    while k < n / 2 {
        below += binomial(n, k, 0.5);
        if below > alpha / 2.0 * (1.0 + 1e-12) {
            break;
        }
        k += 1;
    }
    (k > 0).then(|| (sorted[k - 1], sorted[n - k]))
}

/// The 95 % interval of a share of which `hits` of `n` are a sample (Clopper and Pearson 1934: never too
/// narrow). `None` without a sample.
pub(crate) fn share_interval(hits: usize, n: usize) -> Option<(f64, f64)> {
    const TAIL: f64 = 0.025;
    if n == 0 || hits > n {
        return None;
    }
    // P(at least `hits`) grows with the share, P(at most `hits`) falls.
    let at_least = |p: f64| -> f64 { (hits..=n).map(|k| binomial(n, k, p)).sum() };
    let at_most = |p: f64| -> f64 { (0..=hits).map(|k| binomial(n, k, p)).sum() };
    let low = match hits {
        0 => 0.0,
        _ => bisect(|p| at_least(p) < TAIL),
    };
    let high = match hits == n {
        true => 1.0,
        false => bisect(|p| at_most(p) > TAIL),
    };
    Some((low, high))
}

/// Where `below` turns from true to false between 0 and 1.
fn bisect(below: impl Fn(f64) -> bool) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..50 {
        let middle = (low + high) / 2.0;
        if below(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    (low + high) / 2.0
}

/// P(`k` heads of `n`) with a coin of `p`.
fn binomial(n: usize, k: usize, p: f64) -> f64 {
    if p <= 0.0 || p >= 1.0 {
        return f64::from(u8::from(k == if p <= 0.0 { 0 } else { n }));
    }
    let choose: f64 = (0..k)
        .map(|i| (((n - i) as f64) / ((i + 1) as f64)).ln())
        .sum();
    (choose + k as f64 * p.ln() + (n - k) as f64 * (1.0 - p).ln()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_lies_between_the_order_statistics_of_the_tables() {
        let values: Vec<f64> = (1..=20).map(f64::from).collect();
        // Tables of the sign test: n = 20, 95 %: 6th and 15th; 99 %: 4th and 17th.
        assert_eq!(median_interval(&values, 0.95), Some((6.0, 15.0)));
        assert_eq!(median_interval(&values, 0.99), Some((4.0, 17.0)));
        // Eight values cover with 1 − 2/256, seven with 1 − 2/128.
        assert_eq!(median_interval(&values[..8], 0.99), Some((1.0, 8.0)));
        assert_eq!(median_interval(&values[..7], 0.99), None);
        assert_eq!(median_interval(&[], 0.5), None);
    }

    #[test]
    fn a_share_has_the_interval_of_the_tables() {
        let near = |found: Option<(f64, f64)>, low: f64, high: f64| {
            let (l, h) = found.unwrap();
            assert!((l - low).abs() < 5e-4 && (h - high).abs() < 5e-4, "{l} {h}");
        };
        near(share_interval(0, 10), 0.0, 0.3085);
        near(share_interval(1, 10), 0.0025, 0.4450);
        near(share_interval(10, 10), 0.6915, 1.0);
        near(share_interval(15, 300), 0.0282, 0.0811);
        assert_eq!(share_interval(0, 0), None);
    }
}
