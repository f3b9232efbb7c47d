//! `hopscope calibrate`: the error of the instrument on this machine.

use super::Done;
use anyhow::Context as _;
use config::Calibration as Settings;
use hopscope::calibrate::{Outcome, print, run as calibrate};
use record::manifest::Calibration;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// What to run, and the bounds (config/calibration.yaml: twenty minutes; config/calibration-short.yaml: a few).
    #[arg(
        long,
        short,
        value_name = "FILE",
        default_value = "config/calibration-short.yaml"
    )]
    config: PathBuf,
    /// Write the figures here, for `hopscope load --calibration`.
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Where the processes' files go. Removed first.
    #[arg(long, value_name = "DIR", default_value = "target/calibration")]
    work: PathBuf,
    /// Say nothing but the result.
    #[arg(long, short)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Done> {
    let settings = config::load::<Settings>(&args.config)?;
    if let Some(path) = &args.out {
        writable(path)?;
    }
    let outcome = perform(&settings, &args.work, args.quiet)?;
    print!("{}", print(&outcome));
    if let Some(path) = &args.out {
        std::fs::write(path, serde_json::to_vec_pretty(&outcome.calibration)?)
            .with_context(|| format!("{}: cannot be written", path.display()))?;
    }
    Ok(if outcome.beyond.is_empty() {
        Done::Well
    } else {
        Done::Badly
    })
}

/// Finds out before minutes of measuring that the result could not be written.
fn writable(path: &Path) -> anyhow::Result<()> {
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let there = parent.is_none_or(Path::is_dir) && !path.is_dir();
    anyhow::ensure!(
        there,
        "{}: cannot be written; name a file in a directory that exists",
        path.display()
    );
    Ok(())
}

/// A calibration as part of another command: prints it, and goes on whatever it found.
pub(super) fn measure(
    settings: &Settings,
    work: &Path,
    quiet: bool,
) -> anyhow::Result<Calibration> {
    let outcome = perform(settings, work, quiet)?;
    print!("{}", print(&outcome));
    Ok(outcome.calibration)
}

fn perform(settings: &Settings, work: &Path, quiet: bool) -> anyhow::Result<Outcome> {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = stop.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            asked.store(true, Ordering::Relaxed);
        }
    });
    let say = |what: &str| {
        if !quiet {
            eprintln!("calibrate: {what}");
        }
    };
    calibrate(settings, work, &say, &stop)
}
