//! Variants of an engine: quantisations and controls, each on the services that may offer it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::{Form, Report};
use crate::names;

/// A table of variants. Each cell is one variant on one service: a chain that is driven by the scenario, or
/// the reason why there is none. `hopscope report --variants` fills the cells with what runs have measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variants {
    /// The scenario's number in the plan by which the cells are measured.
    #[schemars(range(min = 1, max = 9))]
    pub scenario: u8,
    /// The variants, in the order in which they are shown.
    #[schemars(length(min = 1))]
    pub variants: Vec<Variant>,
}

/// One variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Its name in results. Letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// What kind of choice it is.
    pub kind: VariantKind,
    /// What it sets, in the engine's own words.
    pub sets: String,
    /// The services.
    #[schemars(length(min = 1))]
    pub cells: Vec<VariantCell>,
}

/// What kind of choice a variant is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum VariantKind {
    /// How weights are stored.
    Quantisation,
    /// How requests are scheduled and batched.
    Control,
}

impl VariantKind {
    /// The word used in every output.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Quantisation => "quantisation",
            Self::Control => "control",
        }
    }
}

/// A variant on one service: exactly one of a chain and a reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VariantCell {
    /// The service.
    pub on: String,
    /// The name of the chain that leads to it.
    #[serde(default)]
    pub chain: Option<String>,
    /// Why it cannot be measured: the service does not offer it, by which source.
    #[serde(default)]
    pub not_offered: Option<String>,
}

impl Form for Variants {
    const NAME: &'static str = "variants";

    fn check(&self, report: &mut Report<'_>) {
        let named = self.variants.iter().enumerate();
        names::unique(
            report,
            named.map(|(at, one)| (format!("variants[{at}].name"), one.name.as_str())),
        );
        let mut chains = Vec::new();
        for (at, one) in self.variants.iter().enumerate() {
            names::check(report, &format!("variants[{at}].name"), &one.name);
            for (number, cell) in one.cells.iter().enumerate() {
                let place = format!("variants[{at}].cells[{number}]");
                if cell.chain.is_some() == cell.not_offered.is_some() {
                    report.add(
                        &place,
                        "write either the `chain` that measures it, or why it is `not_offered`"
                            .to_owned(),
                    );
                }
                if let Some(chain) = &cell.chain {
                    let place = format!("{place}.chain");
                    names::check(report, &place, chain);
                    chains.push((place, chain.as_str()));
                }
            }
        }
        // Two cells of one chain would show the same figures as those of two variants.
        names::unique(report, chains.into_iter());
    }
}
