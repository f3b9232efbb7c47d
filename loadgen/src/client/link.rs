//! One connection, driven by the call that uses it, and the stack of idle ones.

use super::socket::{StampedSocket, Stamps};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{Connection, SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustix::net::{RecvFlags, recv};
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::net::TcpStream;

type Http1 = Connection<TokioIo<StampedSocket>, Full<Bytes>>;

/// A connection. Nothing drives it but the call that holds it.
pub(super) struct Link {
    pub(super) sender: SendRequest<Full<Bytes>>,
    connection: Pin<Box<Http1>>,
    /// The connection's own future ended: nothing more will come or go.
    over: bool,
    socket: Arc<TcpStream>,
    pub(super) stamps: Arc<Stamps>,
    pub(super) reused: bool,
}

impl Link {
    /// Connects to `address`.
    pub(super) async fn open(address: SocketAddr) -> Result<Self, String> {
        let socket = TcpStream::connect(address)
            .await
            .map_err(|error| error.to_string())?;
        socket
            .set_nodelay(true)
            .map_err(|error| error.to_string())?;
        let socket = Arc::new(socket);
        let stamps = Arc::new(Stamps::default());
        let io = TokioIo::new(StampedSocket::new(socket.clone(), stamps.clone()));
        let (sender, connection) = handshake(io).await.map_err(|error| error.to_string())?;
        Ok(Self {
            sender,
            connection: Box::pin(connection),
            over: false,
            socket,
            stamps,
            reused: false,
        })
    }

    /// Moves bytes both ways, as far as they go now.
    pub(super) fn drive(&mut self, cx: &mut Context<'_>) {
        if !self.over && self.connection.as_mut().poll(cx).is_ready() {
            // An error of the connection comes out at the call as well.
            self.over = true;
        }
    }

    /// The kernel has neither an end nor stray bytes for it: it can carry another call.
    fn idle(&self) -> bool {
        let mut byte = [0_u8; 1];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let peeked = recv(&*self.socket, &mut byte, flags);
        !self.over && peeked.is_err_and(|error| error == rustix::io::Errno::AGAIN)
    }
}

/// Idle connections of one cell on one lane. Never waited for: none idle, a new one is made.
#[derive(Default)]
pub(super) struct Idle {
    links: Mutex<Vec<Link>>,
}

impl Idle {
    /// The one used last that still lives; those found closed are dropped.
    pub(super) fn take(&self) -> Option<Link> {
        loop {
            let mut link = self.links.lock().ok()?.pop()?;
            if link.idle() {
                link.reused = true;
                link.stamps.reset();
                return Some(link);
            }
        }
    }

    /// Gives a connection back after its call ended, if it can carry another.
    pub(super) async fn give(&self, mut link: Link) {
        std::future::poll_fn(|cx| {
            link.drive(cx);
            Poll::Ready(())
        })
        .await;
        if !link.over
            && link.sender.is_ready()
            && let Ok(mut links) = self.links.lock()
        {
            links.push(link);
        }
    }
}
