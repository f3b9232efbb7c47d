//! The signature of a request as AWS computes it (Signature Version 4), from the bytes that were received.
//! Written with code of its own, so that an error of a signer under test cannot cancel out.
//!
//! Not modelled: signatures in the query, `Date` in place of `X-Amz-Date`, signed chunks, SigV4a.

use std::fmt::Write as _;

use super::hash::{hex, hmac, sha256_hex};
use super::verifier::Received;

/// Value of `x-amz-content-sha256` where the body is not signed.
pub(super) const UNSIGNED: &str = "UNSIGNED-PAYLOAD";

/// What a signature is for: `20260101/us-east-1/bedrock/aws4_request`.
pub(super) struct Scope<'a> {
    pub(super) date: &'a str,
    pub(super) region: &'a str,
    pub(super) service: &'a str,
}

impl Scope<'_> {
    fn text(&self) -> String {
        format!(
            "{}/{}/{}/aws4_request",
            self.date, self.region, self.service
        )
    }
}

/// A request in the form that is signed.
#[derive(Clone)]
pub(super) struct Canonical {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    /// Name and value, by name.
    pub(super) fields: Vec<(String, String)>,
    pub(super) payload: String,
}

impl Canonical {
    /// Of a request with these signed fields; the error names one that it does not have.
    pub(super) fn of(request: &Received<'_>, signed: &[String]) -> Result<Self, String> {
        let (path, query) = request
            .target
            .split_once('?')
            .unwrap_or((request.target, ""));
        let mut fields = Vec::new();
        for name in signed {
            let value = value_of(request, name).ok_or_else(|| name.clone())?;
            fields.push((name.clone(), value));
        }
        fields.sort();
        Ok(Self {
            method: request.method.to_owned(),
            path: encoded(path, true),
            query: canonical_query(query),
            fields,
            payload: sha256_hex(request.body),
        })
    }

    pub(super) fn text(&self) -> String {
        let mut text = format!("{}\n{}\n{}\n", self.method, self.path, self.query);
        for (name, value) in &self.fields {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}:{value}");
        }
        let names: Vec<&str> = self.fields.iter().map(|(name, _)| name.as_str()).collect();
        let _ = write!(text, "\n{}\n{}", names.join(";"), self.payload);
        text
    }

    /// The same without what is secret in it, for a log.
    pub(super) fn shown(&self) -> String {
        let mut shown = self.clone();
        for (name, value) in &mut shown.fields {
            if name.contains("token") || name == "authorization" || name == "cookie" {
                "(hidden)".clone_into(value);
            }
        }
        shown.text()
    }

    /// The signature by `secret` at `stamp` (`20260101T000000Z`).
    pub(super) fn signature(&self, secret: &str, scope: &Scope<'_>, stamp: &str) -> String {
        let hashed = sha256_hex(self.text().as_bytes());
        let to_sign = format!("AWS4-HMAC-SHA256\n{stamp}\n{}\n{hashed}", scope.text());
        let parts = [scope.date, scope.region, scope.service, "aws4_request"];
        let first = format!("AWS4{secret}").into_bytes();
        let key = parts
            .iter()
            .fold(first, |key, part| hmac(&key, part.as_bytes()).to_vec());
        hex(&hmac(&key, to_sign.as_bytes()))
    }
}

/// The values of a field, trimmed, runs of spaces made one, with commas between several.
fn value_of(request: &Received<'_>, name: &str) -> Option<String> {
    let fields = request.headers.0.iter();
    let values: Vec<String> = fields
        .filter(|(field, _)| field.eq_ignore_ascii_case(name))
        .map(|(_, value)| {
            let text = String::from_utf8_lossy(value);
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        })
        .collect();
    (!values.is_empty()).then(|| values.join(","))
}

/// Percent-encodes everything that is not unreserved (RFC 3986), `/` only where `slash` says not to.
pub(super) fn encoded(text: &str, keep_slash: bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        let stays = byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'_' | b'.' | b'~')
            || (keep_slash && byte == b'/');
        match stays {
            true => out.push(char::from(byte)),
            false => {
                let _ = write!(out, "%{byte:02X}");
            }
        }
    }
    out
}

/// Parameters in the order of their names, encoded alike however they came.
fn canonical_query(query: &str) -> String {
    let again = |text: &str| encoded(&crate::http::percent_decoded(text), false);
    let mut pairs: Vec<(String, String)> = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(name, value)| (again(name), again(value)))
        .collect();
    pairs.sort();
    let pairs: Vec<String> = pairs
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.join("&")
}

