//! One TCP connection, read and written at the system call.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::{BodyDecoder, Framing, HttpError, MAX_BODY, MAX_HEAD, RequestHead, ResponseHead};
use crate::clock::now;

const READ_SIZE: usize = 16 * 1024;

/// When a write happened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written {
    /// Immediately before the first write call.
    pub(crate) begin: u64,
    /// Immediately before the call that took the last byte; differs from `begin` only for large or
    /// blocked writes.
    pub(crate) last_begin: u64,
    /// Right after the call that took the last byte.
    pub(crate) end: u64,
}

/// A connection and what was read from it but not yet used.
pub(crate) struct Conn {
    stream: TcpStream,
    inbox: Vec<u8>,
    used: usize,
    /// When the latest read call that gave bytes (or the end) returned.
    pub(crate) read_at: u64,
}

impl Conn {
    /// Takes over a connected stream and turns Nagle's algorithm off.
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            inbox: Vec::new(),
            used: 0,
            read_at: 0,
        })
    }

    /// Bytes read and not yet used.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.inbox[self.used..]
    }

    /// Marks `count` of the pending bytes as used.
    pub(crate) fn consume(&mut self, count: usize) {
        self.used += count;
        if self.used >= self.inbox.len() {
            self.inbox.clear();
            self.used = 0;
        }
    }

    /// One read call that gave something: the bytes appended, 0 at the end. May be dropped.
    pub(crate) async fn fill(&mut self) -> io::Result<usize> {
        if self.used > READ_SIZE {
            self.inbox.drain(..self.used);
            self.used = 0;
        }
        self.inbox.reserve(READ_SIZE);
        // Returns in the same poll as its read call.
        let read = self.stream.read_buf(&mut self.inbox).await;
        self.read_at = now();
        read
    }

    /// Resolves when the peer has gone. Bytes that come meanwhile are kept, up to one head's worth.
    pub(crate) async fn gone(&mut self) {
        while self.pending().len() < MAX_HEAD {
            if !matches!(self.fill().await, Ok(1..)) {
                return;
            }
        }
        std::future::pending::<()>().await;
    }

    /// Writes everything.
    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<Written> {
        let begin = now();
        let mut last_begin = begin;
        let mut sent = 0;
        loop {
            match self.stream.try_write(&bytes[sent..]) {
                Ok(0) if sent < bytes.len() => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.stream.writable().await?;
                }
                Err(error) => return Err(error),
            }
            if sent >= bytes.len() {
                return Ok(Written {
                    begin,
                    last_begin,
                    end: now(),
                });
            }
            last_begin = now();
        }
    }

    /// Sends a FIN and drops the connection.
    pub(crate) async fn close(mut self) {
        // A failure means that the peer has closed first, which is as good.
        let _ = self.stream.shutdown().await;
    }

    /// Drops the connection with a reset instead of a FIN.
    pub(crate) fn reset(self) {
        if let Err(error) = self.stream.set_zero_linger() {
            tracing::warn!(%error, "connection is closed without the reset that was asked for");
        }
    }

    /// Whether an idle connection has neither bytes nor an end waiting.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let mut byte = [0_u8; 1];
        self.pending().is_empty()
            && matches!(self.stream.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Reads a request head; `None` when the peer closed between requests.
    pub(crate) async fn request_head(&mut self) -> Result<Option<RequestHead>, HttpError> {
        loop {
            if let Some((head, length)) = RequestHead::parse(self.pending())? {
                self.consume(length);
                return Ok(Some(head));
            }
            if self.more_of_a_head().await? == 0 {
                return match self.pending() {
                    [] => Ok(None),
                    _ => Err(HttpError::Truncated),
                };
            }
        }
    }

    /// Reads a response head, passing over informational ones. `Truncated` when the peer closed.
    pub(crate) async fn response_head(&mut self) -> Result<ResponseHead, HttpError> {
        loop {
            if let Some((head, length)) = ResponseHead::parse(self.pending())? {
                self.consume(length);
                if !head.is_informational() {
                    return Ok(head);
                }
            } else if self.more_of_a_head().await? == 0 {
                return Err(HttpError::Truncated);
            }
        }
    }

    async fn more_of_a_head(&mut self) -> Result<usize, HttpError> {
        if self.pending().len() >= MAX_HEAD {
            return Err(HttpError::HeadTooLarge);
        }
        Ok(self.fill().await?)
    }

    /// Reads a whole body. Also tells when the read with its last byte returned: framing that comes
    /// later (the last chunk of a chunked body) does not move that instant. With `bytes_per_second`
    /// it reads slowly, so that the sender blocks.
    pub(crate) async fn body(
        &mut self,
        framing: Framing,
        bytes_per_second: Option<u64>,
    ) -> Result<(Vec<u8>, u64), HttpError> {
        let mut decoder = BodyDecoder::new(framing);
        let mut body = Vec::new();
        let mut last_byte_at = self.read_at;
        loop {
            let before = body.len();
            let used = decoder.feed(self.pending(), &mut body)?;
            self.consume(used);
            if body.len() > before {
                last_byte_at = self.read_at;
            }
            if body.len() > MAX_BODY {
                return Err(HttpError::BodyTooLarge);
            }
            if decoder.is_done() {
                return Ok((body, last_byte_at));
            }
            if let Some(rate) = bytes_per_second {
                let seconds = (body.len() - before) as f64 / rate.max(1) as f64;
                tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
            }
            if self.fill().await? == 0 {
                decoder.end()?;
            }
        }
    }
}
