//! What the calls of a probe say of an experiment. A pure function, used while it goes on (is there anything
//! left to wait for?) and at its end.

use super::lasting::{first, rolling};
use super::{Found, Kind, Measure, Quantity, Setup};
use crate::client::{CallOutcome, ClientCall};
use crate::clock::Nanos;

/// Fewer answers than these before the event tell no latency to come back to.
const FEWEST: usize = 5;

/// One call of the probe, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Probe {
    /// Its number.
    pub seq: u64,
    /// When it was due.
    pub intended: Nanos,
    /// When it ended.
    pub end: Nanos,
    /// Answered in full.
    pub answered: bool,
    /// First text, counted from when it was due; `None` where it failed.
    pub ttft: Option<Nanos>,
}

impl Probe {
    /// What `call` says.
    #[must_use]
    pub fn of(call: &ClientCall) -> Self {
        let answered = call.outcome == CallOutcome::Complete;
        Self {
            seq: call.seq,
            intended: call.intended,
            end: call.end,
            answered,
            ttft: call.ttft_intended().filter(|_| answered),
        }
    }
}

/// An experiment as far as it was watched.
#[derive(Debug, Clone, Copy)]
pub struct Watched<'a> {
    /// How it is made.
    pub setup: &'a Setup,
    /// When its schedule began.
    pub start: Nanos,
    /// The event from which is counted.
    pub event: Nanos,
    /// When the trigger had ended; `None` where it still runs, or there is none.
    pub triggered: Option<Nanos>,
    /// It is over: what was not seen will not be.
    pub over: bool,
    /// Its calls, in the order in which they were due, without a gap.
    pub probes: &'a [Probe],
}

/// What can be told so far. Of an experiment that goes on, [`Found::LongerThan`] means *not yet*.
#[must_use]
pub fn measure(watched: &Watched<'_>) -> Vec<Measure> {
    let all = Sight::new(watched);
    let told = |quantity, found| Measure { quantity, found };
    let recovery = || {
        vec![
            told(Quantity::ErrorWindow, all.error_window()),
            told(Quantity::DegradedWindow, all.degraded_window()),
            told(Quantity::TimeToSteady, all.steady(all.troubled)),
        ]
    };
    match watched.setup.looks_for {
        Kind::ColdStart => vec![told(Quantity::ColdStart, all.cold_start())],
        Kind::ModelUpdate if watched.setup.renamed => {
            let found = all.turnaround(Some(watched.event));
            vec![told(Quantity::Turnaround, found)]
        }
        Kind::ModelUpdate => {
            let mut measures = vec![told(
                Quantity::Turnaround,
                all.turnaround(watched.triggered),
            )];
            measures.extend(recovery());
            measures
        }
        Kind::Recovery => recovery(),
        Kind::ScaleOut => vec![
            told(Quantity::ScaleOutDelay, all.steady(all.troubled)),
            told(Quantity::ErrorWindow, all.error_window()),
        ],
        Kind::QueueDrain => vec![
            told(Quantity::QueueDrain, all.steady(all.due_after)),
            told(Quantity::InFlightDrain, all.in_flight()),
        ],
    }
}

/// The calls and what is good about them.
struct Sight<'a> {
    it: &'a Watched<'a>,
    probes: &'a [Probe],
    answered: Vec<bool>,
    /// Answered, and as soon as before the event. `None` where it is not known how soon that was.
    good: Option<Vec<bool>>,
    /// Of each call: it was answered, and the median from it on is back.
    back: Option<Vec<bool>>,
    /// The first call due at the event or later.
    due_after: Option<usize>,
    /// The first call that failed at the event or later.
    failed: Option<usize>,
    /// The first call at the event or later that failed, or from which on the median was too long.
    troubled: Option<usize>,
}

impl<'a> Sight<'a> {
    fn new(it: &'a Watched<'a>) -> Self {
        let probes = it.probes;
        let answered: Vec<bool> = probes.iter().map(|p| p.answered).collect();
        let good = usual(it).map(|usual| {
            let most = usual as f64 * it.setup.ttft_within;
            let soon = |p: &Probe| p.ttft.is_some_and(|ttft| ttft as f64 <= most);
            probes.iter().map(soon).collect::<Vec<bool>>()
        });
        let back = good
            .as_ref()
            .map(|good| rolling(probes, good, it.setup.window));
        let after = |p: &Probe| p.intended >= it.event;
        let limit = it.event.saturating_add(it.setup.limit);
        // A call that was under way when the event came is hit by it.
        let hit = |p: &Probe| !p.answered && p.end >= it.event && p.intended <= limit;
        // A window that goes beyond what was seen tells nothing yet.
        let seen = probes.last().map_or(0, |p| p.intended).min(limit);
        let whole = |p: &Probe| p.intended.saturating_add(it.setup.window) <= seen;
        let failed = probes.iter().position(hit);
        let slow = back.as_ref().and_then(|back| {
            let mut all = probes.iter().zip(back);
            all.position(|(p, back)| after(p) && whole(p) && !back)
        });
        Self {
            it,
            probes,
            answered,
            good,
            back,
            due_after: probes.iter().position(after),
            failed,
            troubled: [failed, slow].into_iter().flatten().min(),
        }
    }

