//! A relay of bytes without a delay: the component of the control that tells what two taps, two hops and
//! one wake-up cost.
//!
//! Models: accept, connect, one read → one write in either direction, half-closes and resets passed on.
//! Its truth has the stamps of every read, and, since it is placed where a gateway would be, the marks and
//! tokens of the HTTP/1 exchanges that went through (one request at a time per connection, cleartext).
//! Bytes are looked at only after they were written.
//!
//! Does not model: anything that a gateway does. A write that the peer does not take holds that direction
//! back.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream};

use crate::accept::accept;
use crate::clock::now;
use crate::truth::{Direction, Log};

mod observe;
mod options;
#[cfg(test)]
mod tests;

use observe::{Observer, Stamps};
pub use options::RelayOptions;

/// Large enough that a burst of events stays one read.
const READ_SIZE: usize = 64 * 1024;

/// Serves a relay on `listener` until `stop` resolves; open connections are then cut and recorded as
/// stopped.
///
/// # Errors
/// None at present; a failed connection concerns only itself.
pub async fn serve(
    listener: TcpListener,
    options: RelayOptions,
    log: Log,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let shared = Arc::new((options, log, AtomicU64::new(0)));
    accept(listener, stop, |stream| {
        let shared = Arc::clone(&shared);
        async move {
            let (options, log, connections) = &*shared;
            let number = connections.fetch_add(1, Ordering::Relaxed) + 1;
            if let Err(error) = connection(options, log, number, stream).await {
                tracing::debug!(%error, "relay stand-in ended a connection");
            }
        }
    })
    .await
}

async fn connection(
    options: &RelayOptions,
    log: &Log,
    number: u64,
    mut client: TcpStream,
) -> io::Result<()> {
    let mut upstream = match TcpStream::connect(&options.upstream).await {
        Ok(upstream) => upstream,
        Err(error) => {
            client.set_zero_linger()?;
            let address = &options.upstream;
            return Err(io::Error::new(
                error.kind(),
                format!("cannot reach {address}: {error}"),
            ));
        }
    };
    client.set_nodelay(true)?;
    upstream.set_nodelay(true)?;
    // The lock is never contended: both directions run in this one task.
    let observer = Mutex::new(Observer::new(options, log, number));
    let passed = {
        let (client_read, client_write) = client.split();
        let (upstream_read, upstream_write) = upstream.split();
        tokio::try_join!(
            pass(Direction::Up, client_read, upstream_write, &observer),
            pass(Direction::Down, upstream_read, client_write, &observer),
        )
    };
    if passed.is_err() {
        client.set_zero_linger()?;
        upstream.set_zero_linger()?;
    }
    passed.map(|_| ())
}

async fn pass(
    direction: Direction,
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    observer: &Mutex<Observer>,
) -> io::Result<()> {
    let mut buffer = vec![0; READ_SIZE];
    let ended = |failed| {
        let mut observer = observer.lock().unwrap_or_else(PoisonError::into_inner);
        observer.ended(direction, failed);
    };
    loop {
        // Returns in the same poll as its read call.
        let read = from.read(&mut buffer).await;
        let read_at = now();
        let count = read.inspect_err(|_| ended(true))?;
        if count == 0 {
            ended(false);
            return to.shutdown().await;
        }
        let bytes = &buffer[..count];
        // It is the other side that does not take these bytes: its own read tells.
        let (write_begin, write_end) = write(&to, bytes).await?;
        let stamps = Stamps {
            read_at,
            write_begin,
            write_end,
        };
        let mut observer = observer.lock().unwrap_or_else(PoisonError::into_inner);
        observer.passed(direction, bytes, stamps);
    }
}

async fn write(to: &WriteHalf<'_>, bytes: &[u8]) -> io::Result<(u64, u64)> {
    let begin = now();
    let mut sent = 0;
    while sent < bytes.len() {
        match to.try_write(&bytes[sent..]) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => sent += count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => to.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok((begin, now()))
}
