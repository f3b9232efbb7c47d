//! Figures and cells in words, for the page and for Markdown.

use crate::key::Key;
use crate::language::Words;
use crate::model::{Cell, Figure, Unit, Verdict};
use crate::number;

pub(crate) fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Nanoseconds => number::time(value),
        Unit::Dollars => number::money(value),
        Unit::Share => number::share(value),
        Unit::PerSecond => number::rate(value),
        Unit::Bytes => number::bytes(value),
    }
}

/// The value, with what it is the least of.
pub(crate) fn headline(figure: &Figure) -> String {
    let sign = if figure.at_least { "≥ " } else { "" };
    format!("{sign}{}", value(figure.value, figure.unit))
}

/// Its interval; `None` without one.
pub(crate) fn interval(figure: &Figure) -> Option<String> {
    let low = figure.low?;
    let high = match figure.high {
        Some(high) => value(high, figure.unit),
        None => "∞".to_owned(),
    };
    Some(format!("{} … {high}", value(low, figure.unit)))
}

/// How far it can be trusted: marks that stand beside it.
pub(crate) fn marks(words: &Words, figure: &Figure) -> Vec<String> {
    let mut marks = Vec::new();
    let mut add = |holds: bool, key: Key| {
        if holds {
            marks.push(words.get(key).to_owned());
        }
    };
    add(figure.simulated, Key::Simulated);
    let computed = figure.unit == Unit::Dollars;
    add(!figure.valid && !computed, Key::NotValid);
    add(!figure.valid && computed && !figure.at_least, Key::Guessed);
    add(figure.few, Key::Few);
    marks
}

/// A cell as one line.
pub(crate) fn cell(words: &Words, cell: &Cell) -> String {
    match cell {
        Cell::NotApplicable => "–".to_owned(),
        Cell::NotMeasured { command } => {
            format!("{}: `{command}`", words.get(Key::NotMeasured))
        }
        Cell::Withheld { why, .. } => format!("{}: {why}", words.get(Key::Withheld)),
        Cell::Value(figure) => {
            let mut parts = vec![headline(figure)];
            parts.extend(interval(figure).map(|range| format!("({range})")));
            parts.extend(figure.samples.map(|n| format!("n = {n}")));
            parts.push(figure.label.clone());
            parts.extend(figure.run.clone());
            parts.extend(
                marks(words, figure)
                    .into_iter()
                    .map(|mark| format!("**{mark}**")),
            );
            parts.join("; ")
        }
        Cell::Stated {
            text,
            source,
            date,
            basis,
        } => format!(
            "{text} ({}: {}, {source}, {date})",
            words.get(Key::Stated),
            self::basis(words, basis)
        ),
    }
}

/// What marks a figure that is computed from bills.
pub(crate) fn bill_marks(words: &Words, simulated: bool, guessed: bool) -> Vec<String> {
    let marks = [(simulated, Key::Simulated), (guessed, Key::Guessed)];
    let held = marks.into_iter().filter(|(holds, _)| *holds);
    held.map(|(_, key)| words.get(key).to_owned()).collect()
}

pub(crate) fn basis<'a>(words: &'a Words, basis: &str) -> &'a str {
    words.get(match basis {
        "documented" => Key::BasisDocumented,
        "reported" => Key::BasisReported,
        _ => Key::BasisAssumed,
    })
}

pub(crate) fn verdict(words: &Words, verdict: Verdict) -> &str {
    words.get(match verdict {
        Verdict::Yes => Key::VerdictYes,
        Verdict::No => Key::VerdictNo,
        Verdict::Depends => Key::VerdictDepends,
        Verdict::Unanswered => Key::VerdictUnanswered,
    })
}

/// The verdict, and what it would be of the real thing.
pub(crate) fn verdict_and_stand_ins(
    words: &Words,
    answered: Verdict,
    would_be: Option<Verdict>,
) -> String {
    let said = verdict(words, answered);
    match would_be {
        None => said.to_owned(),
        Some(other) => {
            let values = [("verdict", verdict(words, other).to_owned())];
            format!("{said} ({})", words.say(Key::WouldBe, &values))
        }
    }
}

pub(crate) fn yes_no(words: &Words, yes: Option<bool>) -> &str {
    words.get(match yes {
        Some(true) => Key::Yes,
        Some(false) => Key::No,
        None => Key::Unknown,
    })
}
