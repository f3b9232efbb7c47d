//! What a key has used, and what its limits see of it.

use std::collections::VecDeque;

use super::file::KeyRules;
use super::options::KeyOptions;
use super::refuse::Why;
use crate::exposition::Exposition;

/// Most uses that wait for their lag to pass; beyond it they count at once.
const MAX_WAITING: usize = 65_536;

/// What has really been used since the start.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Used {
    requests: u64,
    tokens: u64,
    usd: f64,
    limited: u64,
    over_budget: u64,
    not_allowed: u64,
    blocked: u64,
}

impl Used {
    pub(super) fn note_refusal(&mut self, why: &Why) {
        match why {
            Why::Requests { .. } | Why::Tokens { .. } => self.limited += 1,
            Why::Budget { .. } => self.over_budget += 1,
            Why::Guardrail(_) => self.blocked += 1,
            Why::UnknownKey | Why::Model(_) | Why::Tool(_) => self.not_allowed += 1,
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.tokens += other.tokens;
        self.usd += other.usd;
        self.limited += other.limited;
        self.over_budget += other.over_budget;
        self.not_allowed += other.not_allowed;
        self.blocked += other.blocked;
    }

    pub(super) fn render(&self, page: &mut Exposition) {
        for (name, help, value) in [
            ("requests", "Requests let in.", self.requests),
            (
                "tokens",
                "Prompt and completion tokens of ended answers.",
                self.tokens,
            ),
            (
                "rate_limited",
                "Requests refused by a limit per minute.",
                self.limited,
            ),
            (
                "over_budget",
                "Requests refused by a budget.",
                self.over_budget,
            ),
            (
                "not_allowed",
                "Requests refused for their model or a tool.",
                self.not_allowed,
            ),
            (
                "blocked",
                "Requests and answers blocked by a guardrail.",
                self.blocked,
            ),
        ] {
            page.counter(&format!("sim_gateway_tenant_{name}_total"), help, value);
        }
        page.gauge(
            "sim_gateway_tenant_spend_usd",
            "Money spent by ended answers.",
            self.usd,
        );
    }
}

/// A use that counts from `due` on.
#[derive(Debug)]
struct Waiting {
    due: u64,
    requests: u64,
    tokens: u64,
    usd: f64,
}

/// The account of one key. All instants are ns.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    window_ends: u64,
    requests: u64,
    tokens: u64,
    usd: f64,
    waiting: VecDeque<Waiting>,
    pub(super) used: Used,
}

impl Ledger {
    /// Lets a request in, or tells the first limit that it is beyond.
    pub(super) fn admit(
        &mut self,
        rules: &KeyRules,
        options: &KeyOptions,
        at: u64,
    ) -> Result<(), Why> {
        self.advance(options, at);
        let left_ms = self.window_ends.saturating_sub(at).div_ceil(1_000_000);
        if let Some(budget) = rules.budget_usd
            && self.usd >= budget
        {
            let spent = self.usd;
            return Err(Why::Budget { spent, budget });
        }
        if let Some(limit) = rules.rpm
            && self.requests >= limit
        {
            return Err(Why::Requests { limit, left_ms });
        }
        if let Some(limit) = rules.tpm
            && self.tokens >= limit
        {
            return Err(Why::Tokens { limit, left_ms });
        }
        self.used.requests += 1;
        if options.limit_lag_ms == 0 {
            self.wait(Waiting {
                due: at + options.limit_race_ms * 1_000_000,
                requests: 1,
                tokens: 0,
                usd: 0.0,
            });
            self.advance(options, at);
        }
        Ok(())
    }

    /// Accounts for an answer with (prompt, completion) tokens.
    pub(super) fn settle(
        &mut self,
        rules: &KeyRules,
        options: &KeyOptions,
        at: u64,
        (prompt, completion): (u64, u64),
    ) {
        let millionths = prompt as f64 * rules.usd_per_million_in
            + completion as f64 * rules.usd_per_million_out;
        let (tokens, usd) = (prompt + completion, millionths / 1e6);
        self.used.tokens += tokens;
        self.used.usd += usd;
        let lags = options.limit_lag_ms > 0;
        self.wait(Waiting {
            due: at + options.limit_lag_ms * 1_000_000,
            requests: u64::from(lags),
            tokens,
            usd,
        });
        self.advance(options, at);
    }

    /// Puts a use in its place among those that wait; beyond the bound the next one counts at once.
    fn wait(&mut self, use_: Waiting) {
        let place = self.waiting.partition_point(|next| next.due <= use_.due);
        self.waiting.insert(place, use_);
        if self.waiting.len() > MAX_WAITING
            && let Some(oldest) = self.waiting.pop_front()
        {
            self.count(&oldest);
        }
    }

