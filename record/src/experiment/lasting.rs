//! From when on something holds, and goes on holding.

use super::Probe;
use crate::clock::Nanos;

/// The first probe of number `from` or later from which on `ok` holds for `settle`, where enough was seen
/// to tell: `reach` more than that.
pub(super) fn first(
    probes: &[Probe],
    ok: &[bool],
    from: usize,
    settle: Nanos,
    reach: Nanos,
) -> Option<usize> {
    let seen = probes.last()?.intended;
    let mut at = from;
    while let Some(probe) = probes.get(at) {
        let until = probe.intended.saturating_add(settle);
        if until.saturating_add(reach) > seen {
            return None;
        }
        let within = probes[at..].iter().take_while(|p| p.intended <= until);
        let bad = (at..).zip(within).map(|(n, _)| n).filter(|n| !ok[*n]);
        match bad.last() {
            // Whatever begins before the last bad one has it in its time too.
            Some(bad) => at = bad + 1,
            None => return Some(at),
        }
    }
    None
}

/// Of each probe: whether at least half of those due within `window` from it on are `good`, itself answered.
pub(super) fn rolling(probes: &[Probe], good: &[bool], window: Nanos) -> Vec<bool> {
    let (mut end, mut count) = (0, 0_usize);
    let mut all = Vec::with_capacity(probes.len());
    for (at, probe) in probes.iter().enumerate() {
        let until = probe.intended.saturating_add(window);
        while probes.get(end).is_some_and(|p| p.intended < until) {
            count += usize::from(good[end]);
            end += 1;
        }
        all.push(probe.answered && 2 * count >= end - at);
        count -= usize::from(good[at]);
    }
    all
}
