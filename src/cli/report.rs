//! `hopscope report`: run directories in; page, Markdown and JSON out.

use super::{Done, decide};
use ::report::Report;
use anyhow::Context as _;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run directories, as `hopscope load` writes them.
    #[arg(value_name = "DIR")]
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
    /// A table of an engine's variants (`config/variants.yaml`), to be filled with what the runs have measured.
    #[arg(long, value_name = "FILE")]
    variants: Option<PathBuf>,
    #[command(flatten)]
    decision: decide::Wanted,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Done> {
    let first = args
        .runs
        .first()
        .map(PathBuf::as_path)
        .unwrap_or(Path::new("."));
    if args.runs.is_empty() && args.decision.without_runs() {
        decide::write(&Report::empty(), &args.decision, first)?;
        return Ok(Done::Well);
    }
    let page = args
        .out
        .clone()
        .unwrap_or_else(|| first.join("report.html"));
    let mut report = ::report::build(&args.runs)?;
    if let Some(path) = &args.variants {
        let table = config::load::<config::Variants>(path)?;
        report.variants = ::report::variants(&report, &table);
    }
    put_all(
        &report,
        &page,
        args.markdown.as_deref(),
        args.json.as_deref(),
    )?;
    println!("{}", page.display());
    if args.decision.any() {
        decide::write(&report, &args.decision, first)?;
    }
    Ok(Done::Well)
}

/// Builds the report of `runs` and writes its forms.
pub(super) fn write(
    runs: &[PathBuf],
    page: &Path,
    markdown: Option<&Path>,
    json: Option<&Path>,
) -> anyhow::Result<()> {
    put_all(&::report::build(runs)?, page, markdown, json)
}

fn put_all(
    report: &Report,
    page: &Path,
    markdown: Option<&Path>,
    json: Option<&Path>,
) -> anyhow::Result<()> {
    put(page, &::report::render::html(report))?;
    if let Some(path) = markdown {
        put(path, &::report::render::markdown(report))?;
    }
    if let Some(path) = json {
        put(path, &::report::render::json(report)?)?;
    }
    Ok(())
}

pub(super) fn put(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("{}: cannot be written", path.display()))
}
