//! `hopscope load`: drives a scenario over chains and writes a run directory.

mod all;

use super::{Done, shelf};
use anyhow::Context as _;
use config::scenario::Tokenizer;
use config::{Chain, Checked, Scenario};
use loadgen::progress::{Json, Silent, Style, Terminal};
use loadgen::{Plan, PlannedChain, PlannedTap, Progress, Shard, Stop};
use record::experiment::{Experiment, Found, Measure};
use record::manifest::Calibration;
use record::rundir::RunDir;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::Runtime;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The scenario: its number in the plan (1 to 9, `scenarios/N-*.yaml` of --config-dir), or a file.
    #[arg(long, short, value_name = "N|FILE", required_unless_present = "all")]
    scenario: Option<String>,
    /// A chain: its name (`chains/NAME.yaml` of --config-dir), or a file. Repeat it: what is measured,
    /// and its controls.
    #[arg(long, short, value_name = "NAME|FILE", required_unless_present = "all")]
    chain: Vec<String>,
    /// Every run of a matrix, each into a directory of its own under --out, and one report of all. The same
    /// command goes on after a kill.
    #[arg(long, conflicts_with_all = ["scenario", "chain", "resume", "name", "gateway_pid"])]
    all: bool,
    /// The matrix of --all. Default: `matrix.yaml` of --config-dir.
    #[arg(long, value_name = "FILE", requires = "all")]
    matrix: Option<PathBuf>,
    /// Where scenarios and chains are found by number and name.
    #[arg(long, value_name = "DIR", default_value = "config")]
    config_dir: PathBuf,
    /// The run directory to make; with --all, the directory of all of them.
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// Drive only part I of N of the load, as one of N generators that are started alike: `I/N`, from 0. Needs
    /// --start-at and --name. `hopscope merge` makes one run of the parts.
    #[arg(long, value_name = "I/N", requires = "start_at", requires = "name", conflicts_with_all = ["all", "resume"])]
    shard: Option<String>,
    /// When the first cell of all parts begins: seconds since the Unix epoch, or `+S` seconds from now.
    #[arg(long, value_name = "INSTANT", requires = "shard")]
    start_at: Option<String>,
    /// Go on with the run that is in --out, stopped or killed: what it finished is kept.
    #[arg(long)]
    resume: bool,
    /// A record directory of a tap process (`hopscope tap --record DIR`), with its process id where
    /// it runs on this machine: `DIR` or `DIR:PID`. Repeat it.
    #[arg(long = "tap", value_name = "DIR[:PID]")]
    taps: Vec<String>,
    /// What `hopscope calibrate --out` wrote: it travels in the run's manifest.
    #[arg(long, value_name = "FILE")]
    calibration: Option<PathBuf>,
    /// A process of a chain's component, in place of those its file names: `CHAIN=PID`. Repeat it.
    #[arg(long, value_name = "CHAIN=PID")]
    gateway_pid: Vec<String>,
    /// A process of the engine. Repeat it.
    #[arg(long, value_name = "PID")]
    engine_pid: Vec<u32>,
    /// Name of the run; it salts the prompts. Default: the run directory's name.
    #[arg(long)]
    name: Option<String>,
    /// Seed of arrivals, prompts and order, in place of the scenario's.
    #[arg(long)]
    seed: Option<u64>,
    /// Threads that carry streams.
    #[arg(long, default_value = "1")]
    lanes: NonZeroUsize,
    /// Do not ask for `ignore_eos`: for engines that refuse unknown fields.
    #[arg(long)]
    no_ignore_eos: bool,
    /// Say nothing but the result.
    #[arg(long, short)]
    quiet: bool,
    /// Tell progress as lines of JSON on standard error, for a program to read.
    #[arg(long, conflicts_with = "quiet")]
    progress_json: bool,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Done> {
    if args.all {
        return all::run(args);
    }
    let (_runtime, stop) = stop_on_ctrl_c()?;
    let run = measure(&plan(args)?, progress_of(args), &stop)?;
    verdict(&run)
}

