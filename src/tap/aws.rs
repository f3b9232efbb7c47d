//! Requests signed for AWS (Signature Version 4).
//!
//! A signature holds for one host and one body. What the client signed for this tap's address is taken off, the
//! body is read to its end, since its hash is signed, and the request is signed for the upstream as it will be
//! sent. So a request passes on only when all of it is here; answers stream as everywhere.

mod explain;
mod keys;
mod sign;

use super::context::TapContext;
use super::exchange::Client;
use super::fault::Fault;
use super::head::RequestHead;
use super::whole::{Halt, replace_body, whole_body};
pub(crate) use explain::explain;
pub(crate) use keys::Keys;
use record::stamp::Arrival;
use sign::{Request, Scope};
use std::time::SystemTime;

/// Signs what passes one tap.
pub(crate) struct Signer {
    keys: Keys,
    host: String,
    scope: Scope,
}

impl Signer {
    /// For `host`, as it is sent.
    pub(crate) fn new(keys: Keys, host: String, service: &'static str, region: String) -> Self {
        let scope = Scope { service, region };
        Self { keys, host, scope }
    }

    /// Signs a request: `head` and `rest` become what is sent, and `read` the last read of its body.
    pub(crate) async fn sign(
        &self,
        tap: &TapContext,
        client: &mut Client,
        head: &mut RequestHead,
        (rest, read): (&mut Vec<u8>, &mut Arrival),
    ) -> Result<(), Halt> {
        let body = whole_body(tap, client, head, (&mut *rest, read)).await?;
        let keys = self.keys.get().await.map_err(|why| {
            let message = format!("hopscope: request cannot be signed: {why}");
            Fault::new(502, "aws_credentials", message)
        })?;
        unsign(head);
        let request = Request {
            method: &head.method,
            host: &self.host,
            target: &head.target,
            fields: &head.fields,
            body: &body,
        };
        let signed = sign::fields(&request, &keys, &self.scope, SystemTime::now());
        let signed = signed.map_err(|why| {
            let message = format!("hopscope: request cannot be signed: {why}");
            Fault::new(400, "invalid_request_error", message)
        })?;
        replace_body(head, rest, body);
        head.fields.extend(signed);
        Ok(())
    }
}

/// Takes off what held for the client's own signature, for its connection, and for the body's framing.
fn unsign(head: &mut RequestHead) {
    const OFF: [&str; 11] = [
        "authorization",
        "x-amz-date",
        "x-amz-security-token",
        "x-amz-content-sha256",
        "content-length",
        "transfer-encoding",
        "trailer",
        "te",
        "expect",
        "proxy-authorization",
        "proxy-authenticate",
    ];
    head.fields
        .retain(|(name, _)| !OFF.iter().any(|off| name.eq_ignore_ascii_case(off)));
}
