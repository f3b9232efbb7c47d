//! What a report states without having measured it: texts with their sources, for the reader to judge and to edit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ConfigError;
use crate::load::{Checked, Form, Report, from_text};
use crate::names;
use crate::scalar::Date;

/// Statements that no run measures. The report shows each as stated, with its source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// What has a place in a table: one statement for each [`FactRow`] and configuration of which it speaks.
    pub table: Vec<Fact>,
    /// What Custom Model Import can and cannot do (question 3).
    pub import_limits: Vec<Fact>,
    /// Gateways side by side, beside what was measured of them.
    pub gateways: Vec<Fact>,
    /// Runtimes of agents side by side.
    pub agent_runtimes: Vec<Fact>,
    /// Stacks to observe each configuration by.
    pub observability: Vec<Fact>,
    /// Work and risks of the way from AgentCore to EKS, in their order.
    pub migration: Vec<Fact>,
}

/// One statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// Its name in outputs. Letters, digits, `-`, `_`, `.`.
    pub id: String,
    /// Its place. Only in `table`.
    #[serde(default)]
    pub row: Option<FactRow>,
    /// The configurations of which it speaks: `baseline`, `baseline-plus`, `a1`, `a2`, `b1`, `b2`. Absent: of all.
    #[serde(default)]
    pub of: Vec<String>,
    /// What it is about.
    pub topic: Text,
    /// What is stated.
    pub text: Text,
    /// Where that stands.
    pub source: String,
    /// When the source said so.
    pub date: Date,
    /// How far it can be relied on.
    pub basis: FactBasis,
}

/// One text in each language of the report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// English.
    pub en: String,
    /// Korean.
    pub ko: String,
    /// Chinese.
    pub zh: String,
}

/// A place in a table for what is stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FactRow {
    /// What keeps tenants apart.
    TenantIsolation,
    /// Time until the first call is served.
    BuildTime,
    /// People and skills.
    Skills,
    /// What a gateway's maker says that it adds. Stands beside what was measured of it.
    ClaimedOverhead,
}

/// How far a statement can be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FactBasis {
    /// The maker's documentation or source code says so.
    Documented,
    /// Somebody else reports it.
    Reported,
    /// A guess of this file's writer.
    Assumed,
}

const CONFIGURATIONS: [&str; 6] = ["baseline", "baseline-plus", "a1", "a2", "b1", "b2"];

impl Facts {
    /// The statements that are part of the program, `config/facts.yaml`.
    ///
    /// # Errors
    /// None but by a mistake in the program: a test reads it.
    pub fn shipped() -> Result<Checked<Self>, ConfigError> {
        from_text("config/facts.yaml", include_str!("../facts.yaml"))
    }

    /// Every statement with the name of its part.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, usize, &Fact)> {
        let parts: [(&'static str, &Vec<Fact>); 6] = [
            ("table", &self.table),
            ("import_limits", &self.import_limits),
            ("gateways", &self.gateways),
            ("agent_runtimes", &self.agent_runtimes),
            ("observability", &self.observability),
            ("migration", &self.migration),
        ];
        parts
            .into_iter()
            .flat_map(|(part, all)| all.iter().enumerate().map(move |(at, one)| (part, at, one)))
    }
}

impl Form for Facts {
    const NAME: &'static str = "facts";

    fn check(&self, report: &mut Report<'_>) {
        names::unique(
            report,
            self.all()
                .map(|(part, at, fact)| (format!("{part}[{at}].id"), fact.id.as_str())),
        );
        for (part, at, fact) in self.all() {
            let place = format!("{part}[{at}]");
            names::check(report, &format!("{place}.id"), &fact.id);
            if (part == "table") != fact.row.is_some() {
                report.add(
                    &place,
                    "`row` stands in `table`, at each statement, and nowhere else".to_owned(),
                );
            }
            for (number, of) in fact.of.iter().enumerate() {
                if !CONFIGURATIONS.contains(&of.as_str()) {
                    report.add(
                        &format!("{place}.of[{number}]"),
                        format!(
                            "`{of}` is no configuration; write one of {}",
                            CONFIGURATIONS.join(", ")
                        ),
                    );
                }
            }
            for (field, text) in [("topic", &fact.topic), ("text", &fact.text)] {
                for (language, said) in [("en", &text.en), ("ko", &text.ko), ("zh", &text.zh)] {
                    if said.trim().is_empty() {
                        report.add(
                            &format!("{place}.{field}.{language}"),
                            "it is empty; every language says it".to_owned(),
                        );
                    }
                }
            }
        }
    }
}
