//! What became of the calls of an arm.

use super::arm::Calls;
use crate::model::Strata;
use std::collections::BTreeMap;

/// What became of the calls. Where there is no inner tap, nothing is paired: no call is of a class.
/// `unsent`: calls of each block that were due and not sent; `None` where that is not known.
pub(super) fn strata(blocks: &[Calls<'_>], unsent: &[Option<u64>], two_taps: bool) -> Strata {
    let mut strata = Strata {
        unsent: unsent.iter().copied().sum(),
        ..Strata::default()
    };
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut pairable, mut paired) = (0_usize, 0_usize);
    for joined in blocks.iter().flat_map(|b| b.iter()) {
        strata.sent += 1;
        *outcomes.entry(joined.client.outcome.name()).or_default() += 1;
        strata.fresh += usize::from(!joined.client.reused);
        let Some(tapped) = &joined.taps else { continue };
        if two_taps {
            *classes.entry(tapped.class.name()).or_default() += 1;
            pairable += usize::from(tapped.pairable);
            paired += usize::from(tapped.pairable && tapped.paired);
        }
        strata.resent += usize::from(tapped.resent);
        strata.text_differs += usize::from(tapped.text_differs());
        strata.identity_broken += usize::from(tapped.identity_broken);
        strata.pressured += tapped
            .legs
            .as_ref()
            .map_or(0, |l| u64::from(l.tokens.pressured));
    }
    let owned =
        |map: BTreeMap<&str, usize>| map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
    strata.pairing = (pairable > 0).then(|| paired as f64 / pairable as f64);
    strata.outcomes = owned(outcomes);
    strata.classes = owned(classes);
    strata
}
