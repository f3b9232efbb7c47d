//! A chart as inline SVG: colours by CSS, so that it follows the page from light to dark and to paper.

mod scale;

use maud::{Markup, html};

use crate::model::{Chart, Kind, Series};
use scale::Scale;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 52.0;
/// More points than this are a curve, whose intervals are a band.
const CURVE: usize = 20;

/// The class that colours a series: by configuration, so that one has one colour in every chart.
pub(super) fn class(series: &Series, at: usize) -> String {
    let configurations = crate::configurations();
    let own = series.of.as_deref();
    let known = own.and_then(|of| configurations.iter().position(|one| *one == of));
    format!("c{}", known.unwrap_or(at % configurations.len()))
}

/// The drawing; `None` where nothing was measured.
pub(super) fn svg(chart: &Chart) -> Option<Markup> {
    let drawn = match chart.kind {
        Kind::Lines => lines(chart)?,
        Kind::Bars => bars(chart)?,
    };
    Some(html! {
        svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(chart.title) {
            (drawn)
            text.axis x=(middle()) y=(HEIGHT - 8.0) text-anchor="middle" { (chart.x.label) }
            text.axis transform=(format!("translate(14 {}) rotate(-90)", (TOP + HEIGHT - BOTTOM) / 2.0)) text-anchor="middle" { (chart.y.label) }
        }
    })
}

fn middle() -> f64 {
    f64::midpoint(LEFT, WIDTH - RIGHT)
}

/// A point that has a place: where, how much, and the ends of that.
struct Spot {
    x: f64,
    y: f64,
    low: Option<f64>,
    high: Option<f64>,
}