/// Runs `plan`; `stop` ends it early and keeps what was measured.
pub(super) fn measure(
    plan: &Plan,
    progress: Arc<dyn Progress>,
    stop: &Stop,
) -> anyhow::Result<RunDir> {
    Ok(loadgen::run(plan, progress, stop)?)
}

/// Asks to stop at Ctrl-C, for as long as the runtime lives.
pub(super) fn stop_on_ctrl_c() -> anyhow::Result<(Runtime, Stop)> {
    let stop = Stop::default();
    let asked = stop.clone();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            eprintln!("hopscope: stopping; what was measured is kept");
            asked.request();
        }
    });
    Ok((runtime, stop))
}

fn progress_of(args: &Args) -> Arc<dyn Progress> {
    match args.progress_json {
        true => Arc::new(Json::stderr()),
        false => progress(args.quiet),
    }
}

/// Progress for a person, or none.
pub(super) fn progress(quiet: bool) -> Arc<dyn Progress> {
    if quiet {
        Arc::new(Silent)
    } else {
        Arc::new(Terminal::new(Style::detect()))
    }
}

/// Prints the verdict of a run.
pub(super) fn verdict(run: &RunDir) -> anyhow::Result<Done> {
    let manifest = run.manifest()?;
    let path = run.root().display();
    let Some(verdict) = manifest.verdict else {
        println!("{path}: no verdict: the run did not come to its end");
        return Ok(Done::Badly);
    };
    for check in verdict.broken() {
        let measured = check.measured.map_or_else(
            || "not measured".to_owned(),
            |m| format!("{m:.4} {}", check.unit),
        );
        let bound = if check.at_least {
            "at least"
        } else {
            "at most"
        };
        println!(
            "INVALID {}: {measured}, must be {bound} {} {}; {}",
            check.name, check.limit, check.unit, check.detail
        );
    }
    let unmet = unmet(&manifest.experiments);
    for line in &unmet {
        println!("NOT MET {line}");
    }
    if verdict.valid() {
        println!("{path}: valid: all {} checks hold", verdict.checks.len());
        return Ok(match unmet.is_empty() {
            true => Done::Well,
            false => Done::Badly,
        });
    }
    println!(
        "{path}: the run is not shown to be valid; `hopscope report {path}` shows what was measured"
    );
    Ok(Done::Badly)
}

/// What was not over when an experiment ended, line by line.
fn unmet(experiments: &[Experiment]) -> Vec<String> {
    let line = |one: &Experiment, measure: &Measure| {
        let Found::LongerThan(bound) = measure.found else {
            return None;
        };
        Some(format!(
            "{} of {}, repetition {}: longer than {:.1} s, when the experiment ended; raise `limit` to see its end",
            measure.quantity.name(),
            one.chain,
            one.block + 1,
            bound as f64 / 1e9,
        ))
    };
    let lines = experiments
        .iter()
        .flat_map(|one| one.unmet().filter_map(move |m| line(one, m)));
    lines.collect()
}

fn plan(args: &Args) -> anyhow::Result<Plan> {
    let wanted = args.scenario.as_deref().context("name a --scenario")?;
    let scenario_file = shelf::scenario(&args.config_dir, wanted)?;
    let scenario = config::load::<Scenario>(&scenario_file)?;
    let chain_files: Vec<PathBuf> = args
        .chain
        .iter()
        .map(|name| shelf::chain(&args.config_dir, name))
        .collect::<anyhow::Result<_>>()?;
    let chains = config::chains(&chain_files)?;
    let name = args.name.clone().unwrap_or_else(|| {
        args.out
            .file_name()
            .map_or_else(|| "run".to_owned(), |n| n.to_string_lossy().into_owned())
    });
    let scenario = (scenario.into_inner(), scenario_file.as_path());
    let mut plan = plan_of(args, &name, &args.out, scenario, &chains)?;
    for pair in &args.gateway_pid {
        let (chain, pid) = pair
            .split_once('=')
            .and_then(|(chain, pid)| Some((chain, pid.parse().ok()?)))
            .with_context(|| format!("--gateway-pid {pair}: write CHAIN=PID"))?;
        let planned = plan.chains.iter_mut().find(|c| c.chain.name == chain);
        planned
            .with_context(|| {
                format!("--gateway-pid {pair}: no chain of this run is called {chain}")
            })?
            .pids
            .push(pid);
    }
    plan.resume = args.resume;
    plan.shard = shard(args)?;
    plan.calibration = args.calibration.as_deref().map(calibration).transpose()?;
    Ok(plan)
}

