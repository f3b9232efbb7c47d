//! What an answer says of a limit or a policy: statuses and error types of two gateways and of Bedrock.
//!
//! | says | `LiteLLM` | Bifrost |
//! |---|---|---|
//! | requests a minute | 429, header `rate_limit_type: requests` | 429 `request_limited` |
//! | tokens a minute | 429, header `rate_limit_type: tokens` | 429 `token_limited` |
//! | a rate, not which | – | 429 `rate_limited` |
//! | budget | 422 `budget_exceeded`, in older releases 429 or 400 | 402 `budget_exceeded` |
//!
//! Sources: `LiteLLM` 1.110 (`proxy/hooks/parallel_request_limiter_v3.py`, `proxy/auth/auth_checks.py`,
//! `budget_exceeded_status_code`), Bifrost's documentation of governance. A status without a type that is
//! known is never guessed at: a 429 may be the upstream's own, a 400 a fault of the request.

use crate::client::CallOutcome;
use serde::{Deserialize, Serialize};

/// What came back, as far as a limit or policy could speak in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// Status; `None` without an answer.
    pub status: Option<u16>,
    /// How the call ended.
    pub outcome: CallOutcome,
    /// Type or code of the error, never its message.
    pub error: Option<String>,
    /// `LiteLLM`'s header `rate_limit_type`.
    pub limit_type: Option<String>,
    /// `retry-after` in seconds; `None` where there is none, or a date.
    pub retry_after: Option<f64>,
    /// Finish reason.
    pub finish: Option<String>,
}

/// Why a gateway refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Requests a minute.
    Requests,
    /// Tokens a minute.
    Tokens,
    /// A rate; it does not say which.
    Rate,
    /// Calls in flight.
    Parallel,
    /// A budget.
    Budget,
    /// A guardrail.
    Guardrail,
    /// The key: unknown, or not for this model.
    Key,
}

impl Reason {
    /// The word used in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::Rate => "a rate, not which",
            Self::Parallel => "calls in flight",
            Self::Budget => "budget",
            Self::Guardrail => "guardrail",
            Self::Key => "key",
        }
    }
}

/// What a gateway did with a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// Let through: the upstream's answer began.
    Admitted,
    /// Refused, and it says why.
    Refused(Reason),
    /// Refused, by whom or why cannot be told from what came back.
    Unclear,
    /// No answer, or a server's error.
    Failed,
}

impl Answer {
    /// What the gateway did with the call.
    #[must_use]
    pub fn fate(&self) -> Fate {
        let Some(status) = self.status else {
            return Fate::Failed;
        };
        if let Some(reason) = self.reason(status) {
            return Fate::Refused(reason);
        }
        match status {
            200..=299 => Fate::Admitted,
            400..=499 => Fate::Unclear,
            _ => Fate::Failed,
        }
    }

    /// A guardrail is named as what blocked the call: by the error's type, or by the finish reason.
    fn reason(&self, status: u16) -> Option<Reason> {
        let error = self.error.as_deref().unwrap_or_default();
        let limits = matches!(status, 200..=299 | 429);
        match error {
            "budget_exceeded" if limits || matches!(status, 400 | 402 | 422) => {
                return Some(Reason::Budget);
            }
            "request_limited" if limits => return Some(Reason::Requests),
            "token_limited" if limits => return Some(Reason::Tokens),
            "rate_limited" | "ThrottlingException" if limits => return Some(Reason::Rate),
            "guardrail_violation" | "content_filter" | "content_policy_violation" => {
                return Some(Reason::Guardrail);
            }
            _ => {}
        }
        if self.finish.as_deref() == Some("content_filter") {
            return Some(Reason::Guardrail);
        }
        match (status, self.limit_type.as_deref()) {
            (429, Some("requests")) => Some(Reason::Requests),
            (429, Some("tokens")) => Some(Reason::Tokens),
            (429, Some("max_parallel_requests")) => Some(Reason::Parallel),
            (401 | 403, _) => Some(Reason::Key),
            _ => None,
        }
    }

    /// The answer in a few words: status, error type, and what is known of it.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = match self.status {
            Some(status) => status.to_string(),
            None => return self.outcome.name().to_owned(),
        };
        for part in [&self.error, &self.limit_type].into_iter().flatten() {
            words.push(' ');
            words.push_str(part);
        }
        match self.fate() {
            Fate::Refused(reason) => words.push_str(&format!(" ({})", reason.name())),
            Fate::Unclear => words.push_str(" (not known whose or why)"),
            Fate::Admitted | Fate::Failed => {}
        }
        words
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: u16, error: Option<&str>, limit_type: Option<&str>) -> Answer {
        Answer {
            status: Some(status),
            outcome: match status {
                200 => CallOutcome::Complete,
                _ => CallOutcome::Status,
            },
            error: error.map(str::to_owned),
            limit_type: limit_type.map(str::to_owned),
            retry_after: None,
            finish: None,
        }
    }

    #[test]
    fn what_each_gateway_says_is_recognised_and_what_is_ambiguous_is_not_guessed() {
        use Fate::{Admitted, Failed, Refused, Unclear};
        for (status, error, limit_type, fate) in [
            (200, None, None, Admitted),
            (422, Some("budget_exceeded"), None, Refused(Reason::Budget)),
            (429, Some("budget_exceeded"), None, Refused(Reason::Budget)),
            (400, Some("budget_exceeded"), None, Refused(Reason::Budget)),
            (402, Some("budget_exceeded"), None, Refused(Reason::Budget)),
            (
                429,
                Some("throttling_error"),
                Some("tokens"),
                Refused(Reason::Tokens),
            ),
            (429, None, Some("requests"), Refused(Reason::Requests)),
            (
                429,
                None,
                Some("max_parallel_requests"),
                Refused(Reason::Parallel),
            ),
            (
                429,
                Some("request_limited"),
                None,
                Refused(Reason::Requests),
            ),
            (429, Some("token_limited"), None, Refused(Reason::Tokens)),
            (429, Some("rate_limited"), None, Refused(Reason::Rate)),
            (429, Some("throttling_error"), None, Unclear),
            (429, None, None, Unclear),
            (402, None, None, Unclear),
            (422, Some("invalid_request_error"), None, Unclear),
            (400, None, Some("requests"), Unclear),
            (
                400,
                Some("guardrail_violation"),
                None,
                Refused(Reason::Guardrail),
            ),
            (401, None, None, Refused(Reason::Key)),
            (503, Some("request_limited"), None, Failed),
        ] {
            let told = answer(status, error, limit_type);
            assert_eq!(told.fate(), fate, "{}", told.words());
        }
        // An error of a limit inside a stream that began is a refusal too, another one is not.
        let mut in_stream = answer(200, Some("budget_exceeded"), None);
        in_stream.outcome = CallOutcome::ErrorInStream;
        assert_eq!(in_stream.fate(), Refused(Reason::Budget));
        in_stream.error = Some("overloaded".to_owned());
        assert_eq!(in_stream.fate(), Admitted);
        let mut filtered = answer(200, None, None);
        filtered.finish = Some("content_filter".to_owned());
        assert_eq!(filtered.fate(), Refused(Reason::Guardrail));
        let gone = Answer {
            status: None,
            outcome: CallOutcome::Connect,
            ..answer(200, None, None)
        };
        assert_eq!((gone.fate(), gone.words()), (Failed, "connect".to_owned()));
    }
}
