//! `hopscope plan`: judges a plan by prices and facts, before money is spent.

mod basis;
mod measured;
mod show;

pub(super) use basis::{Basis, Sources};

use super::Done;
use config::Date;
use config::prices::PriceBook;
use cost::findings::benchmark::Campaign;
use cost::findings::{Finding, Severity};
use cost::{Capacity, Configuration};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    sources: Sources,
    /// A run directory whose capacities (scenario 7) stand in the place of those that the plan expects. Repeat it.
    #[arg(long, value_name = "DIR")]
    run: Vec<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// All that is told of a plan.
#[derive(Serialize)]
struct Judged {
    /// Where the plan stands.
    plan: String,
    /// The day on which it was judged.
    today: Date,
    /// What was set on the command line.
    set: Vec<String>,
    /// What is wrong with it.
    findings: Vec<Placed>,
    /// What measuring it takes.
    campaign: Option<Campaign>,
    /// Why that is not told.
    campaign_gap: Option<String>,
    /// Capacities that the bills rest on: measured, or else expected by the plan. Each says which.
    capacities: BTreeMap<Configuration, Capacity>,
    /// Why what the plan expects is not used.
    expected_gap: Option<&'static str>,
    /// Runs that were named and could not be used, and why.
    unused_runs: Vec<String>,
    /// Prices in the bills that nobody states: a plan's figures, guesses, and what was set.
    assumed_prices: Vec<String>,
    /// The bills.
    study: cost::Study,
}

/// A finding and where in the file the value is that it is about.
#[derive(Serialize)]
struct Placed {
    /// `file:line:column`.
    place: String,
    /// The finding.
    #[serde(flatten)]
    finding: Finding,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Done> {
    let judged = judge(args)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&judged)?);
    } else {
        print!("{}", show::text(&judged));
    }
    let worst = judged.findings.iter().map(|one| one.finding.severity).min();
    Ok(match worst {
        Some(Severity::Error) => Done::Refused,
        Some(Severity::Warning) => Done::Badly,
        Some(Severity::Note) | None => Done::Well,
    })
}

fn judge(args: &Args) -> anyhow::Result<Judged> {
    let basis = Basis::read(&args.sources, &args.run)?;
    let (plan, limit) = (&basis.plan, basis.limit.as_ref());
    let study = cost::study(&basis.prices, plan, &basis.capacities, &plan.traffic, limit);
    let place = |at| basis.file.location(at);
    Ok(Judged {
        plan: basis.file.path().display().to_string(),
        today: basis.today,
        set: args.sources.set.clone(),
        assumed_prices: assumed(&study, &basis.prices),
        study,
        findings: basis
            .findings
            .into_iter()
            .map(|finding| Placed {
                place: place(finding.at),
                finding,
            })
            .collect(),
        campaign: basis.campaign,
        campaign_gap: basis.campaign_gap,
        capacities: basis.capacities,
        expected_gap: basis.expected_gap,
        unused_runs: basis.unused_runs,
    })
}

/// The assumed prices on which a bill rests, each once.
fn assumed(study: &cost::Study, prices: &PriceBook) -> Vec<String> {
    let lines = study.bills.iter().flat_map(|bill| &bill.lines);
    let used: BTreeSet<&String> = lines.flat_map(|line| &line.price_ids).collect();
    let assumed = |id: &&String| {
        prices
            .get(id)
            .is_some_and(|price| price.basis == config::prices::Basis::Assumed)
    };
    used.into_iter().filter(assumed).cloned().collect()
}
