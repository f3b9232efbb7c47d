//! The sections, each from its part of the decision.

use maud::{Markup, html};

use super::answers::{answers, word};
use super::figures::figure;
use super::metrics::cell;
use super::{Page, badge, badges, wide};
use crate::key::Key;
use crate::model::{Point, Statement};
use crate::number;
use crate::show::{basis, bill_marks, headline, interval, marks, yes_no};

pub(super) fn summary(page: &Page<'_>) -> Markup {
    let summary = &page.decision.summary;
    html! {
        p { (summary.rests_on) }
        @if page.decision.simulated { p.soft { (page.get(Key::SimulatedNote)) } }
        div.sides {
            (side(page, Key::SummaryManaged, &summary.managed))
            (side(page, Key::SummaryOwn, &summary.own))
        }
        p { (page.decision.guide.said) }
        h3 { (page.get(Key::TenQuestions)) }
        (wide(page.get(Key::TenQuestions), &html! {
            table {
                thead { tr { th scope="col" { (page.get(Key::HeadQuestion)) } th scope="col" { (page.get(Key::HeadAnswer)) } } }
                tbody { @for one in &page.decision.answers {
                    tr {
                        td { a href=(format!("#question-{}", one.number)) { (one.number) ". " (one.question) } }
                        td { (word(page, one)) }
                    }
                } }
            }
        }))
    }
}

fn side(page: &Page<'_>, name: Key, points: &[Point]) -> Markup {
    html! {
        div {
            h3 { (page.get(name)) }
            @if points.is_empty() { p.soft { (page.get(Key::SummaryNothing)) } }
            ul { @for one in points {
                li {
                    a href=(format!("#question-{}", one.question)) { (one.text) }
                    @if one.simulated { (badge(page.get(Key::Simulated))) }
                }
            } }
        }
    }
}

pub(super) fn performance(page: &Page<'_>) -> Markup {
    html! { (figure(page, "ttft")) (figure(page, "tps")) (answers(page, &[1])) (figure(page, "burst")) (answers(page, &[7])) }
}

pub(super) fn import(page: &Page<'_>) -> Markup {
    html! { (figure(page, "spread")) (answers(page, &[2, 3])) }
}

pub(super) fn gateways(page: &Page<'_>) -> Markup {
    html! {
        (figure(page, "legs"))
        (figure(page, "tokens"))
        (answers(page, &[9]))
        (claims(page))
        (answers(page, &[8, 10]))
        (figure(page, "soak"))
        (statements(page, &page.decision.statements.gateways))
    }
}

fn claims(page: &Page<'_>) -> Markup {
    let claims = &page.decision.claims;
    html! {
        @if claims.is_empty() { p.soft { (page.get(Key::NoClaims)) } }
        @else {
            (wide(page.get(Key::HeadClaimed), &html! {
                table {
                    thead { tr {
                        @for key in [Key::HeadChain, Key::HeadClaimed, Key::HeadCovers, Key::HeadMeasured] { th scope="col" { (page.get(key)) } }
                    } }
                    tbody { @for one in claims {
                        tr { td { (one.chain) } td { (one.claimed) } td { (one.covers) } td { (cell(page, &one.measured)) } }
                    } }
                }
            }))
        }
    }
}

pub(super) fn caching(page: &Page<'_>) -> Markup {
    html! { (figure(page, "cache")) (answers(page, &[6])) }
}

pub(super) fn agents(page: &Page<'_>) -> Markup {
    let runtimes = &page.decision.statements.agent_runtimes;
    html! { (answers(page, &[5])) (statements(page, runtimes)) }
}

pub(super) fn cost(page: &Page<'_>) -> Markup {
    html! {
        (figure(page, "cost"))
        h3 { (page.get(Key::Crossings)) }
        (places(page))
        (answers(page, &[4]))
        (moves(page))
    }
}

