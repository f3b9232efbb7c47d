//! Do the default model's quotas allow the wanted rates?

use crate::model::Limit;

use super::{Finding, Inputs, Severity, evidence};

pub(super) fn check(inputs: &Inputs<'_>) -> Vec<Finding> {
    let quotas = &inputs.plan.quotas;
    if inputs.plan.provisioned.is_some() {
        // Model units have their own limits, of which no public source tells.
        return Vec::new();
    }
    let Some(tightest) = tightest(inputs) else {
        return vec![unknown()];
    };
    let traffic = &inputs.plan.traffic;
    let highest_mean = tightest.calls / traffic.burst_ratio;
    let rates = &inputs.plan.rates;
    let beyond: Vec<String> = rates
        .iter()
        .filter(|rate| **rate > highest_mean)
        .map(|rate| format!("{rate}"))
        .collect();
    if beyond.is_empty() {
        return Vec::new();
    }
    let none_left = beyond.len() == rates.len();
    let source = quotas
        .source
        .clone()
        .unwrap_or_else(|| "the plan; no source is stated".to_owned());
    let peaks = if traffic.burst_ratio > 1.0 {
        format!(", at peaks of {} × the mean", traffic.burst_ratio)
    } else {
        String::new()
    };
    vec![Finding {
        id: "quota",
        severity: if none_left { Severity::Error } else { Severity::Warning },
        at: "quotas",
        what: format!(
            "the quota `{}` allows `{}` {:.2} calls a second{peaks}: {} of the wanted rates ({}/s) would be throttled",
            tightest.name, inputs.plan.models.default, highest_mean,
            if none_left { "all".to_owned() } else { beyond.len().to_string() },
            beyond.join(", "),
        ),
        evidence: vec![
            evidence(format!("{} {}", tightest.name, tightest.quota), source),
            evidence(
                format!("one call counts {:.0} tokens: {}", tokens_per_call(inputs), how_counted(inputs)),
                "`output_burndown` of the geometry table",
            ),
        ],
        remedy: "ask for a higher quota before the first run, lower `rates`, use a cross-Region profile or provisioned capacity; keep `max_tokens` near the real length of answers".to_owned(),
    }]
}

/// The highest mean rate that the plan's quotas of the default model allow; `None` where it states none.
#[must_use]
pub fn quota_limit(inputs: &Inputs<'_>) -> Option<Limit> {
    let tightest = tightest(inputs)?;
    Some(Limit {
        rate: tightest.calls / inputs.plan.traffic.burst_ratio,
        why: format!("the quota `{}` is {}", tightest.name, tightest.quota),
    })
}

fn tightest(inputs: &Inputs<'_>) -> Option<Bound> {
    let quotas = &inputs.plan.quotas;
    let bounds = [
        quotas
            .requests_per_minute
            .map(|quota| Bound::new("requests_per_minute", quota, 1.0)),
        quotas
            .tokens_per_minute
            .map(|quota| Bound::new("tokens_per_minute", quota, tokens_per_call(inputs))),
    ];
    let stated = bounds.into_iter().flatten();
    stated.min_by(|a, b| a.calls.total_cmp(&b.calls))
}

/// A quota as calls a second.
struct Bound {
    name: &'static str,
    quota: f64,
    calls: f64,
}

impl Bound {
    fn new(name: &'static str, quota: f64, per_call: f64) -> Self {
        Self {
            name,
            quota,
            calls: quota / 60.0 / per_call,
        }
    }
}

fn burndown(inputs: &Inputs<'_>) -> f64 {
    let row = inputs.geometry.offered.get(&inputs.plan.models.default);
    row.map_or(1.0, |row| row.output_burndown)
}

/// What the service counts for one call against the quota: at its begin the prompt and `max_tokens`, at its end the
/// prompt and the answer's tokens, each of which may count several times. The larger bounds the rate.
fn tokens_per_call(inputs: &Inputs<'_>) -> f64 {
    let traffic = &inputs.plan.traffic;
    traffic.input_tokens + reserved(inputs).max(traffic.output_tokens * burndown(inputs))
}

fn reserved(inputs: &Inputs<'_>) -> f64 {
    let output = inputs.plan.traffic.output_tokens;
    inputs.plan.quotas.max_tokens.unwrap_or(output)
}

fn how_counted(inputs: &Inputs<'_>) -> String {
    let traffic = &inputs.plan.traffic;
    format!(
        "{} in, and the larger of {} reserved by max_tokens and {} out × {}",
        traffic.input_tokens,
        reserved(inputs),
        traffic.output_tokens,
        burndown(inputs),
    )
}

fn unknown() -> Finding {
    Finding {
        id: "quota",
        severity: Severity::Note,
        at: "quotas",
        what: "the plan states no quota of the default model: whether the wanted rates are allowed is not known".to_owned(),
        evidence: Vec::new(),
        remedy: "read yours in Service Quotas and write `requests_per_minute` and `tokens_per_minute`; new accounts may have far less than the default".to_owned(),
    }
}
