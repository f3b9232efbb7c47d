//! Legs: the parts of the latency that a component adds between an outer and an inner tap.
//!
//! Every leg runs from the instant at which one tap *began to write* some bytes to the instant at
//! which the other *read* the bytes they became. Same bytes at both ends of the request legs;
//! same text position at both ends of the token legs.

use crate::exchange::Exchange;
use crate::span::Span;
use crate::stamp::Passage;
use crate::timeline::{TextMark, Timeline};
use serde::{Deserialize, Serialize};

/// A write to the client or to the inner side that was blocked for longer than this puts the
/// tokens behind it out of the headline legs. Nanoseconds.
pub const PRESSURE_LIMIT: u64 = 1_000_000;

/// The delays of one call's later text positions, in order. A distribution, never summed: one
/// millisecond late on each of a thousand tokens adds one millisecond to the call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenLegs {
    /// One delay a text position at an inner event's end, the first one apart.
    pub delays: Vec<Span>,
    /// Positions left out because a peer blocked a write before or during them.
    pub pressured: u32,
    /// Positions that never reached the outer tap.
    pub unmatched: u32,
}

/// Whether the two taps saw the same text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextAgreement {
    /// Every common position has the same hash, and at least one is common.
    Same,
    /// Some common position differs: the gateway changed the text, and token legs mean nothing.
    Differs,
    /// No common position.
    Unknown,
}

/// All legs of one call. `None`: the marks that the leg needs were not both seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Legs {
    /// Request head: outer began to write its last byte → inner read it.
    pub head: Option<Span>,
    /// Request: outer began to write the last body byte → inner read the last body byte of the
    /// *first* attempt.
    pub request: Option<Span>,
    /// First attempt's last request byte → the serving attempt's. `None` with one attempt.
    pub recovery: Option<Span>,
    /// Inner began to write the event that ends the first text → outer read that position.
    pub first_token: Option<Span>,
    /// The same at the last text position.
    pub last_token: Option<Span>,
    /// The later positions.
    pub tokens: TokenLegs,
    /// Finish reason.
    pub finish: Option<Span>,
    /// Terminal marker (`[DONE]`).
    pub terminal: Option<Span>,
    /// Last byte.
    pub end: Option<Span>,
    /// request + recovery + first token.
    pub added_ttft: Option<Span>,
    /// request + recovery + last token: what the client waits for in a stream of text.
    pub added_text: Option<Span>,
    /// request + recovery + end: what a client that waits for the connection's last byte waits.
    pub added_end: Option<Span>,
    /// With several attempts: outer duration less the union of the inner exchanges, nanoseconds.
    pub outside_attempts: Option<i64>,
    /// Did the text survive?
    pub text: TextAgreement,
    /// Content events at the inner tap over content events at the outer tap; 1 where the gateway
    /// passes events one for one. `None` without content at either.
    pub merge_ratio: Option<f64>,
}

/// The legs between `outer` and the `attempts` at the inner tap, in order of arrival.
#[must_use]
pub fn legs(outer: &Exchange, attempts: &[&Exchange], serving: usize) -> Option<Legs> {
    let first = *attempts.first()?;
    let inner = *attempts.get(serving)?;
    let request = outer
        .request_out()
        .zip(first.request_in())
        .map(|(o, i)| Span::between(&o, &i));
    let recovery = (attempts.len() > 1)
        .then(|| first.request_in().zip(inner.request_in()))
        .flatten()
        .map(|(a, b)| Span::arrivals(&a, &b));
    let text = agreement(&outer.stream.timeline, &inner.stream.timeline);
    let Positions {
        first_token,
        last_token,
        tokens,
    } = if text == TextAgreement::Differs {
        Positions::default()
    } else {
        positions(outer, inner)
    };
    let mark = |pick: fn(&Exchange) -> Option<Passage>| back(pick(inner), pick(outer));
    let end = mark(|e| e.marks.end);
    let lead = |tail: Option<Span>| {
        let sum = request?.plus(tail?);
        if attempts.len() > 1 {
            Some(sum.plus(recovery?))
        } else {
            Some(sum)
        }
    };
    Some(Legs {
        head: outer
            .marks
            .head
            .departure
            .map(|o| Span::between(&o, &first.marks.head.arrival)),
        request,
        recovery,
        first_token,
        last_token,
        finish: mark(|e| e.stream.marks.finish),
        terminal: mark(|e| e.stream.marks.done),
        end,
        added_ttft: lead(first_token),
        added_text: lead(last_token),
        added_end: lead(end),
        outside_attempts: (attempts.len() > 1)
            .then(|| outside(outer, attempts))
            .flatten(),
        text,
        merge_ratio: ratio(
            inner.stream.counts.text_events,
            outer.stream.counts.text_events,
        ),
        tokens,
    })
}

/// From the inner tap's write to the outer tap's read of the same mark.
fn back(inner: Option<Passage>, outer: Option<Passage>) -> Option<Span> {
    Some(Span::between(&inner?.departure?, &outer?.arrival))
}

fn ratio(inner: u32, outer: u32) -> Option<f64> {
    (inner > 0 && outer > 0).then(|| f64::from(inner) / f64::from(outer))
}

