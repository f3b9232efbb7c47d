//! From gathered calls to the report's figures.

mod agent;
mod arm;
mod contrast;
#[cfg(test)]
mod damage;
mod pace;
mod perturbation;
mod probe;
mod repetition;
mod row;
mod server;
mod session;
mod strata;
mod task;
#[cfg(test)]
mod tests;
mod unsent;
mod work;

pub(crate) use arm::window;
pub(crate) use unsent::of_cell as unsent_of;

use crate::gather::{Gathered, gather};
use crate::model::{Arm, Report, RunInfo};
use crate::{ReportError, drift, experiments, leak};
use record::manifest::{Cell, Drive, ScenarioInfo};
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Version of the report's JSON.
const FORMAT: u32 = 1;

/// Builds the report of `runs`. One that cannot be used is named among the losses, beside the others.
///
/// # Errors
/// No run is named, or none of them can be used.
pub fn build(runs: &[PathBuf]) -> Result<Report, ReportError> {
    if runs.is_empty() {
        return Err(ReportError::NoRun);
    }
    let mut losses = Vec::new();
    let mut report = Report::empty();
    let (mut seen, mut names) = (HashSet::new(), HashSet::new());
    let mut first_fault = None;
    for path in runs {
        if !seen.insert(std::fs::canonicalize(path).unwrap_or_else(|_| path.clone())) {
            losses.push(format!("{}: named twice, counted once", path.display()));
            continue;
        }
        let mut run = match gather(path, &mut losses) {
            Ok(run) => run,
            Err(error) => {
                losses.push(format!("left out: {error}"));
                first_fault = first_fault.or(Some(error));
                continue;
            }
        };
        // Figures name their run: two of one name are told apart by their paths.
        if !names.insert(run.name.clone()) {
            run.name = path.display().to_string();
            names.insert(run.name.clone());
        }
        let before = (
            report.arms.len(),
            report.perturbations.len(),
            report.drifts.len(),
            report.leaks.len(),
        );
        report.simulated |= run.manifest.simulated;
        report.experiments.extend(experiments::rows(&run));
        let groups = groups(&run);
        let whole: Vec<Arm> = groups
            .iter()
            .map(|cells| arm::arm(&run, cells, None))
            .collect();
        report
            .perturbations
            .extend(perturbation::all(&run, &groups, &whole));
        report
            .contrasts
            .extend(contrast::all(&run, &groups, &whole));
        for (cells, whole) in groups.iter().zip(whole) {
            let phases = phases(&run, cells);
            let course = drift::course(&whole.drive);
            report.drifts.extend(drift::drifts(&whole, course, &phases));
            report.leaks.extend(leak::leaks(&run, cells, &whole));
            report.arms.push(whole);
            report.arms.extend(phases);
        }
        if runs.len() > 1 {
            name(&mut report, before, &run.name);
        }
        report.runs.push(info(run, path));
    }
    if let Some(error) = first_fault.filter(|_| report.runs.is_empty()) {
        return Err(error);
    }
    let versions: std::collections::BTreeSet<&str> =
        report.runs.iter().map(|r| r.version.as_str()).collect();
    if versions.len() > 1 {
        losses.push(format!(
            "runs of several versions of hopscope are shown together: {versions:?}"
        ));
    }
    report.losses = losses;
    Ok(report)
}

impl Report {
    /// That of no run: nothing was measured.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            format: FORMAT,
            simulated: false,
            runs: Vec::new(),
            arms: Vec::new(),
            perturbations: Vec::new(),
            contrasts: Vec::new(),
            drifts: Vec::new(),
            experiments: Vec::new(),
            variants: Vec::new(),
            leaks: Vec::new(),
            losses: Vec::new(),
        }
    }
}

/// Says of what `run` added to the report, from `before` on, whose it is: two runs may drive one chain
/// alike, with other calls.
fn name(report: &mut Report, before: (usize, usize, usize, usize), run: &str) {
    let named = |text: &mut String| *text = format!("{run}: {text}");
    let arms = report.arms.iter_mut().skip(before.0);
    arms.for_each(|arm| named(&mut arm.label));
    let perturbations = report.perturbations.iter_mut().skip(before.1);
    perturbations.for_each(|p| named(&mut p.label));
    let drifts = report.drifts.iter_mut().skip(before.2);
    drifts.for_each(|drift| named(&mut drift.chain));
    let leaks = report.leaks.iter_mut().skip(before.3);
    leaks.for_each(|leak| named(&mut leak.chain));
}

/// An arm of each phase of a course of load.
fn phases(run: &Gathered, cells: &[&Cell]) -> Vec<Arm> {
    let count = match cells.first().map(|c| &c.drive) {
        Some(Drive::Profile { phases }) if phases.len() > 1 => phases.len(),
        _ => 0,
    };
    (0..count)
        .map(|at| arm::arm(run, cells, Some(at)))
        .collect()
}

