//! Pairing: which inner exchanges belong to which outer call. Pure: no clock, no I/O, so that the
//! tap uses it live and the report offline, and two tap processes give the same pairs as one.
//!
//! Order of trust: the call id header; then the trace id of `traceparent`; then the fingerprint of
//! the request, only where exactly one call can be meant. Whatever matched is confirmed by the
//! echoed exchange id and by the response id; a contradiction drops the pair and is counted.

mod seen;

use crate::clock::Nanos;
use crate::exchange::{Exchange, Outcome, Position};
use seen::Seen;
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher as _};

/// Exchanges that may wait for their counterpart in a process that never ends: some hundred megabytes.
pub const MAX_WAITING: usize = 65_536;

/// What matched a call to its inner exchanges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MatchedBy {
    /// `x-hopscope-call`.
    Header,
    /// `traceparent`.
    Trace,
    /// Same request, same time, no other candidate.
    Fingerprint,
}

/// What confirmed a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confirmed {
    /// The gateway echoed the inner exchange's id.
    Echo,
    /// Both taps saw the same response id.
    ResponseId,
    /// Nothing contradicts the match, and nothing confirms it.
    No,
}

/// What became of one outer call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CallClass {
    /// One inner exchange, answered in full.
    Served,
    /// Several inner exchanges; the call was answered in full.
    Recovered,
    /// No inner exchange, a full answer, and evidence that a cache gave it.
    CacheHit,
    /// No full answer: the client was refused by status.
    Refused,
    /// The client left.
    Aborted,
    /// No full answer otherwise.
    Failed,
    /// The match is contradicted by what came back: dropped from every leg.
    Conflict,
    /// A full answer without an inner exchange and without evidence of a cache. Lowers the
    /// pairing rate.
    Unexplained,
}

impl CallClass {
    /// The word used in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Served => "served",
            Self::Recovered => "recovered",
            Self::CacheHit => "cache-hit",
            Self::Refused => "refused",
            Self::Aborted => "aborted",
            Self::Failed => "failed",
            Self::Conflict => "conflict",
            Self::Unexplained => "unexplained",
        }
    }
}

/// One client call with all that the taps saw of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The outer tap's exchange.
    pub outer: Exchange,
    /// The inner tap's exchanges, in order of arrival.
    pub attempts: Vec<Exchange>,
    /// Which attempt's content came back, as an index.
    pub serving: Option<usize>,
    /// Exchanges at taps further in, in order of arrival.
    pub engine: Vec<Exchange>,
    /// How the attempts were found; `None` without any.
    pub matched: Option<MatchedBy>,
    /// What confirmed them.
    pub confirmed: Confirmed,
    /// What became of the call.
    pub class: CallClass,
}

impl Call {
    /// The attempt whose content came back.
    #[must_use]
    pub fn served_by(&self) -> Option<&Exchange> {
        self.attempts.get(self.serving?)
    }

    /// The legs between the outer and the inner tap; only for a call that is in no stratum of its
    /// own (conflict, several attempts without a known server, a request that a tap sent again).
    #[must_use]
    pub fn legs(&self) -> Option<crate::leg::Legs> {
        if self.class == CallClass::Conflict || self.resent() {
            return None;
        }
        let attempts: Vec<&Exchange> = self.attempts.iter().collect();
        crate::leg::legs(&self.outer, &attempts, self.serving?)
    }

    /// A tap sent the request again on a fresh connection: out of every measured leg.
    #[must_use]
    pub fn resent(&self) -> bool {
        self.outer.connection.resent || self.attempts.iter().any(|e| e.connection.resent)
    }

    /// Counts towards the pairing rate: a generation that came back in full. What was refused,
    /// failed or was given up has no counterpart to expect.
    #[must_use]
    pub fn pairable(&self) -> bool {
        self.outer.request.generation && self.outer.complete() && self.class != CallClass::CacheHit
    }

    /// Has its counterpart.
    #[must_use]
    pub fn paired(&self) -> bool {
        matches!(self.class, CallClass::Served | CallClass::Recovered)
    }
}

/// Counts of what pairing could not use.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairingCounts {
    /// Calls handed out.
    pub calls: u64,
    /// Calls that count towards the pairing rate.
    pub pairable: u64,
    /// Of these, those with their counterpart.
    pub paired: u64,
    /// Matches that were contradicted.
    pub conflicts: u64,
    /// Inner generation exchanges without an outer call (health checks of the gateway, a call
    /// that never ended at the outer tap).
    pub inner_only: u64,
    /// Waiting exchanges dropped because too many waited.
    pub dropped: u64,
}

impl PairingCounts {
    /// Paired over pairable; `None` where nothing was pairable.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        (self.pairable > 0).then(|| self.paired as f64 / self.pairable as f64)
    }
}

/// What may make a fallback match ambiguous: another call with the same key at the same time.
struct Shade {
    id: u64,
    begin: Nanos,
    closed: Nanos,
}

