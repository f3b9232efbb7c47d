//! Why a key's request is refused, and how two products say so.
//!
//! Sources: `LiteLLM`'s proxy 1.110 (`proxy/_types.py`, `proxy/auth/auth_checks.py`,
//! `proxy/hooks/parallel_request_limiter_v3.py`) and Bifrost's documentation of governance. What neither
//! tells is marked as assumed.

use serde_json::{Value, json};

use super::options::{Dialect, KeyOptions};
use crate::http::Headers;

/// The reason of a refusal.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::gateway) enum Why {
    UnknownKey,
    Model(String),
    Tool(String),
    /// Milliseconds until the minute ends.
    Requests {
        limit: u64,
        left_ms: u64,
    },
    Tokens {
        limit: u64,
        left_ms: u64,
    },
    /// USD.
    Budget {
        spent: f64,
        budget: f64,
    },
    /// The guardrail's name.
    Guardrail(String),
}

/// An error answer.
#[derive(Debug)]
pub(in crate::gateway) struct Refused {
    pub(in crate::gateway) status: u16,
    pub(in crate::gateway) body: String,
    pub(in crate::gateway) headers: Headers,
}

impl Why {
    /// The answer of a gateway with these options.
    pub(super) fn answer(&self, options: &KeyOptions) -> Refused {
        let (status, kind) = match options.dialect {
            Dialect::Litellm => self.litellm(),
            Dialect::Bifrost => self.bifrost(),
        };
        let status = match self {
            Self::Budget { .. } => options.budget_status.unwrap_or(status),
            _ => status,
        };
        let message = self.message();
        let body = match options.dialect {
            Dialect::Litellm => self.openai(status, kind, &message),
            Dialect::Bifrost => json!({
                "type": kind,
                "status_code": status,
                "error": {"message": message}
            }),
        };
        Refused {
            status,
            body: body.to_string(),
            headers: self.headers(options.dialect),
        }
    }

    fn litellm(&self) -> (u16, &'static str) {
        match self {
            Self::UnknownKey => (401, "token_not_found_in_db"),
            Self::Model(_) => (403, "key_model_access_denied"),
            // Assumed: as its other guardrails that refuse before the call.
            Self::Tool(_) => (400, "tool_permission_denied"),
            // The type is assumed.
            Self::Requests { .. } | Self::Tokens { .. } => (429, "throttling_error"),
            Self::Budget { .. } => (422, "budget_exceeded"),
            // As for Bedrock's guardrails; the type is assumed.
            Self::Guardrail(_) => (400, "guardrail_violation"),
        }
    }

    fn bifrost(&self) -> (u16, &'static str) {
        match self {
            Self::UnknownKey => (401, "virtual_key_required"),
            Self::Model(_) => (403, "model_blocked"),
            Self::Tool(_) => (403, "mcp_tool_blocked"),
            Self::Requests { .. } => (429, "request_limited"),
            Self::Tokens { .. } => (429, "token_limited"),
            Self::Budget { .. } => (402, "budget_exceeded"),
            // Assumed: its guardrails belong to the enterprise edition.
            Self::Guardrail(_) => (400, "guardrail_violation"),
        }
    }

    /// The code is a string in `LiteLLM`'s answers.
    fn openai(&self, status: u16, kind: &str, message: &str) -> Value {
        let param = matches!(self, Self::Model(_)).then_some("model");
        json!({
            "error": {"message": message, "type": kind, "param": param, "code": status.to_string()}
        })
    }

    fn message(&self) -> String {
        match self {
            Self::UnknownKey => "authentication error: no known virtual key was given".to_owned(),
            Self::Model(model) => format!("key not allowed to access model {model}"),
            Self::Tool(tool) => format!("key not allowed to use tool {tool}"),
            Self::Requests { limit, .. } => format!(
                "Rate limit exceeded. Limit type: requests. Current limit: {limit}, Remaining: 0"
            ),
            Self::Tokens { limit, .. } => format!(
                "Rate limit exceeded. Limit type: tokens. Current limit: {limit}, Remaining: 0"
            ),
            Self::Budget { spent, budget } => {
                format!("Budget has been exceeded! Current cost: {spent}, Max budget: {budget}")
            }
            Self::Guardrail(name) => format!("Violated guardrail policy: {name}"),
        }
    }

    fn headers(&self, dialect: Dialect) -> Headers {
        let (kind, left_ms) = match self {
            Self::Requests { left_ms, .. } => ("requests", left_ms),
            Self::Tokens { left_ms, .. } => ("tokens", left_ms),
            _ => return Headers::default(),
        };
        let seconds = left_ms.div_ceil(1_000).max(1).to_string();
        let mut headers = vec![("retry-after".to_owned(), seconds.into_bytes())];
        if dialect == Dialect::Litellm {
            headers.push(("rate_limit_type".to_owned(), kind.as_bytes().to_vec()));
        }
        Headers(headers)
    }
}