    fn due(&self, at: usize) -> Nanos {
        self.probes[at].intended
    }

    /// When the call before number `at` was due, or the event came, whichever was later.
    fn due_before(&self, at: usize) -> Nanos {
        let before = at.checked_sub(1).map(|before| self.due(before));
        before.unwrap_or(0).max(self.it.event)
    }

    fn since(&self, at: Nanos) -> Nanos {
        at.saturating_sub(self.it.event)
    }

    /// A value that the limit does not cut off.
    fn value(&self, value: Nanos, low: Nanos, high: Nanos) -> Found {
        match value > self.it.setup.limit {
            true => Found::LongerThan(self.it.setup.limit),
            false => Found::Value { value, low, high },
        }
    }

    /// The last instant that counts.
    fn last(&self) -> Nanos {
        let limit = self.it.event.saturating_add(self.it.setup.limit);
        self.probes.last().map_or(limit, |p| p.intended.min(limit))
    }

    /// It lasted from `from` on, and beyond what was seen.
    fn beyond(&self, from: Nanos) -> Found {
        Found::LongerThan(self.last().saturating_sub(from))
    }

    /// The longest time from the event on without a call for which `well` holds: what could hide in it.
    fn spacing(&self, well: &[bool]) -> Nanos {
        let last = self.last();
        let calls = self.probes.iter().zip(well);
        let well = calls.filter(|(p, well)| **well && (self.it.event..=last).contains(&p.intended));
        let (mut before, mut longest) = (self.it.event, 0);
        for due in well.map(|(p, _)| p.intended).chain([last]) {
            longest = due.saturating_sub(before).max(longest);
            before = due;
        }
        longest
    }

    /// Until call `at`, counted from the event, had its whole answer. One sent between it and the call before
    /// might have had it earlier, by no more than what lies between the two.
    fn answer(&self, at: usize, from: Nanos) -> Found {
        let value = self.since(self.probes[at].end);
        let gap = self.due(at).saturating_sub(self.due_before(at).max(from));
        self.value(value, value.saturating_sub(gap), value)
    }

    fn cold_start(&self) -> Found {
        let answered = (0..self.probes.len()).filter(|at| self.probes[*at].answered);
        let first = answered.min_by_key(|at| self.probes[*at].end);
        first.map_or_else(
            || self.beyond(self.it.event),
            |at| self.answer(at, self.it.event),
        )
    }

    /// `from`: no call due before it counts; `None`: that instant has not come.
    fn turnaround(&self, from: Option<Nanos>) -> Found {
        let lasting = from.and_then(|from| {
            let begin = self.probes.iter().position(|p| p.intended >= from)?;
            let settle = self.it.setup.settle;
            let at = first(self.probes, &self.answered, begin, settle, 0)?;
            Some(self.answer(at, from))
        });
        lasting.unwrap_or_else(|| self.beyond(self.it.event))
    }

    /// The first call from which on none failed, at or behind `failed`.
    fn served_again(&self, failed: usize) -> Option<usize> {
        first(self.probes, &self.answered, failed, self.it.setup.settle, 0)
            .filter(|at| self.due(*at) <= self.last())
    }

    fn error_window(&self) -> Found {
        let Some(failed) = self.failed else {
            return self.nothing_seen(&self.answered);
        };
        let Some(again) = self.served_again(failed) else {
            return self.beyond(self.due(failed));
        };
        let begin = self.due(failed);
        let earliest = failed.checked_sub(1).map_or(begin, |at| self.due(at));
        Found::Value {
            value: self.due(again) - begin,
            low: self.due(again.saturating_sub(1)).saturating_sub(begin),
            high: self.due(again) - earliest,
        }
    }

