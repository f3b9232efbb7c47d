//! Charts with their legends, and their data as a table and a file.

use maud::{Markup, html};

use super::{Page, draw, wide};
use crate::key::Key;
use crate::model::{At, Chart, Kind};
use crate::number::digits;

/// A chart by its name.
pub(super) fn figure(page: &Page<'_>, id: &str) -> Markup {
    let mut charts = page.decision.charts.iter();
    let Some(chart) = charts.find(|chart| chart.id == id) else {
        return html! {};
    };
    html! {
        figure id=(format!("chart-{id}")) {
            figcaption { (chart.title) }
            @match draw::svg(chart) {
                None => { p.soft { (page.get(Key::NothingToDraw)) } }
                Some(svg) => {
                    (wide(&chart.title, &svg))
                    (keys(chart))
                    (data(page, chart))
                }
            }
        }
    }
}

fn keys(chart: &Chart) -> Markup {
    html! {
        ul.keys {
            @for (at, series) in chart.series.iter().enumerate() {
                li class=(draw::class(series, at)) {
                    svg viewBox="0 0 32 16" aria-hidden="true" {
                        @match chart.kind {
                            Kind::Lines => { line.line.second[series.second] x1="0" x2="32" y1="8" y2="8" {} }
                            Kind::Bars => { rect.bar x="4" y="1" width="24" height="14" {} }
                        }
                    }
                    (series.name)
                }
            }
        }
    }
}

fn data(page: &Page<'_>, chart: &Chart) -> Markup {
    let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), digits);
    let place = |point: &At| name(chart, point);
    html! {
        details.data {
            summary { (page.get(Key::Data)) ": " (chart.title) }
            p { a download=(format!("{}.csv", chart.id)) href=(link(page, chart)) { (page.get(Key::Download)) } }
            (wide(page.get(Key::Data), &html! {
                table {
                    thead { tr {
                        th scope="col" { (page.get(Key::Series)) } th scope="col" { (chart.x.label) } th scope="col" { (chart.y.label) }
                        th scope="col" { (page.get(Key::Low)) } th scope="col" { (page.get(Key::High)) }
                    } }
                    tbody {
                        @for series in &chart.series { @for point in &series.points {
                            tr {
                                td { (series.name) } td { (place(point)) } td { (number(point.y)) }
                                td { (number(point.low)) } td { (number(point.high)) }
                            }
                        } }
                    }
                }
            }))
        }
    }
}

fn name(chart: &Chart, point: &At) -> String {
    let named = chart.x.names.get(point.x as usize);
    named.cloned().unwrap_or_else(|| digits(point.x))
}

/// The data as a file in the page itself, unrounded.
fn link(page: &Page<'_>, chart: &Chart) -> String {
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let heads = [
        page.get(Key::Series),
        &chart.x.label,
        &chart.y.label,
        page.get(Key::Low),
        page.get(Key::High),
    ];
    let mut text = heads.map(quoted).join(",");
    for series in &chart.series {
        for point in &series.points {
            let x = match chart.x.names.is_empty() {
                true => point.x.to_string(),
                false => quoted(&name(chart, point)),
            };
            let row = [
                quoted(&series.name),
                x,
                number(point.y),
                number(point.low),
                number(point.high),
            ];
            text.push_str("\r\n");
            text.push_str(&row.join(","));
        }
    }
    format!("data:text/csv;charset=utf-8,{}", escaped(&text))
}

/// As RFC 3986 (§2.1) has it: every byte that is no letter, digit, `-`, `.`, `_` or `~` by its number.
fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
