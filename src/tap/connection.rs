//! A client's connection: over HTTP/1 one exchange after another; HTTP/2 goes its own way.

use super::context::TapContext;
use super::early::Early;
use super::exchange::{After, Arrived, Client, exchange, linger};
use super::fault::{Fault, Form};
use super::head::{self, HeadError};
use super::http2::{self, PREFACE};
use super::sending::send;
use super::socket::Socket;
use pingora::server::ShutdownWatch;
use record::stamp::Arrival;
use std::future::poll_fn;
use std::time::Duration;
use tokio::time::timeout;

/// Why no request came.
enum NoRequest {
    /// The client left, was idle too long, or the tap shuts down.
    Over,
    /// What came is no request.
    Bad(HeadError),
}

/// Serves `client` until it leaves, an exchange ends the connection, or the tap shuts down.
pub(crate) async fn serve(tap: &TapContext, mut client: Socket, shutdown: &ShutdownWatch) {
    let mut early = Early::default();
    if tap.http2 {
        match first_bytes(tap, &mut client).await {
            Some(first) if client.speaks_http2() || first.bytes.starts_with(PREFACE) => {
                let arrival = first
                    .arrival
                    .unwrap_or_else(|| Arrival::instant(record::clock::now()));
                // Unconstrained for the reason given in `Relay::run`.
                let served = http2::serve(tap, client, (first.bytes, arrival), shutdown);
                return tokio::task::unconstrained(served).await;
            }
            Some(first) => early = first,
            None => return,
        }
    }
    serve_http1(tap, client, early, shutdown.clone()).await;
}

/// Reads until it is clear which version of HTTP the client speaks. Where ALPN has agreed on one,
/// nothing is read. `None` where the client left.
async fn first_bytes(tap: &TapContext, client: &mut Socket) -> Option<Early> {
    let mut early = Early::default();
    if client.speaks_http2() {
        return Some(early);
    }
    while PREFACE.starts_with(&early.bytes) && early.bytes.len() < PREFACE.len() {
        match timeout(tap.timeouts.client_idle, early.read(client)).await {
            Ok(true) => {}
            _ => return None,
        }
    }
    Some(early)
}

async fn serve_http1(
    tap: &TapContext,
    mut client: Socket,
    mut early: Early,
    mut shutdown: ShutdownWatch,
) {
    loop {
        let arrived =
            match next_request(tap, &mut client, std::mem::take(&mut early), &mut shutdown).await {
                Ok(arrived) => arrived,
                Err(NoRequest::Over) => break,
                Err(NoRequest::Bad(error)) => {
                    tap.meter.malformed_request();
                    let fault = Fault::new(
                        error.status(),
                        "invalid_request_error",
                        format!("request {error}"),
                    );
                    let _ = send(&mut client, &fault.response(Form::OpenAi)).await;
                    return linger(&mut client).await;
                }
            };
        let closing = *shutdown.borrow();
        let after;
        let served = exchange(tap, Client::H1(client), arrived, closing).await;
        let Client::H1(socket) = served.0 else {
            return;
        };
        (client, after) = (socket, served.1);
        match after {
            After::Next(next) => early = next,
            After::Close => break,
        }
        client.mark_reused();
    }
    let _ = timeout(
        Duration::from_secs(1),
        poll_fn(|cx| client.poll_shutdown(cx)),
    )
    .await;
}

async fn next_request(
    tap: &TapContext,
    client: &mut Socket,
    mut early: Early,
    shutdown: &mut ShutdownWatch,
) -> Result<Arrived, NoRequest> {
    let mut begin: Option<Arrival> = None;
    // Pipelined bytes were read during the exchange before: dated by now from above.
    let mut read = (!early.bytes.is_empty()).then(|| {
        early
            .arrival
            .unwrap_or_else(|| Arrival::instant(record::clock::now()))
    });
    loop {
        if let Some(arrival) = read {
            begin.get_or_insert(arrival);
            match head::request(&early.bytes) {
                Ok(Some((length, head))) => {
                    let rest = early.bytes.split_off(length);
                    return Ok(Arrived {
                        head,
                        begin: begin.unwrap_or(arrival),
                        read: arrival,
                        rest,
                    });
                }
                Ok(None) => {}
                Err(error) => return Err(NoRequest::Bad(error)),
            }
        }
        let limit = if begin.is_some() {
            tap.timeouts.request_head
        } else {
            tap.timeouts.client_idle
        };
        let got = tokio::select! {
            biased;
            got = timeout(limit, early.read(client)) => got,
            _ = shutdown.wait_for(|stop| *stop), if begin.is_none() => return Err(NoRequest::Over),
        };
        match got {
            Ok(true) => read = early.arrival,
            _ => return Err(NoRequest::Over),
        }
    }
}
