//! The decision as a page: one file, nothing loaded from anywhere, no script.

mod answers;
mod draw;
mod figures;
mod flow;
mod metrics;
mod sections;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::key::Key;
use crate::language::Words;
use crate::model::Decision;

const STYLE: &str = include_str!("page/style.css");

/// What a part of the page is made from.
struct Page<'a> {
    decision: &'a Decision,
    words: Words,
}

impl Page<'_> {
    fn get(&self, key: Key) -> &str {
        self.words.get(key)
    }
}

type Render = fn(&Page<'_>) -> Markup;

/// The sections: the ten of a result report in their order, then what they rest on.
const SECTIONS: [(&str, Key, Render); 14] = [
    ("summary", Key::SectionSummary, sections::summary),
    ("performance", Key::SectionBaseline, sections::performance),
    ("import", Key::SectionImport, sections::import),
    ("gateways", Key::SectionGateways, sections::gateways),
    ("caching", Key::SectionCaching, sections::caching),
    ("agents", Key::SectionAgents, sections::agents),
    ("cost", Key::SectionCost, sections::cost),
    (
        "observability",
        Key::SectionObservability,
        sections::observability,
    ),
    ("guide", Key::SectionGuide, flow::guide),
    ("migration", Key::SectionMigration, sections::migration),
    ("metrics", Key::SectionTable, metrics::table),
    ("changes", Key::SectionChanges, sections::changes),
    ("runs", Key::SectionRuns, sections::runs),
    ("losses", Key::SectionLosses, sections::losses),
];

/// The page of `decision`, in its language.
#[must_use]
pub fn page(decision: &Decision) -> String {
    let page = Page {
        decision,
        words: Words::of(decision.language),
    };
    let simulated = html! {
        @if decision.simulated { " " span.badge { (page.get(Key::Simulated)) } }
    };
    let shown: Vec<_> = SECTIONS
        .iter()
        .filter(|(id, ..)| match *id {
            "changes" => !decision.changes.is_empty(),
            "losses" => !decision.losses.is_empty(),
            _ => true,
        })
        .collect();
    html! {
        (DOCTYPE)
        html lang=(decision.language.code()) {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "hopscope: " (page.get(Key::Title)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header { h1 { "hopscope: " (page.get(Key::Title)) (simulated) } }
                nav aria-label=(page.get(Key::Contents)) {
                    ol {
                        @for (id, name, _) in &shown { li { a href=(format!("#{id}")) { (page.get(*name)) } } }
                    }
                }
                main {
                    @for (id, name, render) in &shown {
                        section id=(id) aria-labelledby=(format!("{id}-name")) {
                            h2 id=(format!("{id}-name")) { (page.get(*name)) }
                            (render(&page))
                        }
                    }
                }
            }
        }
    }
    .into_string()
}

/// A table that scrolls by itself where it is too wide, by keyboard too.
fn wide(name: &str, table: &Markup) -> Markup {
    html! { div.box role="group" tabindex="0" aria-label=(name) { (table) } }
}

/// All that marks a figure.
fn badges(marks: &[String]) -> Markup {
    html! { @for mark in marks { (badge(mark)) } }
}

/// What marks a figure or a statement.
fn badge(text: &str) -> Markup {
    html! { " " span.badge { (text) } }
}
