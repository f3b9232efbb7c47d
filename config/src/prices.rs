//! Prices as data: each with its unit, day, source, and whether anybody may rely on it.

mod book;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::{Form, Report};
use crate::scalar::Date;

pub use book::PriceBook;

/// A file of prices, one of those in `config/prices/`. Together they are the price table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceFile {
    /// The AWS Region of these prices. All files of a table are of one.
    pub region: String,
    /// The prices by their ids: parts with dots between them, as `ec2.g5.2xlarge.on-demand`.
    pub prices: BTreeMap<String, Price>,
}

/// One price, in US dollars.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// US dollars a unit.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub value: f64,
    /// The least that it may be; absent with `high` where the value is exact.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1e9))]
    pub low: Option<f64>,
    /// The most that it may be.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1e9))]
    pub high: Option<f64>,
    /// For what.
    pub unit: PriceUnit,
    /// When the source said so.
    pub date: Date,
    /// Where it stands.
    pub source: String,
    /// How far it can be relied on.
    pub basis: Basis,
    /// What one should know before relying on it.
    #[serde(default)]
    pub note: Option<String>,
}

impl Price {
    /// The least and the most that it may be; both are the value where it is exact.
    #[must_use]
    pub fn bounds(&self) -> (f64, f64) {
        (
            self.low.unwrap_or(self.value),
            self.high.unwrap_or(self.value),
        )
    }
}

/// What a price is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PriceUnit {
    /// A million tokens.
    MillionTokens,
    /// A thousand text units of a guardrail.
    ThousandTextUnits,
    /// A thousand calls.
    ThousandCalls,
    /// An hour of one.
    Hour,
    /// A minute of one Custom Model Unit.
    CmuMinute,
    /// A month of one.
    Month,
    /// An hour of a vCPU.
    VcpuHour,
    /// An hour of a GB of memory.
    GbHour,
    /// A GB that passes.
    Gb,
}

/// How far a price can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Basis {
    /// The seller's own list, or a machine-readable copy of it.
    Listed,
    /// Somebody quotes it: a report, a note, an offer.
    Quoted,
    /// Nobody says so: a plan's figure, or a guess.
    Assumed,
}

impl Basis {
    /// The word used in files and outputs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Listed => "listed",
            Self::Quoted => "quoted",
            Self::Assumed => "assumed",
        }
    }
}

impl Form for PriceFile {
    const NAME: &'static str = "prices";

    fn check(&self, report: &mut Report<'_>) {
        if self.region.trim().is_empty() {
            report.add("region", "`region` is empty; name it, as us-east-1");
        }
        for (id, price) in &self.prices {
            let at = format!("prices.{id}");
            if let Some(problem) = problem(id) {
                report.add(&at, problem);
            }
            if price.source.trim().is_empty() {
                report.add(
                    &format!("{at}.source"),
                    "nobody could check a price without its source; name it",
                );
            }
            if price.low.is_some() != price.high.is_some() {
                report.add(
                    &at,
                    "has one of `low` and `high`; give both, or neither where the price is exact",
                );
            }
            let (low, high) = price.bounds();
            if !(low <= price.value && price.value <= high) {
                report.add(
                    &format!("{at}.value"),
                    format!(
                        "{} is not between `low` {low} and `high` {high}; correct one of them",
                        price.value
                    ),
                );
            }
        }
    }
}

/// What is wrong with the id of a price.
fn problem(id: &str) -> Option<String> {
    let part = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    let good = id.contains('.') && id.split('.').all(part);
    (!good).then(|| {
        format!(
            "`{id}` is no id of a price; use lower-case letters, digits and `-` in parts with dots between them, as `ec2.g5.2xlarge.on-demand`"
        )
    })
}
