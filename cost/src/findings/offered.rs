//! Is the default model still offered, and for how long?

use super::{Finding, Inputs, Severity, evidence};

/// An end this near is a risk for a campaign and what follows it.
const SOON_MONTHS: i32 = 3;

pub(super) fn check(inputs: &Inputs<'_>) -> Vec<Finding> {
    let name = &inputs.plan.models.default;
    let Some(row) = inputs.geometry.offered.get(name) else {
        let known: Vec<&str> = inputs.geometry.offered.keys().map(String::as_str).collect();
        return vec![Finding {
            id: "offered",
            severity: Severity::Warning,
            at: "models.default",
            what: format!(
                "the geometry table has no `{name}` among the offered models: whether it is offered is not known"
            ),
            evidence: vec![evidence(
                format!("known: {}", known.join(", ")),
                "the geometry table",
            )],
            remedy: "look in the console of Bedrock, and add it with its source".to_owned(),
        }];
    };
    let today = inputs.today;
    let (severity, what) = match (row.gone_since, row.until) {
        (Some(gone), _) if gone <= today => (
            Severity::Error,
            format!("the default model `{name}` is no longer offered: calls fail since {gone}"),
        ),
        (_, Some(until)) if until < today => (
            Severity::Error,
            format!(
                "the default model `{name}` is no longer offered: its announced end was {until}"
            ),
        ),
        (_, Some(until)) if today.months_until(until) < SOON_MONTHS => (
            Severity::Warning,
            format!(
                "the default model `{name}` ends on {until}, in less than {SOON_MONTHS} months"
            ),
        ),
        _ => return Vec::new(),
    };
    let mut remedy = row.successor.as_ref().map_or_else(
        || "choose a model that is offered".to_owned(),
        |other| format!("use `{other}` or another that is offered"),
    );
    remedy.push_str(
        ": its prices, quotas and answers differ, so figures of the old one do not hold for it",
    );
    vec![Finding {
        id: "offered",
        severity,
        at: "models.default",
        what,
        evidence: vec![evidence(
            format!("`{name}`: judged on {today}"),
            row.source.clone(),
        )],
        remedy,
    }]
}
