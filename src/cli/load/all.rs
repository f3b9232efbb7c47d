//! `hopscope load --all`: every run of a matrix, one after the other, into directories of their own.
//!
//! A run whose directory holds its end is not made again, and one that was cut is taken up where it was:
//! the same command goes on after a kill.

use super::{Args, Done, measure, plan_of, stop_on_ctrl_c, verdict};
use crate::cli::{calibrate, report};
use anyhow::Context as _;
use config::{MatrixSet, Scenario};
use hopscope::spawn::Children;
use loadgen::{PlannedTap, Stop};
use record::manifest::{Calibration, Manifest};
use record::rundir::RunDir;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What became of one run of the matrix.
struct Row {
    name: String,
    what: String,
    took: Option<Duration>,
}

/// What stands on this machine for the whole matrix.
struct Ground {
    children: Children,
    /// Of each process that was started.
    pids: Vec<u32>,
    tap: Option<PlannedTap>,
    calibration: Option<Calibration>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Done> {
    let file = args
        .matrix
        .clone()
        .unwrap_or_else(|| args.config_dir.join("matrix.yaml"));
    let set = config::matrix(&file)?;
    let (_runtime, stop) = stop_on_ctrl_c()?;
    let mut ground = prepare(&set, args)?;
    let mut rows = Vec::new();
    let mut made = Vec::new();
    for at in 0..set.runs.len() {
        if stop.requested() {
            break;
        }
        let dir = args.out.join(&set.runs[at].0.name);
        let begun = Instant::now();
        let (what, new) = match one(&set, at, &dir, args, &ground, &stop) {
            Ok(told) => told,
            // The others may do.
            Err(error) => (crate::cli::one_message(&error), true),
        };
        eprintln!("load: {}: {what}", set.runs[at].0.name);
        rows.push(Row {
            name: set.runs[at].0.name.clone(),
            what,
            took: new.then(|| begun.elapsed()),
        });
        if RunDir::open(&dir).is_ok() {
            made.push(dir);
        }
        ground.children.check()?;
    }
    ground.children.stop_all();
    let whole = rows.len() == set.runs.len();
    close(&args.out, &made, &rows)?;
    if !whole {
        println!("stopped; the same command goes on");
    }
    let fine = whole && rows.iter().all(|row| row.what == VALID);
    Ok(if fine { Done::Well } else { Done::Badly })
}

/// Starts what the matrix names and calibrates where it says so.
fn prepare(set: &MatrixSet, args: &Args) -> anyhow::Result<Ground> {
    std::fs::create_dir_all(&args.out)
        .with_context(|| format!("{}: cannot be made", args.out.display()))?;
    let calibration = calibration(set, args)?;
    let mut children = Children::new(&args.out.join("logs"))?;
    let mut pids = Vec::new();
    for process in &set.matrix.start {
        let here = set.matrix.beside(Path::new("."));
        let word = |word: &str| word.replace("{here}", &here.to_string_lossy());
        let words: Vec<String> = process.run.split_whitespace().map(word).collect();
        pids.push(children.start(&process.name, &words)?);
        children.wait_for(process.ready.get())?;
    }
    let tap = set.tap.as_ref().map(|tap| -> anyhow::Result<PlannedTap> {
        let records = args.out.join("records");
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let line = [
            "tap".to_owned(),
            "--config".to_owned(),
            text(tap.process.path()),
            "--record".to_owned(),
            text(&records),
        ];
        let pid = Some(children.start("tap", &line)?);
        for point in tap.chains.iter().flat_map(|chain| &chain.taps) {
            children.wait_for(point.listen.get())?;
        }
        Ok(PlannedTap { records, pid })
    });
    let tap = tap.transpose()?;
    Ok(Ground {
        children,
        pids,
        tap,
        calibration,
    })
}

/// The calibration that all runs carry: the one that is named, the one of an earlier start, or a new one.
fn calibration(set: &MatrixSet, args: &Args) -> anyhow::Result<Option<Calibration>> {
    if let Some(path) = &args.calibration {
        return super::calibration(path).map(Some);
    }
    let Some(settings) = &set.calibration else {
        return Ok(None);
    };
    let kept = args.out.join("calibration.json");
    if kept.is_file() {
        return super::calibration(&kept).map(Some);
    }
    let found = calibrate::measure(settings, &args.out.join("calibration"), args.quiet)?;
    std::fs::write(&kept, serde_json::to_vec_pretty(&found)?)
        .with_context(|| format!("{}: cannot be written", kept.display()))?;
    Ok(Some(found))
}

const VALID: &str = "valid";

/// Makes one run, or what is left of it; what came of it, and whether anything was left to do.
fn one(
    set: &MatrixSet,
    at: usize,
    dir: &Path,
    args: &Args,
    ground: &Ground,
    stop: &Stop,
) -> anyhow::Result<(String, bool)> {
    let begun = RunDir::open(dir).ok();
    if let Some(run) = &begun
        && let Ok(manifest) = run.manifest()
        && ended(&manifest)
    {
        return Ok((told(&manifest), false));
    }
    let (scenario, chains) = &set.runs[at];
    let name = &scenario.name;
    let mut plan = plan_of(
        args,
        name,
        dir,
        (Scenario::clone(scenario), scenario.path()),
        chains,
    )?;
    plan.resume = begun.is_some();
    plan.taps.extend(ground.tap.clone());
    plan.calibration.clone_from(&ground.calibration);
    for (process, pid) in set.matrix.start.iter().zip(&ground.pids) {
        if process.engine {
            plan.engine_pids.push(*pid);
        }
        let chains = plan.chains.iter_mut();
        chains
            .filter(|c| process.component_of.contains(&c.chain.name))
            .for_each(|c| c.pids.push(*pid));
    }
    let run = measure(&plan, super::progress_of(args), stop)?;
    verdict(&run)?;
    Ok((told(&run.manifest()?), true))
}

/// Nothing is left to do.
fn ended(manifest: &Manifest) -> bool {
    let verdict = manifest.verdict.as_ref();
    verdict.is_some_and(|v| v.broken().all(|check| check.name != "stopped-early"))
}

fn told(manifest: &Manifest) -> String {
    let Some(verdict) = &manifest.verdict else {
        return "did not come to its end".to_owned();
    };
    let broken: Vec<&str> = verdict.broken().map(|check| check.name.as_str()).collect();
    let unmet = super::unmet(&manifest.experiments).len();
    match broken.is_empty() {
        true if unmet > 0 => format!("valid; {unmet} quantities were not over at their limit"),
        true => VALID.to_owned(),
        false => format!("not shown to be valid: {}", broken.join(", ")),
    }
}

/// One report of all runs, and a line for each.
fn close(out: &Path, made: &[PathBuf], rows: &[Row]) -> anyhow::Result<()> {
    println!();
    for row in rows {
        let took = row.took.map_or_else(
            || "done before".to_owned(),
            |took| format!("{:.0} s", took.as_secs_f64()),
        );
        println!("{:<28} {took:>12}  {}", row.name, row.what);
    }
    if made.is_empty() {
        return Ok(());
    }
    let page = out.join("report.html");
    let (markdown, json) = (out.join("report.md"), out.join("report.json"));
    report::write(made, &page, Some(&markdown), Some(&json))?;
    println!("page: {}", std::path::absolute(&page)?.display());
    Ok(())
}