    /// Opens a new minute where the last has ended, and counts what is due.
    fn advance(&mut self, options: &KeyOptions, at: u64) {
        // What was due before the window's end counts in it, and goes with it.
        while let Some(use_) = self
            .waiting
            .pop_front_if(|next| next.due < self.window_ends.min(at))
        {
            self.count(&use_);
        }
        if at >= self.window_ends {
            self.window_ends = at + options.limit_window_ms * 1_000_000;
            (self.requests, self.tokens) = (0, 0);
        }
        while let Some(use_) = self.waiting.pop_front_if(|next| next.due <= at) {
            self.count(&use_);
        }
    }

    fn count(&mut self, use_: &Waiting) {
        self.requests += use_.requests;
        self.tokens += use_.tokens;
        self.usd += use_.usd;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000_000_000;

    fn rules() -> KeyRules {
        KeyRules {
            usd_per_million_in: 1_000.0,
            usd_per_million_out: 2_000.0,
            ..KeyRules::default()
        }
    }

    #[test]
    fn exactly_the_limit_is_let_in_each_minute() {
        let rules = KeyRules {
            rpm: Some(5),
            ..rules()
        };
        let (mut ledger, options) = (Ledger::default(), KeyOptions::default());
        let mut let_in = |from: u64| {
            let at = |number: u64| from + number * 1_000;
            (0..20)
                .filter(|number| ledger.admit(&rules, &options, at(*number)).is_ok())
                .count()
        };
        assert_eq!(
            (let_in(7), let_in(MINUTE - 30_000), let_in(MINUTE + 7)),
            (5, 0, 5)
        );
        let refused = ledger
            .admit(&rules, &options, MINUTE + 500_000_007)
            .unwrap_err();
        assert!(
            matches!(
                refused,
                Why::Requests {
                    limit: 5,
                    left_ms: 59_500
                }
            ),
            "{refused:?}"
        );
    }

    #[test]
    fn a_lag_lets_requests_through_until_it_has_passed() {
        let rules = KeyRules {
            rpm: Some(2),
            ..rules()
        };
        let options = KeyOptions {
            limit_lag_ms: 10,
            ..KeyOptions::default()
        };
        let mut ledger = Ledger::default();
        // One answer a millisecond: the third use is seen too late for the first eleven.
        let let_in = (0..30).filter(|number| {
            let at = 1_000_000 * number;
            let admitted = ledger.admit(&rules, &options, at).is_ok();
            if admitted {
                ledger.settle(&rules, &options, at, (1, 1));
            }
            admitted
        });
        assert_eq!(let_in.count(), 11);
    }

    #[test]
    fn a_check_that_comes_before_the_count_lets_through_who_comes_between() {
        let rules = KeyRules {
            rpm: Some(2),
            ..rules()
        };
        let options = KeyOptions {
            limit_race_ms: 10,
            ..KeyOptions::default()
        };
        let mut ledger = Ledger::default();
        let mut let_in = |at_ms: u64| ledger.admit(&rules, &options, at_ms * 1_000_000).is_ok();
        // All within the race pass; when the first two count, nobody does.
        let burst = (0..20).map(&mut let_in).filter(|let_in| *let_in).count();
        assert_eq!(burst, 11);
        // One after the other, further apart than the race: exactly the limit.
        let slow = (0..5).map(|n| let_in(60_000 + 20 * n));
        assert_eq!(slow.filter(|let_in| *let_in).count(), 2);
    }

    #[test]
    fn tokens_and_money_count_with_the_answer() {
        let (mut ledger, options) = (Ledger::default(), KeyOptions::default());
        let tokens = KeyRules {
            tpm: Some(100),
            ..rules()
        };
        ledger.settle(&tokens, &options, 1, (90, 9));
        assert_eq!(ledger.admit(&tokens, &options, 2), Ok(()));
        ledger.settle(&tokens, &options, 3, (1, 0));
        assert!(matches!(
            ledger.admit(&tokens, &options, 4),
            Err(Why::Tokens { .. })
        ));
        assert_eq!(
            ledger.admit(&tokens, &options, 4 + MINUTE),
            Ok(()),
            "a new minute"
        );
        // 91 × 0.001 + 9 × 0.002 USD.
        let budget = |usd| KeyRules {
            budget_usd: Some(usd),
            ..rules()
        };
        assert_eq!(ledger.admit(&budget(0.110), &options, 5), Ok(()));
        let broke = ledger.admit(&budget(0.108), &options, 5 + 2 * MINUTE);
        assert!(
            matches!(broke, Err(Why::Budget { .. })),
            "budgets are not renewed"
        );
        assert_eq!((ledger.used.requests, ledger.used.tokens), (3, 100));
    }

    #[test]
    fn what_waits_is_bounded() {
        let options = KeyOptions {
            limit_lag_ms: 1_000,
            ..KeyOptions::default()
        };
        let mut ledger = Ledger::default();
        for at in 0..MAX_WAITING as u64 + 10 {
            ledger.settle(&rules(), &options, at, (1, 0));
        }
        assert_eq!((ledger.waiting.len(), ledger.tokens), (MAX_WAITING, 10));
    }
}
