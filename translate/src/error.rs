//! Errors of Bedrock in OpenAI's form, the original kept beside it.

use serde_json::{Value, json};

/// An error as Bedrock said it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Original {
    /// HTTP status; `None` of one inside a stream, whose status was 200.
    pub(crate) status: Option<u16>,
    /// `ThrottlingException` and the like.
    pub(crate) kind: String,
    pub(crate) message: String,
}

/// The body of an answer that was refused: by its status, its `x-amzn-ErrorType` and its own body. The status stays as it is.
#[must_use]
pub fn error(status: u16, error_type: Option<&str>, body: &[u8]) -> Vec<u8> {
    let named = error_type.map(str::to_owned);
    let named = named.or_else(|| {
        let body: Value = serde_json::from_slice(body).ok()?;
        Some(body.get("__type")?.as_str()?.to_owned())
    });
    // `ThrottlingException:http://internal…`, and `com.amazon.coral#ThrottlingException` in bodies.
    let kind = named.as_deref().unwrap_or("unknown");
    let kind = kind.split(':').next().unwrap_or_default();
    let kind = kind.rsplit('#').next().unwrap_or_default();
    let original = Original {
        status: Some(status),
        kind: kind.to_owned(),
        message: message(body),
    };
    original.openai().to_string().into_bytes()
}

/// The message of a body, or of an exception's payload: some services write it large.
pub(crate) fn message(body: &[u8]) -> String {
    let parsed: Option<Value> = serde_json::from_slice(body).ok();
    let said = parsed.as_ref().and_then(|body| {
        let names = ["message", "Message"];
        names.iter().find_map(|name| body.get(name)?.as_str())
    });
    said.map_or_else(|| String::from_utf8_lossy(body).into_owned(), str::to_owned)
}

impl Original {
    /// `type` and `code` are those on which OpenAI's clients decide; the [list of
    /// exceptions](https://docs.aws.amazon.com/bedrock/latest/APIReference/CommonErrors.html) is AWS'.
    pub(crate) fn openai(&self) -> Value {
        let (kind, code) = match self.kind.to_ascii_lowercase().as_str() {
            "throttlingexception" => ("rate_limit_error", "rate_limit_exceeded"),
            "servicequotaexceededexception" => ("rate_limit_error", "insufficient_quota"),
            "modelnotreadyexception" => ("server_error", "model_not_ready"),
            "validationexception" => ("invalid_request_error", "validation"),
            "resourcenotfoundexception" => ("invalid_request_error", "model_not_found"),
            "accessdeniedexception" => ("permission_error", "access_denied"),
            "unrecognizedclientexception"
            | "invalidsignatureexception"
            | "expiredtokenexception"
            | "missingauthenticationtokenexception"
            | "incompletesignatureexception" => ("authentication_error", "invalid_credentials"),
            "modeltimeoutexception" => ("server_error", "model_timeout"),
            "modelerrorexception" | "modelstreamerrorexception" => ("server_error", "model_error"),
            "serviceunavailableexception" => ("server_error", "service_unavailable"),
            "internalserverexception" => ("server_error", "internal"),
            _ => match self.status {
                Some(429) => ("rate_limit_error", "rate_limit_exceeded"),
                Some(400..=499) => ("invalid_request_error", "unknown"),
                _ => ("server_error", "unknown"),
            },
        };
        json!({"error": {
            "message": self.message, "type": kind, "param": null, "code": code,
            "original": {"status": self.status, "type": self.kind, "message": self.message},
        }})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, kind: Option<&str>, body: &str) -> Value {
        serde_json::from_slice::<Value>(&error(status, kind, body.as_bytes())).unwrap()["error"]
            .take()
    }

    #[test]
    fn both_429s_are_told_apart_and_the_original_is_kept() {
        let throttled = of(
            429,
            Some("ThrottlingException:http://internal.amazon.com/coral/com.amazon.bedrock/"),
            r#"{"message":"Too many tokens"}"#,
        );
        assert_eq!(
            (&throttled["type"], &throttled["code"]),
            (&json!("rate_limit_error"), &json!("rate_limit_exceeded"))
        );
        assert_eq!(
            throttled["original"],
            json!({"status": 429, "type": "ThrottlingException", "message": "Too many tokens"})
        );
        let asleep = of(429, Some("ModelNotReadyException"), r#"{"message":"wait"}"#);
        assert_eq!(asleep["code"], "model_not_ready");
    }

    #[test]
    fn the_kind_may_stand_in_the_body_and_the_message_may_be_none() {
        let found = of(
            400,
            None,
            r#"{"__type":"com.amazon.coral.validate#ValidationException","Message":"no"}"#,
        );
        assert_eq!(
            (&found["code"], &found["message"]),
            (&json!("validation"), &json!("no"))
        );
        let found = of(503, None, "<html>");
        assert_eq!(
            (&found["type"], &found["message"]),
            (&json!("server_error"), &json!("<html>"))
        );
        assert_eq!(found["original"]["type"], "unknown");
    }
}
