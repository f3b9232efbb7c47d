//! Progress for a person: one line that changes on a terminal, plain lines elsewhere.

use super::{Phase, Progress, Update};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::Duration;

/// How progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// One line on standard error that is written anew.
    Line,
    /// One line on standard error a cell.
    Plain,
    /// Nothing but notes.
    Quiet,
}

impl Style {
    /// A changing line where standard error is a terminal, else plain lines.
    #[must_use]
    pub fn detect() -> Self {
        if std::io::stderr().is_terminal() {
            Self::Line
        } else {
            Self::Plain
        }
    }
}

/// Prints progress on standard error.
pub struct Terminal {
    style: Style,
    bar: ProgressBar,
    last: Mutex<(String, String)>,
}

impl Terminal {
    /// A printer.
    #[must_use]
    pub fn new(style: Style) -> Self {
        let target = if style == Style::Line {
            ProgressDrawTarget::stderr_with_hz(4)
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(wide) = ProgressStyle::with_template("{wide_msg}") {
            bar.set_style(wide);
        }
        Self {
            style,
            bar,
            last: Mutex::default(),
        }
    }

    fn say(&self, line: &str) {
        if self.style == Style::Line {
            self.bar.suspend(|| put(line));
        } else {
            put(line);
        }
    }
}

/// A closed standard error is nothing that a run should end for.
fn put(line: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{line}");
}

impl Progress for Terminal {
    fn update(&self, update: &Update) {
        if let Some(note) = &update.note {
            self.say(note);
        }
        match self.style {
            Style::Quiet => {}
            Style::Line if update.phase == Phase::Done => self.bar.finish_and_clear(),
            Style::Line => self.bar.set_message(line(update)),
            Style::Plain => {
                let now = (update.chain.clone(), update.cell.clone());
                let fresh = self
                    .last
                    .lock()
                    .is_ok_and(|mut last| std::mem::replace(&mut *last, now.clone()) != now);
                if fresh && !update.cell.is_empty() {
                    put(&format!("{} {}", heading(update), place(update)));
                }
            }
        }
    }
}

fn heading(update: &Update) -> String {
    match update.phase {
        Phase::Preflight => "preflight".to_owned(),
        Phase::Probes => "probes".to_owned(),
        Phase::Capacity => "capacity".to_owned(),
        Phase::Block { number, of } => {
            format!(
                "block {number}/{of} · cell {}/{}",
                update.done + 1,
                update.total
            )
        }
        Phase::Gather => "gathering the taps' records".to_owned(),
        Phase::Done => "done".to_owned(),
    }
}

fn place(update: &Update) -> String {
    let left = update
        .left
        .map_or_else(String::new, |left| format!(" · {} left", clock(left)));
    format!("{} · {}{left}", update.chain, update.cell)
}

/// The changing line.
fn line(update: &Update) -> String {
    if update.cell.is_empty() {
        return heading(update);
    }
    let ms = |nanos: Option<u64>| {
        nanos.map_or_else(|| "–".to_owned(), |n| format!("{:.1}", n as f64 / 1e6))
    };
    format!(
        "{} {} · {:.1}/s of {:.1}/s · {} in flight · ttft p50 {} p99 {} ms · lag p99 {} ms · {} errors",
        heading(update),
        place(update),
        update.achieved,
        update.asked,
        update.in_flight,
        ms(update.ttft_p50),
        ms(update.ttft_p99),
        ms(update.lag_p99),
        update.errors,
    )
}

fn clock(left: Duration) -> String {
    let seconds = left.as_secs();
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, s) => format!("{s} s"),
        (0, m, s) => format!("{m}:{s:02} min"),
        (h, m, _) => format!("{h}:{m:02} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_figures_are_not_zero() {
        let update = Update {
            phase: Phase::Block { number: 1, of: 3 },
            chain: "relay".to_owned(),
            cell: "open 10/s".to_owned(),
            asked: 10.0,
            achieved: 9.5,
            in_flight: 2,
            ttft_p50: Some(41_250_000),
            ttft_p99: None,
            errors: 0,
            lag_p99: Some(80_000),
            done: 4,
            total: 47,
            left: Some(Duration::from_secs(75)),
            note: None,
        };
        assert_eq!(
            line(&update),
            "block 1/3 · cell 5/47 relay · open 10/s · 1:15 min left · 9.5/s of 10.0/s · 2 in flight · \
             ttft p50 41.2 p99 – ms · lag p99 0.1 ms · 0 errors"
        );
    }
}
