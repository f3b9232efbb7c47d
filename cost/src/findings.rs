//! What is wrong with a plan, from the plan, the price table and the geometry table alone.
//!
//! One file a check. Each gives findings with the numbers on which they rest, and what to do.

mod agent;
pub mod benchmark;
mod hardware;
mod import;
mod offered;
mod prices;
mod quotas;
mod stated;

pub use quotas::quota_limit;

use config::{Date, Geometry, Plan, prices::PriceBook};
use serde::Serialize;

use crate::campaign::Run;
use crate::model::HOURS;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The plan cannot be carried out like this, or would measure nothing.
    Error,
    /// Money or a result is at risk.
    Warning,
    /// Worth knowing.
    Note,
}

impl Severity {
    /// The word used in every output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// One number or statement on which a finding rests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Evidence {
    /// What it says.
    pub says: String,
    /// The price's id, or where it stands.
    pub source: String,
}

/// One thing that is wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The check's name, stable.
    pub id: &'static str,
    /// How bad it is.
    pub severity: Severity,
    /// The value of the plan that it is about, as `hardware.parallelism`.
    pub at: &'static str,
    /// What is wrong, in one line.
    pub what: String,
    /// On what that rests.
    pub evidence: Vec<Evidence>,
    /// What to do.
    pub remedy: String,
}

/// What the checks know.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The price table.
    pub prices: &'a PriceBook,
    /// The geometry table.
    pub geometry: &'a Geometry,
    /// The day on which it is judged.
    pub today: Date,
    /// The runs that the plan wants to make; empty where it names none.
    pub runs: &'a [Run],
}

/// Everything that is wrong with a plan: errors first, and within a severity always in the same order.
#[must_use]
pub fn find(inputs: &Inputs<'_>) -> Vec<Finding> {
    let checks: [fn(&Inputs<'_>) -> Vec<Finding>; 8] = [
        hardware::check,
        offered::check,
        stated::check,
        quotas::check,
        import::check,
        agent::check,
        prices::check,
        benchmark::check,
    ];
    let mut found: Vec<Finding> = checks.iter().flat_map(|check| check(inputs)).collect();
    found.sort_by_key(|finding| finding.severity);
    found
}

fn evidence(says: impl Into<String>, source: impl Into<String>) -> Evidence {
    Evidence {
        says: says.into(),
        source: source.into(),
    }
}

/// A price as evidence: its value, unit, day and basis.
fn price_evidence(inputs: &Inputs<'_>, id: &str) -> Option<Evidence> {
    let price = inputs.prices.get(id)?;
    Some(evidence(
        format!(
            "{id}: {} USD, {} on {}",
            price.value,
            price.basis.as_str(),
            price.date
        ),
        price.source.clone(),
    ))
}

/// Whole dollars with thousands set apart: `$3,539`.
#[must_use]
pub fn dollars(amount: f64) -> String {
    let digits = format!("{:.0}", amount.abs());
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    let sign = if amount <= -0.5 { "-" } else { "" };
    format!("{sign}${grouped}")
}

/// The id of the price of the plan's machine.
fn instance_price(plan: &Plan) -> String {
    format!(
        "ec2.{}.{}",
        plan.hardware.instance,
        plan.hardware.purchase.as_str()
    )
}

/// What all machines of the plan cost a month; `None` where the table lacks the price.
fn gpu_month(inputs: &Inputs<'_>) -> Option<f64> {
    let price = inputs.prices.get(&instance_price(inputs.plan))?;
    Some(price.value * HOURS * f64::from(inputs.plan.hardware.count))
}

#[cfg(test)]
mod tests;
