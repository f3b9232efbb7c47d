//! What the calls of a run say of its validity, taken one at a time: a run of days does not fit into memory.
//! Durations are kept to three digits.

use super::{Evidence, by_schedule, floors, headline};
use hdrhistogram::Histogram;
use record::client::{CallOutcome, ClientCall};
use record::histogram::{add, durations};
use record::manifest::Cell;
use record::pairing::Call;
use std::collections::{BTreeMap, HashSet};

/// See the module. Where a cell is meant, it is one that counts ([`headline`]).
pub(super) struct Seen {
    /// The calls of each cell with a schedule.
    pub(super) paces: BTreeMap<u32, Pace>,
    /// Cells of any kind with a full answer.
    pub(super) answered: HashSet<u32>,
    /// What each gateway adds to TTFT, without its sign.
    pub(super) added_ttft: BTreeMap<String, Histogram<u64>>,
    /// The floor probe's request leg, without its sign.
    pub(super) floor: Histogram<u64>,
    /// Calls through two taps that should have a counterpart.
    pub(super) pairable: u64,
    /// Of these, those that have it.
    pub(super) paired: u64,
    /// Inner faces of gateways by stamp class.
    pub(super) faces: BTreeMap<&'static str, u64>,
}

/// How punctual the calls of a cell were. To two digits: there may be hundreds of cells.
pub(super) struct Pace {
    /// How late calls were taken up.
    pub(super) lag: Histogram<u64>,
    /// Their TTFT.
    pub(super) ttft: Histogram<u64>,
}

impl Default for Pace {
    fn default() -> Self {
        let rough = || {
            let mut rough = Histogram::new(2).unwrap_or_else(|_| unreachable!("2 is in range"));
            rough.auto(true);
            rough
        };
        Self {
            lag: rough(),
            ttft: rough(),
        }
    }
}

impl Pace {
    fn take(&mut self, call: &ClientCall) {
        add(&mut self.lag, call.lag());
        if let Some(ttft) = call.ttft() {
            add(&mut self.ttft, ttft);
        }
    }

    /// Adds what another cell came to.
    pub(super) fn join(&mut self, other: &Self) {
        // Cannot fail: these grow by themselves.
        let _ = self.lag.add(&other.lag);
        let _ = self.ttft.add(&other.ttft);
    }
}

impl Seen {
    pub(super) fn of(
        e: &Evidence<'_>,
        calls: impl Iterator<Item = ClientCall>,
        paired: impl Iterator<Item = Call>,
    ) -> Self {
        let mut seen = Self {
            paces: BTreeMap::new(),
            answered: HashSet::new(),
            added_ttft: BTreeMap::new(),
            floor: durations(),
            pairable: 0,
            paired: 0,
            faces: BTreeMap::new(),
        };
        let scheduled = by_schedule(e);
        for call in calls.filter(|call| !call.warmup) {
            seen.call(&call, scheduled.contains(&call.cell));
        }
        let counted: HashSet<u32> = headline(e).map(|cell| cell.id).collect();
        let of_gateway = |cell: &&Cell| e.gateways.contains(&cell.chain);
        let measured = headline(e).filter(of_gateway).map(|cell| cell.id).collect();
        let floors = floors(e);
        for call in paired {
            seen.tapped(e, &call, &counted, &measured, &floors);
        }
        seen
    }

    fn call(&mut self, call: &ClientCall, scheduled: bool) {
        if call.outcome == CallOutcome::Complete {
            self.answered.insert(call.cell);
        }
        if scheduled {
            self.paces.entry(call.cell).or_default().take(call);
        }
    }

    fn tapped(
        &mut self,
        e: &Evidence<'_>,
        call: &Call,
        counted: &HashSet<u32>,
        measured: &HashSet<u32>,
        floors: &HashSet<u32>,
    ) {
        let chain = &*call.outer.chain;
        let within = |ids: &HashSet<u32>| cell_of(call).is_some_and(|id| ids.contains(&id));
        let take = |histogram: &mut Histogram<u64>, span: Option<record::span::Span>| {
            if let Some(span) = span {
                add(histogram, span.value.unsigned_abs());
            }
        };
        if within(measured) {
            if !self.added_ttft.contains_key(chain) {
                self.added_ttft.insert(chain.to_owned(), durations());
            }
            if let Some(added) = self.added_ttft.get_mut(chain) {
                take(added, call.legs().and_then(|l| l.added_ttft));
            }
        }
        if within(floors) {
            take(&mut self.floor, call.legs().and_then(|l| l.request));
        }
        if within(counted) && e.legged.contains(chain) && call.pairable() {
            self.pairable += 1;
            self.paired += u64::from(call.paired());
        }
        if let Some(inner) = call.served_by().filter(|_| e.gateways.contains(chain)) {
            let outer = call.outer.connection.upstream_class;
            for class in [outer, inner.connection.client_class] {
                *self.faces.entry(class.name()).or_default() += 1;
            }
        }
    }
}

/// The cell that a call was sent in; `None` for a call that the load generator did not send.
fn cell_of(call: &Call) -> Option<u32> {
    let name = call.outer.keys.client.as_deref()?;
    ClientCall::parse_key(name).map(|(cell, _)| cell)
}
