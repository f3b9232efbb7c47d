//! What a calibration's calls say, joined with what the stand-ins say, by cell.

use crate::truth::{Pair, legs_of, tokens_of};
use config::standin::StreamMode;
use record::client::ClientCall;
use record::manifest::TapHealth;
use record::pairing::{Call, PairingCounts};
use sim::truth::ExchangeTruth;
use std::collections::{BTreeMap, HashMap};

/// Calls of the relay's probe are numbered from here, above those of any stream.
pub(super) const PROBE: u64 = 1 << 32;

/// What the streams of a cell went through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A gateway of this mode, with the delay of this index.
    Gateway { mode: StreamMode, delay: usize },
    /// The zero-delay relay: the floor.
    Floor,
    /// As an engine writes it: the pieces of the stream's end back to back, through the mildest
    /// gateway or the relay. Told, without a bound.
    BackToBack { relay: bool },
    /// A check of its own.
    Check,
}

/// One cell that ran.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cell {
    pub(super) block: u32,
    pub(super) load: f64,
    pub(super) streams: u32,
    pub(super) kind: Kind,
}

/// Which values of a leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    leg: &'static str,
    cell: u32,
    /// Of the relay's probe beside the cell, not of the cell's own streams.
    probe: bool,
}

/// What the processes said besides.
#[derive(Debug, Default)]
pub(super) struct Account {
    pub(super) pairing: PairingCounts,
    pub(super) health: Option<TapHealth>,
    pub(super) losses: Vec<String>,
}

/// Measured and true, by leg and cell.
#[derive(Debug, Default)]
pub(super) struct Samples {
    pub(super) cells: Vec<Cell>,
    pub(super) account: Account,
    pairs: BTreeMap<Key, Vec<Pair>>,
    /// Largest error of the merge ratio, as a share.
    pub(super) merge_error: Option<f64>,
    /// Calls on which the identity of the legs does not hold.
    pub(super) broken: usize,
    /// Calls whose text positions could not be joined with the stand-in's.
    pub(super) unjoined: usize,
    /// Calls on fresh connections, which are a stratum of their own and in no figure.
    pub(super) fresh: usize,
    /// Text positions under back-pressure, by cell.
    pressured: HashMap<u32, u64>,
    /// Token legs of calls with back-pressure, those that are left, by cell.
    unpressured: HashMap<u32, Vec<f64>>,
    /// Added E2E of text by cell.
    added: HashMap<u32, Vec<f64>>,
}

impl Samples {
    pub(super) fn new(
        cells: &[Cell],
        calls: &[Call],
        truths: &HashMap<String, ExchangeTruth>,
        account: Account,
    ) -> Self {
        let mut samples = Self {
            cells: cells.to_vec(),
            account,
            ..Self::default()
        };
        for call in calls.iter().filter(|c| c.outer.complete()) {
            let keys = &call.outer.keys;
            let place = keys.client.as_deref().and_then(ClientCall::parse_key);
            let truth = keys.call.as_ref().and_then(|id| truths.get(id));
            if let (Some((cell, number)), Some(truth)) = (place, truth) {
                samples.take(cell, number >= PROBE, call, truth);
            }
        }
        samples
    }

    fn take(&mut self, cell: u32, probe: bool, call: &Call, truth: &ExchangeTruth) {
        let mut exchanges = std::iter::once(&call.outer).chain(&call.attempts);
        if !exchanges.all(|e| e.connection.upstream_reused == Some(true)) {
            self.fresh += 1;
            return;
        }
        let Some(legs) = call.legs() else { return };
        let mut add = |leg, pair| {
            let key = Key { leg, cell, probe };
            self.pairs.entry(key).or_default().push(pair);
        };
        for (leg, pair) in legs_of(truth, call, &legs) {
            add(leg, pair);
        }
        let tokens = &legs.tokens;
        match tokens_of(truth, call, &legs) {
            Some(pairs) => pairs.into_iter().for_each(|pair| add("token", pair)),
            None if tokens.pressured > 0 => {
                *self.pressured.entry(cell).or_default() += u64::from(tokens.pressured);
                let left = tokens.delays.iter().map(|d| d.value as f64);
                self.unpressured.entry(cell).or_default().extend(left);
            }
            None => self.unjoined += 1,
        }
        if !probe {
            self.take_sums(cell, call, truth, &legs);
        }
    }

    /// What is checked call by call: the merge ratio, the identity, the added E2E.
    fn take_sums(
        &mut self,
        cell: u32,
        call: &Call,
        truth: &ExchangeTruth,
        legs: &record::leg::Legs,
    ) {
        if let Some(added) = legs.added_text {
            self.added.entry(cell).or_default().push(added.value as f64);
        }
        let inner = call.served_by();
        let broken = inner
            .and_then(|i| record::leg::identity_error(&call.outer, i, legs))
            .is_some_and(|e| e != 0);
        self.broken += usize::from(broken);
        if truth.text_events_written > 0
            && let Some(ratio) = legs.merge_ratio
        {
            let real = truth.text_events_read as f64 / truth.text_events_written as f64;
            let error = (ratio - real).abs() / real;
            self.merge_error = Some(self.merge_error.map_or(error, |e| e.max(error)));
        }
    }

    /// Values of a leg over the cells that `pick` takes: of their own streams, or of the relay's
    /// probe beside them.
    pub(super) fn pairs(
        &self,
        leg: &'static str,
        probe: bool,
        pick: impl Fn(&Cell) -> bool,
    ) -> Vec<Pair> {
        let cells = (0..).zip(&self.cells).filter(|(_, c)| pick(c));
        cells
            .filter_map(|(cell, _)| self.pairs.get(&Key { leg, cell, probe }))
            .flatten()
            .copied()
            .collect()
    }

    /// The values of each cell that `pick` takes, apart.
    pub(super) fn by_cell(&self, leg: &'static str, pick: impl Fn(&Cell) -> bool) -> Vec<&[Pair]> {
        let cells = (0..).zip(&self.cells).filter(|(_, c)| pick(c));
        let probe = false;
        cells
            .filter_map(|(cell, _)| self.pairs.get(&Key { leg, cell, probe }))
            .map(Vec::as_slice)
            .collect()
    }

    /// Text positions of `cell` that were under back-pressure.
    pub(super) fn pressured(&self, cell: u32) -> u64 {
        self.pressured.get(&cell).copied().unwrap_or(0)
    }

    /// The token legs that are left of the calls of `cell` with back-pressure. Nanoseconds.
    pub(super) fn unpressured(&self, cell: u32) -> &[f64] {
        self.unpressured.get(&cell).map_or(&[], Vec::as_slice)
    }

    /// What the calls of `cell` were made longer by. Nanoseconds.
    pub(super) fn added(&self, cell: u32) -> &[f64] {
        self.added.get(&cell).map_or(&[], Vec::as_slice)
    }
}
