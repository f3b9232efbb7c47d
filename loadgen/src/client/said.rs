//! What an answer says beside its content: what a limit or a policy could have put there.

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderValue};
use record::client::ClientCall;
use record::probe::Answer;
use record::service::{ServiceFault, name};
use wire::StreamEvent;

/// `LiteLLM`'s word for what was exceeded.
const LIMIT_TYPE: &str = "rate_limit_type";
/// AWS' type of an error.
const ERROR_TYPE: &str = "x-amzn-errortype";
/// Longer words than this are cut: they go into the record.
const LONGEST: usize = 64;

/// See the module.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    /// Type or code of the error.
    pub(super) error: Option<String>,
    /// The error's type by the head of a refusal.
    pub(super) kind: Option<String>,
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
        let short = |word: &str| word.chars().take(LONGEST).collect();
        self.limit_type = headers.get(LIMIT_TYPE).and_then(text).map(short);
        let kind = headers.get(ERROR_TYPE).and_then(text).map(name);
        self.kind = kind.filter(|kind| !kind.is_empty()).map(short);
        let after = headers.get(RETRY_AFTER).and_then(text);
        let seconds = after.and_then(|after| after.parse::<f64>().ok());
        self.retry_after = seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
    }

    /// The class of an error event, where a service said it. Its message is looked at and not kept.
    pub(super) fn class(&self, event: &StreamEvent<'_>) -> Option<ServiceFault> {
        let StreamEvent::Error {
            message,
            code,
            kind,
        } = event
        else {
            return None;
        };
        let kind = self.kind.as_deref().or(*kind).or(*code)?;
        ServiceFault::of(kind, message)
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
