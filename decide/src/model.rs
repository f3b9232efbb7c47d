//! A decision as data: what its JSON holds, and all that its page and its Markdown show.

use schemars::JsonSchema;
use serde::Serialize;

use crate::language::Language;

/// Version of this form.
pub const FORMAT: u32 = 1;

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Nanoseconds.
    Nanoseconds,
    /// US dollars.
    Dollars,
    /// A part of one.
    Share,
    /// Of a second.
    PerSecond,
    /// Bytes.
    Bytes,
}

/// One value, as far as it can be trusted, and from where it is.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Figure {
    /// The value; with `at_least` the least that it can be.
    pub value: f64,
    /// What it counts.
    pub unit: Unit,
    /// The value is at least this.
    pub at_least: bool,
    /// The lower end of its interval; `None` without one.
    pub low: Option<f64>,
    /// The upper end; `None` without an interval, or where it has no bound.
    pub high: Option<f64>,
    /// Calls, tasks or repetitions that it rests on; `None` of what is computed.
    pub samples: Option<u64>,
    /// Fewer than a hundred samples lie beyond it.
    pub few: bool,
    /// The run that measured it; of a bill, what its capacity rests on. `None` of what rests on prices alone.
    pub run: Option<String>,
    /// How the chain was driven, or how the value was computed.
    pub label: String,
    /// A stand-in's.
    pub simulated: bool,
    /// Its run is valid by its own verdict; of what is computed: nothing in it was guessed.
    pub valid: bool,
}

/// One cell of the metrics table.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Cell {
    /// There is no such thing in this configuration.
    NotApplicable,
    /// Nobody has measured it.
    NotMeasured {
        /// What would.
        command: String,
    },
    /// It was looked at, and there is no value to be relied on.
    Withheld {
        /// Why.
        why: String,
        /// The run.
        run: Option<String>,
    },
    /// A value.
    Value(Figure),
    /// Not measured but stated, by the facts file.
    Stated {
        /// The statement.
        text: String,
        /// Where it stands.
        source: String,
        /// Of which day it is.
        date: String,
        /// `documented`, `reported` or `assumed`.
        basis: String,
    },
}

/// One row of the metrics table.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Row {
    /// Its name: that of its cells is this, a hyphen, and the configuration.
    pub id: String,
    /// Its category.
    pub category: String,
    /// What it is.
    pub metric: String,
    /// By configuration: `baseline`, `baseline-plus`, `a1`, `a2`, `b1`, `b2`.
    pub cells: Vec<Cell>,
}

/// What was found of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Yes.
    Yes,
    /// No.
    No,
    /// It depends on what is said.
    Depends,
    /// Nothing that may answer it was measured.
    Unanswered,
}

/// What an answer rests on.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Evidence {
    /// What was seen.
    pub text: String,
    /// The cell of the metrics table that shows it.
    pub cell: Option<String>,
    /// The run.
    pub run: Option<String>,
    /// A stand-in's.
    pub simulated: bool,
}

/// One of the ten answers.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Answer {
    /// 1 to 10.
    pub number: u8,
    /// The question.
    pub question: String,
    /// The scenarios that measure it.
    pub scenarios: Vec<u8>,
    /// The answer.
    pub verdict: Verdict,
    /// What it would be if the stand-ins that were measured were the real thing; `None` where nothing was simulated.
    pub were_stand_ins_real: Option<Verdict>,
    /// In words.
    pub said: Vec<String>,
    /// What it rests on.
    pub evidence: Vec<Evidence>,
    /// The thresholds by which it was reached.
    pub thresholds: Vec<String>,
    /// What would change it, or answer it.
    pub would_change: Vec<String>,
}

/// What a rule of the guide says of the workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Turn {
    /// Yes.
    Yes,
    /// No.
    No,
    /// Not known: the path ends here.
    Unknown,
}

/// One question of the guide.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Step {
    /// Its name.
    pub id: &'static str,
    /// What is asked.
    pub asked: String,
    /// Where a yes leads: the name of a step or a configuration.
    pub yes: &'static str,
    /// Where a no leads.
    pub no: &'static str,
    /// What was found; `None` where the path does not come by.
    pub turn: Option<Turn>,
    /// By what.
    pub why: Option<String>,
    /// It rests on stand-ins or on guesses.
    pub provisional: bool,
}

/// From a workload to a configuration.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Guide {
    /// The workload, in words; `None` where none was given: the path is not walked.
    pub workload: Option<String>,
    /// All questions.
    pub steps: Vec<Step>,
    /// The configuration that is reached; `None` without a workload, or where something is not known.
    pub reached: Option<String>,
    /// In words: which, or what has to be known first.
    pub said: String,
    /// The path rests on stand-ins or on guesses.
    pub provisional: bool,
}

/// What a gateway claims of itself beside what was measured of it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Claim {
    /// The chain.
    pub chain: String,
    /// What it, or its maker, says.
    pub claimed: String,
    /// Which span that covers.
    pub covers: String,
    /// What was measured.
    pub measured: Cell,
}

/// How a figure changed from an earlier campaign.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// The chain.
    pub chain: String,
    /// How it was driven.
    pub label: String,
    /// The figure.
    pub figure: String,
    /// Before.
    pub before: Figure,
    /// Now.
    pub now: Figure,
    /// The intervals of the two do not meet: more than noise. `None` where one has no interval.
    pub more_than_noise: Option<bool>,
}

