//! What drives a calibration: calls at once over raw sockets. It only drives; taps measure.

use anyhow::Context as _;
use record::client::ClientCall;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{Instant, timeout};

/// No call of a calibration is longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// What one call asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask {
    pub(super) tokens: u32,
    /// The engine's gap and its tokens a chunk, where they are not its script's.
    pub(super) pace: Option<(u64, u64)>,
}

impl Ask {
    fn body(self, salt: &str) -> String {
        let sim = match self.pace {
            Some((gap, chunk)) => {
                format!(r#","sim":{{"gap_us":{gap},"tokens_per_chunk":{chunk}}}"#)
            }
            None => String::new(),
        };
        format!(
            r#"{{"model":"m","stream":true,"stream_options":{{"include_usage":true}},"max_tokens":{},"messages":[{{"role":"user","content":"calibrate {salt}"}}]{sim}}}"#,
            self.tokens
        )
    }
}

/// One stream: `calls` calls in sequence on one connection, numbered from `first`.
pub(super) async fn stream(
    entry: SocketAddr,
    ask: Ask,
    cell: u32,
    first: u64,
    calls: u32,
) -> anyhow::Result<()> {
    let mut socket = connect(entry).await?;
    for n in 0..u64::from(calls) {
        call(&mut socket, ask, &ClientCall::key_of(cell, first + n), None).await?;
    }
    Ok(())
}

/// A connection on which one call follows another, over all cells.
pub(super) struct Probe {
    socket: TcpStream,
    next: u64,
}

impl Probe {
    /// Connects. Its calls are numbered from far above those of any stream.
    pub(super) async fn connect(entry: SocketAddr) -> anyhow::Result<Self> {
        Ok(Self {
            socket: connect(entry).await?,
            next: 1 << 32,
        })
    }

    /// One call, named as of `cell`.
    pub(super) async fn call(&mut self, ask: Ask, cell: u32) -> anyhow::Result<()> {
        self.next += 1;
        call(
            &mut self.socket,
            ask,
            &ClientCall::key_of(cell, self.next),
            None,
        )
        .await
    }
}

/// One call whose client reads `rate` bytes a second for `held`, then everything at once.
pub(super) async fn slow(
    entry: SocketAddr,
    ask: Ask,
    key: &str,
    rate: u32,
    held: Duration,
) -> anyhow::Result<()> {
    let socket = TcpSocket::new_v4()?;
    // A small window, so that what is not read stays with the tap and not in this kernel's buffers.
    socket.set_recv_buffer_size(16 * 1024)?;
    let mut socket = socket.connect(entry).await?;
    call(&mut socket, ask, key, Some((rate, Instant::now() + held))).await
}

async fn connect(entry: SocketAddr) -> anyhow::Result<TcpStream> {
    let socket = TcpStream::connect(entry)
        .await
        .with_context(|| format!("{entry}: the tap does not answer"))?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

async fn call(
    socket: &mut TcpStream,
    ask: Ask,
    key: &str,
    pace: Option<(u32, Instant)>,
) -> anyhow::Result<()> {
    let body = ask.body(key);
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: calibrate\r\ncontent-type: application/json\r\nx-hopscope-request: {key}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all((head + &body).as_bytes()).await?;
    timeout(PATIENCE, read_to_end(socket, pace))
        .await
        .context("a call took more than a minute")?
}

/// Reads until the last chunk of a chunked body.
async fn read_to_end(socket: &mut TcpStream, pace: Option<(u32, Instant)>) -> anyhow::Result<()> {
    const END: &[u8] = b"\r\n0\r\n\r\n";
    let mut buffer = vec![0_u8; 16 * 1024];
    let mut tail: Vec<u8> = Vec::new();
    let mut first = true;
    loop {
        let room = match pace {
            Some((rate, until)) if Instant::now() < until => {
                tokio::time::sleep(Duration::from_millis(10)).await;
                (rate as usize / 100).clamp(1, buffer.len())
            }
            _ => buffer.len(),
        };
        let count = socket.read(&mut buffer[..room]).await?;
        anyhow::ensure!(count > 0, "the connection ended inside a response");
        let refused = std::mem::take(&mut first) && !buffer.starts_with(b"HTTP/1.1 200");
        anyhow::ensure!(!refused, "the chain answered with another status than 200");
        tail.extend_from_slice(&buffer[..count]);
        if tail.ends_with(END) {
            return Ok(());
        }
        // Only the end is looked for: what is before it need not be kept.
        let keep = tail.len().saturating_sub(END.len());
        tail.drain(..keep);
    }
}
