//! One request and its response, of whichever version of HTTP on either side: connect, pass on,
//! close the books.

use super::context::TapContext;
use super::crossing::{self, Crossing};
use super::early::Early;
use super::ending::{Ending, Leftover, Why};
use super::fault::{Fault, Form};
use super::framing::BodyLength;
use super::head::RequestHead;
use super::http2::Asked;
use super::live::Live;
use super::relay::Relay;
use super::sending::send;
use super::socket::Socket;
use super::translation::Translation;
use super::upstream::{Connected, Link};
use super::whole::Halt;
use record::exchange::Outcome;
use record::stamp::{Arrival, StampClass};
use std::future::poll_fn;
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, copy_bidirectional};
use tokio::time::timeout;

/// For how long a client that was answered early may go on sending.
const LINGER: Duration = Duration::from_secs(1);

/// What the client's connection does after an exchange.
pub(crate) enum After {
    /// With what came of the next request.
    Next(Early),
    Close,
}

/// A request head with what was read beyond it.
pub(crate) struct Arrived {
    pub(crate) head: RequestHead,
    pub(crate) begin: Arrival,
    pub(crate) read: Arrival,
    pub(crate) rest: Vec<u8>,
}

impl Arrived {
    /// A head that came in one piece, with nothing behind it.
    pub(crate) fn whole(head: RequestHead, arrival: Arrival) -> Self {
        Self {
            head,
            begin: arrival,
            read: arrival,
            rest: Vec::new(),
        }
    }
}

/// Who asks: a connection of HTTP/1, or a stream of an HTTP/2 connection that carried others before.
pub(crate) enum Client {
    H1(Socket),
    H2(Box<Asked>, bool),
}

impl Client {
    fn class(&self) -> StampClass {
        match self {
            Self::H1(socket) => socket.class(),
            Self::H2(..) => StampClass::H2,
        }
    }

    fn reused(&self) -> bool {
        match self {
            Self::H1(socket) => socket.reused(),
            Self::H2(_, reused) => *reused,
        }
    }

    /// Answers with a fault of the tap's own.
    async fn fault(&mut self, tap: &TapContext, fault: &Fault, form: Form) {
        match self {
            Self::H1(socket) => {
                // A client that does not take its answer is gone; that is all there is to say.
                let _ = timeout(
                    tap.timeouts.client_write,
                    send(socket, &fault.response(form)),
                )
                .await;
            }
            Self::H2(asked, _) => asked.fault(fault, form),
        }
    }

    /// Reads on after the last answer until the client has said all, and lets it fall: a close while the
    /// client still sends would reset the connection, and the answer with it.
    async fn linger(&mut self) {
        match self {
            Self::H1(socket) => linger(socket).await,
            Self::H2(asked, _) => {
                let rest = async { while poll_fn(|cx| asked.poll_more(cx)).await {} };
                let _ = timeout(LINGER, rest).await;
            }
        }
    }

    /// Ends an answer that cannot be completed. Over HTTP/1 the close of the connection says so.
    fn cut(&mut self) {
        if let Self::H2(asked, _) = self {
            asked.cut();
        }
    }
}

/// Closes a connection whose client may still be sending.
pub(crate) async fn linger(socket: &mut Socket) {
    let rest = async {
        let _ = poll_fn(|cx| socket.poll_shutdown(cx)).await;
        let mut scratch = vec![0; 16 * 1024];
        while let Ok((1.., _)) = poll_fn(|cx| socket.poll_read(cx, &mut scratch)).await {}
    };
    let _ = timeout(LINGER, rest).await;
}

