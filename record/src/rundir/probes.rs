//! What probes of tenants saw: one file, written anew after each probe.

use super::{RunDir, RunDirError, read_json, write_json};
use crate::probe::Probes;
use std::path::PathBuf;

impl RunDir {
    fn probes_path(&self) -> PathBuf {
        self.root().join("probes.json")
    }

    /// Writes what probes have seen so far, whole or not at all.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_probes(&self, probes: &Probes) -> Result<(), RunDirError> {
        write_json(&self.probes_path(), probes)
    }

    /// What probes saw; nothing where the run has none.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn read_probes(&self) -> Result<Probes, RunDirError> {
        let path = self.probes_path();
        if path.exists() {
            read_json(&path)
        } else {
            Ok(Probes::default())
        }
    }
}
