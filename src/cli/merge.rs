//! `hopscope merge`: one run of the parts of several generators.

use super::{Done, load};
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The run directories of all parts, as `hopscope load --shard I/N` wrote them.
    #[arg(value_name = "DIR", required = true)]
    parts: Vec<PathBuf>,
    /// The run directory to make.
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Done> {
    let run = loadgen::merge(&args.parts, &args.out)?;
    load::verdict(&run)
}
