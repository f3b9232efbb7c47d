//! Whether a known prompt can be told from a fresh one.

use super::median;
use crate::bootstrap;
use crate::exact::median_interval;
use crate::model::CacheFinding;
use record::probe::{CachePair, CacheRun};

/// The finding of one series of pairs.
pub(super) fn finding(run: &CacheRun) -> CacheFinding {
    let pairs: Vec<(f64, f64)> = run.pairs.iter().filter_map(times).collect();
    let differences = pairs.iter().map(|(probe, control)| control - probe);
    let (sorted, difference) = median(differences.collect());
    let interval = median_interval(&sorted, run.confidence);
    let (_, control) = median(pairs.iter().map(|(_, control)| *control).collect());
    let said = run.pairs.iter().filter_map(cached);
    CacheFinding {
        chain: run.chain.clone(),
        primer: run.primer.clone(),
        observer: run.observer.clone(),
        prompt_tokens: run.prompt_tokens,
        confidence: run.confidence,
        pairs: pairs.len(),
        lost: run.pairs.len() - pairs.len() + usize::try_from(run.unprimed).unwrap_or(usize::MAX),
        control,
        difference,
        interval,
        advantage: advantage(&pairs.iter().collect::<Vec<_>>()),
        advantage_interval: bootstrap::interval(&pairs, advantage),
        by_time: interval.map(|(low, high)| low > 0.0 || high < 0.0),
        usage_pairs: said.clone().count(),
        by_usage: said.filter(|(probe, control)| probe > control).count(),
    }
}

fn times(pair: &CachePair) -> Option<(f64, f64)> {
    Some((pair.probe.ttft? as f64, pair.control.ttft? as f64))
}

/// Cached tokens of both, where one of them states any: servers leave them out where there are none.
fn cached(pair: &CachePair) -> Option<(u32, u32)> {
    let (probe, control) = (pair.probe.cached, pair.control.cached);
    let stated = probe.is_some() || control.is_some();
    stated.then(|| (probe.unwrap_or(0), control.unwrap_or(0)))
}

/// The share of (known, fresh) twos in which the known one is faster; a tie is half of one.
fn advantage(pairs: &[&(f64, f64)]) -> Option<f64> {
    let mut controls: Vec<f64> = pairs.iter().map(|(_, control)| *control).collect();
    crate::quantile::sort(&mut controls);
    let faster = pairs.iter().map(|(probe, _)| {
        let slower_or_equal = controls.len() - controls.partition_point(|c| c < probe);
        let slower = controls.len() - controls.partition_point(|c| c <= probe);
        (slower_or_equal + slower) as f64 / 2.0
    });
    let twos = pairs.len() * pairs.len();
    (twos > 0).then(|| faster.sum::<f64>() / twos as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::probe::CacheCall;

    fn run(pairs: impl Iterator<Item = (u64, u64)>, cached: Option<u32>) -> CacheRun {
        let call = |ttft: u64, cached| CacheCall {
            ttft: Some(ttft),
            cached,
        };
        CacheRun {
            chain: "c".to_owned(),
            primer: "a".to_owned(),
            observer: "b".to_owned(),
            prompt_tokens: 100,
            confidence: 0.99,
            pairs: pairs
                .map(|(probe, control)| CachePair {
                    probe: call(probe, cached),
                    control: call(control, None),
                    probe_first: true,
                })
                .collect(),
            unprimed: 1,
        }
    }

    #[test]
    fn a_known_prompt_that_is_faster_is_told_and_noise_is_not() {
        // Of 20 to 39 ms, whatever the order.
        let noise = |n: u64| 20 + n * 7 % 20;
        let leak = finding(&run(
            (0..20).map(|n| (noise(n) - 15, noise(n + 10))),
            Some(96),
        ));
        assert_eq!(leak.by_time, Some(true));
        assert_eq!((leak.usage_pairs, leak.by_usage, leak.lost), (20, 20, 1));
        let (low, high) = leak.interval.unwrap();
        assert!(low > 0.0 && high < 40.0 && leak.difference.unwrap() >= low);
        assert!(leak.advantage.unwrap() > 0.9);
        assert!(leak.advantage_interval.unwrap().0 > 0.5);
        let none = finding(&run((0..20).map(|n| (noise(n), noise(n + 10))), None));
        assert_eq!((none.by_time, none.usage_pairs), (Some(false), 0));
        assert!((none.advantage.unwrap() - 0.5).abs() < 1e-9);
        // Too few for such a confidence: nothing is shown either way.
        assert_eq!(
            finding(&run((0..7).map(|n| (1, 9 + n)), None)).by_time,
            None
        );
    }

    #[test]
    fn a_call_that_failed_takes_its_pair_out() {
        let mut run = run((0..10).map(|_| (1, 2)), None);
        run.pairs[3].control.ttft = None;
        let found = finding(&run);
        assert_eq!((found.pairs, found.lost), (9, 2));
    }
}
