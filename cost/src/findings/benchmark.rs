//! How long the measurements take and what they cost, before they are begun.

use super::{Evidence, Finding, Inputs, Severity, dollars, evidence, gpu_month, price_evidence};
use crate::campaign::{Load, Run};
use crate::model::{Configuration, HOURS};
use serde::Serialize;

const CMU_MINUTE: &str = "import.cmu-minute";

/// What all runs of a plan take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Campaign {
    /// Days, if the runs follow one another without a pause.
    pub days: f64,
    /// US dollars for tokens of the default model; `None` where a price is missing.
    pub tokens_usd: Option<f64>,
    /// US dollars for the imported model's windows.
    pub import_usd: Option<f64>,
    /// US dollars for the machines, kept up for all of it.
    pub machines_usd: Option<f64>,
    /// Calls of the default model.
    pub calls: f64,
    /// The scenario that takes the most of the default model's tokens, and its part of them.
    pub largest: Option<(String, f64)>,
}

impl Campaign {
    /// All that can be told of the cost; `None` where a part cannot.
    #[must_use]
    pub fn total_usd(&self) -> Option<f64> {
        Some(self.tokens_usd? + self.import_usd? + self.machines_usd?)
    }
}

/// What the runs of a plan take; `None` where there are none.
#[must_use]
pub fn campaign(inputs: &Inputs<'_>) -> Option<Campaign> {
    if inputs.runs.is_empty() {
        return None;
    }
    let of = |wanted: Configuration| {
        inputs
            .runs
            .iter()
            .filter(move |run| run.chain == wanted.id())
    };
    let baseline = sum(of(Configuration::Baseline));
    let seconds: f64 = inputs.runs.iter().map(|run| run.load.seconds).sum();
    let largest = of(Configuration::Baseline)
        .max_by(|a, b| a.load.output_tokens.total_cmp(&b.load.output_tokens))
        .filter(|_| baseline.output_tokens > 0.0)
        .map(|run| {
            (
                run.scenario.clone(),
                run.load.output_tokens / baseline.output_tokens,
            )
        });
    Some(Campaign {
        days: seconds / 86_400.0,
        tokens_usd: tokens(inputs, baseline),
        import_usd: windows(inputs, sum(of(Configuration::BaselinePlus))),
        machines_usd: gpu_month(inputs).map(|month| month / HOURS * seconds / 3600.0),
        calls: baseline.calls,
        largest,
    })
}

fn sum<'a>(runs: impl Iterator<Item = &'a Run>) -> Load {
    let mut all = Load::default();
    for run in runs {
        all += run.load;
    }
    all
}

/// Tokens at the default model's price, none of them from a cache.
fn tokens(inputs: &Inputs<'_>, load: Load) -> Option<f64> {
    let (input, output) = token_prices(inputs);
    let price = |id: &str| Some(inputs.prices.get(id)?.value / 1e6);
    Some(load.input_tokens * price(&input)? + load.output_tokens * price(&output)?)
}

fn token_prices(inputs: &Inputs<'_>) -> (String, String) {
    let model = &inputs.plan.models.default;
    (
        format!("bedrock.{model}.input"),
        format!("bedrock.{model}.output"),
    )
}

/// Every window while the imported model is driven.
fn windows(inputs: &Inputs<'_>, load: Load) -> Option<f64> {
    let price = inputs.prices.get(CMU_MINUTE)?;
    let import = &inputs.plan.import;
    let window = f64::from(inputs.geometry.import.window_seconds);
    let minutes = (load.seconds / window).ceil() * window / 60.0;
    Some(minutes * price.value * f64::from(import.copies) * f64::from(import.cmus_per_copy))
}

pub(super) fn check(inputs: &Inputs<'_>) -> Vec<Finding> {
    let (Some(plan), Some(campaign)) = (&inputs.plan.benchmark, campaign(inputs)) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    found.extend(cost(inputs, &campaign, plan.budget_usd));
    found.extend(time(&campaign, plan.days, &plan.source));
    found
}

/// The severity against what is allowed; `None`: it is allowed.
fn judged(value: f64, allowed: Option<f64>) -> Option<Severity> {
    match allowed {
        Some(allowed) if value <= allowed => None,
        Some(_) => Some(Severity::Warning),
        None => Some(Severity::Note),
    }
}

fn cost(inputs: &Inputs<'_>, campaign: &Campaign, budget: Option<f64>) -> Option<Finding> {
    let total = campaign.total_usd()?;
    let severity = judged(total, budget)?;
    let against = budget.map_or_else(String::new, |budget| {
        format!(", and the budget is {}", dollars(budget))
    });
    let part = |what: &str, amount: Option<f64>| Some(format!("{} for {what}", dollars(amount?)));
    let parts: Vec<String> = [
        part("tokens of the default model", campaign.tokens_usd),
        part("the imported model's windows", campaign.import_usd),
        part("machines kept up", campaign.machines_usd),
    ]
    .into_iter()
    .flatten()
    .collect();
    Some(Finding {
        id: "benchmark-cost",
        severity,
        at: "benchmark",
        what: format!("measuring the plan costs about {}{against}: {}", dollars(total), parts.join(", ")),
        evidence: rests(inputs, campaign),
        remedy: "shorten `output_tokens` and the cells first, blocks last; scenario 8 in full is a day at 30 calls a second for each chain; use a cheaper model for what is not about the model".to_owned(),
    })
}

fn rests(inputs: &Inputs<'_>, campaign: &Campaign) -> Vec<Evidence> {
    let (input, output) = token_prices(inputs);
    let mut rests: Vec<Evidence> = [input.as_str(), &output, CMU_MINUTE]
        .iter()
        .filter_map(|id| price_evidence(inputs, id))
        .collect();
    let largest = campaign
        .largest
        .as_ref()
        .map_or_else(String::new, |(name, share)| {
            format!(", {:.0} % of the tokens in {name}", share * 100.0)
        });
    rests.push(evidence(
        format!(
            "{:.0} calls of the default model if all that are wanted are served{largest}",
            campaign.calls
        ),
        "the matrix' scenarios; probes, traces and experiments are not counted",
    ));
    rests
}

fn time(campaign: &Campaign, allowed: Option<f64>, source: &str) -> Option<Finding> {
    let severity = judged(campaign.days, allowed)?;
    let against = allowed.map_or_else(String::new, |days| format!(", and the plan allows {days}"));
    Some(Finding {
        id: "benchmark-time",
        severity,
        at: "benchmark",
        what: format!("measuring the plan takes about {:.1} days without a pause{against}", campaign.days),
        evidence: vec![evidence("warm-up, cells and searches for a capacity of every scenario on every chain", source)],
        remedy: "shorten cells first, blocks last (below ten no interval is printed); leave out chains that answer no question of yours".to_owned(),
    })
}
