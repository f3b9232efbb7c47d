//! `hopscope plan`: judges a plan by prices and facts, before money is spent.

mod measured;
mod show;

use super::Done;
use anyhow::Context as _;
use config::prices::{Basis, PriceBook};
use config::{Checked, Date, Geometry, Plan};
use cost::findings::benchmark::Campaign;
use cost::findings::{Finding, Inputs, Severity};
use cost::{Capacity, Configuration};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The plan. Default: the one of the program, which is `config/plan.yaml`.
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// The price table. Default: the one of the program, which is `config/prices`.
    #[arg(long, value_name = "DIR")]
    prices: Option<PathBuf>,
    /// The geometry table. Default: the one of the program, which is `config/geometry.yaml`.
    #[arg(long, value_name = "FILE")]
    geometry: Option<PathBuf>,
    /// A run directory whose capacities (scenario 7) stand in the place of those that the plan expects. Repeat it.
    #[arg(long, value_name = "DIR")]
    run: Vec<PathBuf>,
    /// What if: a part of the plan (`hardware.parallelism.pipeline=4`) or a price (`ec2.g5.2xlarge.spot=0.6`) is this
    /// in its place. Repeat it.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The day on which the plan is judged. Default: today, UTC.
    #[arg(long, value_name = "YYYY-MM-DD")]
    today: Option<Date>,
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
    let file: Checked<Plan> = match &args.plan {
        Some(path) => config::load(path)?,
        None => Plan::shipped()?,
    };
    let mut prices = match &args.prices {
        Some(dir) => PriceBook::load(dir)?,
        None => PriceBook::shipped()?,
    };
    let geometry: Checked<Geometry> = match &args.geometry {
        Some(path) => config::load(path)?,
        None => Geometry::shipped()?,
    };
    let mut plan: Plan = (*file).clone();
    for text in &args.set {
        cost::apply(&mut plan, &mut prices, text)?;
    }
    let today = args.today.map_or_else(system_date, Ok)?;
    let (runs, campaign_gap) = runs(&file, &plan);
    let inputs = Inputs {
        plan: &plan,
        prices: &prices,
        geometry: &geometry,
        today,
        runs: &runs,
    };
    let findings: Vec<Finding> = cost::findings::find(&inputs);
    // What does not fit serves nothing, whatever the plan expects of it.
    let fits = !findings.iter().any(|one| one.id.starts_with("fit"));
    let expected_gap = dropped(&file, &plan, fits);
    let mut capacities = match expected_gap {
        Some(_) => BTreeMap::new(),
        None => expected(&plan, &geometry),
    };
    let measured = measured::read(&args.run, &plan)?;
    capacities.extend(measured.capacities);
    let study = cost::study(&prices, &plan, &capacities, &plan.traffic);
    Ok(Judged {
        plan: file.path().display().to_string(),
        today,
        set: args.set.clone(),
        campaign: cost::findings::benchmark::campaign(&inputs),
        campaign_gap,
        assumed_prices: assumed(&study, &prices),
        study,
        capacities,
        expected_gap,
        unused_runs: measured.unused,
        findings: findings
            .into_iter()
            .map(|finding| Placed {
                place: file.location(finding.at),
                finding,
            })
            .collect(),
    })
}

/// The assumed prices on which a bill rests, each once.
fn assumed(study: &cost::Study, prices: &PriceBook) -> Vec<String> {
    let lines = study.bills.iter().flat_map(|bill| &bill.lines);
    let used: BTreeSet<&String> = lines.flat_map(|line| &line.price_ids).collect();
    let assumed = |id: &&String| {
        prices
            .get(id)
            .is_some_and(|price| price.basis == Basis::Assumed)
    };
    used.into_iter().filter(assumed).cloned().collect()
}

fn system_date() -> anyhow::Result<Date> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    since
        .and_then(|since| u32::try_from(since.as_secs() / 86_400).ok())
        .and_then(Date::from_unix_days)
        .context("the system's clock tells no usable date; say it with --today")
}

/// The runs that the plan wants to make, or why nothing is known of them.
fn runs(file: &Checked<Plan>, plan: &Plan) -> (Vec<cost::campaign::Run>, Option<String>) {
    let Some(benchmark) = &plan.benchmark else {
        let gap = "the plan names no matrix of runs (`benchmark`)";
        return (Vec::new(), Some(gap.to_owned()));
    };
    match config::matrix(file.beside(&benchmark.matrix)) {
        Ok(matrix) => (cost::campaign::runs(&matrix, benchmark), None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    }
}

/// Why what the plan expects does not hold; `None` where it does, or where nothing is expected.
fn dropped(file: &Plan, plan: &Plan, fits: bool) -> Option<&'static str> {
    let basis = |plan: &Plan| {
        let (hardware, traffic) = (&plan.hardware, &plan.traffic);
        (
            plan.models.clone(),
            (
                hardware.instance.clone(),
                hardware.count,
                hardware.parallelism,
            ),
            (
                hardware.utilisation,
                traffic.input_tokens,
                traffic.output_tokens,
            ),
            plan.import.copies,
        )
    };
    if plan.expected.is_empty() {
        None
    } else if !fits {
        Some("the model does not fit its machines, so they serve nothing")
    } else if plan.expected == file.expected && basis(plan) != basis(file) {
        Some(
            "`--set` changed the models, the machines or the calls for which it was stated; set `expected` too",
        )
    } else {
        None
    }
}

/// What each configuration is expected to serve. A deployment has the replicas that fit its machines.
fn expected(plan: &Plan, geometry: &Geometry) -> BTreeMap<Configuration, Capacity> {
    let setting = cost::fit::Setting::of(plan, geometry);
    let own = setting.map_or(0, |setting| setting.replicas(plan.hardware.parallelism));
    let of_name = |name: &str| Configuration::ALL.into_iter().find(|of| of.id() == name);
    let stated = plan
        .expected
        .iter()
        .filter_map(|(name, one)| Some((of_name(name)?, one)));
    let capacities = stated.map(|(of, one)| {
        let capacity = Capacity {
            rate: one.rate,
            low: Some(one.low),
            high: Some(one.high),
            replicas: if of.self_built() {
                own
            } else {
                plan.import.copies
            },
            simulated: false,
            run: format!("expected by the plan, not measured: {}", one.source),
        };
        (of, capacity)
    });
    capacities
        .filter(|(_, capacity)| capacity.replicas > 0)
        .collect()
}
