//! The decision guide as a flowchart: a map of the rules, and the rules in words.

use maud::{Markup, html};

use super::Page;
use crate::key::Key;
use crate::model::{Guide, Step, Turn};

pub(super) fn guide(page: &Page<'_>) -> Markup {
    let guide = &page.decision.guide;
    html! {
        @if let Some(workload) = &guide.workload { p { (workload) } }
        p.reached[guide.workload.is_some()] { (guide.said) }
        (map(page, guide))
        ol.flow aria-label=(page.get(Key::Path)) {
            @for (at, step) in guide.steps.iter().enumerate() { (rule(page, guide, at, step)) }
        }
    }
}

/// The number under which a step is drawn; `None` of a configuration.
fn number(guide: &Guide, id: &str) -> Option<usize> {
    guide
        .steps
        .iter()
        .position(|step| step.id == id)
        .map(|at| at + 1)
}

fn rule(page: &Page<'_>, guide: &Guide, at: usize, step: &Step) -> Markup {
    let exit = |key: Key, to: &str, turn: Turn| {
        let taken = step.turn == Some(turn);
        html! {
            span.taken[taken] {
                (page.get(key)) " → "
                @match number(guide, to) {
                    Some(number) => { a href=(format!("#step-{to}")) { (number) } }
                    None => { strong { (to) } }
                }
            }
        }
    };
    html! {
        li.on[step.turn.is_some()] id=(format!("step-{}", step.id)) {
            p { (at + 1) ". " (step.asked) }
            p.exits {
                (exit(Key::Yes, step.yes, Turn::Yes)) (exit(Key::No, step.no, Turn::No))
                @if step.turn == Some(Turn::Unknown) { strong { (page.get(Key::Unknown)) } }
            }
            @if let Some(why) = &step.why {
                p.why { (why) @if step.provisional { span.soft { " " (page.get(Key::GuideProvisional)) } } }
            }
        }
    }
}

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 470.0;

/// Where each is drawn: the questions that a stack must pass down the left, those that choose one on the right.
fn place(id: &str) -> (f64, f64) {
    match id {
        "sovereignty" => (60.0, 40.0),
        "engine" => (60.0, 100.0),
        "newest" => (60.0, 160.0),
        "governance" => (60.0, 220.0),
        "cost" => (60.0, 280.0),
        "own-model" => (60.0, 340.0),
        "near" => (60.0, 400.0),
        "repetition" => (280.0, 160.0),
        "routing" => (400.0, 100.0),
        "gateway" => (400.0, 220.0),
        "gateway-routed" => (500.0, 60.0),
        "b2" => (600.0, 30.0),
        "b1" => (600.0, 90.0),
        "a2" => (600.0, 190.0),
        "a1" => (600.0, 250.0),
        "baseline-plus" => (230.0, 340.0),
        "provisioned" => (230.0, 400.0),
        _ => (230.0, 450.0),
    }
}

const ENDS: [&str; 7] = [
    "b2",
    "b1",
    "a2",
    "a1",
    "baseline-plus",
    "provisioned",
    "baseline",
];

/// The rules by their numbers, with the path that was walked.
fn map(page: &Page<'_>, guide: &Guide) -> Markup {
    let way = |step: &Step, to: &str, turn: Turn| {
        let ((x1, y1), (x2, y2)) = (place(step.id), place(to));
        html! { line.way.on[step.turn == Some(turn)] x1=(x1) y1=(y1) x2=(x2) y2=(y2) {} }
    };
    html! {
        svg.map viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(format!("{}: {}", page.get(Key::SectionGuide), guide.said)) {
            @for step in &guide.steps { (way(step, step.yes, Turn::Yes)) (way(step, step.no, Turn::No)) }
            @for (at, step) in guide.steps.iter().enumerate() {
                @let (x, y) = place(step.id);
                circle.node.on[step.turn.is_some()] cx=(x) cy=(y) r="17" {}
                text x=(x) y=(y + 5.0) text-anchor="middle" { (at + 1) }
            }
            @for end in ENDS {
                @let (x, y) = place(end);
                rect.node.on[guide.reached.as_deref() == Some(end)] x=(x - width(end) / 2.0) y=(y - 14.0) width=(width(end)) height="28" rx="4" {}
                text x=(x) y=(y + 5.0) text-anchor="middle" { (end) }
            }
        }
    }
}

fn width(end: &str) -> f64 {
    if end.len() > 2 { 116.0 } else { 44.0 }
}
