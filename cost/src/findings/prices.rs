//! Are the prices there that the plan needs, and can they be relied on?

use super::{Finding, Inputs, Severity, evidence, instance_price};
use config::prices::Basis;

/// Older than this, a price is to be looked up anew.
const OLD_MONTHS: i32 = 12;

pub(super) fn check(inputs: &Inputs<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    found.extend(region(inputs));
    found.extend(missing(inputs));
    found.extend(old(inputs));
    found.extend(assumed(inputs));
    found
}

/// Prices of another Region are other prices.
fn region(inputs: &Inputs<'_>) -> Option<Finding> {
    let (plan, table) = (&inputs.plan.region, inputs.prices.region());
    (plan != table).then(|| Finding {
        id: "price-region",
        severity: Severity::Error,
        at: "region",
        what: format!(
            "the plan is for {plan} and the price table for {table}: no bill would be right"
        ),
        evidence: Vec::new(),
        remedy: format!("name a price table of {plan} with `--prices DIR`, or plan for {table}"),
    })
}

/// Prices without which some configuration has no bill.
fn needed(inputs: &Inputs<'_>) -> [String; 4] {
    let model = &inputs.plan.models.default;
    [
        format!("bedrock.{model}.input"),
        format!("bedrock.{model}.output"),
        "import.cmu-minute".to_owned(),
        instance_price(inputs.plan),
    ]
}

/// The beginnings of all ids on which a bill of this plan may rest.
fn used(inputs: &Inputs<'_>) -> Vec<String> {
    let plan = inputs.plan;
    let mut begins = vec![
        format!("bedrock.{}.", plan.models.default),
        "import.".to_owned(),
        instance_price(plan),
        "eks.cluster.hour".to_owned(),
        format!("{}.", plan.fixed),
    ];
    begins.extend(
        plan.guardrails
            .iter()
            .map(|policy| format!("bedrock.guardrail.{}", policy.as_str())),
    );
    if let Some(agent) = &plan.agent {
        begins.push(format!("agentcore.runtime.{}.", agent.runtime.as_str()));
        begins.push("agentcore.gateway.".to_owned());
    }
    begins
}

fn relevant<'a>(inputs: &Inputs<'a>) -> impl Iterator<Item = (&'a str, &'a config::prices::Price)> {
    let begins = used(inputs);
    let prices = inputs.prices;
    prices
        .ids()
        .filter(move |id| begins.iter().any(|begin| id.starts_with(begin.as_str())))
        .filter_map(move |id| Some((id, prices.get(id)?)))
}

fn missing(inputs: &Inputs<'_>) -> Option<Finding> {
    let lacks: Vec<String> = needed(inputs)
        .into_iter()
        .filter(|id| inputs.prices.get(id).is_none())
        .collect();
    (!lacks.is_empty()).then(|| Finding {
        id: "price-missing",
        severity: Severity::Warning,
        at: "region",
        what: format!("the price table lacks {}: what rests on it has no bill", lacks.join(", ")),
        evidence: Vec::new(),
        remedy: "add the price with its source to a file of the price table, or set it: `--set ID=VALUE` for one run".to_owned(),
    })
}

fn old(inputs: &Inputs<'_>) -> Option<Finding> {
    let old: Vec<_> = relevant(inputs)
        .filter(|(_, price)| price.date.months_until(inputs.today) >= OLD_MONTHS)
        .collect();
    (!old.is_empty()).then(|| Finding {
        id: "price-old",
        severity: Severity::Warning,
        at: "region",
        what: format!(
            "{} price{} on which the plan rests {} {OLD_MONTHS} months old or older",
            old.len(),
            if old.len() == 1 { "" } else { "s" },
            if old.len() == 1 { "is" } else { "are" }
        ),
        evidence: old
            .iter()
            .map(|(id, price)| {
                evidence(
                    format!("{id}: {} USD on {}", price.value, price.date),
                    price.source.clone(),
                )
            })
            .collect(),
        remedy: "look them up anew and write value, date and source into the price table"
            .to_owned(),
    })
}

/// Assumed prices, those of the plan's own fixed set apart: the plan says itself what they are.
fn assumed(inputs: &Inputs<'_>) -> Option<Finding> {
    let own = format!("{}.", inputs.plan.fixed);
    let assumed: Vec<_> = relevant(inputs)
        .filter(|(id, price)| price.basis == Basis::Assumed && !id.starts_with(&own))
        .collect();
    (!assumed.is_empty()).then(|| Finding {
        id: "price-assumed",
        severity: Severity::Note,
        at: "region",
        what: format!(
            "{} price{} on which the plan rests {} assumed",
            assumed.len(),
            if assumed.len() == 1 { "" } else { "s" },
            if assumed.len() == 1 { "is" } else { "are" }
        ),
        evidence: assumed
            .iter()
            .map(|(id, price)| evidence(format!("{id}: {} USD", price.value), price.source.clone()))
            .collect(),
        remedy: "get an offer or a list price, and write it with its source into the price table"
            .to_owned(),
    })
}
