//! What Bedrock's operations have in common: their paths and the types of their errors.

use super::invoke::Native;
use super::request::Dialect;
use crate::http::percent_decoded;

/// The model that a path names, and the operation.
pub(super) fn asked(path: &str) -> Option<(String, Dialect)> {
    let rest = path.strip_prefix("/model/")?;
    let (model, operation) = rest.split_once('/')?;
    let invoke = |stream| Dialect::Invoke {
        stream,
        native: Native::default(),
    };
    let dialect = match operation {
        "converse" => Dialect::Converse { stream: false },
        "converse-stream" => Dialect::Converse { stream: true },
        "invoke" => invoke(false),
        "invoke-with-response-stream" => invoke(true),
        _ => return None,
    };
    (!model.is_empty()).then(|| (percent_decoded(model), dialect))
}

/// The type of an error, by its status, as the service model has them.
pub(super) fn error_type(status: u16) -> &'static str {
    match status {
        400 => "ValidationException",
        403 => "AccessDeniedException",
        404 => "ResourceNotFoundException",
        408 => "ModelTimeoutException",
        424 => "ModelErrorException",
        429 => "ThrottlingException",
        503 => "ServiceUnavailableException",
        _ => "InternalServerException",
    }
}

/// A reason of OpenAI for the end of an answer, as Bedrock and Anthropic name it.
pub(super) fn stop_reason(reason: &str) -> &str {
    match reason {
        "stop" => "end_turn",
        "length" => "max_tokens",
        "tool_calls" => "tool_use",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_encoded_or_not() {
        let stream = Dialect::Converse { stream: true };
        for id in ["us.m%3A0", "us.m:0"] {
            let path = format!("/model/{id}/converse-stream");
            assert_eq!(asked(&path), Some(("us.m:0".to_owned(), stream)));
        }
        let arn = "arn:aws:bedrock:us-east-1:1:imported-model/ab";
        let path = format!(
            "/model/{}/invoke",
            arn.replace(':', "%3a").replace('/', "%2F")
        );
        assert_eq!(asked(&path).unwrap().0, arn);
        // A raw slash splits the label, as at Bedrock.
        assert_eq!(asked(&format!("/model/{arn}/invoke")), None);
        assert_eq!(asked("/model//converse"), None);
    }
}
