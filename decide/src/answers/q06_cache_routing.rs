//! Is llm-d's cache optimisation enough to reverse the cost gap?

use cost::Configuration::{self, A1, A2, B1, B2, Baseline};

use super::Draft;
use super::compared::{figure, told};
use crate::key::Key;
use crate::model::{Answer, Cell, Row, Verdict};
use crate::number;
use crate::table::{cell_id, cell_of};
use crate::view::View;

pub(super) fn answer(view: &View<'_>, table: &[Row]) -> Answer {
    let mut draft = Draft::new(6, Key::Question6, &[3, 6]);
    for (without, with) in [(A1, B1), (A2, B2)] {
        for contrast in view.contrasts(without, with) {
            if view.scenario(&contrast.run) != Some(3) || contrast.saturated {
                continue;
            }
            if let Some(difference) = figure(contrast, "TTFT", 0.5) {
                let cell = Some(cell_id("ttft-p50", with));
                draft.see(
                    told(view, contrast, difference),
                    cell,
                    Some(&contrast.run),
                    contrast.simulated,
                );
            }
        }
        hit_rate(view, &mut draft, table, with);
    }
    draft.would_change.push(view.get(Key::ChangeRouting));
    let mut found = Vec::new();
    for (without, with) in [(A1, B1), (A2, B2)] {
        found.extend(reversed(view, &mut draft, without, with));
    }
    let verdict = match () {
        () if found.is_empty() => {
            draft.said.push(view.get(Key::RoutingNeedsCapacities));
            return draft.open(view, &["a1", "a2", "b1", "b2"]);
        }
        () if found.contains(&true) => Verdict::Yes,
        () => Verdict::No,
    };
    draft.said.push(view.get(match verdict {
        Verdict::Yes => Key::RoutingReverses,
        _ => Key::RoutingDoesNotReverse,
    }));
    draft.settle(view, Some(verdict))
}

/// The KV hit rate that the metrics table shows, where its run is valid.
fn hit_rate(view: &View<'_>, draft: &mut Draft, table: &[Row], of: Configuration) {
    if let Some(Cell::Value(figure)) = cell_of(table, "kv-cache", of)
        && figure.valid
    {
        let values = [
            ("chain", of.id().to_owned()),
            ("share", number::share(figure.value)),
        ];
        let text = view.say(Key::KvSeen, &values);
        draft.see(
            text,
            Some(cell_id("kv-cache", of)),
            figure.run.as_deref(),
            figure.simulated,
        );
    }
}

/// Whether there is a rate of the bills at which the stack is dearer than the managed service without llm-d, and cheaper
/// with it. `None` where what both serve was not measured, or a bill is missing.
fn reversed(
    view: &View<'_>,
    draft: &mut Draft,
    without: Configuration,
    with: Configuration,
) -> Option<bool> {
    let measured = |of| view.given.capacities.get(&of).filter(|c| c.measured);
    let (one, other) = measured(without).zip(measured(with))?;
    let simulated = one.simulated || other.simulated;
    let study = view.given.study;
    let total = |of: Configuration, rate: f64| {
        let mut bills = study.bills.iter();
        let bill = bills.find(|b| b.configuration == of && b.rate.total_cmp(&rate).is_eq())?;
        bill.total.map(|total| total.value)
    };
    let mut told = None;
    for rate in &study.rates {
        let Some(((managed, bare), routed)) = total(Baseline, *rate)
            .zip(total(without, *rate))
            .zip(total(with, *rate))
        else {
            continue;
        };
        let here = bare > managed && routed < managed;
        told = Some(told.unwrap_or(false) || here);
        draft.see(
            view.say(
                Key::RoutingBills,
                &[
                    ("rate", number::rate(*rate)),
                    ("managed", number::money(managed)),
                    ("without", format!("{without} {}", number::money(bare))),
                    ("with", format!("{with} {}", number::money(routed))),
                ],
            ),
            Some(cell_id(&crate::table::month_id(*rate), with)),
            Some(&other.run),
            simulated,
        );
    }
    told
}
