//! Copies of an imported model.

use super::{Cold, ManagedOptions};

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entered {
    /// It is served from this instant on.
    At(u64),
    /// No copy is up.
    NotReady,
    /// All copies are busy.
    Full,
}

/// All instants are ns.
#[derive(Debug)]
pub(super) struct Copies {
    /// Whether there is anything to model.
    imported: bool,
    ready: u64,
    /// When those that load are up, in order.
    starting: Vec<u64>,
    in_flight: u64,
    /// Since when no call runs, where none does.
    idle_since: u64,
}

impl Copies {
    /// None is up yet.
    pub(super) fn new(options: &ManagedOptions) -> Self {
        Self {
            imported: options.imported,
            ready: 0,
            starting: Vec::new(),
            in_flight: 0,
            idle_since: 0,
        }
    }

    /// Takes in a call; it leaves with [`Self::leave`] if it is served.
    pub(super) fn enter(&mut self, options: &ManagedOptions, at: u64) -> Entered {
        if !self.imported {
            self.in_flight += 1;
            return Entered::At(at);
        }
        self.look(options, at);
        let each = options.copy_concurrency;
        if self.in_flight < self.ready * each {
            self.in_flight += 1;
            return Entered::At(at);
        }
        let copies = self.ready + self.starting.len() as u64;
        if self.in_flight >= copies * each && copies < options.max_copies {
            self.starting.push(at + options.cold_start_ms * 1_000_000);
        }
        match options.cold {
            Cold::Refuse if self.ready == 0 => Entered::NotReady,
            Cold::Refuse => Entered::Full,
            Cold::Wait => self.wait(each),
        }
    }

    /// A place at a copy that loads.
    fn wait(&mut self, each: u64) -> Entered {
        let ahead = self.in_flight.saturating_sub(self.ready * each) / each;
        let copy = usize::try_from(ahead).ok();
        match copy.and_then(|copy| self.starting.get(copy)) {
            Some(up) => {
                self.in_flight += 1;
                Entered::At(*up)
            }
            None => Entered::Full,
        }
    }

    /// A served call has ended.
    pub(super) fn leave(&mut self, at: u64) {
        self.in_flight = self.in_flight.saturating_sub(1);
        if self.in_flight == 0 {
            self.idle_since = self.idle_since.max(at);
        }
    }

    /// Copies that are up at `at`.
    pub(super) fn ready(&mut self, options: &ManagedOptions, at: u64) -> u64 {
        self.look(options, at);
        self.ready
    }

    /// Lets copies come and go as they have until `at`.
    fn look(&mut self, options: &ManagedOptions, at: u64) {
        while let Some(up) = self.starting.first().copied().filter(|up| *up <= at) {
            self.starting.remove(0);
            self.ready += 1;
            self.idle_since = self.idle_since.max(up);
        }
        let idle = at.saturating_sub(self.idle_since);
        if self.in_flight == 0 && idle >= options.cold_after_ms * 1_000_000 {
            self.ready = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn options(cold: Cold) -> ManagedOptions {
        ManagedOptions {
            imported: true,
            cold,
            cold_after_ms: 100,
            cold_start_ms: 10,
            copy_concurrency: 2,
            max_copies: 2,
            ..ManagedOptions::default()
        }
    }

    #[test]
    fn a_call_wakes_a_copy_that_goes_when_nobody_calls() {
        let options = options(Cold::Refuse);
        let mut copies = Copies::new(&options);
        assert_eq!(copies.enter(&options, 0), Entered::NotReady);
        assert_eq!(copies.enter(&options, 9 * MS), Entered::NotReady);
        assert_eq!(copies.enter(&options, 10 * MS), Entered::At(10 * MS));
        copies.leave(20 * MS);
        assert_eq!(copies.ready(&options, 119 * MS), 1);
        assert_eq!(copies.enter(&options, 120 * MS), Entered::NotReady);
        // It came up at 130 and nobody called.
        assert_eq!(
            (
                copies.ready(&options, 229 * MS),
                copies.ready(&options, 230 * MS)
            ),
            (1, 0)
        );
    }

    #[test]
    fn concurrency_starts_copies_up_to_the_most() {
        let options = options(Cold::Refuse);
        let mut copies = Copies::new(&options);
        copies.enter(&options, 0);
        let mut enter = |at| copies.enter(&options, at * MS);
        assert_eq!(
            (enter(10), enter(10)),
            (Entered::At(10 * MS), Entered::At(10 * MS))
        );
        assert_eq!((enter(10), enter(19)), (Entered::Full, Entered::Full));
        assert_eq!(
            (enter(20), enter(20)),
            (Entered::At(20 * MS), Entered::At(20 * MS))
        );
        assert_eq!(
            (enter(20), enter(90)),
            (Entered::Full, Entered::Full),
            "two is the most"
        );
    }

    #[test]
    fn those_who_wait_get_the_copy_that_loads_for_them() {
        let options = options(Cold::Wait);
        let mut copies = Copies::new(&options);
        let mut enter = |at| copies.enter(&options, at * MS);
        assert_eq!(
            (enter(0), enter(1)),
            (Entered::At(10 * MS), Entered::At(10 * MS))
        );
        assert_eq!(
            (enter(2), enter(3)),
            (Entered::At(12 * MS), Entered::At(12 * MS))
        );
        assert_eq!(enter(4), Entered::Full);
    }

    #[test]
    fn an_open_call_keeps_its_copy() {
        let options = options(Cold::Wait);
        let mut copies = Copies::new(&options);
        copies.enter(&options, 0);
        assert_eq!(copies.ready(&options, 900 * MS), 1);
        copies.leave(900 * MS);
        assert_eq!(
            (
                copies.ready(&options, 999 * MS),
                copies.ready(&options, 1000 * MS)
            ),
            (1, 0)
        );
    }
}
