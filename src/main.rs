//! The one binary: a subcommand, its arguments, one call.

mod cli;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    hopscope::spawn::end_with_parent_if_asked();
    cli::run(cli::Cli::parse())
}