/// The fields that sign a request, for tests: `x-amz-date`, the token where there is one, and `authorization`, each
/// with its line end. Signed are the host, these and `fields`.
#[cfg(test)]
pub(crate) fn signed_fields(
    request: &Received<'_>,
    (id, secret, token): (&str, &str, Option<&str>),
    (service, region): (&str, &str),
    at: i64,
) -> String {
    let stamp = super::time::basic(at);
    let mut headers = request.headers.clone();
    let mut own = format!("x-amz-date: {stamp}\r\n");
    headers
        .0
        .push(("x-amz-date".to_owned(), stamp.clone().into_bytes()));
    if let Some(token) = token {
        headers
            .0
            .push(("x-amz-security-token".to_owned(), token.into()));
        let _ = write!(own, "x-amz-security-token: {token}\r\n");
    }
    let mut names: Vec<String> = headers
        .0
        .iter()
        .map(|(name, _)| name.to_lowercase())
        .collect();
    names.sort();
    let received = Received {
        headers: &headers,
        ..*request
    };
    let scope = Scope {
        date: &stamp[..8],
        region,
        service,
    };
    let canonical = Canonical::of(&received, &names).unwrap();
    let signature = canonical.signature(secret, &scope, &stamp);
    format!(
        "{own}authorization: AWS4-HMAC-SHA256 Credential={id}/{}, SignedHeaders={}, Signature={signature}\r\n",
        scope.text(),
        names.join(";")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Headers;

    fn signature(
        host: &str,
        target: &str,
        service: &str,
        more: &[(&str, &str)],
        body: &[u8],
    ) -> String {
        let mut headers = Headers(vec![
            ("Host".to_owned(), host.into()),
            ("Content-Type".to_owned(), b"application/json".to_vec()),
        ]);
        for (name, value) in more {
            headers.0.push(((*name).to_owned(), (*value).into()));
        }
        let request = Received {
            method: "POST",
            target,
            headers: &headers,
            body,
        };
        let keys = (
            "AKIDEXAMPLE",
            "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            Some("TOK"),
        );
        let fields = signed_fields(&request, keys, (service, "us-east-1"), 1_767_225_600);
        let at = fields.find("Signature=").unwrap();
        fields[at + 10..].trim().to_owned()
    }

    /// Signatures on which botocore 1.44.8 and the crate aws-sigv4 1.6.4 agree.
    #[test]
    fn ids_with_colons_and_slashes_have_the_signatures_of_the_sdks() {
        let host = "bedrock-runtime.us-east-1.amazonaws.com";
        let body = br#"{"messages": [{"role": "user", "content": [{"text": "hi"}]}]}"#;
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
                signature(host, target, "bedrock", &[], body),
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
            "bedrock-agentcore.us-east-1.amazonaws.com",
            "/runtimes/arn%3Aaws%3Abedrock-agentcore%3Aus-east-1%3A123456789012%3Aruntime%2Fmy_agent-AbCdEf1234/invocations?qualifier=DEFAULT",
            "bedrock-agentcore",
            &more,
            br#"{"prompt":"x"}"#,
        );
        assert_eq!(
            found,
            "369505f660f28772cacdb71c5973e59c429803dbb1e240fae2f9a28b83fedc12"
        );
    }

    /// The example of AWS' test suite for a query whose parameters are out of order.
    #[test]
    fn the_query_is_sorted_and_encoded_alike() {
        assert_eq!(
            canonical_query("Param2=value2&Param1=value1"),
            "Param1=value1&Param2=value2"
        );
        assert_eq!(canonical_query("b=%2f&a&b=%20x"), "a=&b=%20x&b=%2F");
        assert_eq!(canonical_query(""), "");
    }

    #[test]
    fn values_are_trimmed_and_joined_and_a_token_is_not_shown() {
        let headers = Headers(vec![
            ("X-Amz-A".to_owned(), b"  one   two ".to_vec()),
            ("x-amz-a".to_owned(), b"three".to_vec()),
            ("X-Amz-Security-Token".to_owned(), b"hush".to_vec()),
        ]);
        let request = Received {
            method: "GET",
            target: "/a b",
            headers: &headers,
            body: b"",
        };
        let signed = ["x-amz-a".to_owned(), "x-amz-security-token".to_owned()];
        let canonical = Canonical::of(&request, &signed).unwrap();
        assert!(canonical.text().contains("\nx-amz-a:one two,three\n"));
        assert!(canonical.text().starts_with("GET\n/a%20b\n\n"));
        assert!(canonical.text().contains("hush") && !canonical.shown().contains("hush"));
        let absent = Canonical::of(&request, &["host".to_owned()]);
        assert_eq!(absent.err().unwrap(), "host");
    }
}
