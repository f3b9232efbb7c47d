//! What bills rest on: plan, prices and geometry, with what was set on the command line, and capacities.

use super::measured;
use anyhow::Context as _;
use config::plan::{Hardware, Purchase, SelfHosted};
use config::prices::PriceBook;
use config::{Checked, Date, Geometry, Plan};
use cost::findings::{Finding, Inputs};
use cost::{Capacity, Configuration, Limit};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// The files, and what is set in their place.
#[derive(clap::Args)]
pub(in crate::cli) struct Sources {
    /// The plan. Default: the one of the program, which is `config/plan.yaml`.
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// The price table. Default: the one of the program, which is `config/prices`.
    #[arg(long, value_name = "DIR")]
    prices: Option<PathBuf>,
    /// The geometry table. Default: the one of the program, which is `config/geometry.yaml`.
    #[arg(long, value_name = "FILE")]
    geometry: Option<PathBuf>,
    /// What if: a part of the plan (`hardware.parallelism.pipeline=4`) or a price (`ec2.g5.2xlarge.spot=0.6`) is this
    /// in its place. Repeat it.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(in crate::cli) set: Vec<String>,
    /// The day on which the plan is judged. Default: today, UTC.
    #[arg(long, value_name = "YYYY-MM-DD")]
    today: Option<Date>,
}

impl Sources {
    /// Whether anything is named or set.
    pub(in crate::cli) fn any(&self) -> bool {
        let files = [&self.plan, &self.prices, &self.geometry];
        files.iter().any(|file| file.is_some()) || !self.set.is_empty() || self.today.is_some()
    }
}

/// All of it, read.
pub(in crate::cli) struct Basis {
    /// The plan as it stands in its file.
    pub(in crate::cli) file: Checked<Plan>,
    /// The same with what was set.
    pub(in crate::cli) plan: Plan,
    pub(in crate::cli) prices: PriceBook,
    pub(in crate::cli) today: Date,
    /// What is wrong with the plan.
    pub(in crate::cli) findings: Vec<Finding>,
    /// What measuring it takes, or why that is not told.
    pub(in crate::cli) campaign: Option<cost::findings::benchmark::Campaign>,
    pub(in crate::cli) campaign_gap: Option<String>,
    /// Capacities that bills rest on: measured, or else expected by the plan. Each says which.
    pub(in crate::cli) capacities: BTreeMap<Configuration, Capacity>,
    /// Why what the plan expects is not used.
    pub(in crate::cli) expected_gap: Option<&'static str>,
    /// Runs that could not be used, and why.
    pub(in crate::cli) unused_runs: Vec<String>,
    /// The highest rate that the default model's quota allows.
    pub(in crate::cli) limit: Option<Limit>,
}

impl Basis {
    /// Reads the files, and of `measured_by` the capacities.
    ///
    /// # Errors
    /// A file is missing or wrong, something that was set does not exist, or a directory is no run.
    pub(in crate::cli) fn read(sources: &Sources, measured_by: &[PathBuf]) -> anyhow::Result<Self> {
        let file: Checked<Plan> = match &sources.plan {
            Some(path) => config::load(path)?,
            None => Plan::shipped()?,
        };
        let mut prices = match &sources.prices {
            Some(dir) => PriceBook::load(dir)?,
            None => PriceBook::shipped()?,
        };
        let geometry: Checked<Geometry> = match &sources.geometry {
            Some(path) => config::load(path)?,
            None => Geometry::shipped()?,
        };
        let mut plan: Plan = (*file).clone();
        for text in &sources.set {
            cost::apply(&mut plan, &mut prices, text)?;
        }
        let today = sources.today.map_or_else(system_date, Ok)?;
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
        let wanted = measured::For {
            plan: &plan,
            replicas: own_replicas(&plan, &geometry),
            as_measured: deployed(&file) == deployed(&plan),
        };
        let measured = measured::read(measured_by, &wanted)?;
        capacities.extend(measured.capacities);
        let limit = cost::findings::quota_limit(&inputs);
        let campaign = cost::findings::benchmark::campaign(&inputs);
        Ok(Self {
            today,
            findings,
            campaign,
            campaign_gap,
            capacities,
            expected_gap,
            unused_runs: measured.unused,
            limit,
            file,
            plan,
            prices,
        })
    }
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
        let traffic = &plan.traffic;
        (
            deployed(plan),
            plan.models.imported.clone(),
            (traffic.input_tokens, traffic.output_tokens),
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

/// The machines without how they are paid, and the model on them.
fn deployed(plan: &Plan) -> (Hardware, SelfHosted) {
    let machines = Hardware {
        purchase: Purchase::OnDemand,
        scale_to_zero: false,
        ..plan.hardware.clone()
    };
    (machines, plan.models.self_hosted.clone())
}

/// Replicas that fit the plan's machines; 0 where the model does not fit, or is not in the table.
fn own_replicas(plan: &Plan, geometry: &Geometry) -> u32 {
    let setting = cost::fit::Setting::of(plan, geometry);
    setting.map_or(0, |setting| setting.replicas(plan.hardware.parallelism))
}

/// What each configuration is expected to serve. A deployment has the replicas that fit its machines.
fn expected(plan: &Plan, geometry: &Geometry) -> BTreeMap<Configuration, Capacity> {
    let own = own_replicas(plan, geometry);
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
            measured: false,
            or_more: false,
            run: format!("expected by the plan, not measured: {}", one.source),
        };
        (of, capacity)
    });
    capacities
        .filter(|(_, capacity)| capacity.replicas > 0)
        .collect()
}
