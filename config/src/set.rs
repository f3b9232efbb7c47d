//! Several files that work together: what must hold between them.

mod fit;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{ConfigError, Finding};
use crate::load::{Checked, load};
use crate::scalar::Listen;
use crate::{Calibration, Chain, Demo, Matrix, Scenario, TapProcess};

/// A tap process and its chains, checked together.
#[derive(Clone, Debug)]
pub struct TapSet {
    /// The settings of the process.
    pub process: Checked<TapProcess>,
    /// Its chains, in the order of the file.
    pub chains: Vec<Checked<Chain>>,
}

/// A demonstration and everything it names, checked together.
#[derive(Clone, Debug)]
pub struct DemoSet {
    /// The demonstration's own file.
    pub demo: Checked<Demo>,
    /// The tap process and the chains with taps.
    pub tap: TapSet,
    /// The chains without taps.
    pub untapped: Vec<Checked<Chain>>,
    /// The scenario.
    pub scenario: Checked<Scenario>,
    /// The calibration.
    pub calibration: Checked<Calibration>,
}

impl DemoSet {
    /// All chains: those with taps, then those without.
    pub fn chains(&self) -> impl Iterator<Item = &Checked<Chain>> {
        self.tap.chains.iter().chain(&self.untapped)
    }
}

/// Reads the settings of a tap process and every chain they name, and checks that all listeners can
/// be bound together.
///
/// # Errors
/// Every finding in any of the files.
pub fn tap_process(path: impl AsRef<Path>) -> Result<TapSet, ConfigError> {
    let process = load::<TapProcess>(path)?;
    let paths: Vec<PathBuf> = process
        .chains
        .iter()
        .map(|chain| process.beside(chain))
        .collect();
    let chains = chains(&paths)?;
    let mut findings = Vec::new();
    let own = [("telemetry", process.telemetry), ("admin", process.admin)];
    let own = own.into_iter().filter_map(|(at, listen)| {
        Some(Listener {
            listen: listen?,
            what: format!("`{at}`"),
            finding: process.finding(at, ""),
        })
    });
    distinct(own.chain(chains.iter().flat_map(listeners)), &mut findings);
    fail(findings)?;
    Ok(TapSet { process, chains })
}

/// Reads several chains that are used together: their names differ, no two listeners take one port,
/// and every control finds the chain that it controls when that is among them.
///
/// # Errors
/// Every finding in any of the files.
pub fn chains<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<Checked<Chain>>, ConfigError> {
    let mut findings = Vec::new();
    let mut chains: Vec<Checked<Chain>> = Vec::new();
    for path in paths {
        match load::<Chain>(path) {
            Ok(chain) => chains.push(chain),
            Err(error) => findings.extend(error.into_findings()),
        }
    }
    let mut names: BTreeMap<&str, &Checked<Chain>> = BTreeMap::new();
    for chain in &chains {
        if let Some(other) = names.insert(&chain.name, chain) {
            let message = format!(
                "the name `{}` is taken at {}; choose another",
                chain.name,
                other.location("name")
            );
            findings.push(chain.finding("name", message));
        }
    }
    distinct(chains.iter().flat_map(listeners), &mut findings);
    fail(findings)?;
    Ok(chains)
}

/// Reads a demonstration and every file it names, and checks that they fit.
///
/// # Errors
/// Every finding in any of the files.
pub fn demo(path: impl AsRef<Path>) -> Result<DemoSet, ConfigError> {
    let demo = load::<Demo>(path)?;
    let tap = tap_process(demo.beside(&demo.tap))?;
    let paths: Vec<PathBuf> = demo
        .untapped
        .iter()
        .map(|chain| demo.beside(chain))
        .collect();
    let untapped = chains(&paths)?;
    let scenario = load::<Scenario>(demo.beside(&demo.scenario))?;
    let calibration = load::<Calibration>(demo.beside(&demo.calibration))?;
    let set = DemoSet {
        demo,
        tap,
        untapped,
        scenario,
        calibration,
    };
    let mut findings = Vec::new();
    let stand_ins = set
        .demo
        .listeners()
        .into_iter()
        .map(|(at, listen)| Listener {
            listen,
            what: format!("`{at}`"),
            finding: set.demo.finding(&at, ""),
        });
    distinct(
        set.tap.chains.iter().flat_map(listeners).chain(stand_ins),
        &mut findings,
    );
    fit::check(&set, &mut findings);
    fail(findings)?;
    Ok(set)
}

