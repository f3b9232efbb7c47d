//! Each chain's own capacity, found before anything else is driven.

use super::plan::Planned;
use super::{Campaign, taps};
use crate::LoadError;
use crate::capacity::{Driven, Run, search};
use crate::progress::Phase;
use crate::seed::derive;
use config::scenario::{Capacity as Search, CellLength};
use record::client::ClientCall;
use record::manifest::{Cell, Drive};
use std::collections::HashMap;

impl Campaign<'_> {
    pub(super) fn capacities(&mut self) -> Result<(), LoadError> {
        let Some(settings) = self.plan.scenario.capacity.clone() else {
            return Ok(());
        };
        for chain in 0..self.plan.chains.len() {
            let planned = &self.plan.chains[chain].chain;
            let name = planned.name.clone();
            if planned.kind.is_control() || self.capacities.contains_key(&name) {
                continue;
            }
            self.stage.recorder.at(|c| c.phase = Phase::Capacity);
            let seed = derive(self.plan.seed, &[b"capacity", name.as_bytes()]);
            let found = search(&settings, seed, |rate| {
                if self.stage.stop.requested() {
                    return Ok(None);
                }
                self.step(&settings, chain, rate).map(Some)
            })?;
            if let Some(found) = found {
                self.capacities.insert(name, found);
            }
        }
        Ok(())
    }

    /// Drives a rate for a while.
    fn step(&mut self, settings: &Search, chain: usize, rate: f64) -> Result<Run, LoadError> {
        let one = Planned {
            chain,
            drive: Drive::Capacity { rate },
            way: self.open(rate),
            length: CellLength {
                duration: Some(settings.hold),
                calls: None,
            },
        };
        self.stage.recorder.watch(self.next);
        let (id, _) = self.cell(&one, 0)?;
        let calls = self.stage.recorder.watched(id);
        let cell = self.cells.iter().rfind(|cell| cell.id == id);
        let added = match (settings.slo.added_ttft_p95, cell) {
            (Some(_), Some(cell)) => self.added(cell)?,
            _ => HashMap::new(),
        };
        let driven = Driven {
            rate,
            from: cell.map_or(0, |cell| cell.from),
            to: cell.map_or(0, |cell| cell.to),
            due: cell.and_then(|cell| cell.scheduled).unwrap_or(0),
            calls: &calls,
            added: &added,
        };
        Ok(Run::of(&settings.slo, &driven))
    }

    /// What the gateway added to TTFT of a cell's calls, nanoseconds, by their number; of those that were paired.
    fn added(&self, cell: &Cell) -> Result<HashMap<u64, i64>, LoadError> {
        std::thread::sleep(taps::SETTLE);
        // Warm-up reached the tap before, but for the call that was due when the window opened.
        let calls = taps::calls(&self.plan.taps, cell.from)?;
        let of_cell = |call: &record::pairing::Call| {
            let key = call.outer.keys.client.as_deref()?;
            let (id, seq) = ClientCall::parse_key(key)?;
            (id == cell.id).then_some(seq)
        };
        Ok(calls
            .filter_map(|call| Some((of_cell(&call)?, call.legs()?.added_ttft?.value)))
            .collect())
    }
}
