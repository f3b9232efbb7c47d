//! Measures what proxies add to each token of a stream, and what they pay for it, side by side in
//! one run: see README.md beside this crate.

mod block;
mod body;
mod calls;
mod clock;
mod engine;
mod machine;
mod outcome;
mod quiet;
mod samples;
mod subject;
mod table;

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Parser;

use crate::block::{Harness, Plan};
use crate::clock::{MILLISECOND, SECOND};
use crate::engine::{Engine, Phases};
use crate::machine::{Machine, Placement};
use crate::outcome::{Blocks, DIRECT, Outcome, Parameters};
use crate::subject::{Recipe, Subject};

/// How long a proxy may take until a stream passes through it.
const START_LIMIT: Duration = Duration::from_secs(60);

/// Delay and CPU that proxies add to a streamed token, measured side by side.
#[derive(Parser)]
struct Arguments {
    /// NAME=COMMAND of a proxy; {port}, {upstream} (host:port) and {work} (a folder) are filled in.
    #[arg(long = "subject", required = true)]
    subjects: Vec<Recipe>,
    /// The subject that the ratios compare with the others.
    #[arg(long, default_value = "tap")]
    reference: String,
    /// Numbers of concurrent streams.
    #[arg(long, value_delimiter = ',', default_value = "1,50,300")]
    streams: Vec<usize>,
    /// Blocks of each arm at each number of streams; below ten there are no intervals.
    #[arg(long, default_value_t = 12)]
    rounds: usize,
    /// Measured seconds of a block.
    #[arg(long, default_value_t = 3.0)]
    seconds: f64,
    /// Seconds of warm-up before them.
    #[arg(long, default_value_t = 0.5)]
    warm: f64,
    /// Milliseconds between two tokens of a stream.
    #[arg(long, default_value_t = 20)]
    gap: u64,
    /// When streams send, relative to each other.
    #[arg(long, value_enum, default_value = "random")]
    phases: Phases,
    /// Pin harness and proxies to a CPU each (needs taskset).
    #[arg(long)]
    pin: bool,
    /// Times that a block is run again when other processes took over 5 % of a CPU in it.
    #[arg(long, default_value_t = 5)]
    retries: usize,
    /// Seed of the phases and of the order of arms.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for the proxies' files.
    #[arg(long)]
    work: PathBuf,
    /// Where to write the outcome as JSON.
    #[arg(long)]
    out: Option<PathBuf>,
    /// A fact to keep with the outcome (repeatable).
    #[arg(long = "note")]
    notes: Vec<String>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let outcome = run(&arguments)?;
    println!("{}", table::render(&outcome));
    if let Some(path) = &arguments.out {
        let json = serde_json::to_string_pretty(&outcome)?;
        fs::write(path, json + "\n").with_context(|| format!("cannot write {}", path.display()))?;
        println!("written to {}", path.display());
    }
    if !outcome.verdict.is_empty() {
        bail!("not a result: {}", outcome.verdict.join("; "));
    }
    Ok(())
}

fn run(arguments: &Arguments) -> Result<Outcome> {
    check(arguments)?;
    let started = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let machine = Machine::here()?;
    let placement = machine::place(arguments.pin)?;
    fastrand::seed(arguments.seed);
    let engine = Engine::new(arguments.gap * MILLISECOND, arguments.phases)?;
    let address = engine.address()?;
    let mut harness = Harness::new(engine, stop)?;
    let mut subjects = start_all(arguments, &mut harness, address, placement)?;
    let (blocks, repeated) = measure(arguments, &mut harness, address, &mut subjects)?;

    let names: Vec<String> = std::iter::once(DIRECT.to_owned())
        .chain(subjects.iter().map(|s| s.recipe.name.clone()))
        .collect();
    let window = seconds(arguments.seconds);
    let levels = arguments
        .streams
        .iter()
        .zip(&blocks)
        .map(|(streams, arms)| {
            outcome::level(*streams, &names, arms, &arguments.reference, window)
        });
    Ok(Outcome {
        started_unix_seconds: started,
        notes: arguments.notes.clone(),
        machine,
        placement,
        parameters: parameters(arguments),
        reference: arguments.reference.clone(),
        repeated_blocks: repeated,
        verdict: Vec::new(),
        levels: levels.collect::<Result<_>>()?,
    }
    .judged())
}

