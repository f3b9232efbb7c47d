//! Whether a request is signed as AWS asks for, and if not, what differs.
//!
//! The messages are AWS'. That alone does not help who gets one, so what is wrong is told too: for certain where a
//! part of the request says it (date, scope, token, a signed field that is gone, a hash of the body), otherwise by
//! trying the usual mistakes; where none of them makes the signature right, a signature does not tell more.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use super::keys::{Key, KeyOptions, Keys};
use super::sigv4::{Canonical, Scope, UNSIGNED, encoded};
use super::{hash, time};
use crate::clock::unix_seconds;
use crate::http::Headers;

/// How far the clocks of client and service may be apart, seconds (AWS' user guide on SigV4: five minutes).
const SKEW: i64 = 300;

/// Why the signature is not the one expected, in AWS' words.
const MISMATCH: &str = "The request signature we calculated does not match the signature you provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.";

/// A request as it arrived.
#[derive(Clone, Copy)]
pub(crate) struct Received<'a> {
    pub(crate) method: &'a str,
    /// Path and query.
    pub(crate) target: &'a str,
    pub(crate) headers: &'a Headers,
    pub(crate) body: &'a [u8],
}

/// A request that is not answered. All are HTTP 403.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    /// AWS' name of the error.
    pub(crate) kind: &'static str,
    /// As AWS words it.
    pub(crate) message: String,
    /// The first part that differs, and how. No secret, token or signature is in it.
    pub(crate) differs: String,
}

impl Refused {
    fn new(kind: &'static str, message: impl Into<String>, differs: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            differs: differs.into(),
        }
    }

    fn signature(message: impl Into<String>, differs: impl Into<String>) -> Self {
        Self::new("InvalidSignatureException", message, differs)
    }

    /// The field that tells what differs.
    pub(crate) fn field(&self) -> (String, Vec<u8>) {
        (
            "x-sim-signature-differs".to_owned(),
            self.differs.clone().into_bytes(),
        )
    }
}

/// Checks requests to one service in one region.
pub(crate) struct Verifier {
    service: &'static str,
    region: String,
    clock_offset_s: i64,
    path: PathBuf,
    file: Mutex<(Keys, Option<SystemTime>)>,
}

/// The parts of an `Authorization` field.
struct Claim<'a> {
    id: &'a str,
    date: &'a str,
    region: &'a str,
    service: &'a str,
    signed: Vec<String>,
    signature: &'a str,
}

impl Verifier {
    /// The verifier of these options, `None` where they ask for none; the error says why a key file cannot be used.
    pub(crate) fn of(options: &KeyOptions, service: &'static str) -> io::Result<Option<Self>> {
        let Some(path) = &options.aws_keys else {
            return Ok(None);
        };
        let changed = changed_at(path);
        Ok(Some(Self {
            service,
            region: options.aws_region.clone(),
            clock_offset_s: options.aws_clock_offset_s,
            file: Mutex::new((Keys::read(path)?, changed)),
            path: path.clone(),
        }))
    }

    /// Lets a request pass that a known key signed, or that bears one.
    pub(crate) fn check(&self, request: &Received<'_>) -> Result<(), Refused> {
        let checked = self.check_at(request, unix_seconds().cast_signed() + self.clock_offset_s);
        if let Err(refused) = &checked {
            tracing::warn!(
                kind = refused.kind,
                differs = refused.differs,
                "request refused"
            );
        }
        checked
    }

    fn check_at(&self, request: &Received<'_>, now: i64) -> Result<(), Refused> {
        let Some(authorization) = request.headers.get("authorization") else {
            return Err(Refused::new(
                "MissingAuthenticationTokenException",
                "Missing Authentication Token",
                "authorization: the field is missing",
            ));
        };
        if let Some(key) = authorization.strip_prefix("Bearer ") {
            return self.check_bearer(key.trim());
        }
        let claim = Claim::parse(authorization)?;
        let key = self.key(claim.id).ok_or_else(|| {
            let message = "The security token included in the request is invalid.";
            let id: String = claim.id.chars().take(24).collect();
            let differs = format!("credential: the key file has no access key {id}");
            Refused::new("UnrecognizedClientException", message, differs)
        })?;
        key.check_token(request.headers.get("x-amz-security-token"), now)?;
        let stamp = request.headers.get("x-amz-date").unwrap_or_default().trim();
        check_date(stamp, claim.date, now)?;
        self.check_scope(&claim)?;
        self.check_signature(request, &claim, &key, stamp)
    }

    fn check_bearer(&self, key: &str) -> Result<(), Refused> {
        let known = |keys: &Keys| keys.bearer.iter().any(|known| known == key).then_some(());
        self.find(known).ok_or_else(|| {
            let message = "Authentication failed: Please make sure your API Key is valid.";
            let differs = "token: the key file does not have this bearer key";
            Refused::new("AccessDeniedException", message, differs)
        })
    }

    fn key(&self, id: &str) -> Option<Key> {
        self.find(|keys| keys.signing.get(id).cloned())
    }