fn places(page: &Page<'_>) -> Markup {
    let places = &page.decision.places;
    let high =
        |high: Option<f64>| high.map_or_else(|| page.get(Key::NoUpperEnd).to_owned(), number::rate);
    html! {
        @if places.is_empty() { p.soft { (page.get(Key::NoCrossings)) } }
        @else {
            (wide(page.get(Key::Crossings), &html! {
                table {
                    thead { tr {
                        @for key in [Key::HeadConfiguration, Key::HeadRate, Key::HeadInterval, Key::HeadCheaperAbove] { th scope="col" { (page.get(key)) } }
                    } }
                    tbody { @for one in places {
                        tr {
                            td { (one.a) " / " (one.b) (badges(&bill_marks(&page.words, one.simulated, one.guessed))) } td { (number::rate(one.rate)) }
                            td { (number::rate(one.low)) " … " (high(one.high)) } td { (one.cheaper_above) }
                        }
                    } }
                }
            }))
        }
    }
}

fn moves(page: &Page<'_>) -> Markup {
    let end =
        |end: Option<f64>| end.map_or_else(|| page.get(Key::NoUpperEnd).to_owned(), number::money);
    html! {
        @if !page.decision.moves.is_empty() {
            h3 { (page.get(Key::Tornado)) }
            (wide(page.get(Key::Tornado), &html! {
                table {
                    thead { tr {
                        @for key in [Key::HeadInput, Key::HeadConfiguration, Key::HeadAtLow, Key::HeadNow, Key::HeadAtHigh] { th scope="col" { (page.get(key)) } }
                    } }
                    tbody { @for one in &page.decision.moves {
                        tr { td { code { (one.input) } } td { (one.of) (badges(&bill_marks(&page.words, one.simulated, one.guessed))) } td { (end(one.at_low)) } td { (number::money(one.base)) } td { (end(one.at_high)) } }
                    } }
                }
            }))
        }
    }
}

pub(super) fn observability(page: &Page<'_>) -> Markup {
    statements(page, &page.decision.statements.observability)
}

pub(super) fn migration(page: &Page<'_>) -> Markup {
    statements(page, &page.decision.statements.migration)
}

/// What is stated, as such.
fn statements(page: &Page<'_>, all: &[Statement]) -> Markup {
    html! {
        @if !all.is_empty() {
            p.soft { (page.get(Key::StatedNote)) }
            (wide(page.get(Key::HeadStatement), &html! {
                table {
                    thead { tr {
                        @for key in [Key::HeadTopic, Key::HeadConfiguration, Key::HeadStatement, Key::HeadSource] { th scope="col" { (page.get(key)) } }
                    } }
                    tbody { @for one in all {
                        tr {
                            td { (one.topic) } td { (one.of.join(", ")) } td { (one.text) }
                            td { small { (basis(&page.words, &one.basis)) ": " (one.source) ", " (one.date) } }
                        }
                    } }
                }
            }))
        }
    }
}

pub(super) fn changes(page: &Page<'_>) -> Markup {
    wide(
        page.get(Key::SectionChanges),
        &html! {
            table {
                thead { tr {
                    @for key in [Key::HeadChain, Key::HeadDriven, Key::HeadFigure, Key::HeadBefore, Key::HeadNow, Key::HeadNoise] { th scope="col" { (page.get(key)) } }
                } }
                tbody { @for one in &page.decision.changes {
                    tr {
                        td { (one.chain) } td { (one.label) } td { (one.figure) }
                        @for side in [&one.before, &one.now] {
                            td { b { (headline(side)) } (badges(&marks(&page.words, side))) small { @if let Some(range) = interval(side) { (range) } } }
                        }
                        td { (yes_no(&page.words, one.more_than_noise)) }
                    }
                } }
            }
        },
    )
}

pub(super) fn runs(page: &Page<'_>) -> Markup {
    wide(
        page.get(Key::SectionRuns),
        &html! {
            table {
                thead { tr {
                    @for key in [Key::HeadRun, Key::HeadStarted, Key::HeadScenario, Key::HeadValid] { th scope="col" { (page.get(key)) } }
                } }
                tbody { @for one in &page.decision.runs {
                    tr {
                        td { (one.name) @if one.simulated { (badge(page.get(Key::Simulated))) } }
                        td { (one.started) }
                        td { (one.scenario.map_or_else(|| "–".to_owned(), |number| number.to_string())) }
                        td { (yes_no(&page.words, Some(one.valid))) small { (one.broken.join("; ")) } }
                    }
                } }
            }
        },
    )
}

pub(super) fn losses(page: &Page<'_>) -> Markup {
    html! { ul { @for one in &page.decision.losses { li { (one) } } } }
}
