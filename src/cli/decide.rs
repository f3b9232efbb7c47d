//! The decision of `hopscope report`: runs, prices and stated facts in; page, Markdown, JSON and a path out.

use super::plan::{Basis, Sources};
use anyhow::Context as _;
use config::{Facts, Objectives, Workload};
use decide::{Decision, Given, Language};
use report::Report;
use std::path::{Path, PathBuf};

/// Rates of a drawn curve.
const CURVE: usize = 160;

#[derive(clap::Args)]
pub(super) struct Wanted {
    /// Write the decision as a page: ten answers, metrics table, cost curves, guide. Default where any option of a
    /// decision is given: `decision.html` beside the report.
    #[arg(long, value_name = "FILE")]
    decision: Option<PathBuf>,
    /// Write the decision as Markdown too.
    #[arg(long, value_name = "FILE")]
    decision_markdown: Option<PathBuf>,
    /// Write the decision as JSON too (`decide/schema/decision.json`).
    #[arg(long, value_name = "FILE")]
    decision_json: Option<PathBuf>,
    /// A workload (`config/workload.yaml`): say to which configuration it leads. Needs no run.
    #[arg(long, value_name = "FILE")]
    decide: Option<PathBuf>,
    /// Thresholds of the answers. Default: those of the program, which are `config/objectives.yaml`.
    #[arg(long, value_name = "FILE")]
    objectives: Option<PathBuf>,
    /// What is stated and not measured. Default: that of the program, which is `config/facts.yaml`.
    #[arg(long, value_name = "FILE")]
    facts: Option<PathBuf>,
    /// A run directory of an earlier campaign: say what changed. Repeat it.
    #[arg(long, value_name = "DIR")]
    against: Vec<PathBuf>,
    /// The language of the decision: en, ko or zh.
    #[arg(long, value_name = "LANG")]
    lang: Option<Language>,
    #[command(flatten)]
    sources: Sources,
}

impl Wanted {
    /// Whether a decision is asked for.
    pub(super) fn any(&self) -> bool {
        let files = [
            &self.decision,
            &self.decision_markdown,
            &self.decision_json,
            &self.decide,
            &self.objectives,
            &self.facts,
        ];
        files.iter().any(|file| file.is_some())
            || !self.against.is_empty()
            || self.lang.is_some()
            || self.sources.any()
    }

    /// Whether it can be made without a run.
    pub(super) fn without_runs(&self) -> bool {
        self.decide.is_some()
    }
}

/// Makes the decision of `report` and writes what is wanted of it; the page by default to
/// `decision.html` in `beside`.
pub(super) fn write(report: &Report, wanted: &Wanted, beside: &Path) -> anyhow::Result<()> {
    let decision = decide(report, wanted)?;
    let page = wanted.decision.clone();
    let page = page.unwrap_or_else(|| beside.join("decision.html"));
    super::report::put(&page, &decide::page(&decision))?;
    println!("{}", page.display());
    if let Some(path) = &wanted.decision_markdown {
        super::report::put(path, &decide::markdown(&decision))?;
    }
    if let Some(path) = &wanted.decision_json {
        let text = serde_json::to_string_pretty(&decision).context("the decision as JSON")?;
        super::report::put(path, &text)?;
    }
    if wanted.decide.is_some() {
        tell(&decision);
    }
    Ok(())
}

/// The path through the guide, and where it leads.
fn tell(decision: &Decision) {
    let steps = decision.guide.steps.iter();
    for step in steps.filter(|step| step.turn.is_some()) {
        println!(
            "- {} {}",
            step.asked,
            step.why.as_deref().unwrap_or_default()
        );
    }
    println!("{}", decision.guide.said);
}

fn decide(report: &Report, wanted: &Wanted) -> anyhow::Result<Decision> {
    let objectives = match &wanted.objectives {
        Some(path) => config::load::<Objectives>(path)?,
        None => Objectives::shipped()?,
    };
    let facts = match &wanted.facts {
        Some(path) => config::load::<Facts>(path)?,
        None => Facts::shipped()?,
    };
    let workload = match &wanted.decide {
        Some(path) => Some(config::load::<Workload>(path)?.into_inner()),
        None => None,
    };
    let against = match wanted.against.as_slice() {
        [] => None,
        runs => Some(report::build(runs)?),
    };
    // Only these can say what a deployment serves.
    let looked = report.runs.iter();
    let looked = looked.filter(|run| run.chains.iter().any(|chain| chain.capacity.is_some()));
    let looked: Vec<PathBuf> = looked.map(|run| run.path.clone()).collect();
    let basis = Basis::read(&wanted.sources, &looked)?;
    let study = |rates: Vec<f64>| {
        let mut plan = basis.plan.clone();
        plan.rates = rates;
        let limit = basis.limit.as_ref();
        cost::study(
            &basis.prices,
            &plan,
            &basis.capacities,
            &plan.traffic,
            limit,
        )
    };
    let mut rates = basis.plan.rates.clone();
    rates.push(basis.plan.traffic.rate);
    rates.extend(workload.as_ref().map(|one| one.rate));
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let given = Given {
        report,
        against: against.as_ref(),
        study: &study(rates.clone()),
        curves: &study(dense(&rates)),
        capacities: &basis.capacities,
        plan: &basis.plan,
        objectives: &objectives,
        facts: &facts,
        workload: workload.as_ref(),
    };
    let mut decision = decide::decide(given, wanted.lang.unwrap_or_default());
    decision.losses.extend(basis.unused_runs);
    Ok(decision)
}

/// Rates from a tenth of the lowest to twice the highest, alike in ratio.
fn dense(rates: &[f64]) -> Vec<f64> {
    let first = rates
        .iter()
        .copied()
        .find(|rate| *rate > 0.0)
        .unwrap_or(1.0)
        / 10.0;
    let last = rates.last().copied().unwrap_or(1.0).max(first) * 2.0;
    let along = |at: usize| at as f64 / (CURVE - 1) as f64;
    (0..CURVE)
        .map(|at| first * (last / first).powf(along(at)))
        .collect()
}
