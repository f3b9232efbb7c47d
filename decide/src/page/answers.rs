//! The ten answers.

use maud::{Markup, html};

use super::{Page, badge};
use crate::key::Key;
use crate::model::{Answer, Evidence, Verdict};
use crate::show::{verdict, verdict_and_stand_ins};

/// Those of some questions, whole.
pub(super) fn answers(page: &Page<'_>, numbers: &[u8]) -> Markup {
    let of = |number: &u8| {
        page.decision
            .answers
            .iter()
            .find(|one| one.number == *number)
    };
    html! { @for one in numbers.iter().filter_map(of) { (answer(page, one)) } }
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Yes => "yes",
        Verdict::No => "no",
        Verdict::Depends | Verdict::Unanswered => "open",
    }
}

/// The verdict in a word, and what it would be of the real thing.
pub(super) fn word(page: &Page<'_>, one: &Answer) -> Markup {
    let said = verdict(&page.words, one.verdict);
    let whole = verdict_and_stand_ins(&page.words, one.verdict, one.were_stand_ins_real);
    let rest = whole.strip_prefix(said).unwrap_or_default();
    html! { span class=(format!("verdict {}", class(one.verdict))) { (said) } @if !rest.is_empty() { span.soft { (rest) } } }
}

fn answer(page: &Page<'_>, one: &Answer) -> Markup {
    let scenarios: Vec<String> = one.scenarios.iter().map(u8::to_string).collect();
    html! {
        article.answer id=(format!("question-{}", one.number)) {
            h3 { (one.number) ". " (one.question) }
            p { (word(page, one)) span.soft { " · " (page.get(Key::Scenarios)) " " (scenarios.join(", ")) } }
            @for text in &one.said { p { (text) } }
            (list(page.get(Key::Evidence), one.evidence.iter().map(|one| evidence(page, one)).collect()))
            (list(page.get(Key::Thresholds), texts(&one.thresholds)))
            (list(page.get(Key::WouldChange), texts(&one.would_change)))
        }
    }
}

fn texts(all: &[String]) -> Vec<Markup> {
    all.iter().map(|text| html! { (text) }).collect()
}

fn list(name: &str, all: Vec<Markup>) -> Markup {
    html! {
        @if !all.is_empty() {
            h4 { (name) }
            ul { @for one in all { li { (one) } } }
        }
    }
}

fn evidence(page: &Page<'_>, one: &Evidence) -> Markup {
    html! {
        @match &one.cell {
            Some(cell) => { a href=(format!("#{cell}")) { (one.text) } }
            None => { (one.text) }
        }
        @if let Some(run) = &one.run { span.soft { " [" (run) "]" } }
        @if one.simulated { (badge(page.get(Key::Simulated))) }
    }
}
