//! How does Custom Model Import compare with serving on vLLM directly?

use cost::Configuration::{A1, A2, BaselinePlus};
use record::manifest::Drive;
use report::Contrast;

use super::Draft;
use super::compared::{Compared, compare, figure, thresholds, told};
use crate::key::Key;
use crate::model::{Answer, Verdict};
use crate::table::cell_id;
use crate::view::View;

/// Each with the row of the metrics table that shows it.
const FIGURES: [(&str, f64, &str); 3] = [
    ("TTFT", 0.5, "ttft-p50"),
    ("TPOT", 0.5, "tps"),
    ("E2E", 0.5, "e2e-p50"),
];

pub(super) fn answer(view: &View<'_>) -> Answer {
    let mut draft = Draft::new(2, Key::Question2, &[2]);
    draft.thresholds.push(thresholds(view));
    let contrasts = [A1, A2]
        .into_iter()
        .flat_map(|own| view.contrasts(BaselinePlus, own));
    let contrasts: Vec<&Contrast> = contrasts.filter(|c| nearest(view, c)).collect();
    let mut seen = Vec::new();
    for contrast in &contrasts {
        if let Some(why) = &contrast.refused {
            draft.said.push(view.say(
                Key::ComparisonRefused,
                &[
                    ("a", contrast.a.clone()),
                    ("b", contrast.b.clone()),
                    ("why", why.clone()),
                ],
            ));
        }
        for (name, q, row) in FIGURES {
            let Some(difference) = figure(contrast, name, q) else {
                continue;
            };
            seen.push(compare(view, difference));
            let cell = Some(cell_id(row, BaselinePlus));
            draft.see(
                told(view, contrast, difference),
                cell,
                Some(&contrast.run),
                contrast.simulated,
            );
        }
    }
    draft.would_change.push(view.get(Key::ChangeArtefact));
    if seen.is_empty() {
        return draft.open(view, &["baseline-plus", "a1", "a2"]);
    }
    // vLLM is the other: slower there means that Import is at least as good.
    let any = |wanted| seen.contains(&wanted);
    let (key, verdict) = match (any(Compared::Faster), any(Compared::Slower)) {
        (true, true) => (Key::ImportMixed, Some(Verdict::Depends)),
        (true, false) => (Key::ImportSlower, Some(Verdict::No)),
        (false, _) if any(Compared::Open) => (Key::ImportOpen, None),
        (false, true) => (Key::ImportFaster, Some(Verdict::Yes)),
        (false, false) => (Key::ImportAlike, Some(Verdict::Yes)),
    };
    draft.said.push(view.get(key));
    draft.settle(view, verdict)
}

/// Driven by as many callers as the objective has, or by the next higher number there is; not beyond capacity.
pub(super) fn nearest(view: &View<'_>, contrast: &Contrast) -> bool {
    let wanted = view.given.objectives.serving.concurrency;
    let callers = |c: &Contrast| match c.drive {
        Drive::Closed { concurrency } => Some(concurrency),
        _ => None,
    };
    let pair = |c: &&Contrast| c.a == contrast.a && c.b == contrast.b && view.valid(&c.run);
    let all = view
        .given
        .report
        .contrasts
        .iter()
        .filter(pair)
        .filter_map(callers);
    let all: Vec<u32> = all.collect();
    let above = all.iter().filter(|n| **n >= wanted).min();
    let target = above.or_else(|| all.iter().max()).copied();
    callers(contrast).is_some() && callers(contrast) == target
}
