//! Whether a run's numbers may be used: every limit, what was measured against it, and the result.

use serde::{Deserialize, Serialize};

/// The result of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// Within its limit.
    Holds,
    /// Beyond it: the run is invalid.
    Fails,
    /// Could not be measured: the run is not shown to be valid.
    NotMeasured,
}

/// One check of the verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Stable name, for machines: `schedule-lag-p99`.
    pub name: String,
    /// What was measured; `None` where it could not be.
    pub measured: Option<f64>,
    /// The limit.
    pub limit: f64,
    /// Unit of both.
    pub unit: String,
    /// True where a larger value is the better one.
    pub at_least: bool,
    /// The result.
    pub finding: Finding,
    /// Where it was the worst, or why it could not be measured.
    pub detail: String,
}

impl Check {
    /// Compares `measured` with the limit that it must stay *below or at*.
    #[must_use]
    pub fn at_most(
        name: &str,
        unit: &str,
        limit: f64,
        measured: Option<f64>,
        detail: String,
    ) -> Self {
        Self::new((name, unit), limit, measured, false, detail)
    }

    /// Compares `measured` with the limit that it must reach.
    #[must_use]
    pub fn at_least(
        name: &str,
        unit: &str,
        limit: f64,
        measured: Option<f64>,
        detail: String,
    ) -> Self {
        Self::new((name, unit), limit, measured, true, detail)
    }

    fn new(
        (name, unit): (&str, &str),
        limit: f64,
        measured: Option<f64>,
        at_least: bool,
        detail: String,
    ) -> Self {
        let finding = match measured {
            None => Finding::NotMeasured,
            Some(value) if (at_least && value >= limit) || (!at_least && value <= limit) => {
                Finding::Holds
            }
            Some(_) => Finding::Fails,
        };
        Self {
            name: name.to_owned(),
            measured,
            limit,
            unit: unit.to_owned(),
            at_least,
            finding,
            detail,
        }
    }
}

/// All checks of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The checks, in the order in which they are printed.
    pub checks: Vec<Check>,
}

impl Verdict {
    /// True where every check holds.
    #[must_use]
    pub fn valid(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|c| c.finding == Finding::Holds)
    }

    /// The checks that do not hold.
    pub fn broken(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|c| c.finding != Finding::Holds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_measured_is_not_valid() {
        let holds = Check::at_most("a", "ms", 1.0, Some(1.0), String::new());
        let unknown = Check::at_least("b", "ratio", 0.999, None, String::new());
        assert!(
            Verdict {
                checks: vec![holds.clone()]
            }
            .valid()
        );
        let verdict = Verdict {
            checks: vec![holds, unknown],
        };
        assert!(!verdict.valid());
        assert_eq!(verdict.broken().count(), 1);
        assert!(
            !Verdict::default().valid(),
            "a verdict without checks shows nothing"
        );
        assert_eq!(
            Check::at_least("c", "", 0.999, Some(0.99), String::new()).finding,
            Finding::Fails
        );
    }
}
