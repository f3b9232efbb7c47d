//! The command line. Exit code 0: done; 1: done, and what was found is not good (an invalid run,
//! a calibration beyond its bound, a plan with warnings); 2: it could not be done, and the message says why, or a
//! plan is in error.

mod calibrate;
mod decide;
mod demo;
mod export;
mod load;
mod merge;
mod plan;
mod report;
mod shelf;
mod sim;
mod tap;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

/// Measures LLM gateways from both sides: what each component adds, and how far the numbers can be trusted.
#[derive(Parser)]
#[command(version, about)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Opens the taps of one or more chains: the measuring proxy.
    Tap(tap::Args),
    /// Drives a scenario over chains and writes a run directory; exit code 1 where the run is not valid.
    Load(load::Args),
    /// Makes one run of the parts that several generators drove (`load --shard`).
    Merge(merge::Args),
    /// Judges a plan by prices and facts before money is spent; exit code 1 with warnings, 2 with errors.
    Plan(plan::Args),
    /// Makes the page, and on demand Markdown and JSON, of run directories.
    Report(report::Args),
    /// Writes a run's cells in the forms of other tools: vLLM's benchmark, AIPerf, llm-d.
    Export(export::Args),
    /// Runs the whole on this machine with stand-ins: taps, controls, load, calibration, report.
    Demo(demo::Args),
    /// Prints the error of the instrument on this machine; exit code 1 beyond its bounds.
    Calibrate(calibrate::Args),
    /// Runs one stand-in: engine, gateway or relay.
    Sim(sim::Args),
}

/// What a command came to.
pub(crate) enum Done {
    /// All is well.
    Well,
    /// It ran, and what it found is not good; it has said so.
    Badly,
    /// It ran, and what it found forbids to go on; it has said so.
    Refused,
}

pub(crate) fn run(cli: Cli) -> ExitCode {
    let filter = EnvFilter::try_from_env("HOPSCOPE_LOG")
        .unwrap_or_else(|_| EnvFilter::new("warn,hopscope=info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let done = match cli.command {
        Command::Tap(args) => tap::run(&args),
        Command::Load(args) => load::run(&args),
        Command::Merge(args) => merge::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Sim(args) => sim::run(args),
    };
    match done {
        Ok(Done::Well) => ExitCode::SUCCESS,
        Ok(Done::Badly) => ExitCode::from(1),
        Ok(Done::Refused) => ExitCode::from(2),
        Err(error) => {
            eprintln!("hopscope: {}", one_message(&error));
            ExitCode::from(2)
        }
    }
}

/// The error and its causes as one message, each said once.
fn one_message(error: &anyhow::Error) -> String {
    let mut message = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !message.contains(&cause) {
            message.push_str(": ");
            message.push_str(&cause);
        }
    }
    message
}
