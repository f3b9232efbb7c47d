//! Is the LiteLLM / Bifrost overhead difference significant in practice?

use cost::Configuration::{A1, A2, B1, B2};
use report::{Contrast, Difference};

use super::Draft;
use super::compared::{Compared, compare, figure, thresholds, told};
use crate::key::Key;
use crate::model::{Answer, Verdict};
use crate::table::cell_id;
use crate::view::View;

/// What the comparison of the two gateways comes to.
pub(crate) struct Gateways {
    /// Every comparison: LiteLLM is the one, Bifrost the other.
    seen: Vec<(Compared, bool)>,
    /// A stand-in's.
    pub(crate) simulated: bool,
}

impl Gateways {
    /// Bifrost is faster, by enough to matter, below saturation; `None` where nothing is shown.
    pub(crate) fn bifrost_pays(&self) -> Option<bool> {
        let below = self.seen.iter().filter(|(_, saturated)| !saturated);
        let below: Vec<Compared> = below.map(|(one, _)| *one).collect();
        match () {
            () if below.contains(&Compared::Faster) => Some(true),
            () if below.is_empty() || below.contains(&Compared::Open) => None,
            () => Some(false),
        }
    }
}

/// Every comparison of the two gateways, with and without llm-d.
fn all<'a>(view: &View<'a>) -> Vec<(&'a Contrast, &'a Difference)> {
    let pairs = [(A1, A2), (B1, B2)];
    let contrasts = pairs.into_iter().flat_map(|(a, b)| view.contrasts(a, b));
    let contrasts = crate::view::real_first(contrasts.collect(), |c: &&Contrast| c.simulated);
    let mut found = Vec::new();
    for contrast in contrasts {
        for q in [0.5, 0.95] {
            // The gateways' own part where both were tapped, else what the client saw.
            let added = figure(contrast, "added TTFT", q);
            found.extend(
                added
                    .or_else(|| figure(contrast, "TTFT", q))
                    .map(|d| (contrast, d)),
            );
        }
    }
    found
}

pub(crate) fn gateways(view: &View<'_>) -> Gateways {
    let all = all(view);
    Gateways {
        simulated: all.iter().any(|(contrast, _)| contrast.simulated),
        seen: all
            .into_iter()
            .map(|(c, d)| (compare(view, d), c.saturated))
            .collect(),
    }
}

pub(super) fn answer(view: &View<'_>) -> Answer {
    let mut draft = Draft::new(9, Key::Question9, &[4]);
    draft.thresholds.push(thresholds(view));
    let found = all(view);
    for (contrast, difference) in &found {
        let row = if difference.quantile < 0.9 {
            "added-p50"
        } else {
            "added-p95"
        };
        let other = if contrast.b == B2.id() { B2 } else { A2 };
        let mut text = told(view, contrast, difference);
        if contrast.saturated {
            text = format!("{text} ({})", view.get(Key::Saturated));
        }
        draft.see(
            text,
            Some(cell_id(row, other)),
            Some(&contrast.run),
            contrast.simulated,
        );
    }
    draft.would_change.push(view.get(Key::ChangeOverhead));
    if found.is_empty() {
        return draft.open(view, &["a1", "a2", "b1", "b2"]);
    }
    let seen = gateways(view).seen;
    let any = |saturated: bool| {
        seen.iter()
            .any(|(one, s)| *s == saturated && matches!(one, Compared::Faster | Compared::Slower))
    };
    let open = seen
        .iter()
        .any(|(one, saturated)| !saturated && *one == Compared::Open);
    let (key, verdict) = match (any(false), any(true)) {
        (true, _) => (Key::OverheadMatters, Some(Verdict::Yes)),
        (false, _) if open => (Key::OverheadOpen, None),
        (false, true) => (Key::OverheadSaturated, Some(Verdict::Depends)),
        (false, false) => (Key::OverheadNegligible, Some(Verdict::No)),
    };
    draft.said.push(view.get(key));
    draft.settle(view, verdict)
}