    /// Looks into the key file, and once more where it has changed meanwhile.
    fn find<T>(&self, look: impl Fn(&Keys) -> Option<T>) -> Option<T> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = changed_at(&self.path);
        if let Some(found) = look(&file.0) {
            return Some(found);
        }
        if changed == file.1 {
            return None;
        }
        match Keys::read(&self.path) {
            Ok(keys) => *file = (keys, changed),
            Err(error) => tracing::warn!(%error, "those that were read before are used on"),
        }
        look(&file.0)
    }

    fn check_scope(&self, claim: &Claim<'_>) -> Result<(), Refused> {
        if claim.region != self.region {
            let message = "Credential should be scoped to a valid region.";
            let differs = format!(
                "scope: signed for region {}, expected {}",
                shown(claim.region),
                self.region
            );
            return Err(Refused::signature(message, differs));
        }
        if claim.service != self.service {
            let service = self.service;
            let message = format!("Credential should be scoped to correct service: '{service}'.");
            let differs = format!(
                "scope: signed for service {}, expected {service}",
                shown(claim.service)
            );
            return Err(Refused::signature(message, differs));
        }
        Ok(())
    }

    fn check_signature(
        &self,
        request: &Received<'_>,
        claim: &Claim<'_>,
        key: &Key,
        stamp: &str,
    ) -> Result<(), Refused> {
        let needed = ["host", "x-amz-security-token"];
        let unsigned = needed.into_iter().find(|name| {
            request.headers.get(name).is_some() && !claim.signed.iter().any(|signed| signed == name)
        });
        if let Some(name) = unsigned {
            let message = format!("'{name}' must be a 'SignedHeader' in the AWS Authorization.");
            let differs = format!("signed headers: {name} is not among them");
            return Err(Refused::signature(message, differs));
        }
        let canonical = Canonical::of(request, &claim.signed).map_err(|name| {
            let name = shown(&name);
            let differs = format!("canonical headers: {name} was signed and has not arrived");
            Refused::signature(MISMATCH, differs)
        })?;
        let scope = Scope {
            date: claim.date,
            region: claim.region,
            service: claim.service,
        };
        let is_right = |canonical: &Canonical| {
            canonical.signature(&key.secret, &scope, stamp) == claim.signature
        };
        if is_right(&canonical) {
            return Ok(());
        }
        tracing::debug!(
            canonical = canonical.shown(),
            "what should have been signed"
        );
        let differs = self.guess(request, &canonical, is_right);
        Err(Refused::signature(MISMATCH, differs))
    }

    /// Which usual mistake makes the signature right.
    fn guess(
        &self,
        request: &Received<'_>,
        canonical: &Canonical,
        is_right: impl Fn(&Canonical) -> bool,
    ) -> String {
        let path = request.target.split('?').next().unwrap_or_default();
        let with = |change: &dyn Fn(&mut Canonical)| {
            let mut changed = canonical.clone();
            change(&mut changed);
            changed
        };
        let host = |host: &str| {
            with(&|it| {
                for (_, value) in it.fields.iter_mut().filter(|(name, _)| name == "host") {
                    host.clone_into(value);
                }
            })
        };
        let payload = |payload: String| with(&|it| payload.clone_into(&mut it.payload));
        let received = request.headers.get("host").unwrap_or_default();
        let bare = received.split(':').next().unwrap_or_default();
        let prefix = match self.service {
            "bedrock" => "bedrock-runtime",
            service => service,
        };
        let mut tried = vec![
            (
                "path: signed as it is sent, not percent-encoded once more",
                with(&|it| path.clone_into(&mut it.path)),
            ),
            (
                "path: signed percent-encoded twice more, not once",
                with(&|it| it.path = encoded(&it.path, true)),
            ),
            ("host: signed without its port", host(bare)),
            (
                "host: signed for the endpoint of AWS",
                host(&format!("{prefix}.{}.amazonaws.com", self.region)),
            ),
            ("query: signed without it", with(&|it| it.query.clear())),
            (
                "body: signed as UNSIGNED-PAYLOAD",
                payload(UNSIGNED.to_owned()),
            ),
            (
                "body: signed as an empty one",
                payload(hash::sha256_hex(b"")),
            ),
        ];
        if let Some(told) = request.headers.get("x-amz-content-sha256") {
            let what = "body: it is not what x-amz-content-sha256 tells and was signed";
            tried.push((what, payload(told.to_owned())));
        }
        for json in respaced(request.body) {
            let what = "body: signed as the same JSON with other white space";
            tried.push((what, payload(hash::sha256_hex(json.as_bytes()))));
        }
        let found = tried.iter().find(|(_, changed)| is_right(changed));
        let unknown = "canonical request: path, query, a signed header or the body has changed since it was signed, or the secret is another (a signature does not tell which)";
        found.map_or(unknown, |(what, _)| what).to_owned()
    }
}

