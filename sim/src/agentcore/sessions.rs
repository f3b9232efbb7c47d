//! Sessions: who has one, since when, and who may start one. Without a clock of its own.

use std::collections::HashMap;

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand_distr::{Distribution, LogNormal};

use super::{AgentCoreOptions, SECOND};
use crate::bucket::Bucket;

/// Why a call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turned {
    /// Too many calls.
    Calls,
    /// Too many new sessions.
    Starts,
    /// Too many sessions.
    Sessions,
    /// The session has a call in flight.
    Busy,
}

impl Turned {
    /// Status and type, as AgentCore's service model has them; a second call of a session is assumed to be its
    /// `RetryableConflictException`.
    pub(super) fn kind(self) -> (u16, &'static str) {
        match self {
            Self::Calls | Self::Starts => (429, "ThrottlingException"),
            Self::Sessions => (402, "ServiceQuotaExceededException"),
            Self::Busy => (409, "RetryableConflictException"),
        }
    }

    pub(super) fn message(self) -> &'static str {
        match self {
            Self::Calls => "Rate exceeded",
            Self::Starts => "Rate of new sessions exceeded",
            Self::Sessions => "maxVms limit exceeded for account",
            Self::Busy => "The session is processing another request. Retry when it has ended.",
        }
    }
}

/// How a call was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entered {
    /// When its session is up, ns; the past where it is.
    pub(super) ready_at: u64,
    /// It started the session.
    pub(super) is_new: bool,
    /// The session does not come up: it fails at `ready_at`.
    pub(super) fails: bool,
}

struct Session {
    ready_at: u64,
    busy: bool,
    used_at: u64,
}

/// All instants are ns.
pub(super) struct Sessions {
    open: HashMap<String, Session>,
    calls: Bucket,
    starts: Bucket,
    random: StdRng,
    started: u64,
}

impl Sessions {
    pub(super) fn new(options: &AgentCoreOptions) -> Self {
        Self {
            open: HashMap::new(),
            calls: Bucket::new(options.tps, SECOND),
            starts: Bucket::new(options.new_sessions_per_minute, 60.0 * SECOND),
            random: StdRng::seed_from_u64(options.seed),
            started: 0,
        }
    }

    /// Lets a call in; it leaves with [`Self::leave`].
    pub(super) fn enter(
        &mut self,
        options: &AgentCoreOptions,
        id: &str,
        at: u64,
    ) -> Result<Entered, Turned> {
        self.expire(options, at);
        if !self.calls.has(1, at) {
            return Err(Turned::Calls);
        }
        if let Some(session) = self.open.get_mut(id) {
            if session.busy {
                return Err(Turned::Busy);
            }
            session.busy = true;
            self.calls.take(1);
            return Ok(Entered {
                ready_at: session.ready_at,
                is_new: false,
                fails: false,
            });
        }
        if options.max_sessions > 0 && self.open.len() as u64 >= options.max_sessions {
            return Err(Turned::Sessions);
        }
        if !self.starts.has(1, at) {
            return Err(Turned::Starts);
        }
        self.calls.take(1);
        self.starts.take(1);
        self.started += 1;
        let takes = self.draw(options);
        let limit = options.init_limit_ms * 1_000_000;
        let ready_at = at + takes.min(limit);
        let session = Session {
            ready_at,
            busy: true,
            used_at: ready_at,
        };
        self.open.insert(id.to_owned(), session);
        Ok(Entered {
            ready_at,
            is_new: true,
            fails: takes > limit,
        })
    }

    /// A call has ended.
    pub(super) fn leave(&mut self, id: &str, at: u64) {
        if let Some(session) = self.open.get_mut(id) {
            session.busy = false;
            session.used_at = session.used_at.max(at);
        }
    }

    /// Ends a session; whether there was one.
    pub(super) fn end(&mut self, id: &str) -> bool {
        self.open.remove(id).is_some()
    }