/// The part of the load that the command line asks for.
fn shard(args: &Args) -> anyhow::Result<Option<Shard>> {
    let Some((text, at)) = args.shard.as_ref().zip(args.start_at.as_ref()) else {
        return Ok(None);
    };
    let parts = text.split_once('/');
    let parts = parts.and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
    let (index, of) = parts.with_context(|| format!("--shard {text}: write I/N, as 0/4"))?;
    let (base, seconds) = match at.strip_prefix('+') {
        Some(later) => (record::clock::wall(), later),
        None => (0, at.as_str()),
    };
    let seconds: f64 = seconds
        .parse()
        .ok()
        .filter(|s: &f64| s.is_finite() && *s >= 0.0)
        .with_context(|| {
            format!("--start-at {at}: write seconds since the Unix epoch (`date +%s`), or +S")
        })?;
    let start = base.saturating_add((seconds * 1e9) as u64);
    Ok(Some(Shard { index, of, start }))
}

/// The plan of a scenario over chains, with what the command line says of every run.
fn plan_of(
    args: &Args,
    name: &str,
    out: &Path,
    (mut scenario, file): (Scenario, &Path),
    chains: &[Checked<Chain>],
) -> anyhow::Result<Plan> {
    let beside = |path: &Path| file.parent().unwrap_or(Path::new("")).join(path);
    if let Tokenizer::File(path) = &mut scenario.workload.tokenizer {
        *path = beside(path);
    }
    if let Some(trace) = &mut scenario.trace {
        trace.file = beside(&trace.file);
    }
    let mut plan = Plan::new(name, out, scenario, read(file)?);
    for chain in chains {
        plan.chains.push(PlannedChain::from_file(chain)?);
    }
    plan.taps = args
        .taps
        .iter()
        .map(|text| tap(text))
        .collect::<anyhow::Result<_>>()?;
    plan.engine_pids.clone_from(&args.engine_pid);
    plan.seed = args.seed.unwrap_or(plan.seed);
    plan.lanes = args.lanes;
    plan.ignore_eos = !args.no_ignore_eos;
    Ok(plan)
}

fn tap(text: &str) -> anyhow::Result<PlannedTap> {
    let (dir, pid) = match text.rsplit_once(':') {
        Some((dir, pid)) if pid.bytes().all(|b| b.is_ascii_digit()) && !pid.is_empty() => (
            dir,
            Some(
                pid.parse()
                    .with_context(|| format!("--tap {text}: the process id is out of range"))?,
            ),
        ),
        _ => (text, None),
    };
    let records = PathBuf::from(dir);
    anyhow::ensure!(
        records.is_dir(),
        "--tap {text}: {dir} is no directory; name the one that `hopscope tap --record` writes"
    );
    Ok(PlannedTap { records, pid })
}

/// Reads what `hopscope calibrate --out` wrote.
pub(super) fn calibration(path: &Path) -> anyhow::Result<Calibration> {
    let text = read(path)?;
    serde_json::from_str(&text).with_context(|| {
        format!(
            "{}: not a calibration; `hopscope calibrate --out FILE` makes one",
            path.display()
        )
    })
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{}: cannot be read", path.display()))
}