/// A matrix and everything it names, checked together.
#[derive(Clone, Debug)]
pub struct MatrixSet {
    /// The matrix' own file.
    pub matrix: Checked<Matrix>,
    /// The tap process to start, with its chains.
    pub tap: Option<TapSet>,
    /// The calibration to run.
    pub calibration: Option<Checked<Calibration>>,
    /// Each run's scenario and chains, in the order of the file.
    pub runs: Vec<(Checked<Scenario>, Vec<Checked<Chain>>)>,
}

/// Reads a matrix and every file it names, and checks that they fit.
///
/// # Errors
/// Every finding in any of the files.
pub fn matrix(path: impl AsRef<Path>) -> Result<MatrixSet, ConfigError> {
    let matrix = load::<Matrix>(path)?;
    let tap = matrix.tap.as_ref().map(|tap| matrix.beside(tap));
    let tap = tap.map(tap_process).transpose()?;
    let calibration = matrix.calibration.as_ref().map(|file| matrix.beside(file));
    let calibration = calibration.map(load::<Calibration>).transpose()?;
    let mut runs: Vec<(Checked<Scenario>, Vec<Checked<Chain>>)> = Vec::new();
    let mut findings = Vec::new();
    for (at, run) in matrix.runs.iter().enumerate() {
        let scenario = load::<Scenario>(matrix.beside(&run.scenario))?;
        if runs.iter().any(|(other, _)| other.name == scenario.name) {
            let message = format!(
                "an earlier run's scenario is called `{}` too, and both would have one directory; choose another name",
                scenario.name
            );
            findings.push(matrix.finding(&format!("runs[{at}].scenario"), message));
        }
        let paths: Vec<PathBuf> = run.chains.iter().map(|c| matrix.beside(c)).collect();
        runs.push((scenario, chains(&paths)?));
    }
    let processes = matrix
        .start
        .iter()
        .enumerate()
        .map(|(at, process)| Listener {
            listen: process.ready,
            what: format!("the process `{}`", process.name),
            finding: matrix.finding(&format!("start[{at}].ready"), ""),
        });
    let taps = tap.iter().flat_map(|set| &set.chains).flat_map(listeners);
    distinct(processes.chain(taps), &mut findings);
    fail(findings)?;
    Ok(MatrixSet {
        matrix,
        tap,
        calibration,
        runs,
    })
}

/// A listener of some file, and a finding that points at it.
struct Listener {
    listen: Listen,
    what: String,
    finding: Finding,
}

fn listeners(chain: &Checked<Chain>) -> impl Iterator<Item = Listener> {
    chain.taps.iter().enumerate().map(|(at, tap)| Listener {
        listen: tap.listen,
        what: format!("the tap `{}`", tap.name),
        finding: chain.finding(&format!("taps[{at}].listen"), ""),
    })
}

/// Reports every listener whose port an earlier one takes, with the place of both.
fn distinct(listeners: impl Iterator<Item = Listener>, findings: &mut Vec<Finding>) {
    let mut seen: Vec<Listener> = Vec::new();
    for next in listeners {
        if let Some(first) = seen.iter().find(|first| first.listen.overlaps(next.listen)) {
            let place = first.finding.to_string();
            let place = place.trim_end_matches(": ");
            let message = format!(
                "`{}` is already taken by {} at {place}; choose another port",
                next.listen, first.what
            );
            findings.push(Finding {
                message,
                ..next.finding.clone()
            });
        }
        seen.push(next);
    }
}

fn fail(findings: Vec<Finding>) -> Result<(), ConfigError> {
    if findings.is_empty() {
        Ok(())
    } else {
        Err(ConfigError::new(findings))
    }
}