/// Serves one request. Takes the client and gives it back, since an upgrade consumes it.
pub(crate) async fn exchange(
    tap: &TapContext,
    mut client: Client,
    arrived: Arrived,
    closing: bool,
) -> (Client, After) {
    let Arrived {
        mut head,
        begin,
        mut read,
        mut rest,
    } = arrived;
    tap.trace_context(&mut head);
    let _active = tap.meter.exchange_begins();
    let mut live = Live::begin(tap, &head, begin, read, (client.class(), client.reused()));
    if let Some(fault) = refused(tap, &head) {
        return answer(tap, client, live, &fault).await;
    }
    let request = (&mut rest, &mut read);
    let prepared = prepare(tap, &mut client, &mut head, request, &mut live).await;
    let translation = match prepared {
        Ok(translation) => translation,
        Err(Halt::Fault(fault)) => return answer(tap, client, live, &fault).await,
        Err(Halt::Gone) => {
            let fault = "client left before the end of its request";
            live.fail(Outcome::Aborted, fault);
            tap.meter.finished(live.close(None));
            return (client, After::Close);
        }
    };
    live.translation = translation;
    let mut fresh = false;
    loop {
        let mut upstream = match tap.upstream.connect(fresh).await {
            Ok(connected) => connected,
            Err(error) => {
                let message = format!("hopscope: upstream {error}");
                let fault = Fault::new(502, "upstream_unreachable", message);
                return answer(tap, client, live, &fault).await;
            }
        };
        note_connection(&mut live, &upstream);
        let at = (read, closing);
        let (ending, mut leftover) = pass(
            tap,
            (&mut client, &mut upstream),
            &mut live,
            &head,
            &rest,
            at,
        )
        .await;
        // The one safe resend: a used connection that gave out before it took the request up, and a
        // request whose bytes so far are all still here.
        if ending == Ending::Stale && !fresh && again(&mut client, &mut leftover, &mut rest) {
            live.exchange.connection.resent = true;
            fresh = true;
            continue;
        }
        return conclude(tap, (client, upstream), live, ending, leftover).await;
    }
}

/// Makes of a request what the upstream is sent, where that is not what came: translated, and signed.
async fn prepare(
    tap: &TapContext,
    client: &mut Client,
    head: &mut RequestHead,
    (rest, read): (&mut Vec<u8>, &mut Arrival),
    live: &mut Live,
) -> Result<Option<Translation>, Halt> {
    let mut translation = None;
    if let Some(translator) = &tap.translator {
        let request = (&mut *rest, &mut *read);
        translation = Some(translator.request(tap, client, head, request, live).await?);
    }
    if let Some(bearer) = &tap.bearer {
        bearer.put(head);
    }
    if let Some(signer) = &tap.signer {
        signer.sign(tap, client, head, (rest, read)).await?;
    }
    Ok(translation)
}

/// Answers a request that goes no further, and closes its books.
async fn answer(
    tap: &TapContext,
    mut client: Client,
    mut live: Live,
    fault: &Fault,
) -> (Client, After) {
    let why = &fault.message;
    live.fail(
        Outcome::Failed,
        why.strip_prefix("hopscope: ").unwrap_or(why),
    );
    client.fault(tap, fault, live.form(tap)).await;
    tap.meter.finished(live.close(None));
    client.linger().await;
    (client, After::Close)
}

/// Passes one request and its response between two connections.
async fn pass(
    tap: &TapContext,
    (client, upstream): (&mut Client, &mut Connected),
    live: &mut Live,
    head: &RequestHead,
    rest: &[u8],
    at: (Arrival, bool),
) -> (Ending, Leftover) {
    use crossing::{From, To};
    let (from, to) = match (client, &mut upstream.link) {
        (Client::H1(client), Link::H1 { socket, .. }) => {
            return match Relay::new(tap, (client, socket), live, head, rest, at) {
                Ok(relay) => relay.run().await,
                Err(why) => (Ending::Unanswered(why), Leftover::default()),
            };
        }
        (Client::H1(client), Link::H2(session)) => {
            (From::Http1(client, rest.to_vec()), To::Http2(session))
        }
        (Client::H2(asked, _), Link::H1 { socket, .. }) => (From::Http2(asked), To::Http1(socket)),
        (Client::H2(asked, _), Link::H2(session)) => (From::Http2(asked), To::Http2(session)),
    };
    Crossing::new(tap, (from, to), live, head, at).run().await
}

