//! From measurements, prices and stated facts to a decision: the metrics table, ten answers, a guide and charts.
//!
//! [`decide()`] makes a [`Decision`], which is data; [`page()`] and [`markdown()`] only show it. Every sentence is in
//! `words.json`, in each [`Language`].

mod against;
mod answers;
mod charts;
mod claims;
mod drive;
mod guide;
mod key;
mod language;
mod markdown;
mod model;
mod number;
mod page;
mod show;
mod statements;
mod summary;
mod table;
mod view;

use cost::{Configuration, NoCrossing};

pub use language::Language;
pub use markdown::markdown;
pub use model::{
    Answer, At, Axis, Cell, Change, Chart, Claim, Decision, Evidence, FORMAT, Figure, Guide, Kind,
    Move, Place, Point, Row, Run, Series, Statement, Statements, Step, Summary, Turn, Unit,
    Verdict,
};
pub use page::page;
pub use view::Given;

use language::Words;
use view::View;

/// Bars of the tornado that are shown.
const MOVES: usize = 12;

/// The decision that `given` leads to.
#[must_use]
pub fn decide(given: Given<'_>, language: Language) -> Decision {
    let view = View {
        given,
        words: Words::of(language),
    };
    let table = table::rows(&view);
    let answers = answers::answers(&view, &table);
    let mut losses = given.report.losses.clone();
    if let Some(old) = given.against {
        losses.extend(old.losses.iter().cloned());
    }
    Decision {
        format: FORMAT,
        language,
        simulated: given.report.simulated || given.study.simulated,
        summary: summary::summary(&view, &answers),
        runs: runs(&view),
        guide: guide::guide(&view),
        claims: claims::claims(&view, &table),
        places: places(&view),
        moves: moves(&view),
        charts: charts::charts(&view),
        statements: statements::statements(&view),
        changes: against::changes(&view),
        table,
        answers,
        losses,
    }
}

/// The schema of a decision's JSON (draft 2020-12), as it is published in `decide/schema/decision.json`.
#[must_use]
pub fn schema() -> serde_json::Value {
    schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<Decision>()
        .to_value()
}

fn runs(view: &View<'_>) -> Vec<Run> {
    let runs = view.given.report.runs.iter();
    runs.map(|run| Run {
        name: run.name.clone(),
        started: run.started.clone(),
        scenario: view.scenario(&run.name),
        valid: view.valid(&run.name),
        broken: match &run.verdict {
            None => vec![view.get(key::Key::NotTold)],
            Some(verdict) => verdict.broken().map(|check| check.name.clone()).collect(),
        },
        simulated: run.chains.iter().any(|chain| chain.simulated),
    })
    .collect()
}

fn places(view: &View<'_>) -> Vec<Place> {
    let pairs = view.given.study.pairs.iter();
    let told = pairs.filter(|pair| !matches!(pair.no_crossing, Some(NoCrossing::AtLeast(_))));
    told.flat_map(|pair| &pair.crossings)
        .map(|one| Place {
            a: one.a.id().to_owned(),
            b: one.b.id().to_owned(),
            rate: one.rate,
            low: one.low,
            high: one.high,
            cheaper_above: one.cheaper_above.id().to_owned(),
            simulated: view.on_stand_ins(&[one.a, one.b]),
            guessed: view.on_guesses(&[one.a, one.b]),
        })
        .collect()
}

fn moves(view: &View<'_>) -> Vec<Move> {
    let bars = view.given.study.tornado.iter().take(MOVES);
    bars.map(|bar| Move {
        input: bar.input.clone(),
        of: bar.of.id().to_owned(),
        at_low: bar.at_low,
        at_high: bar.at_high,
        base: bar.base,
        simulated: view.on_stand_ins(&[bar.of]),
        guessed: view.on_guesses(&[bar.of]),
    })
    .collect()
}

/// The configurations' names, in the order of every row's cells.
fn configurations() -> [&'static str; 6] {
    Configuration::ALL.map(Configuration::id)
}
