//! What is wrong with a file, in the words of the one who must mend it.

use std::fmt;
use std::path::PathBuf;

/// One thing that is wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file.
    pub file: PathBuf,
    /// Line and column, from 1; `None` when the whole file is meant.
    pub place: Option<(u64, u64)>,
    /// What is wrong, and the remedy.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", self.file.display())?;
        if let Some((line, column)) = self.place {
            write!(out, ":{line}:{column}")?;
        }
        write!(out, ": {}", self.message)
    }
}

/// Everything that is wrong with a configuration: one finding a line, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ConfigError {
    findings: Vec<Finding>,
}

impl ConfigError {
    pub(crate) fn new(mut findings: Vec<Finding>) -> Self {
        findings.sort_by(|a, b| (&a.file, a.place).cmp(&(&b.file, b.place)));
        findings.dedup();
        Self { findings }
    }

    pub(crate) fn whole_file(file: impl Into<PathBuf>, message: impl Into<String>) -> Self {
        Self::new(vec![Finding {
            file: file.into(),
            place: None,
            message: message.into(),
        }])
    }

    /// The findings, in the order of the files and lines; never empty.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    pub(crate) fn into_findings(self) -> Vec<Finding> {
        self.findings
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, finding) in self.findings.iter().enumerate() {
            if at > 0 {
                out.write_str("\n")?;
            }
            write!(out, "{finding}")?;
        }
        Ok(())
    }
}