/// Makes the request ready to be sent once more; `false` where part of it is gone.
fn again(client: &mut Client, leftover: &mut Leftover, rest: &mut Vec<u8>) -> bool {
    if let Client::H2(asked, _) = client {
        return asked.rewind();
    }
    let Some((bytes, body_at, _)) = leftover.sent.take() else {
        return false;
    };
    *rest = bytes[body_at..].to_vec();
    rest.append(&mut leftover.surplus);
    true
}

/// A request that the tap itself answers.
fn refused(tap: &TapContext, head: &RequestHead) -> Option<Fault> {
    if head.method == "CONNECT" {
        let message = "hopscope: CONNECT is not passed on";
        return Some(Fault::new(405, "invalid_request_error", message));
    }
    match head.body {
        BodyLength::Fixed(n) if n > tap.body_max => Some(Fault::too_large(tap)),
        _ => None,
    }
}

fn note_connection(live: &mut Live, upstream: &Connected) {
    let connection = &mut live.exchange.connection;
    connection.upstream = Some(upstream.address.clone());
    connection.upstream_reused = Some(upstream.took.is_none());
    connection.connect = upstream.took;
    connection.upstream_class = upstream.class();
}

/// Closes the books of an exchange and decides on both connections.
async fn conclude(
    tap: &TapContext,
    (mut client, upstream): (Client, Connected),
    mut live: Live,
    ending: Ending,
    leftover: Leftover,
) -> (Client, After) {
    match ending {
        Ending::Complete {
            client: keep,
            upstream: reusable,
        } => {
            let finished = live.close(leftover.sent);
            let next = match &mut client {
                Client::H1(socket) if keep => Early::pause(socket, leftover.surplus).await,
                _ => Some(Early::default()),
            };
            if reusable {
                tap.upstream.release(upstream);
            }
            tap.meter.finished(finished);
            match next {
                Some(next) if keep => return (client, After::Next(next)),
                None => return (client, After::Close),
                Some(_) => {}
            }
            // The answer may have come before all of the request had.
            client.linger().await;
            (client, After::Close)
        }
        Ending::ClientGone => {
            // Closed before the books are: the upstream should stop working at once.
            drop(upstream);
            live.client_left();
            client.cut();
            tap.meter.finished(live.close(leftover.sent));
            (client, After::Close)
        }
        Ending::Cut => {
            drop(upstream);
            client.cut();
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
            let client = pipe(client, upstream, &leftover.surplus, tap.kernel_stamps).await;
            tap.meter.finished(live.close(None));
            (client, After::Close)
        }
    }
}

async fn unanswered(
    tap: &TapContext,
    mut client: Client,
    mut live: Live,
    why: Why,
    leftover: Leftover,
) -> (Client, After) {
    let at = live.exchange.connection.upstream.clone();
    let fault = why.fault(tap, at.as_deref().unwrap_or_default());
    live.fail(Outcome::Failed, &fault.message);
    client.fault(tap, &fault, live.form(tap)).await;
    tap.meter.finished(live.close(leftover.sent));
    client.linger().await;
    (client, After::Close)
}

/// Passes bytes both ways until either side ends. Only HTTP/1 on both sides upgrades.
async fn pipe(client: Client, upstream: Connected, surplus: &[u8], kernel_stamps: bool) -> Client {
    let (near, far) = match (client, upstream.link) {
        (Client::H1(near), Link::H1 { socket, .. }) => (near, socket),
        (client, _) => return client,
    };
    let (mut near, mut far) = (near.into_stream(), far.into_stream());
    if far.write_all(surplus).await.is_ok() && far.flush().await.is_ok() {
        let _ = copy_bidirectional(&mut near, &mut far).await;
    }
    Client::H1(Socket::new(near, kernel_stamps, true))
}
