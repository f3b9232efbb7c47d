//! Why a request is not translated.

use serde_json::{Value, json};
use std::fmt;

/// A request that Converse cannot be asked. The client gets it as HTTP 400.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The member that is the reason, such as `messages[2].content`; `None` of the whole body.
    pub param: Option<String>,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Refusal {
    pub(crate) fn of(param: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            param: Some(param.into()),
            message: message.into(),
        }
    }

    pub(crate) fn whole(message: impl Into<String>) -> Self {
        Self {
            param: None,
            message: message.into(),
        }
    }

    /// The body of the answer, as OpenAI's clients show it.
    #[must_use]
    pub fn body(&self) -> Value {
        json!({"error": {
            "message": format!("hopscope: {self}"),
            "type": "invalid_request_error",
            "param": self.param,
            "code": "not_translatable",
        }})
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.param {
            Some(param) => write!(f, "`{param}`: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Refusal {}
