//! At which traffic does self-building become cost-effective?

use cost::{Capacity, Configuration, NoCrossing, Pair};

use super::Draft;
use crate::key::Key;
use crate::model::{Answer, Verdict};
use crate::number;
use crate::view::View;

/// What one pair of a managed and a self-built configuration says.
enum Pays {
    Always,
    Never,
    Somewhere,
}

pub(super) fn answer(view: &View<'_>) -> Answer {
    let mut draft = Draft::new(4, Key::Question4, &[7]);
    let study = view.given.study;
    draft.thresholds.push(view.say(
        Key::TrafficOfBills,
        &[
            ("input", number::digits(study.traffic.input_tokens)),
            ("output", number::digits(study.traffic.output_tokens)),
            ("duty", number::share(study.traffic.duty)),
        ],
    ));
    let managed = Configuration::Baseline;
    let mut found = Vec::new();
    for pair in study
        .pairs
        .iter()
        .filter(|pair| pair.a == managed && pair.b.self_built())
    {
        let capacity = view.given.capacities.get(&pair.b);
        match capacity {
            Some(capacity) if capacity.measured => {
                if let Some(pays) = judge(view, &mut draft, pair, capacity) {
                    found.push(pays);
                }
            }
            Some(_) => draft
                .said
                .push(view.say(Key::OnlyExpected, &[("b", pair.b.id().to_owned())])),
            None => draft
                .said
                .push(view.say(Key::CapacityUnknown, &[("b", pair.b.id().to_owned())])),
        }
    }
    draft.would_change.push(view.get(Key::ChangeCost));
    let any = |wanted: fn(&Pays) -> bool| found.iter().any(wanted);
    let verdict = match () {
        () if found.is_empty() => return draft.open(view, &["a1", "a2", "b1", "b2"]),
        () if any(|p| matches!(p, Pays::Somewhere)) => Verdict::Depends,
        () if any(|p| matches!(p, Pays::Always)) => Verdict::Yes,
        () => Verdict::No,
    };
    draft.settle(view, Some(verdict))
}

fn judge(view: &View<'_>, draft: &mut Draft, pair: &Pair, capacity: &Capacity) -> Option<Pays> {
    let b = ("b", pair.b.id().to_owned());
    let a = ("a", pair.a.id().to_owned());
    let cell = Some(crate::table::cell_id("per-million", pair.b));
    let mut see = |text| draft.see(text, cell.clone(), Some(&capacity.run), capacity.simulated);
    for crossing in &pair.crossings {
        let high = crossing
            .high
            .map_or_else(|| view.get(Key::NoUpperEnd), number::rate);
        see(view.say(
            Key::CrossingSeen,
            &[
                ("cheaper", crossing.cheaper_above.id().to_owned()),
                ("rate", number::rate(crossing.rate)),
                ("low", number::rate(crossing.low)),
                ("high", high),
                a.clone(),
                b.clone(),
            ],
        ));
    }
    match &pair.no_crossing {
        None => Some(Pays::Somewhere),
        Some(NoCrossing::Cheaper(cheaper, to)) => {
            let values = [
                ("cheaper", cheaper.id().to_owned()),
                ("rate", number::rate(*to)),
                a,
                b,
            ];
            see(view.say(Key::CheaperEverywhere, &values));
            Some(if cheaper.self_built() {
                Pays::Always
            } else {
                Pays::Never
            })
        }
        Some(NoCrossing::Same(_)) => None,
        Some(NoCrossing::AtLeast(which)) => {
            draft
                .said
                .push(view.say(Key::CapacityUnknown, &[("b", which.id().to_owned())]));
            None
        }
        Some(NoCrossing::Missing(which, gaps)) => {
            draft.said.push(view.say(
                Key::BillMissing,
                &[("of", which.id().to_owned()), ("gaps", gaps.join("; "))],
            ));
            None
        }
    }
}
