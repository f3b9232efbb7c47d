//! Quotas per minute as token buckets.

use super::ManagedOptions;

const MINUTE: f64 = 60e9;

/// Which quota is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exhausted {
    Requests,
    Tokens,
}

/// What is left of a minute's requests and tokens; both are filled evenly, up to a minute's worth.
#[derive(Debug)]
pub(super) struct Bucket {
    requests: f64,
    tokens: f64,
    at: u64,
}

impl Bucket {
    /// Full ones.
    pub(super) fn new(options: &ManagedOptions) -> Self {
        Self {
            requests: options.rpm as f64,
            tokens: options.tpm as f64,
            at: 0,
        }
    }

    /// Takes one request with its tokens at `at` ns, or nothing where one of the quotas does not have it.
    pub(super) fn take(
        &mut self,
        options: &ManagedOptions,
        at: u64,
        tokens: u64,
    ) -> Result<(), Exhausted> {
        let minutes = at.saturating_sub(self.at) as f64 / MINUTE;
        self.at = self.at.max(at);
        let filled = |left: f64, quota: u64| (left + minutes * quota as f64).min(quota as f64);
        self.requests = filled(self.requests, options.rpm);
        self.tokens = filled(self.tokens, options.tpm);
        let (requests, tokens) = (1.0, tokens as f64);
        if options.rpm > 0 && self.requests < requests {
            return Err(Exhausted::Requests);
        }
        if options.tpm > 0 && self.tokens < tokens {
            return Err(Exhausted::Tokens);
        }
        self.requests -= requests;
        self.tokens -= tokens;
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
        let mut bucket = Bucket::new(&options);
        let mut let_in = |at| {
            (0..100)
                .filter(|_| bucket.take(&options, at, 1_000_000).is_ok())
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
        let mut bucket = Bucket::new(&options);
        assert_eq!(bucket.take(&options, 0, 601), Err(Exhausted::Tokens));
        assert_eq!(bucket.take(&options, 0, 400), Ok(()));
        assert_eq!(
            bucket.take(&options, 0, 201),
            Err(Exhausted::Tokens),
            "a refusal takes nothing"
        );
        assert_eq!(bucket.take(&options, 0, 200), Ok(()));
    }
}