/// What a fallback match goes by.
#[derive(Hash)]
enum Key<'a> {
    Trace(&'a str),
    Fingerprint(&'a str, u64),
}

impl<'a> Key<'a> {
    fn all(outer: &'a Exchange) -> impl Iterator<Item = Self> {
        let trace = outer.keys.trace.as_deref().map(Self::Trace);
        let print = outer
            .request
            .fingerprint
            .map(|p| Self::Fingerprint(&outer.chain, p));
        trace.into_iter().chain(print)
    }
}

/// A name as 64 bits: many are remembered for a while, and only to tell them apart. The same in every
/// process, so that live and offline agree.
fn short(name: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

#[derive(Default)]
struct Waiting {
    attempts: Vec<Exchange>,
    engine: Vec<Exchange>,
    since: Nanos,
}

/// Takes exchanges in any order and gives calls. By default it keeps whatever it is offered: who
/// pairs the record of a run offers all of it before the first call is asked for.
pub struct Pairer {
    /// Exchanges that may wait at the most.
    most: usize,
    /// Ended outer exchanges, by when they closed.
    outers: BTreeMap<(Nanos, u64), Exchange>,
    /// Inner exchanges with a call id.
    inners: HashMap<String, Waiting>,
    /// Inner exchanges without one, in order of arrival here.
    loose: VecDeque<Exchange>,
    /// Outer exchanges by what a fallback match goes by, also those handed out already.
    shades: HashMap<u64, SmallVec<[Shade; 1]>>,
    seen: Seen,
    counts: PairingCounts,
}

impl Default for Pairer {
    fn default() -> Self {
        Self::bounded(usize::MAX)
    }
}

impl Pairer {
    /// One that drops the oldest exchanges beyond `most` that wait, and counts them.
    #[must_use]
    pub fn bounded(most: usize) -> Self {
        Self {
            most,
            outers: BTreeMap::new(),
            inners: HashMap::new(),
            loose: VecDeque::new(),
            shades: HashMap::new(),
            seen: Seen::default(),
            counts: PairingCounts::default(),
        }
    }

    /// Takes one exchange.
    pub fn offer(&mut self, exchange: Exchange) {
        match (exchange.position, exchange.keys.call.clone()) {
            (Position::Outer, _) => {
                let (id, begin, closed) =
                    (exchange.id, exchange.marks.begin.at, exchange.marks.closed);
                for key in Key::all(&exchange) {
                    self.shades
                        .entry(short(key))
                        .or_default()
                        .push(Shade { id, begin, closed });
                }
                self.outers
                    .insert((exchange.marks.closed, exchange.id), exchange);
            }
            (position, Some(call)) => {
                let waiting = self.inners.entry(call).or_default();
                waiting.since = waiting.since.max(exchange.marks.closed);
                if position == Position::Inner {
                    waiting.attempts.push(exchange);
                } else {
                    waiting.engine.push(exchange);
                }
            }
            (Position::Inner, None) => self.loose.push_back(exchange),
            (Position::Engine, None) => {}
        }
        self.bound();
    }

    fn bound(&mut self) {
        while self.outers.len() > self.most {
            self.outers.pop_first();
            self.counts.dropped += 1;
        }
        while self.loose.len() > self.most {
            self.loose.pop_front();
            self.counts.dropped += 1;
        }
    }

    /// Hands out the calls whose outer exchange closed before `closed_before`, and forgets inner
    /// exchanges that closed before `forget_before` and never found a call.
    pub fn settle(&mut self, closed_before: Nanos, forget_before: Nanos) -> Vec<Call> {
        let later = self.outers.split_off(&(closed_before, 0));
        let ripe = std::mem::replace(&mut self.outers, later);
        let calls = ripe.into_values().map(|outer| self.call(outer)).collect();
        let counts = &mut self.counts;
        self.inners.retain(|_, waiting| {
            let keep = waiting.since >= forget_before;
            if !keep {
                counts.inner_only += waiting.attempts.len() as u64;
            }
            keep
        });
        self.shades.retain(|_, shades| {
            shades.retain(|s| s.closed >= forget_before);
            !shades.is_empty()
        });
        self.loose.retain(|exchange| {
            let keep = exchange.marks.closed >= forget_before;
            counts.inner_only += u64::from(!keep && exchange.request.generation);
            keep
        });
        calls
    }

    /// Hands out every call that is left.
    pub fn finish(&mut self) -> Vec<Call> {
        self.settle(Nanos::MAX, Nanos::MAX)
    }

    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> PairingCounts {
        self.counts
    }

    /// Exchanges held and not yet handed out.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.outers.len() + self.inners.len() + self.loose.len()
    }

    fn call(&mut self, outer: Exchange) -> Call {
        let by_header = outer
            .keys
            .call
            .as_ref()
            .and_then(|id| self.inners.remove(id));
        let (mut attempts, mut engine, matched) = match by_header {
            Some(found) if !found.attempts.is_empty() => {
                (found.attempts, found.engine, Some(MatchedBy::Header))
            }
            other => {
                let engine = other.map_or_else(Vec::new, |found| found.engine);
                let (attempts, matched) = self.loose_for(&outer);
                (attempts, engine, matched)
            }
        };
        for exchanges in [&mut attempts, &mut engine] {
            exchanges.sort_by_key(|e| (e.marks.begin.at, e.id));
        }
        let serving = serving(&outer, &attempts);
        let confirmed = confirm(&outer, serving.and_then(|i| attempts.get(i)));
        let contradicted = contradicted(&outer, &attempts);
        let class = if contradicted {
            CallClass::Conflict
        } else {
            self.classify(&outer, attempts.len())
        };
        let call = Call {
            outer,
            attempts,
            serving,
            engine,
            matched,
            confirmed,
            class,
        };
        self.note(&call);
        call
    }

    fn note(&mut self, call: &Call) {
        self.counts.calls += 1;
        self.counts.pairable += u64::from(call.pairable());
        self.counts.paired += u64::from(call.pairable() && call.paired());
        self.counts.conflicts += u64::from(call.class == CallClass::Conflict);
        if let Some(id) = call.outer.stream.response_id.as_ref().map(short) {
            self.seen.insert(id);
        }
    }

    fn classify(&self, outer: &Exchange, attempts: usize) -> CallClass {
        match (outer.outcome, attempts) {
            (Outcome::Complete, 1) => CallClass::Served,
            (Outcome::Complete, 0) => {
                let old = outer
                    .stream
                    .response_id
                    .as_ref()
                    .is_some_and(|id| self.seen.contains(short(id)));
                if outer.claims.cache_hit || old {
                    CallClass::CacheHit
                } else {
                    CallClass::Unexplained
                }
            }
            (Outcome::Complete, _) => CallClass::Recovered,
            (Outcome::Aborted, _) => CallClass::Aborted,
            (Outcome::Refused, _) => CallClass::Refused,
            _ => CallClass::Failed,
        }
    }

    /// Inner exchanges without a call id that can only belong to `outer`.
    fn loose_for(&mut self, outer: &Exchange) -> (Vec<Exchange>, Option<MatchedBy>) {
        if self.loose.is_empty() {
            return (Vec::new(), None);
        }
        for key in Key::all(outer) {
            let rivals = self
                .shades
                .get(&short(&key))
                .map_or(&[][..], SmallVec::as_slice);
            if rivals.iter().any(|s| {
                s.id != outer.id
                    && s.begin <= outer.marks.closed
                    && outer.marks.begin.at <= s.closed
            }) {
                continue;
            }
            let (matched, found) = match &key {
                Key::Trace(trace) => (
                    MatchedBy::Trace,
                    self.take(|e| e.keys.trace.as_deref() == Some(*trace) && during(outer, e)),
                ),
                Key::Fingerprint(_, print) => (
                    MatchedBy::Fingerprint,
                    self.take(|e| e.request.fingerprint == Some(*print) && during(outer, e)),
                ),
            };
            if !found.is_empty() {
                return (found, Some(matched));
            }
        }
        (Vec::new(), None)
    }

    fn take(&mut self, same: impl Fn(&Exchange) -> bool) -> Vec<Exchange> {
        let (found, rest): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.loose).into_iter().partition(same);
        self.loose = rest;
        found.into()
    }
}

