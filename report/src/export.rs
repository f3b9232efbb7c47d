//! A run's cells in the forms of other tools, for the dashboards that people have already.
//!
//! Each figure is made by the *other* tool's definition, from the instants that we have. What they
//! need and we did not measure is absent or null, and a percentile that too few samples support, or
//! too many losses, is null as it is in our own report. Every file says in a field of its own which
//! run it is of, whether that run is simulated, and whether it was shown to be valid.

mod aiperf;
mod cell;
mod llm_d;
mod sample;
#[cfg(test)]
pub(crate) mod tests;
mod vllm;

use crate::ReportError;
use crate::gather::scenario;
use cell::CellData;
use config::Chain;
use hdrhistogram::Histogram;
use record::client::ClientCall;
use record::histogram;
use record::manifest::{Cell, Drive, Manifest};
use record::rundir::{RunDir, RunDirError};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The form of another tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// What `vllm bench serve --save-result` writes.
    VllmBench,
    /// NVIDIA AIPerf's `profile_export_aiperf.json`.
    Aiperf,
    /// The llm-d benchmark report, schema 0.2.
    LlmD,
}

impl Format {
    /// The file of a cell called `name`, below the directory of all.
    fn file(self, name: &str) -> PathBuf {
        match self {
            Self::VllmBench => PathBuf::from(format!("{name}.json")),
            Self::Aiperf => Path::new(name).join("profile_export_aiperf.json"),
            // JSON is YAML, and this is the name that llm-d's own tools look for.
            Self::LlmD => Path::new(name).join("benchmark_report_v0.2.yaml"),
        }
    }

    fn render(self, data: &CellData<'_>) -> Value {
        match self {
            Self::VllmBench => vllm::render(data),
            Self::Aiperf => aiperf::render(data),
            Self::LlmD => llm_d::render(data),
        }
    }
}

/// Which cells are wanted.
#[derive(Debug, Clone, Default)]
pub struct Pick {
    /// Of these chains; empty: of all.
    pub chains: Vec<String>,
    /// These numbers; empty: all but the floor probes' and the steps of a capacity search.
    pub cells: Vec<u32>,
}

impl Pick {
    fn takes(&self, cell: &Cell, floors: &HashSet<u32>) -> bool {
        let wanted = match self.cells.is_empty() {
            true => !floors.contains(&cell.id) && !matches!(cell.drive, Drive::Capacity { .. }),
            false => self.cells.contains(&cell.id),
        };
        wanted && (self.chains.is_empty() || self.chains.contains(&cell.chain))
    }
}

/// One file.
#[derive(Debug, Clone, PartialEq)]
pub struct Exported {
    /// Its path below the directory of all.
    pub file: PathBuf,
    /// What it holds.
    pub json: Value,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Exports {
    /// One file a cell, in the order in which the cells ran.
    pub files: Vec<Exported>,
    /// What of the run could not be read or used.
    pub losses: Vec<String>,
}

/// The cells of the run in `path` that `pick` takes, in the form `format`.
///
/// # Errors
/// The directory is no run, or cannot be read, or `pick` takes nothing of it.
pub fn export(path: &Path, format: Format, pick: &Pick) -> Result<Exports, ReportError> {
    let run = RunDir::open(path)?;
    let manifest = run.manifest()?;
    let floors = manifest.cells.iter().filter_map(|c| c.floor_cell).collect();
    let cells: Vec<&Cell> = manifest
        .cells
        .iter()
        .filter(|cell| pick.takes(cell, &floors))
        .collect();
    if cells.is_empty() {
        return Err(nothing(path, &manifest, pick));
    }
    let (calls, mut losses) = run.read_calls()?;
    let calls = by_cell(calls, &cells);
    let gaps = gaps(&run)?;
    let scenario = scenario(path, &manifest, &mut losses);
    let chains = chains(&manifest);
    let files = cells.into_iter().map(|cell| {
        let data = CellData {
            manifest: &manifest,
            scenario: scenario.as_ref(),
            chain: chains.get(&cell.chain),
            cell,
            calls: calls.get(&cell.id).map_or(&[], Vec::as_slice),
            gaps: gaps.get(&format!("cell{}.chunk-gap", cell.id)),
        };
        Exported {
            file: format.file(&data.name()),
            json: format.render(&data),
        }
    });
    Ok(Exports {
        files: files.collect(),
        losses,
    })
}

fn nothing(path: &Path, manifest: &Manifest, pick: &Pick) -> ReportError {
    let chains: Vec<&str> = manifest.chains.iter().map(|c| c.name.as_str()).collect();
    ReportError::NoCell {
        path: path.to_owned(),
        wanted: format!("chains {:?}, cells {:?}", pick.chains, pick.cells),
        there: format!(
            "chains {}, {} cells",
            chains.join(", "),
            manifest.cells.len()
        ),
    }
}

/// The calls of the wanted cells, warm-up left out.
fn by_cell(calls: Vec<ClientCall>, cells: &[&Cell]) -> HashMap<u32, Vec<ClientCall>> {
    let wanted: HashSet<u32> = cells.iter().map(|cell| cell.id).collect();
    let mut all: HashMap<u32, Vec<ClientCall>> = HashMap::new();
    for call in calls {
        if !call.warmup && wanted.contains(&call.cell) {
            all.entry(call.cell).or_default().push(call);
        }
    }
    all
}

/// The run's histograms; none where it has no log, as a merged run.
fn gaps(run: &RunDir) -> Result<BTreeMap<String, Histogram<u64>>, ReportError> {
    let path = run.histograms();
    let log = match std::fs::read(&path) {
        Ok(log) => log,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(source) => return Err(RunDirError::Io { path, source }.into()),
    };
    histogram::read_log(&log).map_err(|what| RunDirError::Damaged { path, what }.into())
}

/// The chains by name, as their files describe them.
fn chains(manifest: &Manifest) -> HashMap<String, Chain> {
    let texts = manifest.config.iter();
    texts
        .filter_map(|(key, text)| Some((key.strip_prefix("chain ")?, text)))
        .filter_map(|(name, text)| {
            // One that does not load here (its certificates lie elsewhere) leaves the model's name unknown.
            let chain = config::from_text::<Chain>(Path::new(name), text).ok()?;
            Some((name.to_owned(), chain.into_inner()))
        })
        .collect()
}
