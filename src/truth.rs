//! What a gateway stand-in says it did, beside what the taps measured.
//!
//! Joined by the call id, and inside a call by text position. The truth of a leg is never the delay
//! that was asked for: it runs from the instant at which the stand-in's read of the bytes returned
//! to the instant at which it began to write what they became.

use record::exchange::Exchange;
use record::leg::Legs;
use record::pairing::Call;
use record::stamp::Passage;
use sim::truth::{ExchangeTruth, Field, Mark, MarkTruth, Role, TokenTruth};
use std::collections::HashMap;

/// One value of one leg, measured and true. Nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// What the stand-in took by its own stamps: read returned → write began.
    pub truth: i64,
    /// The leg.
    pub measured: i64,
    /// The first of the two hops: the tap began to write → the stand-in's read returned, its
    /// wake-up included.
    pub inward: i64,
}

impl Pair {
    /// Measured less true: two hops and a wake-up.
    #[must_use]
    pub fn residual(&self) -> i64 {
        self.measured - self.truth
    }

    /// The second of the two hops: the stand-in began to write → the bytes arrived at the tap, as
    /// the tap dates them.
    #[must_use]
    pub fn outward(&self) -> i64 {
        self.residual() - self.inward
    }
}

/// One leg of one chain. Nanoseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Compared {
    /// The leg.
    pub leg: &'static str,
    /// Calls compared.
    pub samples: usize,
    /// Median of what the stand-in took by its own stamps.
    pub truth: f64,
    /// Median of the leg of the same calls.
    pub measured: f64,
    /// Median of measured − true, call by call: two hops and a wake-up.
    pub residual: f64,
}

/// Compares the legs of `calls` with the truth of their gateway.
#[must_use]
pub fn compare(calls: &[Call], truths: &[ExchangeTruth]) -> Vec<Compared> {
    let by_call: HashMap<&str, &ExchangeTruth> = truths
        .iter()
        .filter_map(|t| Some((t.call.as_deref()?, t)))
        .collect();
    let mut pairs: HashMap<&'static str, Vec<Pair>> = HashMap::new();
    for call in calls {
        let truth = call
            .outer
            .keys
            .call
            .as_deref()
            .and_then(|id| by_call.get(id));
        if let (Some(truth), Some(legs)) = (truth, call.legs()) {
            for (leg, pair) in legs_of(truth, call, &legs) {
                pairs.entry(leg).or_default().push(pair);
            }
        }
    }
    LEGS.into_iter()
        .filter_map(|leg| {
            let pairs = pairs.get(leg)?;
            let by = |pick: fn(&Pair) -> i64| median(pairs.iter().map(pick).collect());
            Some(Compared {
                leg,
                samples: pairs.len(),
                truth: by(|p| p.truth)?,
                measured: by(|p| p.measured)?,
                residual: by(Pair::residual)?,
            })
        })
        .collect()
}

/// The legs that have one value a call.
const LEGS: [&str; 6] = [
    "request",
    "first token",
    "last token",
    "finish",
    "terminal",
    "end",
];

fn minus(a: u64, b: u64) -> i64 {
    a.cast_signed() - b.cast_signed()
}

fn begun(passage: Option<Passage>) -> Option<u64> {
    Some(passage?.departure?.begin)
}

