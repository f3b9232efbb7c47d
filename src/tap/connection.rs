//! A client's HTTP/1 connection: one exchange after another.

use super::context::TapContext;
use super::fault::Fault;
use super::framing::BodyLength;
use super::head::{self, HeadError, RequestHead};
use super::live::Live;
use super::relay::{Ending, Leftover, Relay, Why};
use super::sending::send;
use super::socket::Socket;
use super::upstream::Connected;
use pingora::server::ShutdownWatch;
use record::exchange::Outcome;
use record::stamp::Arrival;
use std::future::poll_fn;
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::time::timeout;

/// Bytes of one read of a head.
const READ: usize = 8 * 1024;

/// What the client's connection does after an exchange.
enum After {
    Next(Vec<u8>),
    Close,
}

/// A request head with what was read beyond it.
struct Arrived {
    head: RequestHead,
    begin: Arrival,
    read: Arrival,
    rest: Vec<u8>,
}

/// Why no request came.
enum NoRequest {
    /// The client left, was idle too long, or the tap shuts down.
    Over,
    /// What came is no request.
    Bad(HeadError),
}

/// Serves `client` until it leaves, an exchange ends the connection, or the tap shuts down.
pub(crate) async fn serve(tap: &TapContext, mut client: Socket, shutdown: &ShutdownWatch) {
    let mut shutdown = shutdown.clone();
    let mut buffered = Vec::new();
    loop {
        let arrived = match next_request(
            tap,
            &mut client,
            std::mem::take(&mut buffered),
            &mut shutdown,
        )
        .await
        {
            Ok(arrived) => arrived,
            Err(NoRequest::Over) => break,
            Err(NoRequest::Bad(error)) => {
                tap.meter.malformed_request();
                let fault = Fault::new(
                    error.status(),
                    "invalid_request_error",
                    format!("request {error}"),
                );
                let _ = send(&mut client, &fault.response()).await;
                break;
            }
        };
        let closing = *shutdown.borrow();
        let after;
        (client, after) = exchange(tap, client, arrived, closing).await;
        match after {
            After::Next(surplus) => buffered = surplus,
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
    buffered: Vec<u8>,
    shutdown: &mut ShutdownWatch,
) -> Result<Arrived, NoRequest> {
    let mut bytes = buffered;
    let mut begin: Option<Arrival> = None;
    // Pipelined bytes were read during the exchange before: dated by now from above.
    let mut read = (!bytes.is_empty()).then(|| Arrival::instant(record::clock::now()));
    loop {
        if let Some(arrival) = read {
            begin.get_or_insert(arrival);
            match head::request(&bytes) {
                Ok(Some((length, head))) => {
                    let rest = bytes.split_off(length);
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
        let from = bytes.len();
        bytes.resize(from + READ, 0);
        let reading = timeout(
            limit,
            poll_fn(|cx| client.poll_read(cx, &mut bytes[from..])),
        );
        let got = tokio::select! {
            biased;
            got = reading => got,
            _ = shutdown.wait_for(|stop| *stop), if begin.is_none() => return Err(NoRequest::Over),
        };
        let Ok(Ok((count, arrival))) = got else {
            return Err(NoRequest::Over);
        };
        bytes.truncate(from + count);
        if count == 0 {
            return Err(NoRequest::Over);
        }
        read = Some(arrival);
    }
}

/// One request and its response. Takes the client's connection and gives it back, since an upgrade
/// consumes it.
async fn exchange(
    tap: &TapContext,
    mut client: Socket,
    arrived: Arrived,
    closing: bool,
) -> (Socket, After) {
    let Arrived {
        mut head,
        begin,
        read,
        rest,
    } = arrived;
    tap.trace_context(&mut head);
    let _active = tap.meter.exchange_begins();
    let mut live = Live::begin(tap, &head, begin, read, (client.class(), client.reused()));
    if let Some(fault) = refused(tap, &head) {
        live.fail(Outcome::Failed, &fault.message);
        live.exchange.status = None;
        let _ = send(&mut client, &fault.response()).await;
        tap.meter.finished(live.close(None));
        return (client, After::Close);
    }
    let (mut rest, mut fresh) = (rest, false);
    loop {
        let mut upstream = match tap.upstream.connect(fresh).await {
            Ok(connected) => connected,
            Err(error) => {
                live.fail(Outcome::Failed, &format!("upstream {error}"));
                let fault = Fault::new(
                    502,
                    "upstream_unreachable",
                    format!("hopscope: upstream {error}"),
                );
                let _ = send(&mut client, &fault.response()).await;
                tap.meter.finished(live.close(None));
                return (client, After::Close);
            }
        };
        note_connection(&mut live, &upstream);
        let relay = Relay::new(
            tap,
            (&mut client, &mut upstream.socket),
            &mut live,
            &head,
            &rest,
            (read, closing),
        );
        let (ending, mut leftover) = match relay {
            Ok(relay) => relay.run().await,
            Err(why) => (Ending::Unanswered(why), Leftover::default()),
        };
        // The one safe resend: a pooled connection that was closed before a response byte, and a
        // request whose bytes so far are all still here.
        if ending == Ending::Stale
            && !fresh
            && let Some((bytes, body_at, _)) = leftover.sent.take()
        {
            rest = bytes[body_at..].to_vec();
            rest.append(&mut leftover.surplus);
            live.exchange.connection.resent = true;
            fresh = true;
            continue;
        }
        return conclude(tap, (client, upstream), live, ending, leftover).await;
    }
}

/// A request that the tap itself answers.
fn refused(tap: &TapContext, head: &RequestHead) -> Option<Fault> {
    if head.method == "CONNECT" {
        return Some(Fault::new(
            405,
            "invalid_request_error",
            "hopscope: CONNECT is not passed on",
        ));
    }
    match head.body {
        BodyLength::Fixed(n) if n > tap.body_max => Some(too_large(tap)),
        _ => None,
    }
}

fn too_large(tap: &TapContext) -> Fault {
    let limit = tap.body_max;
    let message = format!(
        "hopscope: request body exceeds limits.request_body_max of tap {} ({limit} bytes)",
        tap.name
    );
    Fault::new(413, "request_too_large", message)
}

fn note_connection(live: &mut Live, upstream: &Connected) {
    let connection = &mut live.exchange.connection;
    connection.upstream = Some(upstream.address.clone());
    connection.upstream_reused = Some(upstream.socket.reused());
    connection.connect = upstream.took;
    connection.upstream_class = upstream.socket.class();
}

/// Closes the books of an exchange and decides on both connections.
async fn conclude(
    tap: &TapContext,
    (mut client, upstream): (Socket, Connected),
    mut live: Live,
    ending: Ending,
    leftover: Leftover,
) -> (Socket, After) {
    match ending {
        Ending::Complete {
            client: keep,
            upstream: reusable,
        } => {
            if reusable {
                tap.upstream.release(upstream);
            }
            tap.meter.finished(live.close(leftover.sent));
            (
                client,
                if keep {
                    After::Next(leftover.surplus)
                } else {
                    After::Close
                },
            )
        }
        Ending::ClientGone => {
            // Closed before the books are: the upstream should stop working at once.
            drop(upstream);
            live.client_left();
            tap.meter.finished(live.close(leftover.sent));
            (client, After::Close)
        }
        Ending::Cut => {
            drop(upstream);
            tap.meter.finished(live.close(leftover.sent));
            (client, After::Close)
        }
        Ending::Stale => unanswered(tap, client, live, Why::Closed, leftover).await,
        Ending::Unanswered(why) => {
            drop(upstream);
            unanswered(tap, client, live, why, leftover).await
        }
        Ending::Upgraded => {
            live.fail(
                Outcome::Upgraded,
                "connection upgraded: its bytes were passed through unmeasured",
            );
            client = pipe(client, upstream, &leftover.surplus, tap.kernel_stamps).await;
            tap.meter.finished(live.close(None));
            (client, After::Close)
        }
    }
}

async fn unanswered(
    tap: &TapContext,
    mut client: Socket,
    mut live: Live,
    why: Why,
    leftover: Leftover,
) -> (Socket, After) {
    let at = live
        .exchange
        .connection
        .upstream
        .clone()
        .unwrap_or_default();
    let fault = match why {
        Why::Closed => Fault::new(
            502,
            "upstream_closed",
            format!("hopscope: upstream {at} closed the connection before it answered"),
        ),
        Why::Failed(kind) => Fault::new(
            502,
            "upstream_failed",
            format!("hopscope: connection to upstream {at} failed before it answered: {kind}"),
        ),
        Why::Malformed => Fault::new(
            502,
            "upstream_malformed",
            format!("hopscope: upstream {at} answered with something that is not HTTP/1"),
        ),
        Why::TimedOut => Fault::new(
            504,
            "upstream_timeout",
            format!("hopscope: upstream {at} did not answer within limits.response_head_timeout"),
        ),
        Why::TooLarge => too_large(tap),
        Why::BadRequest => Fault::new(
            400,
            "invalid_request_error",
            "hopscope: request body is not framed as its head says",
        ),
    };
    live.fail(Outcome::Failed, &fault.message);
    let _ = timeout(
        tap.timeouts.client_write,
        send(&mut client, &fault.response()),
    )
    .await;
    tap.meter.finished(live.close(leftover.sent));
    (client, After::Close)
}

/// Passes bytes both ways until either side ends.
async fn pipe(client: Socket, upstream: Connected, surplus: &[u8], kernel_stamps: bool) -> Socket {
    let mut near = client.into_stream();
    let mut far = upstream.socket.into_stream();
    if far.write_all(surplus).await.is_ok() && far.flush().await.is_ok() {
        let _ = copy_bidirectional(&mut near, &mut far).await;
    }
    Socket::new(near, kernel_stamps, true)
}
