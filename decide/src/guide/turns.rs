//! What each question of the guide comes to.

use config::Workload;
use cost::Configuration::{self, A1, A2, B1, B2, Baseline, BaselinePlus};
use cost::{Bill, Range};

use super::Found;
use crate::answers::{Compared, compare, figure, gateways, told};
use crate::key::Key;
use crate::model::Turn;
use crate::number;
use crate::view::View;

pub(super) fn turn(view: &View<'_>, workload: &Workload, step: &str) -> Found {
    let own = |field: &str, value: bool| {
        let values = [("field", field.to_owned()), ("value", value.to_string())];
        of(value, view.say(Key::WhyWorkload, &values), false)
    };
    match step {
        "sovereignty" => own("data_sovereignty", workload.data_sovereignty),
        "engine" => own("engine_control", workload.engine_control),
        "newest" => own("newest_models", workload.newest_models),
        "governance" => own("tenant_governance", workload.tenant_governance),
        "own-model" => own("own_model", workload.own_model),
        "cost" => bills(view, workload, |managed, own| {
            own.high.is_some_and(|high| high < managed.low)
        }),
        "near" => bills(view, workload, meet),
        "repetition" => repetition(view, workload),
        "routing" => routing(view),
        _ => gateway(view, workload),
    }
}

fn of(yes: bool, why: String, provisional: bool) -> Found {
    Found {
        turn: if yes { Turn::Yes } else { Turn::No },
        why,
        provisional,
    }
}

fn unknown(why: String) -> Found {
    Found {
        turn: Turn::Unknown,
        why,
        provisional: false,
    }
}

/// The two bills may be the same.
fn meet(managed: &Range, own: &Range) -> bool {
    let top = |range: &Range| range.high.unwrap_or(f64::INFINITY);
    own.low <= top(managed) && managed.low <= top(own)
}

/// The managed bill at the workload's rate beside the cheapest of the stacks that have one.
fn bills(view: &View<'_>, workload: &Workload, pays: fn(&Range, &Range) -> bool) -> Found {
    let managed = if workload.own_model {
        BaselinePlus
    } else {
        Baseline
    };
    let bill = |of: Configuration| {
        let mut bills = view.given.study.bills.iter();
        let found = bills
            .find(|bill| bill.configuration == of && bill.rate.total_cmp(&workload.rate).is_eq());
        let found: Option<&Bill> = found.filter(|bill| !bill.at_least);
        found.and_then(|bill| Some((of, bill.total?)))
    };
    let own = [A1, A2, B1, B2].into_iter().filter_map(bill);
    let cheapest = own.min_by(|a, b| a.1.value.total_cmp(&b.1.value));
    let managed_name = ("managed_name", managed.id().to_owned());
    let Some(((_, managed_bill), (own, own_bill))) = bill(managed).zip(cheapest) else {
        return unknown(view.say(Key::WhyNoBills, &[managed_name]));
    };
    let range = |range: &Range| {
        let high = range
            .high
            .map_or_else(|| view.get(Key::NoUpperEnd), number::money);
        format!(
            "{} ({} … {high})",
            number::money(range.value),
            number::money(range.low)
        )
    };
    let why = view.say(
        Key::WhyBills,
        &[
            managed_name,
            ("own_name", own.id().to_owned()),
            ("managed", range(&managed_bill)),
            ("own", range(&own_bill)),
        ],
    );
    let both = [managed, own];
    let provisional = view.on_stand_ins(&both) || view.on_guesses(&both);
    of(pays(&managed_bill, &own_bill), why, provisional)
}

fn repetition(view: &View<'_>, workload: &Workload) -> Found {
    let bound = view.given.objectives.routing.repeated_prompt_share;
    let values = [
        ("share", number::share(workload.repeated_prompt_share)),
        ("bound", number::share(bound)),
    ];
    let why = view.say(Key::WhyRepetition, &values);
    of(workload.repeated_prompt_share >= bound, why, false)
}

/// Whether llm-d answers sooner where prompts repeat, with either gateway.
fn routing(view: &View<'_>) -> Found {
    let pairs = [(A2, B2), (A1, B1)];
    let mut open = None;
    for (without, with) in pairs {
        for contrast in view.contrasts(without, with) {
            if view.scenario(&contrast.run) != Some(3) || contrast.saturated {
                continue;
            }
            let Some(difference) = figure(contrast, "TTFT", 0.5) else {
                continue;
            };
            let values = [("text", told(view, contrast, difference))];
            let why = view.say(Key::WhyRouting, &values);
            match compare(view, difference) {
                Compared::Open => open = open.or(Some(why)),
                found => return of(found == Compared::Faster, why, contrast.simulated),
            }
        }
    }
    unknown(open.unwrap_or_else(|| {
        let values = [
            ("without", A2.id().to_owned()),
            ("with", B2.id().to_owned()),
            ("command", view.command(3, &[A2.id(), B2.id()])),
        ];
        view.say(Key::WhyRoutingUnknown, &values)
    }))
}

fn gateway(view: &View<'_>, workload: &Workload) -> Found {
    if workload.tenant_governance {
        return of(true, view.get(Key::WhyGovernance), false);
    }
    let seen = gateways(view);
    match seen.bifrost_pays() {
        Some(pays) => of(pays, view.get(Key::WhyOverhead), seen.simulated),
        None => {
            let command = view.command(4, &[A1.id(), A2.id()]);
            unknown(view.say(Key::WhyOverheadUnknown, &[("command", command)]))
        }
    }
}
