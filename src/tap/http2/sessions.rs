//! Connections to upstreams that speak HTTP/2: opened, shared by many streams, given up when unused.

use super::io::{Noted, Reads};
use super::{CONNECTION_WINDOW, STREAM_WINDOW};
use crate::tap::socket::Socket;
use bytes::Bytes;
use futures_util::task::noop_waker_ref;
use h2::client::{Builder, SendRequest};
use parking_lot::Mutex;
use record::clock;
use record::stamp::Arrival;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// A connection that takes another stream.
#[derive(Clone)]
pub(crate) struct Session {
    pub(super) send: SendRequest<Bytes>,
    pub(super) reads: Reads,
    /// Requests on it are `https`.
    pub(super) tls: bool,
    /// One for every exchange that has a share, and one for the list of connections.
    shares: Arc<()>,
}

struct Open {
    address: SocketAddr,
    session: Session,
    used: Instant,
}

/// The connections of one thread to the servers of one tap.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<Vec<Open>>);

impl Session {
    fn streams(&self) -> usize {
        Arc::strong_count(&self.shares) - 1
    }

    /// Takes a stream now: `None` where the connection is at an end.
    fn ready(&mut self) -> Option<bool> {
        let mut cx = Context::from_waker(noop_waker_ref());
        match self.send.poll_ready(&mut cx) {
            Poll::Ready(Err(_)) => None,
            Poll::Pending => Some(false),
            Poll::Ready(Ok(())) => Some(self.streams() < self.send.current_max_send_streams()),
        }
    }
}

impl Sessions {
    /// A connection to `address` with room for a stream. What has ended, or was not used for `idle`,
    /// is given up on the way.
    pub(crate) fn get(&self, address: SocketAddr, idle: Duration) -> Option<Session> {
        let mut all = self.0.lock();
        all.retain_mut(|open| {
            let unused = open.session.streams() == 0 && open.used.elapsed() > idle;
            !unused && open.session.ready().is_some()
        });
        let open = all
            .iter_mut()
            .filter(|open| open.address == address)
            .find_map(|open| (open.session.ready() == Some(true)).then_some(open))?;
        open.used = Instant::now();
        Some(open.session.clone())
    }

    /// Begins HTTP/2 on a new connection.
    pub(crate) async fn open(
        &self,
        address: SocketAddr,
        socket: Socket,
        tls: bool,
    ) -> Result<Session, h2::Error> {
        let (io, reads) = Noted::new(socket, Vec::new(), Arrival::instant(clock::now()));
        let (send, connection) = Builder::new()
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .enable_push(false)
            .handshake(io)
            .await?;
        // Ends by itself once every handle is gone or the peer closes; its streams are told of an
        // error, so there is nothing to be done with it here.
        tokio::spawn(tokio::task::unconstrained(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%address, %error, "HTTP/2 connection to an upstream ended");
            }
        }));
        let session = Session {
            send,
            reads,
            tls,
            shares: Arc::new(()),
        };
        self.0.lock().push(Open {
            address,
            session: session.clone(),
            used: Instant::now(),
        });
        Ok(session)
    }
}
