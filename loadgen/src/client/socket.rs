//! A socket that notes when bytes went out and came in.
//!
//! The stamps sit on the system calls themselves. What the HTTP library gives out later, one frame
//! after the other, was read at the last of them: it does not read on before its frame was taken.

use record::clock::{Nanos, now};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Instants of one connection's system calls; 0 is not yet.
#[derive(Debug, Default)]
pub(super) struct Stamps {
    first_write: AtomicU64,
    last_read: AtomicU64,
    closed: AtomicU64,
}

fn some(at: &AtomicU64) -> Option<Nanos> {
    Some(at.load(Ordering::Relaxed)).filter(|at| *at > 0)
}

impl Stamps {
    /// Forgets the call before.
    pub(super) fn reset(&self) {
        for stamp in [&self.first_write, &self.last_read, &self.closed] {
            stamp.store(0, Ordering::Relaxed);
        }
    }

    /// Just before the first write call since the reset.
    pub(super) fn first_write(&self) -> Option<Nanos> {
        some(&self.first_write)
    }

    /// The last read that brought bytes returned.
    pub(super) fn last_read(&self) -> Option<Nanos> {
        some(&self.last_read)
    }

    /// A read found the end of the connection.
    pub(super) fn closed(&self) -> Option<Nanos> {
        some(&self.closed)
    }

    fn about_to_write(&self) {
        if self.first_write.load(Ordering::Relaxed) == 0 {
            self.first_write.store(now(), Ordering::Relaxed);
        }
    }
}

/// See the module.
pub(super) struct StampedSocket {
    socket: Arc<TcpStream>,
    stamps: Arc<Stamps>,
}

impl StampedSocket {
    pub(super) fn new(socket: Arc<TcpStream>, stamps: Arc<Stamps>) -> Self {
        Self { socket, stamps }
    }
}

impl AsyncRead for StampedSocket {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.socket.poll_read_ready(cx))?;
            match self.socket.try_read_buf(buf) {
                Ok(0) => {
                    self.stamps.closed.store(now(), Ordering::Relaxed);
                    return Poll::Ready(Ok(()));
                }
                Ok(_) => {
                    self.stamps.last_read.store(now(), Ordering::Relaxed);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for StampedSocket {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.socket.poll_write_ready(cx))?;
            self.stamps.about_to_write();
            match self.socket.try_write_vectored(slices) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                result => return Poll::Ready(result),
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The connection ends when the last handle of the socket is dropped, at once after this.
        Poll::Ready(Ok(()))
    }
}