/// `inner` began while `outer` ran, on the same chain.
fn during(outer: &Exchange, inner: &Exchange) -> bool {
    let begin = inner.marks.begin.at;
    inner.chain == outer.chain && begin >= outer.marks.begin.at && begin <= outer.marks.closed
}

/// Whose content came back: the echoed exchange, else the one with the response's id, else the
/// last that was answered in full, else the last.
fn serving(outer: &Exchange, attempts: &[Exchange]) -> Option<usize> {
    let last = attempts.len().checked_sub(1)?;
    if let Some(echoed) = outer.keys.echoed {
        return attempts.iter().position(|e| e.id == echoed);
    }
    let id = outer.stream.response_id.as_ref();
    attempts
        .iter()
        .rposition(|e| id.is_some() && e.stream.response_id.as_ref() == id)
        .or_else(|| attempts.iter().rposition(Exchange::complete))
        .or(Some(last))
}

fn confirm(outer: &Exchange, inner: Option<&Exchange>) -> Confirmed {
    let Some(inner) = inner else {
        return Confirmed::No;
    };
    if outer.keys.echoed == Some(inner.id) {
        Confirmed::Echo
    } else if outer.stream.response_id.is_some()
        && outer.stream.response_id == inner.stream.response_id
    {
        Confirmed::ResponseId
    } else {
        Confirmed::No
    }
}

/// The gateway echoed an exchange that is not among those matched: one of the two is wrong.
fn contradicted(outer: &Exchange, attempts: &[Exchange]) -> bool {
    outer
        .keys
        .echoed
        .is_some_and(|echoed| !attempts.is_empty() && attempts.iter().all(|e| e.id != echoed))
}

#[cfg(test)]
mod tests;