impl Key {
    /// Checks the token of temporary keys.
    fn check_token(&self, token: Option<&str>, now: i64) -> Result<(), Refused> {
        let expired = |differs: String| {
            let message = "The security token included in the request is expired";
            Err(Refused::new("ExpiredTokenException", message, differs))
        };
        if let Some(end) = self.expires.filter(|end| *end <= now) {
            return expired(format!(
                "token: the keys expired at {}",
                time::extended(end)
            ));
        }
        let differs = match (&self.session_token, token) {
            (None, None) => return Ok(()),
            (Some(known), Some(token)) if known == token => return Ok(()),
            // The keys are known, so it is one that they had before.
            (Some(_), Some(_)) => {
                return expired("token: it is not the one that these keys have now".to_owned());
            }
            (Some(_), None) => "token: x-amz-security-token is missing; these keys have one",
            (None, Some(_)) => "token: x-amz-security-token came with keys that have none",
        };
        let message = "The security token included in the request is invalid.";
        Err(Refused::new(
            "UnrecognizedClientException",
            message,
            differs,
        ))
    }
}

impl<'a> Claim<'a> {
    fn parse(authorization: &'a str) -> Result<Self, Refused> {
        let wrong = |what: &str| {
            let message = format!("Authorization header requires {what}.");
            Refused::new(
                "IncompleteSignatureException",
                message,
                format!("authorization: {what} is missing or unreadable"),
            )
        };
        let parts = authorization
            .strip_prefix("AWS4-HMAC-SHA256 ")
            .ok_or_else(|| wrong("'AWS4-HMAC-SHA256'"))?;
        let part = |name: &str| {
            let mut parts = parts
                .split(',')
                .filter_map(|part| part.trim().split_once('='));
            parts
                .find(|(found, _)| *found == name)
                .map(|(_, value)| value)
                .ok_or_else(|| wrong(&format!("'{name}' parameter")))
        };
        let (credential, signed, signature) = (
            part("Credential")?,
            part("SignedHeaders")?,
            part("Signature")?,
        );
        let scope: Vec<&str> = credential.split('/').collect();
        let [id, date, region, service, "aws4_request"] = scope[..] else {
            return Err(wrong(
                "'Credential' of the form ID/DATE/REGION/SERVICE/aws4_request",
            ));
        };
        Ok(Self {
            id,
            date,
            region,
            service,
            signed: signed.split(';').map(str::to_lowercase).collect(),
            signature,
        })
    }
}

/// Checks the instant of the signature against the clock and the scope.
fn check_date(stamp: &str, scope_date: &str, now: i64) -> Result<(), Refused> {
    let Some(at) = time::parse(stamp).filter(|_| stamp.len() == 16) else {
        let message =
            "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header.";
        let differs = "date: x-amz-date is missing or not of the form 20260101T000000Z";
        return Err(Refused::new(
            "IncompleteSignatureException",
            message,
            differs,
        ));
    };
    let clock = time::basic(now);
    let apart = now - at;
    if apart.abs() > SKEW {
        let bound = time::basic(now - SKEW * apart.signum());
        let (message, side) = match apart > 0 {
            true => (
                format!(
                    "Signature expired: {stamp} is now earlier than {bound} ({clock} - 5 min.)"
                ),
                "behind",
            ),
            false => (
                format!(
                    "Signature not yet current: {stamp} is still later than {bound} ({clock} + 5 min.)"
                ),
                "ahead of",
            ),
        };
        let seconds = apart.abs();
        let differs = format!("date: signed {seconds} s {side} the clock here, at most {SKEW}");
        return Err(Refused::signature(message, differs));
    }
    if stamp[..8] != *scope_date {
        let scope_date = shown(scope_date);
        let message = format!(
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: '{scope_date}' != '{}', from '{stamp}'.",
            &stamp[..8]
        );
        let differs = format!(
            "scope: its date is {scope_date}, that of x-amz-date {}",
            &stamp[..8]
        );
        return Err(Refused::signature(message, differs));
    }
    Ok(())
}

/// What came from a client, short and in one line.
fn shown(text: &str) -> String {
    let plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.chars().filter(plain).take(48).collect()
}

/// A body of JSON as other writers put it: without white space, and with it behind `,` and `:`.
fn respaced(body: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(body).unwrap_or_default();
    let (mut dense, mut wide) = (String::new(), String::new());
    let (mut quoted, mut escaped) = (false, false);
    for letter in text.chars().filter(|letter| !letter.is_control()) {
        if !quoted && letter == ' ' {
            continue;
        }
        dense.push(letter);
        wide.push(letter);
        if !quoted && matches!(letter, ',' | ':') {
            wide.push(' ');
        }
        quoted ^= letter == '"' && !escaped;
        escaped = letter == '\\' && !escaped;
    }
    vec![dense, wide]
}

/// When a file was last written, `None` where it cannot be told.
fn changed_at(path: &std::path::Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|it| it.modified()).ok()
}

#[cfg(test)]
mod tests;