fn info(run: Gathered, path: &Path) -> RunInfo {
    let scenario = scenario(&run);
    let manifest = run.manifest;
    RunInfo {
        name: run.name,
        path: path.to_owned(),
        version: manifest.version,
        started: manifest.started,
        host: manifest.host,
        shared_cpu: manifest.shared_cpu,
        scenario,
        workload: manifest.workload,
        chains: manifest.chains,
        verdict: manifest.verdict,
        calibration: manifest.calibration,
        tool_filter: manifest.tool_filter,
        token_probes: manifest.token_probes,
        scrape_cpu: manifest.scrape_cpu,
        probes: probe::findings(&run.probes),
    }
}

/// The scenario of a run: by its manifest, or, in runs of earlier versions, by the file that it was made by.
fn scenario(run: &Gathered) -> Option<ScenarioInfo> {
    let by_file = || {
        let scenario = run.scenario.as_ref()?;
        Some(ScenarioInfo {
            number: scenario.number,
            name: scenario.name.clone(),
        })
    };
    run.manifest.scenario.clone().or_else(by_file)
}

/// Whether two cells are driven in one way. A share of capacity is one way, whatever rate it came to.
fn alike(a: &Drive, b: &Drive) -> bool {
    match (a, b) {
        (Drive::Open { share: Some(a), .. }, Drive::Open { share: Some(b), .. }) => {
            a.total_cmp(b).is_eq()
        }
        _ => a == b,
    }
}

/// The cells of each arm, over blocks: gateways first, as the manifest orders the chains, then by
/// drive. Steps of the capacity search, experiments of operation and floor probes are no arms.
fn groups(run: &Gathered) -> Vec<Vec<&Cell>> {
    let mut groups: Vec<Vec<&Cell>> = Vec::new();
    for cell in &run.manifest.cells {
        let other = matches!(
            cell.drive,
            Drive::Capacity { .. } | Drive::Experiment { .. }
        );
        if other || run.floors.contains(&cell.id) {
            continue;
        }
        let same = |group: &Vec<&Cell>| {
            group
                .first()
                .is_some_and(|c| c.chain == cell.chain && alike(&c.drive, &cell.drive))
        };
        match groups.iter_mut().find(|g| same(g)) {
            Some(group) => group.push(cell),
            None => groups.push(vec![cell]),
        }
    }
    let place = |chain: &str| {
        run.manifest
            .chains
            .iter()
            .position(|c| c.name == chain)
            .unwrap_or(usize::MAX)
    };
    groups.sort_by(|a, b| {
        let key = |g: &[&Cell]| g.first().map(|c| (place(&c.chain), order(&c.drive)));
        key(a)
            .partial_cmp(&key(b))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    groups
}

fn order(drive: &Drive) -> (u8, f64) {
    match drive {
        Drive::Open { rate, .. } => (0, *rate),
        Drive::Closed { concurrency } => (1, f64::from(*concurrency)),
        Drive::Profile { .. } => (2, 0.0),
        Drive::Trace { speed, .. } => (6, *speed),
        Drive::Tenant { company, .. } => (5, f64::from(*company as u8)),
        Drive::Agent { concurrency, .. } => (3, f64::from(*concurrency)),
        Drive::Capacity { rate } => (4, *rate),
        Drive::Experiment { setup } => (6, setup.rate),
    }
}

/// A share in percent, with as many digits as it was written with.
fn percent(share: f64) -> String {
    // A share that a person writes has fewer digits than this, and its product with 100 more.
    let text = format!("{:.9}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The drive in words, different for drives that are not alike: rates that were asked for are written in full.
pub(crate) fn label(drive: &Drive) -> String {
    match drive {
        Drive::Closed { concurrency } => format!("{concurrency} at once"),
        Drive::Open {
            rate,
            share: Some(share),
        } => format!("{} % of capacity ({rate:.1}/s)", percent(*share)),
        Drive::Open { rate, share: None } => format!("{rate}/s"),
        Drive::Tenant {
            tenant,
            rate,
            company,
        } => format!("tenant {tenant}, {} ({rate}/s)", company.name()),
        Drive::Profile { phases } => match phases.as_slice() {
            [one] if (one.rate - one.to).abs() < f64::EPSILON => {
                format!("{} ({}/s)", one.name, one.rate)
            }
            [one] => format!("{} ({} to {}/s)", one.name, one.rate, one.to),
            many => {
                let names: Vec<&str> = many.iter().map(|p| p.name.as_str()).collect();
                format!("course: {}", names.join(", "))
            }
        },
        Drive::Trace { file, speed, .. } => {
            let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
            match (*speed - 1.0).abs() < f64::EPSILON {
                true => format!("trace {name}"),
                false => format!("trace {name}, {speed} times as fast"),
            }
        }
        Drive::Capacity { rate } => format!("capacity step {rate:.1}/s"),
        Drive::Experiment { setup } => setup.looks_for.name().to_owned(),
        Drive::Agent {
            concurrency,
            whole: true,
            ..
        } => format!("agent as a black box, {concurrency} at once"),
        Drive::Agent {
            turns, concurrency, ..
        } => {
            format!("agent, {turns} turns, {concurrency} at once")
        }
    }
}
