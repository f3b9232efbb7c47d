//! The streaming server: each stream gets one token every gap, its send stamp inside.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use anyhow::{Context, Result, bail};
use memchr::memmem;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;

use crate::clock::now;
use crate::samples::Delays;

/// Longest request that is accepted, in bytes.
const REQUEST_LIMIT: usize = 16 * 1024;
/// Most tokens written before the loop looks for arrivals again: a read must not wait for a burst.
const WRITES_AT_ONCE: usize = 4;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
    cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n";
const FINISH: &str = "data: {\"id\":\"chatcmpl-hop-delay\",\"object\":\"chat.completion.chunk\",\
    \"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\
    \"finish_reason\":\"stop\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";
const LAST_CHUNK: &str = "0\r\n\r\n";
const TOKEN_BEFORE: &str = "data: {\"id\":\"chatcmpl-hop-delay\",\"object\":\"chat.completion.chunk\",\
    \"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"";
const TOKEN_AFTER: &str = " \"}}]}\n\n";

/// When the streams of a block send, relative to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Phases {
    /// Each at a random phase of its own.
    Random,
    /// All at the same instant, as an engine does that decodes a batch step by step.
    Step,
}

struct Connection {
    socket: TcpStream,
    request: Vec<u8>,
    streaming: bool,
}

/// The server of a run. It has no thread: the loop of a block calls it.
pub(crate) struct Engine {
    listener: TcpListener,
    connections: Vec<Option<Connection>>,
    due: BinaryHeap<Reverse<(u64, usize)>>,
    gap: u64,
    phases: Phases,
    /// Streams end at their next token instead of sending it.
    pub(crate) ending: bool,
    /// Tokens written since the block began.
    pub(crate) sent: u64,
    /// How late tokens were written against their schedule.
    pub(crate) lag: Delays,
}

impl Engine {
    /// Listens on a free port of the loopback. `gap` in nanoseconds.
    ///
    /// # Errors
    /// When no port can be had.
    pub(crate) fn new(gap: u64, phases: Phases) -> Result<Self> {
        let listener =
            TcpListener::bind("127.0.0.1:0").context("the engine cannot listen on 127.0.0.1")?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            connections: Vec::new(),
            due: BinaryHeap::new(),
            gap,
            phases,
            ending: false,
            sent: 0,
            lag: Delays::new()?,
        })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub(crate) fn address(&self) -> Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Adds the listening socket to a poller.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn register(&self, poller: &OwnedFd, key: u64) -> Result<()> {
        epoll::add(
            poller,
            &self.listener,
            EventData::new_u64(key),
            EventFlags::IN,
        )?;
        Ok(())
    }

    /// Forgets what the last block left behind; connections that proxies keep stay open.
    pub(crate) fn begin_block(&mut self) {
        for connection in &mut self.connections {
            if connection.as_ref().is_some_and(|c| c.streaming) {
                *connection = None;
            }
        }
        self.due.clear();
        self.ending = false;
        self.sent = 0;
        self.lag.clear();
    }

    /// Accepts what waits; connection number n is polled under `base + n`.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub(crate) fn accept(&mut self, poller: &OwnedFd, base: u64) -> Result<()> {
        loop {
            let socket = match self.listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error).context("the engine cannot accept"),
            };
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
            let free = self.connections.iter().position(Option::is_none);
            let number = free.unwrap_or(self.connections.len());
            let key = EventData::new_u64(base + number as u64);
            epoll::add(poller, &socket, key, EventFlags::IN)?;
            let connection = Some(Connection {
                socket,
                request: Vec::new(),
                streaming: false,
            });
            match self.connections.get_mut(number) {
                Some(place) => *place = connection,
                None => self.connections.push(connection),
            }
        }
    }

    /// Reads from connection `number`: a whole POST starts a stream.
    ///
    /// # Errors
    /// When a request is too long or cannot be answered.
    pub(crate) fn readable(&mut self, number: usize, buffer: &mut [u8]) -> Result<()> {
        let Some(connection) = self.connections.get_mut(number).and_then(Option::as_mut) else {
            return Ok(());
        };
        match connection.socket.read(buffer) {
            Ok(0) => self.connections[number] = None,
            Ok(count) => {
                connection.request.extend_from_slice(&buffer[..count]);
                if connection.request.len() > REQUEST_LIMIT {
                    bail!("a request longer than {REQUEST_LIMIT} bytes reached the engine");
                }
                self.answer(number)?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.connections[number] = None,
        }
        Ok(())
    }

    fn answer(&mut self, number: usize) -> Result<()> {
        let Some(connection) = self.connections.get_mut(number).and_then(Option::as_mut) else {
            return Ok(());
        };
        if connection.streaming || !is_whole(&connection.request) {
            return Ok(());
        }
        let is_call = connection.request.starts_with(b"POST ");
        connection.request.clear();
        if !is_call {
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
            connection.socket.write_all(answer)?;
            return Ok(());
        }
        connection.socket.write_all(HEAD)?;
        connection.streaming = true;
        let time = now();
        let first = match self.phases {
            Phases::Random => time + fastrand::u64(0..self.gap),
            Phases::Step => (time / self.gap + 1) * self.gap,
        };
        self.due.push(Reverse((first, number)));
        Ok(())
    }

    /// Writes the tokens that are due.
    ///
    /// # Errors
    /// When a socket takes no more: the subject does not keep up.
    pub(crate) fn write_due(&mut self) -> Result<()> {
        for _ in 0..WRITES_AT_ONCE {
            let time = now();
            match self.due.peek() {
                Some(Reverse((due, _))) if *due <= time => {}
                _ => return Ok(()),
            }
            let Some(Reverse((due, number))) = self.due.pop() else {
                return Ok(());
            };
            self.write_token(due, number)?;
        }
        Ok(())
    }

    fn write_token(&mut self, due: u64, number: usize) -> Result<()> {
        let Some(connection) = self.connections.get_mut(number).and_then(Option::as_mut) else {
            bail!("a stream was cut while it ran");
        };
        if self.ending {
            connection.streaming = false;
            return write_whole(&connection.socket, &end());
        }
        let stamp = now();
        let token = chunk(&format!("{TOKEN_BEFORE}{stamp:020}{TOKEN_AFTER}"));
        write_whole(&connection.socket, &token)?;
        self.sent += 1;
        self.lag.add(stamp.saturating_sub(due));
        self.due.push(Reverse((due + self.gap, number)));
        Ok(())
    }
}

