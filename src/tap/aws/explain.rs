//! Why AWS refused a request that this tap has signed, and what to do: its own messages name no cause.

use crate::tap::head::ResponseHead;
use std::time::{Duration, SystemTime};

/// From how much on a clock is to blame: AWS takes signatures of up to five minutes' difference.
const SKEW: Duration = Duration::from_secs(240);

/// In words, without anything of a key or a signature; `None` of an answer that is no refusal of the signature.
pub(crate) fn explain(head: &ResponseHead, now: SystemTime) -> Option<String> {
    if head.status != 403 && head.status != 401 {
        return None;
    }
    let kind = head.value("x-amzn-errortype").unwrap_or_default();
    let kind = kind.split(':').next().unwrap_or_default();
    let clock = head.value("date").and_then(|date| skew(date, now));
    let cause = match (kind, clock) {
        (_, Some(clock)) => format!("{clock}; set the clock (NTP)"),
        ("ExpiredTokenException", _) => {
            "the session token has expired: the source of the keys hands out old ones".to_owned()
        }
        ("UnrecognizedClientException" | "InvalidClientTokenId", _) => {
            "AWS does not know the access key or its session token: of another partition, deleted, or cut".to_owned()
        }
        ("InvalidSignatureException" | "SignatureDoesNotMatch", _) => {
            "what arrived is not what was signed: something between the tap and AWS changes path, body or a signed header, or the secret is not that of the access key".to_owned()
        }
        ("MissingAuthenticationTokenException" | "IncompleteSignatureException", _) => {
            "no whole signature arrived: something between the tap and AWS takes headers off".to_owned()
        }
        ("AccessDeniedException", _) => {
            "the signature is right, and its role may not do this: allow bedrock:InvokeModel and bedrock:InvokeModelWithResponseStream (AgentCore: bedrock-agentcore:InvokeAgentRuntime) on this resource, and model access in this region".to_owned()
        }
        _ => return None,
    };
    let kind = if kind.is_empty() { "refused" } else { kind };
    Some(format!("{kind}: {cause}"))
}

/// How far this machine's clock lies from the server's `Date`, where that is too far.
fn skew(date: &str, now: SystemTime) -> Option<String> {
    let theirs = httpdate::parse_http_date(date).ok()?;
    let (apart, word) = match now.duration_since(theirs) {
        Ok(ahead) => (ahead, "ahead of"),
        Err(behind) => (behind.duration(), "behind"),
    };
    let seconds = apart.as_secs();
    (apart > SKEW).then(|| format!("this machine's clock is {seconds} s {word} the server's"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tap::head;

    fn told(status: u16, kind: &str, ahead: i64) -> Option<String> {
        let date = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let text = format!(
            "HTTP/1.1 {status} X\r\nDate: {}\r\nx-amzn-ErrorType: {kind}:http://internal\r\nContent-Length: 0\r\n\r\n",
            httpdate::fmt_http_date(date)
        );
        let (_, head) = head::response(text.as_bytes(), "POST").unwrap().unwrap();
        let apart = Duration::from_secs(ahead.unsigned_abs());
        explain(
            &head,
            if ahead < 0 {
                date - apart
            } else {
                date + apart
            },
        )
    }

    #[test]
    fn each_refusal_has_its_cause() {
        for (kind, ahead, word) in [
            ("InvalidSignatureException", 0, "changes path, body"),
            ("InvalidSignatureException", 900, "900 s ahead of"),
            ("InvalidSignatureException", -900, "900 s behind"),
            ("ExpiredTokenException", 1, "expired"),
            ("UnrecognizedClientException", 0, "does not know"),
            ("AccessDeniedException", 0, "bedrock:InvokeModel"),
            (
                "MissingAuthenticationTokenException",
                0,
                "takes headers off",
            ),
        ] {
            let found = told(403, kind, ahead).unwrap();
            assert!(found.contains(word) && found.starts_with(kind), "{found}");
        }
    }

    #[test]
    fn what_is_no_refusal_of_a_signature_is_not_explained() {
        assert_eq!(told(429, "ThrottlingException", 900), None);
        assert_eq!(told(403, "SomethingElse", 0), None);
    }
}