/// Compares the two texts wherever both taps have a mark at the same position of one track.
fn agreement(outer: &Timeline, inner: &Timeline) -> TextAgreement {
    let mut verdict = TextAgreement::Unknown;
    for (index, track) in inner.tracks.iter().enumerate() {
        let Some(same) = outer.same_track(track) else {
            continue;
        };
        let mut outers = outer.texts.iter().filter(|m| m.track == same).peekable();
        for mark in inner.texts.iter().filter(|m| usize::from(m.track) == index) {
            while outers.next_if(|o| o.end < mark.end).is_some() {}
            if let Some(o) = outers.next_if(|o| o.end == mark.end) {
                if o.hash != mark.hash {
                    return TextAgreement::Differs;
                }
                verdict = TextAgreement::Same;
            }
        }
    }
    verdict
}

#[derive(Default)]
struct Positions {
    first_token: Option<Span>,
    last_token: Option<Span>,
    tokens: TokenLegs,
}

/// Walks the inner tap's text positions and finds when each reached the outer tap.
fn positions(outer: &Exchange, inner: &Exchange) -> Positions {
    let (out, inn) = (&outer.stream.timeline, &inner.stream.timeline);
    let mut cursors = vec![0_usize; out.tracks.len()];
    let map: Vec<Option<u8>> = inn.tracks.iter().map(|t| out.same_track(t)).collect();
    let pressed_at = first_blocked_write(out);
    let mut found = Positions::default();
    for (index, mark) in inn.texts.iter().enumerate() {
        let reached = map
            .get(usize::from(mark.track))
            .copied()
            .flatten()
            .and_then(|track| seek(out, track, mark.end, cursors.get_mut(usize::from(track))?));
        let left = inn.passage(mark).and_then(|p| p.departure);
        let came = reached.and_then(|m| Some((m.read, out.passage(m)?.arrival)));
        let (Some(left), Some((read, came))) = (left, came) else {
            found.tokens.unmatched += 1;
            continue;
        };
        let pressed = left.blocked_for() > PRESSURE_LIMIT || pressed_at.is_some_and(|at| read > at);
        if pressed {
            found.tokens.pressured += 1;
            continue;
        }
        let span = Span::between(&left, &came);
        if index == 0 {
            found.first_token = Some(span);
        } else {
            found.tokens.delays.push(span);
        }
        if index + 1 == inn.texts.len() {
            found.last_token = Some(span);
        }
    }
    found
}

/// The first outer mark of `track` whose text reaches `end`.
fn seek<'a>(line: &'a Timeline, track: u8, end: u32, cursor: &mut usize) -> Option<&'a TextMark> {
    let rest = line.texts.get(*cursor..)?;
    let step = rest.iter().position(|m| m.track == track && m.end >= end)?;
    *cursor += step;
    line.texts.get(*cursor)
}

/// The read whose write to the client was the first to block for longer than the limit.
fn first_blocked_write(line: &Timeline) -> Option<u32> {
    line.texts.iter().find_map(|mark| {
        let blocked = line.passage(mark)?.departure?.blocked_for() > PRESSURE_LIMIT;
        blocked.then_some(mark.read)
    })
}

/// Outer duration less the union of the inner exchanges: the time in which no attempt ran.
fn outside(outer: &Exchange, attempts: &[&Exchange]) -> Option<i64> {
    let from = outer.request_out()?.begin;
    let to = outer.marks.end?.arrival.latest();
    let mut spans: Vec<(u64, u64)> = attempts
        .iter()
        .filter_map(|e| {
            let begin = e.request_in()?.latest();
            let end = e
                .marks
                .end
                .and_then(|p| p.departure)
                .map_or(e.marks.closed, |d| d.begin);
            Some((begin, end))
        })
        .collect();
    spans.sort_unstable();
    let mut covered = 0_u64;
    let mut reach = from;
    for (begin, end) in spans {
        let begin = begin.max(reach);
        let end = end.min(to);
        if end > begin {
            covered += end - begin;
            reach = end;
        }
    }
    Some(to.cast_signed().wrapping_sub(from.cast_signed()) - covered.cast_signed())
}

/// The identity of the method: added TTFT must equal the difference of the two taps' durations
/// between the same marks. Returns their difference in nanoseconds; 0 but for a mistake.
#[must_use]
pub fn identity_error(outer: &Exchange, inner: &Exchange, legs: &Legs) -> Option<i64> {
    let added = legs.added_ttft?.value;
    let first = *inner.stream.timeline.texts.first()?;
    let left = inner.stream.timeline.passage(&first)?.departure?;
    let out = &outer.stream.timeline;
    let track = out.same_track(inner.stream.timeline.tracks.get(usize::from(first.track))?)?;
    let came = out.passage(seek(out, track, first.end, &mut 0)?)?.arrival;
    let outer_took = came.latest().cast_signed() - outer.request_out()?.begin.cast_signed();
    let inner_took = left.begin.cast_signed() - inner.request_in()?.latest().cast_signed();
    Some(added - (outer_took - inner_took))
}

#[cfg(test)]
mod tests;
