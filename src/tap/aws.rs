//! Requests signed for AWS (Signature Version 4).
//!
//! A signature holds for one host and one body. What the client signed for this tap's address is taken off, the
//! body is read to its end, since its hash is signed, and the request is signed for the upstream as it will be
//! sent. So a request passes on only when all of it is here; answers stream as everywhere.

mod keys;
mod sign;

use super::context::TapContext;
use super::early::Early;
use super::exchange::Client;
use super::fault::Fault;
use super::framing::{BodyLength, Framing};
use super::head::RequestHead;
use super::sending::send;
use super::socket::Socket;
pub(crate) use keys::Keys;
use record::stamp::Arrival;
use sign::{Request, Scope};
use std::time::SystemTime;
use tokio::time::timeout;

/// Signs what passes one tap.
pub(crate) struct Signer {
    keys: Keys,
    host: String,
    scope: Scope,
}

/// Why a request is not signed.
pub(crate) enum Unsigned {
    /// The client is to be told.
    Fault(Fault),
    /// The client left, or sent no more.
    Gone,
}

impl From<Fault> for Unsigned {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
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
    ) -> Result<(), Unsigned> {
        let Client::H1(socket) = client else {
            let message = "hopscope: a tap that signs takes HTTP/1.1 only";
            return Err(Fault::new(501, "invalid_request_error", message).into());
        };
        let body = whole_body(tap, socket, head, rest, read).await?;
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
        if head.body != BodyLength::None {
            head.body = BodyLength::Fixed(body.len() as u64);
            let length = body.len().to_string().into_bytes();
            head.fields.push(("content-length".to_owned(), length));
        }
        head.fields.extend(signed);
        rest.splice(0..0, body);
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

/// The body without its chunking; `rest` keeps what came behind it.
async fn whole_body(
    tap: &TapContext,
    socket: &mut Socket,
    head: &RequestHead,
    rest: &mut Vec<u8>,
    read: &mut Arrival,
) -> Result<Vec<u8>, Unsigned> {
    let mut framing = Framing::new(head.body);
    if head.expects_continue() && rest.is_empty() && !framing.done() {
        let go_on = b"HTTP/1.1 100 Continue\r\n\r\n";
        let sent = timeout(tap.timeouts.client_write, send(socket, go_on)).await;
        sent.map_err(|_| Unsigned::Gone)?
            .map_err(|_| Unsigned::Gone)?;
    }
    let (mut body, mut ranges) = (Vec::new(), Vec::new());
    let mut early = Early {
        bytes: std::mem::take(rest),
        arrival: None,
    };
    loop {
        let used = framing.follow(&early.bytes, &mut ranges).map_err(|error| {
            let message = format!("hopscope: request {error}");
            Fault::new(400, "invalid_request_error", message)
        })?;
        for range in ranges.drain(..) {
            body.extend_from_slice(&early.bytes[range]);
        }
        if body.len() as u64 > tap.body_max {
            return Err(Fault::too_large(tap).into());
        }
        if framing.done() {
            *rest = early.bytes.split_off(used);
            *read = early.arrival.unwrap_or(*read);
            return Ok(body);
        }
        early.bytes.clear();
        match timeout(tap.timeouts.stream_idle, early.read(socket)).await {
            Ok(true) => {}
            _ => return Err(Unsigned::Gone),
        }
    }
}
