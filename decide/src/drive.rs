//! How a chain was driven, in the words of a language.

use record::manifest::{Company, Drive};

use crate::key::Key;
use crate::number;
use crate::view::View;

pub(crate) fn driven(view: &View<'_>, drive: &Drive) -> String {
    let callers = |callers: u32| ("callers", callers.to_string());
    let at = |rate: f64| ("rate", number::rate(rate));
    match drive {
        Drive::Closed { concurrency } => view.say(Key::DriveClosed, &[callers(*concurrency)]),
        Drive::Open {
            rate,
            share: Some(share),
        } => view.say(
            Key::DriveShare,
            &[("share", number::share(*share)), at(*rate)],
        ),
        Drive::Open { rate, share: None } => number::rate(*rate),
        Drive::Capacity { rate } => view.say(Key::DriveCapacity, &[at(*rate)]),
        Drive::Profile { phases } => match phases.as_slice() {
            [one] => view.say(
                Key::DrivePhase,
                &[("phase", one.name.clone()), at(one.rate)],
            ),
            many => {
                let names: Vec<&str> = many.iter().map(|phase| phase.name.as_str()).collect();
                view.say(Key::DriveCourse, &[("phases", names.join(", "))])
            }
        },
        Drive::Trace { file, speed, .. } => {
            let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
            let values = [("file", name.to_owned()), ("speed", number::digits(*speed))];
            view.say(Key::DriveTrace, &values)
        }
        Drive::Tenant {
            tenant,
            rate,
            company,
        } => {
            let company = view.get(match company {
                Company::Alone => Key::DriveAlone,
                Company::Together => Key::DriveTogether,
                Company::Flooded => Key::DriveFlooded,
            });
            let values = [("tenant", tenant.clone()), at(*rate), ("company", company)];
            view.say(Key::DriveTenant, &values)
        }
        Drive::Agent {
            concurrency,
            whole: true,
            ..
        } => view.say(Key::DriveBlackBox, &[callers(*concurrency)]),
        Drive::Agent {
            turns, concurrency, ..
        } => view.say(
            Key::DriveAgent,
            &[("turns", turns.to_string()), callers(*concurrency)],
        ),
        Drive::Experiment { .. } => view.get(Key::DriveExperiment),
    }
}

/// Of two chains that were compared: a share of capacity is another rate for each of them.
pub(crate) fn driven_both(view: &View<'_>, drive: &Drive) -> String {
    match drive {
        Drive::Open {
            share: Some(share), ..
        } => view.say(Key::DriveShareOfEach, &[("share", number::share(*share))]),
        other => driven(view, other),
    }
}
