//! What must hold between the parts of an experiment.

use super::{Action, Experiment, ExperimentKind as Kind};
use crate::load::Report;
use crate::scalar::Period;

/// Fewer calls than these before the event tell no latency to come back to.
const FEWEST: f64 = 10.0;
/// Fewer calls than these in a window have no median worth the name.
const FEWEST_IN_WINDOW: f64 = 3.0;

/// Adds what does not fit.
pub(in crate::scenario) fn check(experiment: &Experiment, report: &mut Report<'_>) {
    parts(experiment, report);
    times(experiment, report);
    for (at, action) in [
        ("experiment.prepare", &experiment.prepare),
        ("experiment.trigger", &experiment.trigger),
    ] {
        if let Some(action) = action {
            check_action(at, action, report);
        }
    }
}

/// Each kind has the parts that it needs, and no other.
fn parts(it: &Experiment, report: &mut Report<'_>) {
    let renamed = it.model.is_some();
    let mut wrong = |at: &str, text: &str| report.add(&format!("experiment.{at}"), text.to_owned());
    match it.kind {
        Kind::ColdStart => {
            if it.before.is_some() {
                wrong(
                    "before",
                    "calls before a cold start would keep the chain warm; remove `before`, and let `prepare` or `idle` cool it",
                );
            }
            if it.trigger.is_none() && it.prepare.is_none() && it.idle.is_zero() {
                wrong(
                    "kind",
                    "nothing makes the chain cold; add `prepare`, `idle` or `trigger`",
                );
            }
        }
        Kind::ModelUpdate | Kind::Recovery => {
            if it.trigger.is_none() {
                wrong("kind", "nothing happens to the chain; add `trigger`");
            }
            if it.before.is_none() && !renamed {
                wrong(
                    "kind",
                    "there is no latency to come back to; add `before`, for example `60s`",
                );
            }
            if it.before.is_some() && renamed {
                wrong(
                    "before",
                    "no call by the new name is answered before the update; remove `before`, or `model`",
                );
            }
        }
        Kind::ScaleOut => {
            if it.before.is_none() {
                wrong(
                    "kind",
                    "there is no latency to come back to; add `before`, for example `60s`",
                );
            }
            match it.raised {
                None if it.trigger.is_none() => wrong(
                    "kind",
                    "nothing happens to the chain; add `raised` or `trigger`",
                ),
                Some(raised) if raised.duration.is_some() => wrong(
                    "raised.duration",
                    "the load stays until it is served as before; remove `duration`, and bound it by `limit`",
                ),
                _ => {}
            }
        }
        Kind::QueueDrain => {
            if it.before.is_none() {
                wrong(
                    "kind",
                    "there is no latency to come back to; add `before`, for example `60s`",
                );
            }
            if it
                .raised
                .is_none_or(|raised| raised.duration.is_none_or(Period::is_zero))
            {
                wrong(
                    "kind",
                    "there is no burst to drain; add `raised` with a `rate` and a `duration`",
                );
            }
            if it.trigger.is_some() {
                wrong(
                    "trigger",
                    "the end of the burst is the event; remove `trigger`",
                );
            }
        }
    }
    let grows = matches!(it.kind, Kind::ScaleOut | Kind::QueueDrain);
    if it.raised.is_some() && !grows {
        wrong(
            "raised",
            "only `scale-out` and `queue-drain` have more load; remove `raised`",
        );
    }
    if renamed && !matches!(it.kind, Kind::ColdStart | Kind::ModelUpdate) {
        wrong(
            "model",
            "only `cold-start` and `model-update` wait for another name; remove `model`",
        );
    }
    if it.raised.is_some_and(|raised| raised.rate <= it.rate) {
        wrong(
            "raised.rate",
            "this is no more than the probe's `rate`; raise it",
        );
    }
}

fn times(it: &Experiment, report: &mut Report<'_>) {
    let mut wrong = |at: &str, text: String| report.add(&format!("experiment.{at}"), text);
    let calls = |time: Period| time.get().as_secs_f64() * it.rate;
    let few = |time: Period, least: f64| calls(time) < least;
    if let Some(before) = it.before.filter(|before| few(*before, FEWEST)) {
        wrong(
            "before",
            format!(
                "only {:.1} calls fall into it, and {FEWEST} are the least for a median; lengthen it, or raise `rate`",
                calls(before)
            ),
        );
    }
    if few(it.window, FEWEST_IN_WINDOW) {
        wrong(
            "window",
            format!(
                "only {:.1} calls fall into {}, and {FEWEST_IN_WINDOW} are the least for a median; lengthen it, or raise `rate`",
                calls(it.window),
                it.window
            ),
        );
    }
    if few(it.settle, 1.0) {
        wrong(
            "settle",
            format!(
                "{} is shorter than the time between two calls of the probe, so that nothing would be seen to hold; lengthen it",
                it.settle
            ),
        );
    }
    if it.limit <= it.settle {
        wrong(
            "limit",
            format!(
                "`limit` {} is no longer than `settle` {}, so that nothing could be restored in time; lengthen it",
                it.limit, it.settle
            ),
        );
    }
}

fn check_action(at: &str, action: &Action, report: &mut Report<'_>) {
    match (&action.run, &action.http) {
        (None, None) => report.add(
            at,
            "nothing is done; write `run` with a command, or `http` with a request".to_owned(),
        ),
        (Some(_), Some(_)) => report.add(
            at,
            "a command and a request are two events; remove one".to_owned(),
        ),
        (Some(run), None) => {
            if run.first().is_none_or(String::is_empty) {
                report.add(
                    &format!("{at}.run"),
                    "the command is empty; write the program and its arguments as a list"
                        .to_owned(),
                );
            }
        }
        (None, Some(http)) => {
            if http.url.tls() {
                report.add(
                    &format!("{at}.http.url"),
                    "triggers speak cleartext HTTP only; use `run: [curl, --fail, …]` for https"
                        .to_owned(),
                );
            }
        }
    }
}
