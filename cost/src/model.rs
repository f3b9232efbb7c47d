//! What goes into the cost model and what comes out. Money is US dollars a month of 730 hours.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Hours of the month that every figure is for: 365 × 24 ÷ 12, as AWS' own calculator takes it.
pub const HOURS: f64 = 730.0;
/// Its seconds.
pub const SECONDS: f64 = HOURS * 3600.0;

/// The six configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Configuration {
    /// AgentCore Gateway, the default model of Bedrock.
    Baseline,
    /// AgentCore Gateway, an imported model.
    BaselinePlus,
    /// LiteLLM, round robin, vLLM.
    A1,
    /// Bifrost, vLLM.
    A2,
    /// LiteLLM, llm-d, vLLM.
    B1,
    /// Bifrost, llm-d, vLLM.
    B2,
}

impl Configuration {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 6] = [
        Self::Baseline,
        Self::BaselinePlus,
        Self::A1,
        Self::A2,
        Self::B1,
        Self::B2,
    ];

    /// Its name in files and outputs: also that of its chain.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::BaselinePlus => "baseline-plus",
            Self::A1 => "a1",
            Self::A2 => "a2",
            Self::B1 => "b1",
            Self::B2 => "b2",
        }
    }

    /// It runs on GPUs of one's own.
    #[must_use]
    pub fn self_built(self) -> bool {
        !matches!(self, Self::Baseline | Self::BaselinePlus)
    }

    /// Its gateway is Bifrost, which caches answers by meaning.
    #[must_use]
    pub fn semantic_cache(self) -> bool {
        matches!(self, Self::A2 | Self::B2)
    }

    /// It routes by llm-d.
    #[must_use]
    pub fn llm_d(self) -> bool {
        matches!(self, Self::B1 | Self::B2)
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.id())
    }
}

/// What a deployment serves within its objective.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Capacity {
    /// Calls a second of the whole deployment.
    pub rate: f64,
    /// Lower end of its interval; `None` where it has none.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Replicas, or copies of an imported model, of that deployment.
    pub replicas: u32,
    /// It was measured against stand-ins.
    pub simulated: bool,
    /// A run measured it; else the plan expects it.
    pub measured: bool,
    /// The search for it ended before the objective was missed: it serves this, or more.
    pub or_more: bool,
    /// The run that measured it, or whose expectation it is.
    pub run: String,
}

/// The highest rate that the account's quota of the default model allows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Limit {
    /// Calls a second, as a mean.
    pub rate: f64,
    /// Which quota it is.
    pub why: String,
}

/// A value with the least and the most that it may be.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Range {
    /// The value.
    pub value: f64,
    /// The least.
    pub low: f64,
    /// The most; `None`: there is no most, since a capacity may be 0.
    pub high: Option<f64>,
}

impl Range {
    /// `high` may be infinite: there is no most then.
    pub(crate) fn new(value: f64, low: f64, high: f64) -> Self {
        Self {
            value,
            low,
            high: high.is_finite().then_some(high),
        }
    }
}

/// One line of a bill.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// What it is for: stable.
    pub id: &'static str,
    /// US dollars a month.
    pub amount: Range,
    /// The prices that it uses.
    pub price_ids: Vec<String>,
    /// How it was computed, with the numbers.
    pub formula: String,
}

/// What one configuration costs a month at one rate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Bill {
    /// The configuration.
    pub configuration: Configuration,
    /// Calls a second while there is traffic.
    pub rate: f64,
    /// Its lines; those that could be computed.
    pub lines: Vec<Line>,
    /// What is missing, each with what would supply it. While anything is, there is no total.
    pub gaps: Vec<String>,
    /// The sum; `None` with gaps. Its ends hold every input at its worst and best together.
    pub total: Option<Range>,
    /// US dollars a million tokens, prompt and answer together; `None` with gaps and without traffic.
    pub per_million_tokens: Option<Range>,
    /// It is the least that it can be: what a copy of the imported model serves is not measured, and the plan's copies
    /// may be too few.
    pub at_least: bool,
    /// A part of it rests on a stand-in.
    pub simulated: bool,
}

/// A rate at which two configurations change places.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Crossing {
    /// The one.
    pub a: Configuration,
    /// The other.
    pub b: Configuration,
    /// Calls a second.
    pub rate: f64,
    /// The lowest rate at which it may be, by the ends of every input; 0: it may be nowhere above 0.
    pub low: f64,
    /// The highest; `None`: beyond the rates looked at, or nowhere.
    pub high: Option<f64>,
    /// One of the two jumps here past the other, with a replica that is added: the curves do not meet.
    pub on_step: bool,
    /// The cheaper one just above.
    pub cheaper_above: Configuration,
}

/// Two configurations by cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pair {
    /// The one.
    pub a: Configuration,
    /// The other.
    pub b: Configuration,
    /// Every rate above 0 at which they change places, rising.
    pub crossings: Vec<Crossing>,
    /// Why there is none; `None` where there are.
    pub no_crossing: Option<NoCrossing>,
}

/// Why two configurations do not change places.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoCrossing {
    /// One is the cheaper one at every rate up to this one, calls a second.
    Cheaper(Configuration, f64),
    /// They cost the same at every rate up to this one.
    Same(f64),
    /// Not told: the bill of one is the least that it can be ([`Bill::at_least`]).
    AtLeast(Configuration),
    /// One has no total: what is missing.
    Missing(Configuration, Vec<String>),
}

/// What one input does to one configuration's bill.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TornadoBar {
    /// The input: the id of a price, `capacity.` and a configuration, or `traffic.` and a part of it.
    pub input: String,
    /// The configuration.
    pub of: Configuration,
    /// What the input is: its least, as it is, and its most; no most of a capacity of which only the least is known.
    pub input_values: (f64, f64, Option<f64>),
    /// A what-if of this program, and no interval that somebody stated.
    pub what_if: bool,
    /// The month's total with the input at its least; `None`: without bound.
    pub at_low: Option<f64>,
    /// With it at its most.
    pub at_high: Option<f64>,
    /// As it is.
    pub base: f64,
}

impl TornadoBar {
    /// How far it moves the total; infinite without bound.
    #[must_use]
    pub fn span(&self) -> f64 {
        let ends = self.at_low.zip(self.at_high);
        ends.map_or(f64::INFINITY, |(low, high)| (high - low).abs())
    }
}

/// The whole study of cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Study {
    /// A part of it rests on stand-ins.
    pub simulated: bool,
    /// The traffic.
    pub traffic: config::plan::Traffic,
    /// The highest rate that the default model's quota allows; `None`: no quota is stated.
    pub limit: Option<Limit>,
    /// The rates at which bills were made, calls a second.
    pub rates: Vec<f64>,
    /// Bills: rate by rate, the configurations in their order.
    pub bills: Vec<Bill>,
    /// What each costs without any traffic; no entry with gaps.
    pub idle: Vec<(Configuration, Range)>,
    /// Every pair.
    pub pairs: Vec<Pair>,
    /// What moves the totals at the traffic's own rate, the furthest first.
    pub tornado: Vec<TornadoBar>,
    /// What is missing, over all bills.
    pub gaps: Vec<String>,
}
