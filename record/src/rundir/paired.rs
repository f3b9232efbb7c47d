//! Pairs the exchanges of tap processes while they are read.
//!
//! A run of days does not fit into memory, and need not: whatever belongs to a call began while the call
//! was under way, so it closed no later than the longest exchange of all lasts behind the call's end. The
//! exchanges are read twice: once to know that length, and how far from the order of their ends the taps
//! wrote them down; then again, pairing what is so old that nothing can follow. What comes out is what
//! pairing all of them at once gives, in the same order, but for one case: an attempt that a gateway began
//! after its client's call was over, with that call's id. Whether it is still counted as an attempt of the
//! call is open; such a call's own answer and legs were there before it.
//!
//! That compares instants of several taps. Where they are not known to count from one clock, all exchanges
//! are held until the last one is read.

use super::{EXCHANGES, Records, RunDirError, read_health};
use crate::clock::Nanos;
use crate::exchange::Exchange;
use crate::pairing::{Call, Pairer, PairingCounts};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::vec;

/// Exchanges read between two looks at what is ripe, at the least.
const ROUND: usize = 1024;

/// The calls of tap processes, paired, in the order in which they closed at the outer tap.
pub struct PairedCalls {
    sources: Vec<Source>,
    pairer: Pairer,
    from: Nanos,
    /// The longest that any exchange lasted; `None`: several clocks.
    longest: Option<Nanos>,
    /// [`ROUND`], but for tests.
    round: usize,
    ready: vec::IntoIter<Call>,
    ended: bool,
}

/// One tap process.
struct Source {
    records: Records<Exchange>,
    /// The latest end read.
    reached: Nanos,
    /// The most that an exchange closed before one that was written down before it.
    disorder: Nanos,
    ended: bool,
}

impl Source {
    fn open(dir: &Path) -> Result<(Self, Nanos), RunDirError> {
        let records = Records::<Exchange>::open(dir, EXCHANGES)?;
        let (mut reached, mut disorder, mut longest): (Nanos, Nanos, Nanos) = (0, 0, 0);
        for exchange in records.again() {
            let marks = exchange.marks;
            reached = marks.closed.max(reached);
            disorder = reached.saturating_sub(marks.closed).max(disorder);
            longest = marks.closed.saturating_sub(marks.begin.at).max(longest);
        }
        let source = Self {
            records,
            reached: 0,
            disorder,
            ended: false,
        };
        Ok((source, longest))
    }

    /// Whatever it still brings closed at this instant or later.
    fn horizon(&self) -> Nanos {
        match self.ended {
            true => Nanos::MAX,
            false => self.reached.saturating_sub(self.disorder),
        }
    }
}

impl PairedCalls {
    /// The calls of the exchanges under `dirs` that began at `from` or later.
    ///
    /// # Errors
    /// A directory cannot be listed, or its health file is damaged.
    pub fn of(dirs: impl Iterator<Item = PathBuf>, from: Nanos) -> Result<Self, RunDirError> {
        let (mut sources, mut longest, mut clocks) = (Vec::new(), 0, HashSet::new());
        for dir in dirs {
            let (source, lasted) = Source::open(&dir)?;
            sources.push(source);
            longest = lasted.max(longest);
            clocks.insert(read_health(&dir)?.and_then(|health| health.boot));
        }
        let one_clock = sources.len() < 2 || (clocks.len() == 1 && !clocks.contains(&None));
        Ok(Self {
            sources,
            pairer: Pairer::default(),
            from,
            longest: one_clock.then_some(longest),
            round: ROUND,
            ready: Vec::new().into_iter(),
            ended: false,
        })
    }

    /// What was counted so far.
    #[must_use]
    pub fn counts(&self) -> PairingCounts {
        self.pairer.counts()
    }

    /// What could not be read so far, each with its file.
    pub fn losses(&self) -> impl Iterator<Item = &String> {
        self.sources.iter().flat_map(|s| s.records.losses())
    }

    /// Reads on, and pairs what is ripe.
    fn advance(&mut self) {
        // As much again as waits: each look at what waits is paid for by as many exchanges.
        let round = self.pairer.waiting().max(self.round);
        for _ in 0..round {
            let behind = self.sources.iter_mut().min_by_key(|s| s.horizon());
            let Some(source) = behind.filter(|s| !s.ended) else {
                self.ended = true;
                self.ready = self.pairer.finish().into_iter();
                return;
            };
            match source.records.next() {
                Some(exchange) => {
                    source.reached = exchange.marks.closed.max(source.reached);
                    if exchange.marks.begin.at >= self.from {
                        self.pairer.offer(exchange);
                    }
                }
                None => source.ended = true,
            }
        }
        let reached = self.sources.iter().map(Source::horizon).min();
        if let Some((reached, longest)) = reached.zip(self.longest) {
            let ripe = reached.saturating_sub(longest);
            self.ready = self
                .pairer
                .settle(ripe, ripe.saturating_sub(longest))
                .into_iter();
        }
    }
}

impl Iterator for PairedCalls {
    type Item = Call;

    fn next(&mut self) -> Option<Call> {
        loop {
            if let Some(call) = self.ready.next() {
                return Some(call);
            }
            if self.ended {
                return None;
            }
            self.advance();
        }
    }
}

#[cfg(test)]
mod tests;
