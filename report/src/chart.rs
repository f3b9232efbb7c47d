//! Charts as inline SVG, drawn by plotters; legible on white and on black.

use crate::model::Arm;
use plotters::prelude::*;

const SIZE: (u32, u32) = (720, 300);
/// A middle grey that reads on white and on black.
const INK: RGBColor = RGBColor(120, 120, 120);
/// Distinguishable without red against green (Okabe and Ito 2008).
const COLOURS: [RGBColor; 6] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(213, 94, 0),
];

/// The colour of the n-th series, as CSS.
pub(crate) fn colour(at: usize) -> String {
    let RGBColor(r, g, b) = COLOURS[at % COLOURS.len()];
    format!("rgb({r},{g},{b})")
}

/// A series: its name and (position on the axis of drives, milliseconds).
pub(crate) type Series = (String, Vec<(usize, f64)>);

/// Lines over drives; the axis of values is logarithmic. `None` where there is nothing to draw.
pub(crate) fn lines(series: &[Series], drives: usize) -> Option<String> {
    let values = || {
        series
            .iter()
            .flat_map(|(_, points)| points.iter().map(|p| p.1))
            .filter(|v| *v > 0.0)
    };
    let (low, high) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin(8)
            .x_label_area_size(24)
            .y_label_area_size(64)
            .build_cartesian_2d(
                0.0..(drives.saturating_sub(1) as f64).max(1.0),
                (low / 1.5..high * 1.5).log_scale(),
            )
            .ok()?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .axis_style(INK)
            .bold_line_style(INK.mix(0.3))
            .light_line_style(INK.mix(0.1))
            .label_style(("sans-serif", 12).into_font().color(&INK))
            .x_labels(drives.max(2))
            .x_label_formatter(&|x| {
                if x.fract().abs() < 1e-6 {
                    format!("{}", *x as usize + 1)
                } else {
                    String::new()
                }
            })
            .y_label_formatter(&|y| milliseconds(*y))
            .draw()
            .ok()?;
        for (at, (_, points)) in series.iter().enumerate() {
            let colour = COLOURS[at % COLOURS.len()];
            let points: Vec<(f64, f64)> = points
                .iter()
                .filter(|p| p.1 > 0.0)
                .map(|(x, y)| (*x as f64, *y))
                .collect();
            chart
                .draw_series(LineSeries::new(points.clone(), colour.stroke_width(2)))
                .ok()?;
            chart
                .draw_series(points.iter().map(|p| Circle::new(*p, 4, colour.filled())))
                .ok()?;
        }
        root.present().ok()?;
    }
    Some(flexible(&svg))
}

/// Means of the legs that make up added E2E, stacked, one bar an arm. Only means may be stacked.
pub(crate) fn stacked(arms: &[&Arm]) -> Option<String> {
    const PARTS: [&str; 2] = ["request", "last token"];
    let mean = |arm: &Arm, leg: &str| {
        arm.legs
            .iter()
            .find(|l| l.leg == leg)
            .and_then(|l| l.mean)
            .map(|ns| (ns / 1e6).max(0.0))
    };
    let totals = arms
        .iter()
        .map(|a| PARTS.iter().filter_map(|p| mean(a, p)).sum::<f64>());
    let high = totals.reduce(f64::max).filter(|h| *h > 0.0)?;
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin(8)
            .x_label_area_size(24)
            .y_label_area_size(64)
            .build_cartesian_2d(0.0..arms.len() as f64, 0.0..high * 1.1)
            .ok()?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .axis_style(INK)
            .bold_line_style(INK.mix(0.3))
            .light_line_style(INK.mix(0.1))
            .label_style(("sans-serif", 12).into_font().color(&INK))
            .x_labels(0)
            .y_label_formatter(&|y| milliseconds(*y))
            .draw()
            .ok()?;
        for (x, arm) in arms.iter().enumerate() {
            let mut base = 0.0;
            for (at, part) in PARTS.iter().enumerate() {
                let top = base + mean(arm, part).unwrap_or(0.0);
                let bar = Rectangle::new(
                    [(x as f64 + 0.2, base), (x as f64 + 0.8, top)],
                    COLOURS[at].filled(),
                );
                chart.draw_series(std::iter::once(bar)).ok()?;
                base = top;
            }
            let place = (x as f64 + 0.5, base + high * 0.06);
            let text = Text::new(
                format!("{}", x + 1),
                place,
                ("sans-serif", 12).into_font().color(&INK),
            );
            chart.draw_series(std::iter::once(text)).ok()?;
        }
        root.present().ok()?;
    }
    Some(flexible(&svg))
}

fn milliseconds(value: f64) -> String {
    if value >= 1.0 {
        format!("{value:.0} ms")
    } else {
        format!("{:.0} µs", value * 1e3)
    }
}

/// Lets the drawing shrink with the page. Hidden from screen readers: its figure has the name, and tables the numbers.
fn flexible(svg: &str) -> String {
    let (width, height) = SIZE;
    svg.replacen(
        &format!("<svg width=\"{width}\" height=\"{height}\""),
        "<svg aria-hidden=\"true\" preserveAspectRatio=\"xMidYMid meet\"",
        1,
    )
}
