//! `hopscope report`: run directories in; page, Markdown and JSON out.

use super::Done;
use anyhow::Context as _;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run directories, as `hopscope load` writes them.
    #[arg(value_name = "DIR", required = true)]
    runs: Vec<PathBuf>,
    /// Where the page goes. Default: `report.html` in the first run directory.
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Write the report as Markdown too.
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write the report as JSON too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}