fn check(arguments: &Arguments) -> Result<()> {
    let names: Vec<_> = arguments.subjects.iter().map(|s| s.name.as_str()).collect();
    if !names.contains(&arguments.reference.as_str()) {
        bail!(
            "--reference {} is not among the subjects {}",
            arguments.reference,
            names.join(", ")
        );
    }
    let in_range = |seconds: f64| (0.1..=600.0).contains(&seconds);
    if !in_range(arguments.seconds) || !in_range(arguments.warm) {
        bail!("--seconds and --warm take 0.1 to 600");
    }
    if arguments.gap == 0 || arguments.rounds == 0 || arguments.streams.contains(&0) {
        bail!("--gap, --rounds and --streams start at 1");
    }
    Ok(())
}

fn parameters(arguments: &Arguments) -> Parameters {
    Parameters {
        rounds: arguments.rounds,
        window_ns: seconds(arguments.seconds),
        gap_ns: arguments.gap * MILLISECOND,
        phases: format!("{:?}", arguments.phases).to_lowercase(),
        seed: arguments.seed,
        commands: arguments
            .subjects
            .iter()
            .map(|s| format!("{}={}", s.name, s.command))
            .collect(),
    }
}

/// Seconds in nanoseconds; the caller has checked the range.
fn seconds(seconds: f64) -> u64 {
    (seconds * SECOND as f64) as u64
}

fn start_all(
    arguments: &Arguments,
    harness: &mut Harness,
    upstream: SocketAddr,
    placement: Placement,
) -> Result<Vec<Subject>> {
    let mut subjects = Vec::new();
    for recipe in &arguments.subjects {
        let mut subject = Subject::start(recipe, upstream, &arguments.work, placement.subject_cpu)?;
        wait_for_stream(harness, &mut subject).with_context(|| {
            let log = arguments.work.join(&recipe.name).join("log.txt");
            format!("{} passes no stream; see {}", recipe.name, log.display())
        })?;
        subject.pause()?;
        subjects.push(subject);
    }
    Ok(subjects)
}

/// Ready is a proxy that brings a whole stream through.
fn wait_for_stream(harness: &mut Harness, subject: &mut Subject) -> Result<()> {
    let trial = Plan {
        streams: 1,
        warm: MILLISECOND,
        window: 50 * MILLISECOND,
    };
    let limit = Instant::now() + START_LIMIT;
    loop {
        subject.is_alive()?;
        match harness.run(subject.address, None, trial) {
            Ok(_) => return Ok(()),
            Err(error) if harness.is_stopped() || Instant::now() > limit => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Blocks by level and arm (the control is arm 0), each arm once a round in random order.
fn measure(
    arguments: &Arguments,
    harness: &mut Harness,
    direct: SocketAddr,
    subjects: &mut [Subject],
) -> Result<(Vec<Vec<Blocks>>, usize)> {
    let mut repeated = 0;
    let arms = subjects.len() + 1;
    let mut blocks: Vec<Vec<Blocks>> = arguments
        .streams
        .iter()
        .map(|_| (0..arms).map(|_| Blocks::new()).collect())
        .collect();
    for round in 0..arguments.rounds {
        for (streams, level) in arguments.streams.iter().zip(&mut blocks) {
            let plan = Plan {
                streams: *streams,
                warm: seconds(arguments.warm),
                window: seconds(arguments.seconds),
            };
            let mut order: Vec<usize> = (0..arms).collect();
            fastrand::shuffle(&mut order);
            for arm in order {
                let subject = arm.checked_sub(1).map(|n| &mut subjects[n]);
                let (block, again) =
                    quiet_block(harness, direct, subject, plan, arguments.retries)?;
                level[arm].push(block);
                repeated += again;
            }
        }
        eprintln!("round {} of {} done", round + 1, arguments.rounds);
    }
    Ok((blocks, repeated))
}

/// A block, run again while others disturbed it: a choice that does not look at what it measured.
fn quiet_block(
    harness: &mut Harness,
    direct: SocketAddr,
    mut subject: Option<&mut Subject>,
    plan: Plan,
    retries: usize,
) -> Result<(samples::Block, usize)> {
    let mut again = 0;
    loop {
        let block = block_of(harness, direct, subject.as_deref_mut(), plan)?;
        let share = block.others.busy as f64 / plan.window as f64;
        if share <= outcome::OTHERS_LIMIT || again == retries {
            return Ok((block, again));
        }
        again += 1;
    }
}

fn block_of(
    harness: &mut Harness,
    direct: SocketAddr,
    subject: Option<&mut Subject>,
    plan: Plan,
) -> Result<samples::Block> {
    let Some(subject) = subject else {
        return harness
            .run(direct, None, plan)
            .with_context(|| format!("direct path at {} streams", plan.streams));
    };
    subject.is_alive()?;
    subject.resume()?;
    let block = harness
        .run(subject.address, Some(subject), plan)
        .with_context(|| format!("{} at {} streams", subject.recipe.name, plan.streams))?;
    subject.pause()?;
    Ok(block)
}
