//! What the per-second series says of the component under load.

use super::{RunDir, RunDirError};
use crate::clock::Nanos;
use serde::Deserialize;
use std::fs::File;
use std::io::{BufRead as _, BufReader};

/// The component of one second.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Second {
    /// When.
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// The chain that was driven.
    pub chain: String,
    /// Resident memory of the component's processes, bytes; `None` where they are not known.
    #[serde(rename = "component_rss_bytes")]
    pub memory: Option<u64>,
    /// Their open file descriptors; `None` where they are not known, or may not be looked at.
    #[serde(rename = "component_descriptors", default)]
    pub descriptors: Option<u64>,
}

impl RunDir {
    /// The component, second by second; none where the run has no series. A line that a kill tore is left
    /// out.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read_seconds(&self) -> Result<Vec<Second>, RunDirError> {
        let path = self.series();
        if !path.exists() {
            return Ok(Vec::new());
        }
        let file = File::open(&path).map_err(RunDirError::io(&path))?;
        let mut seconds = Vec::new();
        for line in BufReader::new(file).split(b'\n') {
            let line = line.map_err(RunDirError::io(&path))?;
            seconds.extend(serde_json::from_slice::<Second>(&line).ok());
        }
        Ok(seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_and_an_older_one_without_descriptors_are_no_error() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::create(dir.path()).unwrap();
        assert_eq!(run.read_seconds().unwrap(), Vec::new());
        std::fs::write(
            run.series(),
            "{\"at_ns\":1,\"chain\":\"c\",\"sent\":4,\"component_rss_bytes\":null}\n\
             {\"at_ns\":2,\"chain\":\"c\",\"component_rss_bytes\":7,\"component_descriptors\":5}\n{\"at_ns\":3,\"ch",
        )
        .unwrap();
        let seconds = run.read_seconds().unwrap();
        let read: Vec<_> = seconds
            .iter()
            .map(|s| (s.at, s.memory, s.descriptors))
            .collect();
        assert_eq!(read, [(1, None, None), (2, Some(7), Some(5))]);
    }
}
