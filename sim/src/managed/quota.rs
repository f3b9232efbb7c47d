//! Quotas per minute as token buckets.

use super::ManagedOptions;
use crate::bucket::Bucket;

const MINUTE: f64 = 60e9;

/// Which quota is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exhausted {
    Requests,
    Tokens,
}

/// What is left of a minute's requests and tokens.
#[derive(Debug)]
pub(super) struct Quota {
    requests: Bucket,
    tokens: Bucket,
}

impl Quota {
    /// Full ones.
    pub(super) fn new(options: &ManagedOptions) -> Self {
        Self {
            requests: Bucket::new(options.rpm, MINUTE),
            tokens: Bucket::new(options.tpm, MINUTE),
        }
    }

    /// Takes one request with its tokens at `at` ns, or nothing where one of the quotas does not have it.
    pub(super) fn take(&mut self, at: u64, tokens: u64) -> Result<(), Exhausted> {
        if !self.requests.has(1, at) {
            return Err(Exhausted::Requests);
        }
        if !self.tokens.has(tokens, at) {
            return Err(Exhausted::Tokens);
        }
        self.requests.take(1);
        self.tokens.take(tokens);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minutes_worth_at_once_and_then_evenly() {
        let options = ManagedOptions {
            rpm: 60,
            tpm: 0,
            ..ManagedOptions::default()
        };
        let mut quota = Quota::new(&options);
        let mut let_in = |at| {
            (0..100)
                .filter(|_| quota.take(at, 1_000_000).is_ok())
                .count()
        };
        let second = 1_000_000_000;
        assert_eq!(
            (
                let_in(0),
                let_in(second),
                let_in(11 * second),
                let_in(999 * second)
            ),
            (60, 1, 10, 60)
        );
    }

    #[test]
    fn tokens_have_a_quota_of_their_own() {
        let options = ManagedOptions {
            rpm: 0,
            tpm: 600,
            ..ManagedOptions::default()
        };
        let mut quota = Quota::new(&options);
        assert_eq!(quota.take(0, 601), Err(Exhausted::Tokens));
        assert_eq!(quota.take(0, 400), Ok(()));
        assert_eq!(
            quota.take(0, 201),
            Err(Exhausted::Tokens),
            "a refusal takes nothing"
        );
        assert_eq!(quota.take(0, 200), Ok(()));
    }
}
