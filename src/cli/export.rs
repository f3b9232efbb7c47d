//! `hopscope export`: a run's cells in the forms of other tools.

use super::Done;
use ::report::export::{Exported, Format, Pick, export};
use anyhow::Context as _;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The run directory, as `hopscope load` writes it.
    #[arg(value_name = "DIR")]
    run: PathBuf,
    /// The form.
    #[arg(long, short, value_enum)]
    format: Form,
    /// The directory for the files, one a cell. It may exist; files of the same name are replaced.
    #[arg(long, short, value_name = "DIR")]
    out: PathBuf,
    /// Only cells of this chain. Repeat it.
    #[arg(long, value_name = "NAME")]
    chain: Vec<String>,
    /// Only the cell of this number (`manifest.json` has them). Repeat it. Default: all but floor probes
    /// and steps of the search for capacity.
    #[arg(long, value_name = "N")]
    cell: Vec<u32>,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Form {
    /// What `vllm bench serve --save-result` writes.
    VllmBench,
    /// NVIDIA AIPerf's `profile_export_aiperf.json`.
    Aiperf,
    /// The llm-d benchmark report, schema 0.2.
    LlmD,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Done> {
    let format = match args.format {
        Form::VllmBench => Format::VllmBench,
        Form::Aiperf => Format::Aiperf,
        Form::LlmD => Format::LlmD,
    };
    let pick = Pick {
        chains: args.chain.clone(),
        cells: args.cell.clone(),
    };
    let exports = export(&args.run, format, &pick)?;
    for loss in &exports.losses {
        eprintln!("hopscope: {loss}");
    }
    for Exported { file, json } in &exports.files {
        let path = args.out.join(file);
        let whole = || format!("{}: cannot be written", path.display());
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir).with_context(whole)?;
        }
        let text = serde_json::to_string_pretty(json)? + "\n";
        std::fs::write(&path, text).with_context(whole)?;
        println!("{}", path.display());
    }
    Ok(Done::Well)
}
