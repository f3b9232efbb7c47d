//! Why a managed service failed a call, by the type of its error. A status does not tell: Bedrock's 429 is a quota or a
//! copy that is not up, its 424 the model or the agent.
//!
//! Types and statuses are those of the service models `bedrock-runtime` 2023-09-30 and `bedrock-agentcore` 2024-02-28
//! that AWS' SDKs ship; the two messages by which a quota is told are those that Bedrock was seen to send
//! (aws-samples/amazon-bedrock-client-for-mac, issue 99; minorun365/agent-book, issue 29).

use serde::{Deserialize, Serialize};

/// A class of failure. New classes go to the end: records hold the position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceFault {
    /// `ThrottlingException` of the quota of requests.
    ThrottledRequests,
    /// `ThrottlingException` of the quota of tokens, of a minute or a day: what `maxTokens` reserves counts.
    ThrottledTokens,
    /// `ThrottlingException` that does not say which quota.
    Throttled,
    /// `ServiceUnavailableException`: the service lacks capacity, whatever the caller's quota.
    Capacity,
    /// `ModelNotReadyException`: no copy of an imported model is up.
    NotReady,
    /// `ModelTimeoutException`: the model took longer than the service waits.
    ModelTimeout,
    /// `ModelErrorException`, `ModelStreamErrorException`: the model failed.
    ModelError,
    /// `ValidationException`: the request is not one that the service takes.
    Invalid,
    /// `AccessDeniedException`, or a signature, token or key that is not accepted.
    Denied,
    /// `ServiceQuotaExceededException`: as many sessions or resources as there may be.
    Quota,
    /// `RuntimeClientError`: the agent in AgentCore's runtime failed or did not come up.
    AgentError,
    /// `RetryableConflictException`, `ConflictException`: the session has another call in flight.
    Conflict,
    /// `ResourceNotFoundException`: no such model, or no longer; no such agent.
    NotFound,
    /// `InternalServerException`, `InternalFailure`.
    Internal,
}

impl ServiceFault {
    /// The class of an error of this type: the value of `x-amzn-ErrorType`, a body's `__type`, or the type of an
    /// exception inside a stream. `message` only tells which quota. `None` of a type that is none of these.
    #[must_use]
    pub fn of(kind: &str, message: &str) -> Option<Self> {
        Some(match name(kind).to_ascii_lowercase().as_str() {
            "throttlingexception" | "throttledexception" | "toomanyrequestsexception" => {
                throttled(message)
            }
            "serviceunavailableexception" | "serviceunavailable" => Self::Capacity,
            "modelnotreadyexception" => Self::NotReady,
            "modeltimeoutexception" => Self::ModelTimeout,
            "modelerrorexception" | "modelstreamerrorexception" => Self::ModelError,
            "validationexception" => Self::Invalid,
            "accessdeniedexception"
            | "unrecognizedclientexception"
            | "expiredtokenexception"
            | "invalidsignatureexception"
            | "incompletesignatureexception"
            | "missingauthenticationtokenexception" => Self::Denied,
            "servicequotaexceededexception" => Self::Quota,
            "runtimeclienterror" => Self::AgentError,
            "retryableconflictexception" | "conflictexception" => Self::Conflict,
            "resourcenotfoundexception" => Self::NotFound,
            "internalserverexception" | "internalfailure" => Self::Internal,
            _ => return None,
        })
    }

    /// The word used in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ThrottledRequests => "throttled-requests",
            Self::ThrottledTokens => "throttled-tokens",
            Self::Throttled => "throttled",
            Self::Capacity => "no-capacity",
            Self::NotReady => "model-not-ready",
            Self::ModelTimeout => "model-timeout",
            Self::ModelError => "model-error",
            Self::Invalid => "request-invalid",
            Self::Denied => "access-denied",
            Self::Quota => "quota-exceeded",
            Self::AgentError => "agent-error",
            Self::Conflict => "session-busy",
            Self::NotFound => "not-found",
            Self::Internal => "service-internal",
        }
    }
}

/// A type without the namespace before it (`com.amazon.coral#`) and the address behind it (`:http://…`).
#[must_use]
pub fn name(kind: &str) -> &str {
    let kind = kind.split(':').next().unwrap_or_default();
    kind.rsplit('#').next().unwrap_or_default().trim()
}

fn throttled(message: &str) -> ServiceFault {
    let message = message.to_ascii_lowercase();
    if message.contains("tokens") {
        ServiceFault::ThrottledTokens
    } else if message.contains("requests") {
        ServiceFault::ThrottledRequests
    } else {
        ServiceFault::Throttled
    }
}

#[cfg(test)]
mod tests {
    use super::ServiceFault as Fault;

    #[test]
    fn the_type_decides_and_the_message_only_which_quota() {
        let tokens = "Too many tokens, please wait before trying again.";
        let requests = "Too many requests, please wait before trying again.";
        let url = "http://internal.amazon.com/coral/com.amazon.bedrock/";
        for (kind, message, class) in [
            ("ThrottlingException", tokens, Some(Fault::ThrottledTokens)),
            (
                "ThrottlingException",
                requests,
                Some(Fault::ThrottledRequests),
            ),
            (
                "throttlingException",
                "Rate exceeded",
                Some(Fault::Throttled),
            ),
            ("ModelNotReadyException", tokens, Some(Fault::NotReady)),
            ("ServiceUnavailableException", "", Some(Fault::Capacity)),
            ("modelStreamErrorException", "", Some(Fault::ModelError)),
            ("ModelTimeoutException", "", Some(Fault::ModelTimeout)),
            (
                "com.amazon.coral.validate#ValidationException",
                "",
                Some(Fault::Invalid),
            ),
            ("RuntimeClientError", "", Some(Fault::AgentError)),
            ("rate_limit_exceeded", tokens, None),
            ("", tokens, None),
        ] {
            assert_eq!(Fault::of(kind, message), class, "{kind}");
            assert_eq!(
                Fault::of(&format!("{kind}:{url}"), message),
                class,
                "{kind}"
            );
        }
    }
}