    /// Nothing was seen of an effect on the calls for which `well` holds; one may have hidden between them.
    /// Where one must be expected to come yet, that is told at the end only.
    fn nothing_seen(&self, well: &[bool]) -> Found {
        let settled = match self.it.setup.looks_for {
            Kind::ModelUpdate => self.it.triggered.is_some(),
            Kind::QueueDrain => true,
            _ => self.it.over || self.troubled.is_some(),
        };
        match settled && self.due_after.is_some() {
            true => Found::ShorterThan(self.spacing(well)),
            false => self.beyond(self.it.event),
        }
    }

    /// The first call from number `from` on with which service was steady again, and the latest that it can
    /// have been: behind it, but within the window, a call may have been slow.
    fn steady_call(&self, from: usize) -> Option<(usize, Nanos)> {
        let (good, back) = (self.good.as_ref()?, self.back.as_ref()?);
        let setup = self.it.setup;
        let reached = first(self.probes, back, from, setup.settle, setup.window)?;
        let at = (reached..self.probes.len()).find(|at| good[*at])?;
        if self.due(at) > self.last() {
            return None;
        }
        let until = self.due(reached).saturating_add(setup.window);
        let slow = (at..self.probes.len())
            .take_while(|n| self.due(*n) < until)
            .filter(|n| !good[*n]);
        let next = slow.last().map_or(at, |last| last + 1);
        let latest = self.probes.get(next).map_or(until, |p| p.intended);
        Some((at, latest))
    }

    fn unknown(&self) -> Found {
        Found::NotMeasured(format!(
            "fewer than {FEWEST} calls were answered before the event, so that there is no latency to come back to"
        ))
    }

    /// From the event until service was steady, looked for from call `from` on; `None`: there is no reason.
    fn steady(&self, from: Option<usize>) -> Found {
        let Some(good) = &self.good else {
            return self.unknown();
        };
        let Some(from) = from else {
            return self.nothing_seen(good);
        };
        let Some((at, latest)) = self.steady_call(from) else {
            return self.beyond(self.it.event);
        };
        if Some(at) == self.due_after {
            let answered = self.spacing(&self.answered);
            return Found::ShorterThan(self.since(latest).max(answered));
        }
        let low = self.since(self.due_before(at));
        self.value(self.since(self.due(at)), low, self.since(latest))
    }

    fn degraded_window(&self) -> Found {
        let Some(good) = &self.good else {
            return self.unknown();
        };
        let Some(from) = self.troubled else {
            return self.nothing_seen(good);
        };
        // Where nothing failed, it begins with the first slow call.
        let begin = match self.failed {
            Some(failed) => self.served_again(failed),
            None => Some(from),
        };
        let Some(begin) = begin else {
            return Found::NotMeasured("the error window did not end".to_owned());
        };
        let Some((at, latest)) = self.steady_call(begin) else {
            return self.beyond(self.due(begin));
        };
        let earliest = self.due_before(begin).min(self.due(begin));
        if at == begin {
            return Found::ShorterThan(latest.saturating_sub(earliest));
        }
        Found::Value {
            value: self.due(at) - self.due(begin),
            low: self.due(at - 1) - self.due(begin),
            high: latest.saturating_sub(earliest),
        }
    }

    /// Exact to the stamp: calls in flight change only where one is sent or ends.
    fn in_flight(&self) -> Found {
        let seen = self.last();
        let mut changes: Vec<(Nanos, i64)> = self
            .probes
            .iter()
            .flat_map(|p| [(p.intended, 1), (p.end, -1)])
            .collect();
        // One that ends when another is sent leaves before it comes.
        changes.sort_unstable();
        let quiet = self.it.start.saturating_add(self.it.setup.before);
        let (mut count, mut most, mut at_event) = (0_i64, 0_i64, true);
        for (at, change) in changes {
            if at >= self.it.event {
                if at_event && count <= most {
                    return Found::ShorterThan(self.spacing(&self.answered));
                }
                at_event = false;
            }
            count += change;
            if at < quiet {
                most = most.max(count);
            } else if at >= self.it.event && count <= most && at <= seen {
                let value = self.since(at);
                return self.value(value, value, value);
            }
        }
        self.beyond(self.it.event)
    }
}

/// The median TTFT before the event.
fn usual(it: &Watched<'_>) -> Option<Nanos> {
    let until = it.start.saturating_add(it.setup.before);
    let before = it.probes.iter().filter(|p| p.intended < until);
    let mut times: Vec<Nanos> = before.filter_map(|p| p.ttft).collect();
    times.sort_unstable();
    let middle = times.get(times.len().checked_sub(1)? / 2);
    middle.filter(|_| times.len() >= FEWEST).copied()
}

#[cfg(test)]
mod tests;
