//! The signature of one request. Pure: the same request at the same time has the same signature.

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use std::time::SystemTime;

/// What a signature is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scope {
    pub(super) service: &'static str,
    pub(super) region: String,
}

/// A request as it will be sent.
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    pub(super) host: &'a str,
    /// Path and query, percent-encoded as they are sent: they are signed encoded once more.
    pub(super) target: &'a str,
    pub(super) fields: &'a [(String, Vec<u8>)],
    pub(super) body: &'a [u8],
}

/// Fields that nothing on the way changes, and that services ask to be signed. `x-amzn-trace-id` is left out by
/// the signer itself.
fn is_signed(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["content-type", "accept", "date"].contains(&&*name)
        || name.starts_with("x-amz-")
        || name.starts_with("x-amzn-")
}

/// The fields that make `request` a signed one: `x-amz-date`, `authorization`, and the token of temporary keys.
pub(super) fn fields(
    request: &Request<'_>,
    keys: &Credentials,
    scope: &Scope,
    at: SystemTime,
) -> Result<Vec<(String, Vec<u8>)>, String> {
    if !request.target.starts_with('/') {
        return Err("its target is no path".to_owned());
    }
    let identity = keys.clone().into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(&scope.region)
        .name(scope.service)
        .time(at)
        .settings(SigningSettings::default())
        .build()
        .map_err(|error| error.to_string())?
        .into();
    let chosen = request.fields.iter().filter(|(name, _)| is_signed(name));
    let mut signed: Vec<(&str, &str)> = vec![("host", request.host)];
    for (name, value) in chosen {
        let value = std::str::from_utf8(value).map_err(|_| format!("{name} is not UTF-8"))?;
        signed.push((name, value));
    }
    let uri = format!("https://{}{}", request.host, request.target);
    let body = SignableBody::Bytes(request.body);
    let signable = SignableRequest::new(request.method, uri, signed.into_iter(), body)
        .map_err(|error| error.to_string())?;
    let (made, _) = sign(signable, &parameters)
        .map_err(|error| error.to_string())?
        .into_parts();
    let own = |(name, value): (&str, &str)| (name.to_owned(), value.as_bytes().to_vec());
    Ok(made.headers().map(own).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const BODY: &[u8] = br#"{"messages": [{"role": "user", "content": [{"text": "hi"}]}]}"#;
    /// 2026-01-01T00:00:00Z.
    const AT: u64 = 1_767_225_600;

    /// The signature of a request by the keys of AWS' own examples.
    fn signature(
        service: &'static str,
        host: &str,
        target: &str,
        more: &[(&str, &str)],
        body: &[u8],
    ) -> String {
        let keys = Credentials::new(
            "AKIDEXAMPLE",
            "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            Some("TOK".to_owned()),
            None,
            "test",
        );
        let mut all = vec![
            ("Content-Type".to_owned(), b"application/json".to_vec()),
            ("User-Agent".to_owned(), b"boto3".to_vec()),
            ("traceparent".to_owned(), b"00-a-b-01".to_vec()),
        ];
        all.extend(
            more.iter()
                .map(|(n, v)| ((*n).to_owned(), v.as_bytes().to_vec())),
        );
        let request = Request {
            method: "POST",
            host,
            target,
            fields: &all,
            body,
        };
        let scope = Scope {
            service,
            region: "us-east-1".to_owned(),
        };
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(AT);
        let made = fields(&request, &keys, &scope, at).unwrap();
        let text = |name: &str| {
            let field = made
                .iter()
                .find(|(n, _)| n.eq_ignore_ascii_case(name))
                .unwrap();
            String::from_utf8(field.1.clone()).unwrap()
        };
        assert_eq!(text("x-amz-date"), "20260101T000000Z");
        assert_eq!(text("x-amz-security-token"), "TOK");
        let authorization = text("authorization");
        authorization
            .rsplit("Signature=")
            .next()
            .unwrap()
            .to_owned()
    }

    /// Signatures on which botocore 1.44.8 and this signer agree.
    #[test]
    fn ids_with_colons_and_slashes_are_signed_as_the_sdks_sign_them() {
        let host = "bedrock-runtime.us-east-1.amazonaws.com";
        for (target, expected) in [
            (
                "/model/anthropic.claude-3-5-sonnet-20240620-v1%3A0/converse-stream",
                "bf6c60460bad049be9d0849ca5696156cfd23f8312c2d8171cfbfdeaf65332b9",
            ),
            (
                "/model/anthropic.claude-3-5-sonnet-20240620-v1:0/converse-stream",
                "4f1df450cab5f4c8006a723b3688209e13dbceb19cac26bd3b4d7b496a13d663",
            ),
            (
                "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Aimported-model%2Fabcdef123456/converse-stream",
                "a3ab7d3ce86d7305fdec8a23ebba64f7e95085f2bbb779ed79a4534e240f3e6e",
            ),
        ] {
            assert_eq!(
                signature("bedrock", host, target, &[], BODY),
                expected,
                "{target}"
            );
        }
        let session = "a".repeat(33);
        let more = [
            ("Accept", "text/event-stream"),
            ("X-Amzn-Bedrock-AgentCore-Runtime-Session-Id", &*session),
        ];
        let found = signature(
            "bedrock-agentcore",
            "bedrock-agentcore.us-east-1.amazonaws.com",
            "/runtimes/arn%3Aaws%3Abedrock-agentcore%3Aus-east-1%3A123456789012%3Aruntime%2Fmy_agent-AbCdEf1234/invocations?qualifier=DEFAULT",
            &more,
            br#"{"prompt":"x"}"#,
        );
        assert_eq!(
            found,
            "369505f660f28772cacdb71c5973e59c429803dbb1e240fae2f9a28b83fedc12"
        );
    }
}