    /// Sessions that are there, and how many were started.
    pub(super) fn counts(&mut self, options: &AgentCoreOptions, at: u64) -> (usize, u64) {
        self.expire(options, at);
        (self.open.len(), self.started)
    }

    fn expire(&mut self, options: &AgentCoreOptions, at: u64) {
        let idle = options.idle_timeout_ms * 1_000_000;
        self.open
            .retain(|_, session| session.busy || at.saturating_sub(session.used_at) < idle);
    }

    /// How long a session takes to start, ns.
    fn draw(&mut self, options: &AgentCoreOptions) -> u64 {
        let factor = LogNormal::new(0.0, options.cold_start_sigma)
            .map_or(1.0, |spread| spread.sample(&mut self.random));
        (options.cold_start_ms as f64 * 1e6 * factor) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn options() -> AgentCoreOptions {
        AgentCoreOptions {
            cold_start_ms: 10,
            cold_start_sigma: 0.0,
            idle_timeout_ms: 100,
            ..AgentCoreOptions::default()
        }
    }

    fn up(ready: u64, is_new: bool) -> Result<Entered, Turned> {
        Ok(Entered {
            ready_at: ready * MS,
            is_new,
            fails: false,
        })
    }

    #[test]
    fn a_session_starts_cold_has_one_call_at_a_time_and_goes_when_idle() {
        let options = options();
        let mut sessions = Sessions::new(&options);
        assert_eq!(sessions.enter(&options, "a", 0), up(10, true));
        assert_eq!(sessions.enter(&options, "a", MS), Err(Turned::Busy));
        assert_eq!(sessions.enter(&options, "b", 5 * MS), up(15, true));
        sessions.leave("a", 50 * MS);
        assert_eq!(sessions.enter(&options, "a", 149 * MS), up(10, false));
        sessions.leave("a", 150 * MS);
        assert_eq!(sessions.enter(&options, "a", 250 * MS), up(260, true));
        // One in flight is not idle.
        assert_eq!(sessions.counts(&options, 900 * MS), (2, 3));
        assert!(sessions.end("b") && !sessions.end("b"));
    }

    #[test]
    fn calls_starts_and_sessions_have_quotas() {
        let options = AgentCoreOptions {
            tps: 4,
            new_sessions_per_minute: 3,
            max_sessions: 2,
            idle_timeout_ms: 1_000,
            ..options()
        };
        let mut sessions = Sessions::new(&options);
        let mut ids = ["a", "b", "c"].iter();
        let mut enter = |sessions: &mut Sessions| {
            let id = ids.next().unwrap();
            sessions.enter(&options, id, 0).map(|_| ())
        };
        assert_eq!(enter(&mut sessions), Ok(()));
        assert_eq!(enter(&mut sessions), Ok(()));
        assert_eq!(enter(&mut sessions), Err(Turned::Sessions));
        sessions.end("a");
        assert!(sessions.enter(&options, "d", 0).is_ok());
        sessions.end("d");
        assert_eq!(sessions.enter(&options, "e", 0), Err(Turned::Starts));
        sessions.leave("b", 0);
        assert!(sessions.enter(&options, "b", 0).is_ok());
        sessions.leave("b", 0);
        assert_eq!(sessions.enter(&options, "b", 0), Err(Turned::Calls));
        // A quarter of a second later there is room for one.
        assert!(sessions.enter(&options, "b", 250 * MS).is_ok());
    }

    #[test]
    fn what_does_not_start_in_time_fails_and_times_spread_around_the_median() {
        let slow = AgentCoreOptions {
            init_limit_ms: 5,
            ..options()
        };
        let entered = Sessions::new(&slow).enter(&slow, "a", 0).unwrap();
        assert_eq!((entered.ready_at, entered.fails), (5 * MS, true));
        let spread = AgentCoreOptions {
            cold_start_sigma: 0.5,
            ..options()
        };
        let mut sessions = Sessions::new(&spread);
        let below = (0..1_000)
            .filter(|_| sessions.draw(&spread) < 10 * MS)
            .count();
        assert!((400..600).contains(&below), "{below} of 1000");
    }
}
