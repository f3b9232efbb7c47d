//! A request's body read to its end, where all of it must be known before the first byte goes on: to be signed, or
//! to be translated.

use super::context::TapContext;
use super::early::Early;
use super::exchange::Client;
use super::fault::Fault;
use super::framing::{BodyLength, Framing};
use super::head::RequestHead;
use super::sending::send;
use record::stamp::Arrival;
use tokio::time::timeout;

/// Why a request goes no further.
pub(crate) enum Halt {
    /// The client is to be told.
    Fault(Fault),
    /// The client left, or sent no more.
    Gone,
}

impl From<Fault> for Halt {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The body without its chunking; `rest` keeps what came behind it, `read` becomes the last read of it.
pub(crate) async fn whole_body(
    tap: &TapContext,
    client: &mut Client,
    head: &RequestHead,
    (rest, read): (&mut Vec<u8>, &mut Arrival),
) -> Result<Vec<u8>, Halt> {
    let Client::H1(socket) = client else {
        let message = "hopscope: a tap that signs or translates takes HTTP/1.1 only";
        return Err(Fault::new(501, "invalid_request_error", message).into());
    };
    let mut framing = Framing::new(head.body);
    if head.expects_continue() && rest.is_empty() && !framing.done() {
        let go_on = b"HTTP/1.1 100 Continue\r\n\r\n";
        let sent = timeout(tap.timeouts.client_write, send(socket, go_on)).await;
        sent.map_err(|_| Halt::Gone)?.map_err(|_| Halt::Gone)?;
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
            _ => return Err(Halt::Gone),
        }
    }
}

/// Makes `body` the request's: `rest` begins with it, and its length is told.
pub(crate) fn replace_body(head: &mut RequestHead, rest: &mut Vec<u8>, body: Vec<u8>) {
    const FRAMING: [&str; 5] = [
        "content-length",
        "transfer-encoding",
        "trailer",
        "te",
        "expect",
    ];
    head.fields
        .retain(|(name, _)| !FRAMING.iter().any(|one| name.eq_ignore_ascii_case(one)));
    if head.body != BodyLength::None {
        head.body = BodyLength::Fixed(body.len() as u64);
        let length = body.len().to_string().into_bytes();
        head.fields.push(("content-length".to_owned(), length));
    }
    rest.splice(0..0, body);
}
