//! The run directory: what is written during a run, and read after it.
//!
//! ```text
//! RUN/manifest.json            what the run was, its cells, verdict and calibration
//! RUN/calls/calls-000000.seg   calls as the load generator saw them
//! RUN/tools/tools-000000.seg   tool calls of agents; there only where an agent has tools
//! RUN/scrapes/scrapes-000000.seg   what components' metrics said; there only where a chain names endpoints
//! RUN/taps/NAME/exchanges-…    exchanges as each tap process saw them
//! RUN/taps/NAME/health.json    the tap process' account of itself
//! RUN/series.ndjson            one line a second
//! RUN/probes.json              what probes of tenants saw, call by call; there only where some were asked for
//! RUN/histograms.hlog          HDR histograms, one a cell and measure (V2 log)
//! RUN/calls.parquet, RUN/exchanges.parquet, RUN/tools.parquet, RUN/scrapes.parquet   the same rows, for DuckDB, Polars, pandas
//! ```

mod paired;
pub mod parquet;
mod probes;
mod scrapes;
pub mod segment;
mod series;
mod tables;
mod tools;

pub use paired::PairedCalls;
pub use scrapes::{SCRAPES, write_looks};
pub use segment::{Records, SEGMENT, SegmentReader, SegmentWriter};
pub use series::Second;
pub use tables::{write_calls, write_exchanges};
pub use tools::{TOOLS, write_tools};

use crate::client::ClientCall;
use crate::exchange::Exchange;
use crate::manifest::{FORMAT, Manifest, TapHealth};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

/// Why a run directory could not be read or written. Names the file.
#[derive(Debug, thiserror::Error)]
pub enum RunDirError {
    /// The operating system said no.
    #[error("{path}: {source}{}", remedy(source))]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("{path}: {what}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Not a run directory.
    #[error(
        "{path}: not a run directory: it has no manifest.json; `hopscope load --out DIR` makes one"
    )]
    NotARun {
        /// The directory.
        path: PathBuf,
    },
    /// Made by a newer hopscope.
    #[error(
        "{path}: run directory format {found}, this hopscope reads up to {FORMAT}; read it with the version that made it"
    )]
    Newer {
        /// The manifest.
        path: PathBuf,
        /// Its format.
        found: u32,
    },
}

impl RunDirError {
    /// What the operating system said of `path`, as an error that names it.
    pub fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + use<'_> {
        move |source| Self::Io {
            path: path.to_owned(),
            source,
        }
    }

    /// Whether there was no room left for the file.
    #[must_use]
    pub fn no_room(&self) -> bool {
        matches!(self, Self::Io { source, .. } if no_room(source))
    }
}

/// The disk is full, or a quota or the largest size of a file is reached.
fn no_room(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
    )
}

fn remedy(error: &io::Error) -> &'static str {
    if no_room(error) {
        "; make room there: what was written before is kept"
    } else {
        ""
    }
}

/// A run directory by its path.
#[derive(Debug, Clone)]
pub struct RunDir {
    root: PathBuf,
}

impl RunDir {
    /// Makes the directory (it may exist, but must hold no manifest yet).
    ///
    /// # Errors
    /// The directory cannot be made, or is a run already.
    pub fn create(root: &Path) -> Result<Self, RunDirError> {
        let dir = Self {
            root: root.to_owned(),
        };
        if dir.manifest_path().exists() {
            return Err(RunDirError::Damaged {
                path: root.to_owned(),
                what: "holds a run already; name another directory, or go on with it: --resume"
                    .to_owned(),
            });
        }
        if dir.calls().is_dir() && !segment::list(&dir.calls(), "calls")?.is_empty() {
            return Err(RunDirError::Damaged {
                path: root.to_owned(),
                what: "holds calls without a manifest, the rest of a run that could not be written; remove it, or name another directory"
                    .to_owned(),
            });
        }
        fs::create_dir_all(dir.calls()).map_err(RunDirError::io(root))?;
        fs::create_dir_all(root.join("taps")).map_err(RunDirError::io(root))?;
        Ok(dir)
    }

    /// Opens an existing run.
    ///
    /// # Errors
    /// There is no manifest.
    pub fn open(root: &Path) -> Result<Self, RunDirError> {
        let dir = Self {
            root: root.to_owned(),
        };
        if dir.manifest_path().is_file() {
            Ok(dir)
        } else {
            Err(RunDirError::NotARun {
                path: root.to_owned(),
            })
        }
    }

    /// The directory.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the load generator's segments lie.
    #[must_use]
    pub fn calls(&self) -> PathBuf {
        self.root.join("calls")
    }

    /// Where the tap process `instance` has its segments.
    #[must_use]
    pub fn tap(&self, instance: &str) -> PathBuf {
        self.root.join("taps").join(instance)
    }