/// The parts of a line: it is broken where a point has no figure, or none that the axes can show.
fn parts(chart: &Chart, series: &Series) -> Vec<Vec<Spot>> {
    let fits = |log: bool, value: f64| value.is_finite() && (!log || value > 0.0);
    let mut parts = vec![Vec::new()];
    for point in &series.points {
        let y = point
            .y
            .filter(|y| fits(chart.y.log, *y) && fits(chart.x.log, point.x));
        match (y, parts.last_mut()) {
            (Some(y), Some(part)) => part.push(Spot {
                x: point.x,
                y,
                low: point.low,
                high: point.high,
            }),
            _ => parts.push(Vec::new()),
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn lines(chart: &Chart) -> Option<Markup> {
    let all: Vec<Vec<Spot>> = chart
        .series
        .iter()
        .flat_map(|series| parts(chart, series))
        .collect();
    let spots = || all.iter().flatten();
    let ends = |spot: &Spot| [Some(spot.y), spot.low, spot.high].into_iter().flatten();
    let x = Scale::over(spots().map(|p| p.x), chart.x.log, (LEFT, WIDTH - RIGHT))?;
    let y = Scale::over(spots().flat_map(ends), chart.y.log, (HEIGHT - BOTTOM, TOP))?;
    Some(html! {
        (grid(&x, &y))
        @for mark in chart.marks.iter().filter(|mark| x.holds(**mark)) {
            line.mark x1=(x.at(*mark)) x2=(x.at(*mark)) y1=(TOP) y2=(HEIGHT - BOTTOM) {}
        }
        @for (at, series) in chart.series.iter().enumerate() {
            g class=(class(series, at)) {
                @for part in parts(chart, series) { (line(series, &part, (&x, &y))) }
            }
        }
    })
}

fn line(series: &Series, part: &[Spot], (x, y): (&Scale, &Scale)) -> Markup {
    let path = |points: &mut dyn Iterator<Item = (f64, f64)>| {
        let drawn = points.map(|(a, b)| format!("{:.1},{:.1}", x.at(a), y.at(b)));
        drawn.collect::<Vec<_>>().join(" ")
    };
    let curve = series.points.len() > CURVE;
    // A bound that an axis cannot show reaches to its end.
    let low = |p: &Spot| p.low.map(|low| low.max(y.low()));
    let high = |p: &Spot| p.high.map(|high| high.min(y.high()));
    html! {
        @if curve && part.iter().any(|p| p.low.is_some()) {
            polygon.band points=(path(&mut part.iter().map(|p| (p.x, low(p).unwrap_or(p.y)))
                .chain(part.iter().rev().map(|p| (p.x, high(p).unwrap_or_else(|| y.high())))))) {}
        }
        polyline.line.second[series.second] points=(path(&mut part.iter().map(|p| (p.x, p.y)))) {}
        @if !curve {
            @for p in part {
                @if let Some((low, high)) = low(p).zip(high(p)) {
                    line.range x1=(x.at(p.x)) x2=(x.at(p.x)) y1=(y.at(low)) y2=(y.at(high)) {}
                }
                (marker(series, x.at(p.x), y.at(p.y)))
            }
        }
    }
}

/// A shape for each configuration, for eyes and printers without colour.
fn marker(series: &Series, x: f64, y: f64) -> Markup {
    let shape = match series.of.as_deref() {
        Some("baseline-plus") => format!("M{x:.1} {:.1}l5 9h-10z", y - 5.0),
        Some("a1") => format!("M{:.1} {:.1}h8v8h-8z", x - 4.0, y - 4.0),
        Some("a2") => format!("M{x:.1} {:.1}l5 5l-5 5l-5 -5z", y - 5.0),
        Some("b1") => format!("M{:.1} {:.1}h10l-5 9z", x - 5.0, y - 4.0),
        Some("b2") => format!("M{:.1} {:.1}h4v3h3v4h-3v3h-4v-3h-3v-4h3z", x - 2.0, y - 5.0),
        _ => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", x - 4.0),
    };
    html! { path.dot d=(shape) {} }
}

fn grid(x: &Scale, y: &Scale) -> Markup {
    html! {
        @for (value, text) in y.ticks() {
            line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(y.at(value)) y2=(y.at(value)) {}
            text.tick x=(LEFT - 6.0) y=(y.at(value) + 4.0) text-anchor="end" { (text) }
        }
        @for (value, text) in x.ticks() {
            line.grid x1=(x.at(value)) x2=(x.at(value)) y1=(TOP) y2=(HEIGHT - BOTTOM) {}
            text.tick x=(x.at(value)) y=(HEIGHT - BOTTOM + 16.0) text-anchor="middle" { (text) }
        }
    }
}

fn bars(chart: &Chart) -> Option<Markup> {
    let places = chart.x.names.len();
    let value = |series: &Series, place: usize| {
        let mut points = series.points.iter();
        let found = points.find(|p| (p.x - place as f64).abs() < 0.5);
        found.and_then(|p| p.y).map_or(0.0, |y| y.max(0.0))
    };
    let total = |place| {
        chart
            .series
            .iter()
            .map(|one| value(one, place))
            .sum::<f64>()
    };
    let totals = (0..places).map(total).chain([0.0]);
    let y = Scale::over(totals, false, (HEIGHT - BOTTOM, TOP))?;
    if chart.series.is_empty() || places == 0 {
        return None;
    }
    let wide = (WIDTH - RIGHT - LEFT) / places as f64;
    Some(html! {
        @for (value, text) in y.ticks() {
            line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(y.at(value)) y2=(y.at(value)) {}
            text.tick x=(LEFT - 6.0) y=(y.at(value) + 4.0) text-anchor="end" { (text) }
        }
        @for (place, name) in chart.x.names.iter().enumerate() {
            @for (at, series) in chart.series.iter().enumerate() {
                @let base: f64 = chart.series.iter().take(at).map(|one| value(one, place)).sum();
                @let top = base + value(series, place);
                rect class=(format!("bar {}", class(series, at))) x=(LEFT + wide * (place as f64 + 0.2)) width=(wide * 0.6)
                    y=(y.at(top)) height=((y.at(base) - y.at(top)).max(0.0)) {}
            }
            @let x = LEFT + wide * (place as f64 + 0.5);
            @for (at, text) in name.splitn(2, ": ").enumerate() {
                text.tick x=(x) y=(HEIGHT - BOTTOM + 14.0 + 14.0 * at as f64) text-anchor="middle" { (text) }
            }
        }
    })
}
