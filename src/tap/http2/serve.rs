//! A client's HTTP/2 connection: many exchanges at once, all on this connection's own task.

use super::io::Noted;
use super::stream::Asked;
use super::{CONNECTION_WINDOW, MAX_STREAMS, STREAM_WINDOW, fields};
use crate::tap::context::TapContext;
use crate::tap::exchange::{Arrived, Client, exchange};
use crate::tap::head::MAX_HEAD;
use crate::tap::socket::Socket;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use h2::server::Builder;
use pingora::server::ShutdownWatch;
use record::stamp::Arrival;
use std::future::poll_fn;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// For how long a connection that is at its end may still say so.
const FAREWELL: Duration = Duration::from_secs(1);

/// Serves `client` until it leaves, is idle too long, or the tap shuts down; `before` of it was
/// read already, at `arrival`.
pub(crate) async fn serve(
    tap: &TapContext,
    client: Socket,
    (before, arrival): (Vec<u8>, Arrival),
    shutdown: &ShutdownWatch,
) {
    let mut shutdown = shutdown.clone();
    let (io, reads) = Noted::new(client, before, arrival);
    let handshake = Builder::new()
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEAD as u32)
        .handshake(io);
    let mut connection = match timeout(tap.timeouts.request_head, handshake).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(_)) | Err(_) => {
            tap.meter.malformed_request();
            return;
        }
    };
    let mut running = FuturesUnordered::new();
    let (mut streams, mut closing) = (0_u64, false);
    loop {
        tokio::select! {
            // Streams first: what they write is flushed by the same poll of the connection.
            biased;
            Some(()) = running.next(), if !running.is_empty() => {}
            accepted = connection.accept() => match accepted {
                Some(Ok((request, respond))) => {
                    let (parts, body) = request.into_parts();
                    let ended = body.is_end_stream();
                    let head = fields::request_head(&http::Request::from_parts(parts, ()), ended);
                    let asked = Asked::new(respond, body, &reads);
                    let arrived = Arrived::whole(head, asked.arrival());
                    running.push(one(tap, asked, arrived, streams > 0));
                    streams += 1;
                }
                Some(Err(error)) => {
                    if !error.is_io() && !error.is_remote() {
                        tap.meter.malformed_request();
                    }
                    break;
                }
                None => break,
            },
            () = stopped(&mut shutdown), if !closing => {
                closing = true;
                connection.graceful_shutdown();
            }
            () = sleep(tap.timeouts.client_idle), if running.is_empty() => {
                connection.abrupt_shutdown(h2::Reason::NO_ERROR);
                let _ = timeout(FAREWELL, poll_fn(|cx| connection.poll_closed(cx))).await;
                break;
            }
        }
    }
    // The connection is over: its streams find that out and close their books.
    while running.next().await.is_some() {}
}

async fn one(tap: &TapContext, asked: Asked, arrived: Arrived, reused: bool) {
    exchange(tap, Client::H2(Box::new(asked), reused), arrived, false).await;
}

async fn stopped(shutdown: &mut ShutdownWatch) {
    // Nobody left to say so is a process at its end.
    let _ = shutdown.wait_for(|stop| *stop).await;
}