/// Where two configurations change places by cost.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Place {
    /// The one.
    pub a: String,
    /// The other.
    pub b: String,
    /// Calls a second.
    pub rate: f64,
    /// The lowest rate at which it may be.
    pub low: f64,
    /// The highest; `None`: no bound.
    pub high: Option<f64>,
    /// The cheaper one just above.
    pub cheaper_above: String,
    /// A bill of theirs rests on a stand-in.
    pub simulated: bool,
    /// A bill of theirs rests on what the plan expects.
    pub guessed: bool,
}

/// A run that the decision rests on.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Run {
    /// Its directory's name.
    pub name: String,
    /// When it was made.
    pub started: String,
    /// The scenario's number; `None` where nothing tells.
    pub scenario: Option<u8>,
    /// It is valid by its own verdict.
    pub valid: bool,
    /// The checks that did not hold.
    pub broken: Vec<String>,
    /// A part of it is a stand-in.
    pub simulated: bool,
}

/// Statements of the facts file, by section.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Statement {
    /// What it is about.
    pub topic: String,
    /// The configurations of which it speaks; empty: of all.
    pub of: Vec<String>,
    /// What is stated.
    pub text: String,
    /// Where that stands.
    pub source: String,
    /// Of which day.
    pub date: String,
    /// `documented`, `reported` or `assumed`.
    pub basis: String,
}

/// The stated parts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Statements {
    /// What Custom Model Import can and cannot do.
    pub import_limits: Vec<Statement>,
    /// Gateways.
    pub gateways: Vec<Statement>,
    /// Runtimes of agents.
    pub agent_runtimes: Vec<Statement>,
    /// Stacks to observe by.
    pub observability: Vec<Statement>,
    /// The way from AgentCore to EKS.
    pub migration: Vec<Statement>,
}

/// What one input does to one configuration's bill.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Move {
    /// The input.
    pub input: String,
    /// The configuration.
    pub of: String,
    /// The month's total with the input at its least, US dollars; `None`: without bound.
    pub at_low: Option<f64>,
    /// With it at its most.
    pub at_high: Option<f64>,
    /// As it is.
    pub base: f64,
    /// The bill rests on a stand-in.
    pub simulated: bool,
    /// The bill rests on what the plan expects.
    pub guessed: bool,
}

/// One line of the summary.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Point {
    /// In words.
    pub text: String,
    /// The question that it answers.
    pub question: u8,
    /// A stand-in's.
    pub simulated: bool,
}

/// The executive summary.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Summary {
    /// What it rests on.
    pub rests_on: String,
    /// When the managed service suffices.
    pub managed: Vec<Point>,
    /// When to build.
    pub own: Vec<Point>,
    /// Questions without an answer.
    pub open: Vec<Point>,
}

/// How a chart is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Lines through points.
    Lines,
    /// Bars; the series of one place are stacked.
    Bars,
}

/// An axis of a chart.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Axis {
    /// What it is, with its unit.
    pub label: String,
    /// Logarithmic.
    pub log: bool,
    /// Names of the places 0, 1, …; empty of numbers.
    pub names: Vec<String>,
}

/// A point of a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct At {
    /// Where.
    pub x: f64,
    /// How much; `None` where it was driven and there is no figure: the line is broken there.
    pub y: Option<f64>,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end; `None` without an interval or a bound.
    pub high: Option<f64>,
}

/// One series of a chart.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Series {
    /// Its name; says where it is simulated or of a run that is not valid.
    pub name: String,
    /// Its configuration, by which it is coloured; `None` of parts of bars.
    pub of: Option<String>,
    /// Drawn dashed: a part of another series of the same configuration.
    pub second: bool,
    /// A stand-in's.
    pub simulated: bool,
    /// Its points, `x` rising.
    pub points: Vec<At>,
}

/// A chart as data.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Chart {
    /// Its name.
    pub id: &'static str,
    /// What it shows.
    pub title: String,
    /// How it is drawn.
    pub kind: Kind,
    /// Across.
    pub x: Axis,
    /// Up.
    pub y: Axis,
    /// Places on `x` that a line across marks.
    pub marks: Vec<f64>,
    /// What is drawn; empty where nothing was measured.
    pub series: Vec<Series>,
}

/// The whole decision.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Decision {
    /// Version of this form.
    pub format: u32,
    /// The language of its texts.
    pub language: Language,
    /// Some figure is of a stand-in.
    pub simulated: bool,
    /// The executive summary.
    pub summary: Summary,
    /// The runs.
    pub runs: Vec<Run>,
    /// The metrics table.
    pub table: Vec<Row>,
    /// The ten answers.
    pub answers: Vec<Answer>,
    /// The guide.
    pub guide: Guide,
    /// Claimed and measured overhead.
    pub claims: Vec<Claim>,
    /// Where configurations change places by cost.
    pub places: Vec<Place>,
    /// What moves the bills most, the furthest first.
    pub moves: Vec<Move>,
    /// The charts.
    pub charts: Vec<Chart>,
    /// What is stated.
    pub statements: Statements,
    /// What changed from an earlier campaign; empty where none was given.
    pub changes: Vec<Change>,
    /// What could not be read or used.
    pub losses: Vec<String>,
}