    /// The per-second series.
    #[must_use]
    pub fn series(&self) -> PathBuf {
        self.root.join("series.ndjson")
    }

    /// The histogram log.
    #[must_use]
    pub fn histograms(&self) -> PathBuf {
        self.root.join("histograms.hlog")
    }

    fn manifest_path(&self) -> PathBuf {
        self.root.join("manifest.json")
    }

    /// Writes the manifest whole or not at all.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_manifest(&self, manifest: &Manifest) -> Result<(), RunDirError> {
        write_json(&self.manifest_path(), manifest)
    }

    /// Reads the manifest.
    ///
    /// # Errors
    /// It is missing, damaged or of a newer format.
    pub fn manifest(&self) -> Result<Manifest, RunDirError> {
        let path = self.manifest_path();
        let probe: serde_json::Value = read_json(&path)?;
        let found = probe
            .get("format")
            .and_then(serde_json::Value::as_u64)
            .unwrap_or(0);
        let found = u32::try_from(found).unwrap_or(u32::MAX);
        if found > FORMAT {
            return Err(RunDirError::Newer { path, found });
        }
        read_json(&path)
    }

    /// Every call, segment by segment, with what could not be read.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn read_calls(&self) -> Result<(Vec<ClientCall>, Vec<String>), RunDirError> {
        segment::read_all(&self.calls(), "calls")
    }

    /// Every call, one at a time, as they ended.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn stream_calls(&self) -> Result<Records<ClientCall>, RunDirError> {
        Records::open(&self.calls(), "calls")
    }

    /// Every exchange of the tap process `instance`, one at a time.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn stream_exchanges(&self, instance: &str) -> Result<Records<Exchange>, RunDirError> {
        Records::open(&self.tap(instance), EXCHANGES)
    }

    /// The calls that the tap processes saw, paired, one at a time.
    ///
    /// # Errors
    /// A directory cannot be listed.
    pub fn pair(&self) -> Result<PairedCalls, RunDirError> {
        let taps = self.taps()?;
        PairedCalls::of(taps.iter().map(|tap| self.tap(tap)), 0)
    }

    /// The names of the tap processes whose records are here.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn taps(&self) -> Result<Vec<String>, RunDirError> {
        let dir = self.root.join("taps");
        if !dir.exists() {
            return Ok(Vec::new());
        }
        let mut names: Vec<String> = fs::read_dir(&dir)
            .map_err(RunDirError::io(&dir))?
            .filter_map(Result::ok)
            .filter(|e| e.path().is_dir())
            .filter_map(|e| e.file_name().into_string().ok())
            .collect();
        names.sort();
        Ok(names)
    }

    /// Every exchange of every tap process, with what could not be read.
    ///
    /// # Errors
    /// A directory cannot be listed.
    pub fn read_exchanges(&self) -> Result<(Vec<Exchange>, Vec<String>), RunDirError> {
        let mut all = Vec::new();
        let mut losses = Vec::new();
        for tap in self.taps()? {
            let (exchanges, lost) = segment::read_all(&self.tap(&tap), EXCHANGES)?;
            all.extend(exchanges);
            losses.extend(lost);
        }
        Ok((all, losses))
    }
}

/// The kind of the segments of a tap process.
pub const EXCHANGES: &str = "exchanges";

/// The file in which a tap process keeps its account of itself, beside its segments.
pub const HEALTH: &str = "health.json";

/// Writes a tap's health beside its segments.
///
/// # Errors
/// The file cannot be written.
pub fn write_health(dir: &Path, health: &TapHealth) -> Result<(), RunDirError> {
    write_json(&dir.join(HEALTH), health)
}

/// Reads a tap's health; `None` where it left none.
///
/// # Errors
/// The file is damaged.
pub fn read_health(dir: &Path) -> Result<Option<TapHealth>, RunDirError> {
    let path = dir.join(HEALTH);
    if path.exists() {
        read_json(&path).map(Some)
    } else {
        Ok(None)
    }
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), RunDirError> {
    let text = serde_json::to_vec_pretty(value).map_err(|e| RunDirError::Damaged {
        path: path.to_owned(),
        what: e.to_string(),
    })?;
    let fresh = path.with_extension("json.new");
    let mut file = fs::File::create(&fresh).map_err(RunDirError::io(&fresh))?;
    file.write_all(&text)
        .and_then(|()| file.sync_all())
        .map_err(RunDirError::io(&fresh))?;
    fs::rename(&fresh, path).map_err(RunDirError::io(path))
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<T, RunDirError> {
    let text = fs::read(path).map_err(RunDirError::io(path))?;
    serde_json::from_slice(&text).map_err(|e| RunDirError::Damaged {
        path: path.to_owned(),
        what: format!("line {}: {e}", e.line()),
    })
}
