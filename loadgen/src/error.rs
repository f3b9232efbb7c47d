//! Why a run could not be made. Every message names the input, what is wrong, and the remedy.

use record::rundir::RunDirError;
use std::fmt;
use std::path::PathBuf;

/// Why a run could not be made, or not be finished.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The plan contradicts itself.
    #[error("{0}")]
    Plan(String),
    /// Chains did not answer one short call each; nothing was measured.
    #[error("{}", lines(.0))]
    Preflight(Vec<PreflightFailure>),
    /// A tap's record directory is not usable.
    #[error("{dir}: {what}")]
    TapRecords {
        /// The directory that the plan names.
        dir: PathBuf,
        /// What is wrong with it, and the remedy.
        what: String,
    },
    /// The run directory could not be read or written. What was measured until then is in it.
    #[error("{}{}", .0, go_on(.0))]
    RunDir(#[from] RunDirError),
    /// A file that the plan names could not be read.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A trace cannot be replayed.
    #[error("{}: {what}", crate::trace::place(path, *line))]
    Trace {
        /// The trace.
        path: PathBuf,
        /// The line, from 1; 0 where the whole file is meant.
        line: u64,
        /// What is wrong, and the remedy.
        what: String,
    },
    /// The operating system refused a thread or a socket.
    #[error("cannot start {what}: {source}")]
    Start {
        /// What was to be started.
        what: &'static str,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The tokenizer does not count as it must.
    #[error("tokenizer {name}: {what}")]
    Tokenizer {
        /// Its name.
        name: String,
        /// What went wrong.
        what: String,
    },
    /// What was to be done to a chain in an experiment failed.
    #[error("`{what}`: {why}")]
    Trigger {
        /// The command or request.
        what: String,
        /// How it failed, and what it said.
        why: String,
    },
    /// The user asked to stop before anything was measured.
    #[error("stopped before anything was measured")]
    Stopped,
}

/// A chain that did not answer as a run needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreflightFailure {
    /// The chain.
    pub chain: String,
    /// Where the request went.
    pub address: String,
    /// The status, where there was one.
    pub status: Option<u16>,
    /// What happened, in a few words.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

impl fmt::Display for PreflightFailure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "chain {} at {}: ", self.chain, self.address)?;
        if let Some(status) = self.status {
            write!(out, "status {status}, ")?;
        }
        write!(out, "{}; {}", self.what, self.remedy)
    }
}

fn go_on(error: &RunDirError) -> &'static str {
    if error.no_room() {
        ", and the same command with --resume goes on with it"
    } else {
        ""
    }
}

/// An error and its causes, in words.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}

fn lines(failures: &[PreflightFailure]) -> String {
    let all: Vec<String> = failures.iter().map(ToString::to_string).collect();
    all.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_preflight_names_chain_address_status_and_remedy() {
        let error = LoadError::Preflight(vec![PreflightFailure {
            chain: "litellm".to_owned(),
            address: "http://127.0.0.1:17100".to_owned(),
            status: Some(401),
            what: "not authorised".to_owned(),
            remedy: "set LITELLM_MASTER_KEY".to_owned(),
        }]);
        assert_eq!(
            error.to_string(),
            "chain litellm at http://127.0.0.1:17100: status 401, not authorised; set LITELLM_MASTER_KEY"
        );
    }
}