/// The legs of one value a call, where the stand-in and both taps saw all they need.
#[must_use]
pub fn legs_of(truth: &ExchangeTruth, call: &Call, legs: &Legs) -> Vec<(&'static str, Pair)> {
    let Some(inner) = call.served_by() else {
        return Vec::new();
    };
    let texts = &inner.stream.timeline.texts;
    let text = |mark: Option<&record::timeline::TextMark>| inner.stream.timeline.passage(mark?);
    let marks = &inner.stream.marks;
    let joined = positions_agree(truth, inner);
    let token = |token: Option<&TokenTruth>| token.filter(|_| joined).and_then(of_token);
    let of = |mark| truth.mark(mark).and_then(of_mark);
    let sent = call.outer.request_out().map(|d| d.begin);
    let found = [
        (request(truth), legs.request, sent),
        (
            token(truth.tokens.first()),
            legs.first_token,
            begun(text(texts.first())),
        ),
        (
            token(truth.tokens.last()),
            legs.last_token,
            begun(text(texts.last())),
        ),
        (of(Mark::Finish), legs.finish, begun(marks.finish)),
        (of(Mark::Done), legs.terminal, begun(marks.done)),
        (of(Mark::End), legs.end, begun(inner.marks.end)),
    ];
    let pairs = found.into_iter().zip(LEGS);
    pairs
        .filter_map(|((spent, leg, sent), name)| Some((name, spent?.beside(leg?.value, sent?))))
        .collect()
}

/// The later text positions of a call, one by one. `None` where the two lists are not of the same
/// positions: the stand-in forwarded other text than the inner tap saw, or positions are left out
/// of the legs.
#[must_use]
pub fn tokens_of(truth: &ExchangeTruth, call: &Call, legs: &Legs) -> Option<Vec<Pair>> {
    let inner = call.served_by()?;
    let line = &inner.stream.timeline;
    let delays = &legs.tokens.delays;
    if !positions_agree(truth, inner) || delays.len() + 1 != line.texts.len() {
        return None;
    }
    let later = truth.tokens.iter().zip(&line.texts).skip(1).zip(delays);
    later
        .map(|((token, mark), delay)| {
            let sent = begun(line.passage(mark))?;
            Some(of_token(token)?.beside(delay.value, sent))
        })
        .collect()
}

/// The stand-in's pieces of text end where the inner tap's do, one for one.
fn positions_agree(truth: &ExchangeTruth, inner: &Exchange) -> bool {
    let line = &inner.stream.timeline;
    truth.tokens.len() == line.texts.len()
        && truth.tokens.iter().zip(&line.texts).all(|(token, mark)| {
            line.tracks.get(usize::from(mark.track)).is_some_and(|t| {
                token.end_text_offset == u64::from(mark.end)
                    && (token.choice, token.tool) == (t.choice, t.tool)
                    && Some(token.field) == field(t.field)
            })
        })
}

/// The stand-in's word for a field; `None` for one that it does not know.
fn field(field: wire::Field) -> Option<Field> {
    match field {
        wire::Field::Content => Some(Field::Content),
        wire::Field::Reasoning => Some(Field::Reasoning),
        wire::Field::ToolArguments => Some(Field::ToolArguments),
        wire::Field::Refusal => None,
    }
}

/// From the return of a stand-in's read to the begin of its write.
#[derive(Clone, Copy)]
struct Spent {
    read_at: u64,
    write_begin: u64,
}

impl Spent {
    fn beside(self, measured: i64, sent: u64) -> Pair {
        Pair {
            truth: minus(self.write_begin, self.read_at),
            measured,
            inward: minus(self.read_at, sent),
        }
    }
}

fn request(truth: &ExchangeTruth) -> Option<Spent> {
    let body = truth.mark(Mark::RequestBody)?;
    let write_begin = match truth.role {
        Role::Gateway => truth.attempts.first()?.request_write_begin,
        _ => body.write_begin,
    };
    Some(Spent {
        read_at: body.read_at?,
        write_begin: write_begin?,
    })
}

fn of_token(token: &TokenTruth) -> Option<Spent> {
    Some(Spent {
        read_at: token.read_at?,
        write_begin: token.write_begin,
    })
}

fn of_mark(mark: &MarkTruth) -> Option<Spent> {
    Some(Spent {
        read_at: mark.read_at?,
        write_begin: mark.write_begin?,
    })
}

/// The middle one; `None` of none.
fn median(mut values: Vec<i64>) -> Option<f64> {
    values.sort_unstable();
    let middle = values.len() / 2;
    let upper = *values.get(middle)? as f64;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some((upper + *values.get(middle.checked_sub(1)?)? as f64) / 2.0)
}

#[cfg(test)]
mod tests;
