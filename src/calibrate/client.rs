//! What drives a calibration: calls at once over raw sockets. It only drives; taps measure.

use super::samples::PROBE;
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
    /// Microseconds between chunks, and tokens of one.
    pub(super) pace: (u64, u64),
    /// Microseconds between the pieces of the stream's end; 0: back to back.
    pub(super) end_gap: u64,
    /// Answers side by side in one stream.
    pub(super) choices: u32,
}

impl Ask {
    /// The call that opens one of `streams` streams: so long that all of them overlap.
    fn first(streams: u32) -> Self {
        Self {
            tokens: 1 + streams / 20,
            pace: (16_000, 1),
            end_gap: 0,
            choices: 1,
        }
    }

    fn body(self, salt: &str) -> String {
        let (gap, chunk) = self.pace;
        format!(
            r#"{{"model":"m","stream":true,"stream_options":{{"include_usage":true}},"n":{},"max_tokens":{},"messages":[{{"role":"user","content":"calibrate {salt}"}}],"sim":{{"gap_us":{gap},"end_gap_us":{},"tokens_per_chunk":{chunk}}}}}"#,
            self.choices, self.tokens, self.end_gap
        )
    }
}

/// A client connection whose way through the chain is open.
pub(super) struct Stream(TcpStream);

impl Stream {
    /// Connects, as one of `streams`, and makes a call without a name, which is in no figure: it
    /// opens the connections further in, so that the calls after it find them used.
    pub(super) async fn open(entry: SocketAddr, streams: u32) -> anyhow::Result<Self> {
        Self::open_on(TcpSocket::new_v4()?, entry, streams).await
    }

    async fn open_on(socket: TcpSocket, entry: SocketAddr, streams: u32) -> anyhow::Result<Self> {
        let mut socket = socket
            .connect(entry)
            .await
            .with_context(|| format!("{entry}: the tap does not answer"))?;
        socket.set_nodelay(true)?;
        call(&mut socket, Ask::first(streams), None, None).await?;
        Ok(Self(socket))
    }

    /// `calls` calls of `cell`, one after the other, numbered from `first`.
    pub(super) async fn run(
        mut self,
        ask: Ask,
        cell: u32,
        first: u64,
        calls: u32,
    ) -> anyhow::Result<()> {
        for n in first..first + u64::from(calls) {
            let key = ClientCall::key_of(cell, n);
            call(&mut self.0, ask, Some(&key), None).await?;
        }
        Ok(())
    }
}

/// A stream on which one call follows another, over all cells.
pub(super) struct Probe {
    stream: Stream,
    next: u64,
}

impl Probe {
    /// Opens its stream.
    pub(super) async fn open(entry: SocketAddr) -> anyhow::Result<Self> {
        Ok(Self {
            stream: Stream::open(entry, 1).await?,
            next: PROBE,
        })
    }

    /// One call, named as of `cell`.
    pub(super) async fn call(&mut self, ask: Ask, cell: u32) -> anyhow::Result<()> {
        self.next += 1;
        let key = ClientCall::key_of(cell, self.next);
        call(&mut self.stream.0, ask, Some(&key), None).await
    }
}

/// One call of `cell` whose client reads `rate` bytes a second for `held`, then everything at once.
pub(super) async fn slow(
    entry: SocketAddr,
    ask: Ask,
    cell: u32,
    rate: u32,
    held: Duration,
) -> anyhow::Result<()> {
    let socket = TcpSocket::new_v4()?;
    // A small window, so that what is not read stays with the tap and not in this kernel's buffers.
    socket.set_recv_buffer_size(16 * 1024)?;
    let Stream(mut socket) = Stream::open_on(socket, entry, 1).await?;
    let key = ClientCall::key_of(cell, 0);
    let pace = Some((rate, Instant::now() + held));
    call(&mut socket, ask, Some(&key), pace).await
}

async fn call(
    socket: &mut TcpStream,
    ask: Ask,
    key: Option<&str>,
    pace: Option<(u32, Instant)>,
) -> anyhow::Result<()> {
    let body = ask.body(key.unwrap_or("first"));
    let name = key.map_or_else(String::new, |key| format!("x-hopscope-request: {key}\r\n"));
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: calibrate\r\ncontent-type: application/json\r\n{name}content-length: {}\r\n\r\n",
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
