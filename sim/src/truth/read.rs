//! Reading a truth log.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{ExchangeTruth, Role};

const VERSION: u32 = 1;

/// First line of a log.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Header {
    truth: u32,
    role: Role,
    simulated: bool,
    clock: String,
}

impl Header {
    pub(super) fn new(role: Role) -> Self {
        Self {
            truth: VERSION,
            role,
            simulated: true,
            clock: "CLOCK_MONOTONIC ns".to_owned(),
        }
    }
}

/// Last line of a log that was closed.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Footer {
    closed: FooterBody,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FooterBody {
    exchanges: u64,
    dropped: u64,
}

impl Footer {
    pub(super) fn new(exchanges: u64, dropped: u64) -> Self {
        Self {
            closed: FooterBody { exchanges, dropped },
        }
    }
}

/// Why a truth log could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be opened or read.
    #[error("cannot read truth log {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A line is not what it should be.
    #[error("{path}:{line}: not a line of a truth log of version {VERSION}: {source}")]
    Line {
        /// The file.
        path: PathBuf,
        /// From 1.
        line: usize,
        /// What the parser said.
        source: serde_json::Error,
    },
    /// The first line is no header of this version.
    #[error("{path}:1: not a truth log of version {VERSION}")]
    NotATruthLog {
        /// The file.
        path: PathBuf,
    },
    /// The log is not whole, and [`read`] was asked for a whole one.
    #[error(
        "truth log {path} is incomplete ({why}): comparisons with it would hide what is missing; \
         run again, or read it with `read_log`"
    )]
    Incomplete {
        /// The file.
        path: PathBuf,
        /// What is missing.
        why: String,
    },
}

/// A truth log and how far it is whole.
#[derive(Debug)]
pub struct TruthLog {
    /// Who wrote it.
    pub role: Role,
    /// Its exchanges, in the order in which they ended.
    pub exchanges: Vec<ExchangeTruth>,
    /// Exchanges that the writer dropped; `None` when the log has no footer, because its process was
    /// killed or still runs.
    pub dropped: Option<u64>,
    /// Whether the last line is cut off.
    pub torn: bool,
}

/// Reads a whole log.
///
/// # Errors
/// When it cannot be read, has a bad line, no footer, or dropped an exchange.
pub fn read(path: &Path) -> Result<Vec<ExchangeTruth>, ReadError> {
    let log = read_log(path)?;
    let why = match log.dropped {
        Some(0) => return Ok(log.exchanges),
        Some(dropped) => format!("{dropped} exchanges dropped"),
        None => "no footer: its stand-in was killed or still runs".to_owned(),
    };
    Err(ReadError::Incomplete {
        path: path.to_owned(),
        why,
    })
}

/// Reads a log that may be incomplete: a cut last line is passed over and told.
///
/// # Errors
/// When it cannot be read, or a line other than the last is bad.
pub fn read_log(path: &Path) -> Result<TruthLog, ReadError> {
    let fail = |source| ReadError::Io {
        path: path.to_owned(),
        source,
    };
    let mut lines = BufReader::new(File::open(path).map_err(fail)?).lines();
    let first = lines.next().transpose().map_err(fail)?.unwrap_or_default();
    let header: Header = serde_json::from_str(&first)
        .ok()
        .filter(|header: &Header| header.truth == VERSION)
        .ok_or_else(|| ReadError::NotATruthLog {
            path: path.to_owned(),
        })?;
    let mut log = TruthLog {
        role: header.role,
        exchanges: Vec::new(),
        dropped: None,
        torn: false,
    };
    let mut lines = lines.enumerate().peekable();
    while let Some((at, line)) = lines.next() {
        let line = line.map_err(fail)?;
        match parse(&line) {
            Ok(Line::Exchange(truth)) => log.exchanges.push(*truth),
            Ok(Line::Footer(footer)) => log.dropped = Some(footer.closed.dropped),
            Err(_) if lines.peek().is_none() => log.torn = true,
            Err(source) => {
                return Err(ReadError::Line {
                    path: path.to_owned(),
                    line: at + 2,
                    source,
                });
            }
        }
    }
    Ok(log)
}

enum Line {
    Exchange(Box<ExchangeTruth>),
    Footer(Footer),
}

fn parse(line: &str) -> Result<Line, serde_json::Error> {
    if line.starts_with("{\"closed\"") {
        serde_json::from_str(line).map(Line::Footer)
    } else {
        serde_json::from_str(line).map(|truth| Line::Exchange(Box::new(truth)))
    }
}