fn chunk(event: &str) -> String {
    format!("{:x}\r\n{event}\r\n", event.len())
}

fn end() -> String {
    chunk(FINISH) + &chunk(DONE) + LAST_CHUNK
}

fn write_whole(mut socket: &TcpStream, text: &str) -> Result<()> {
    let count = socket
        .write(text.as_bytes())
        .context("the engine cannot write a token")?;
    if count < text.len() {
        bail!("the engine's socket is full: the subject does not read as fast as tokens are sent");
    }
    Ok(())
}

/// True when the head and the announced body are there (a chunked body ends with its last chunk).
fn is_whole(request: &[u8]) -> bool {
    let Some(end) = memmem::find(request, b"\r\n\r\n") else {
        return false;
    };
    let head = String::from_utf8_lossy(&request[..end]).to_ascii_lowercase();
    if head.contains("transfer-encoding: chunked") {
        return request.ends_with(b"0\r\n\r\n");
    }
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .and_then(|value| value.trim().parse::<usize>().ok())
        .unwrap_or(0);
    request.len() >= end + 4 + length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_whole_with_its_body() {
        assert!(is_whole(b"GET / HTTP/1.1\r\n\r\n"));
        assert!(!is_whole(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{"));
        assert!(is_whole(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"));
        let chunked = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n";
        assert!(is_whole(chunked));
        assert!(!is_whole(&chunked[..chunked.len() - 5]));
    }

    #[test]
    fn a_stream_is_framed_rightly() {
        let mut body = crate::body::Body::new();
        body.feed(HEAD, |_| ()).unwrap();
        let token = chunk(&format!("{TOKEN_BEFORE}{:020}{TOKEN_AFTER}", 42));
        let mut seen = Vec::new();
        body.feed(token.as_bytes(), |stamp| seen.push(stamp))
            .unwrap();
        assert_eq!(seen, [42]);
        body.feed(end().as_bytes(), |_| ()).unwrap();
        assert!(body.is_done());
    }
}
