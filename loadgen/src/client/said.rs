//! What an answer says beside its content: what a limit or a policy could have put there.

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue};
use record::client::ClientCall;
use record::probe::Answer;

/// `LiteLLM`'s word for what was exceeded.
const LIMIT_TYPE: &str = "rate_limit_type";

/// See the module.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    /// Type or code of the error.
    pub(super) error: Option<String>,
    pub(super) finish: Option<String>,
    limit_type: Option<String>,
    retry_after: Option<f64>,
}

fn text(value: &HeaderValue) -> Option<&str> {
    value.to_str().ok().map(str::trim)
}

impl Said {
    /// Reads the head of a refusal.
    pub(super) fn read(&mut self, headers: &HeaderMap) {
        let kind = headers.get(LIMIT_TYPE).and_then(text);
        self.limit_type = kind.map(|kind| kind.chars().take(64).collect());
        let after = headers.get(RETRY_AFTER).and_then(text);
        let seconds = after.and_then(|after| after.parse::<f64>().ok());
        self.retry_after = seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
    }

    /// All of it, with how `call` ended.
    pub(crate) fn answer(&self, call: &ClientCall) -> Answer {
        Answer {
            status: call.status,
            outcome: call.outcome,
            error: self.error.clone(),
            limit_type: self.limit_type.clone(),
            retry_after: self.retry_after,
            finish: self.finish.clone(),
        }
    }
}
