//! The client: open streams, and the delay of each token that they receive.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, bail};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::OwnedFd;

use crate::body::Body;
use crate::clock::now;
use crate::samples::Delays;

struct Call {
    socket: TcpStream,
    body: Body,
}

/// The instants between which tokens count, by their send stamp.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// The client's side of one block.
pub(crate) struct Calls {
    calls: Vec<Option<Call>>,
    /// Calls whose end was read.
    pub(crate) finished: usize,
    /// Tokens received, in and out of the window.
    pub(crate) received: u64,
    /// Delay from a token's send stamp to the return of the read that completed it.
    pub(crate) delays: Delays,
    /// Tokens of the window that came with an earlier token of their stream in one read.
    pub(crate) joined: u64,
}

impl Calls {
    /// None open yet.
    ///
    /// # Errors
    /// Never in practice: the histogram's precision is fixed.
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            calls: Vec::new(),
            finished: 0,
            received: 0,
            delays: Delays::new()?,
            joined: 0,
        })
    }

    /// Calls opened so far.
    pub(crate) fn opened(&self) -> usize {
        self.calls.len()
    }

    /// Opens one call, polled under `base` + its number.
    ///
    /// # Errors
    /// When the address refuses.
    pub(crate) fn open(&mut self, to: SocketAddr, poller: &OwnedFd, base: u64) -> Result<()> {
        let mut socket =
            TcpStream::connect(to).with_context(|| format!("nothing answers at {to}"))?;
        socket.set_nodelay(true)?;
        let body = r#"{"model":"m","stream":true,"messages":[{"role":"user","content":"go"}]}"#;
        write!(
            socket,
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {to}\r\nauthorization: Bearer none\r\n\
             content-type: application/json\r\naccept: text/event-stream\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        socket.set_nonblocking(true)?;
        let key = EventData::new_u64(base + self.calls.len() as u64);
        epoll::add(poller, &socket, key, EventFlags::IN)?;
        self.calls.push(Some(Call {
            socket,
            body: Body::new(),
        }));
        Ok(())
    }

    /// Reads once from call `number` and counts the tokens whose send stamp lies in the window.
    ///
    /// # Errors
    /// When the call is cut or its response is wrong.
    pub(crate) fn readable(
        &mut self,
        number: usize,
        buffer: &mut [u8],
        window: Window,
    ) -> Result<()> {
        let Some(call) = self.calls.get_mut(number).and_then(Option::as_mut) else {
            return Ok(());
        };
        let count = match call.socket.read(buffer) {
            Ok(0) => bail!("the proxy closed a stream before its end"),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error).context("a stream broke"),
        };
        let read = now();
        let mut in_read = 0_u64;
        let (received, delays) = (&mut self.received, &mut self.delays);
        call.body.feed(&buffer[..count], |stamp| {
            *received += 1;
            if (window.begin..window.end).contains(&stamp) {
                in_read += 1;
                delays.add(read.saturating_sub(stamp));
            }
        })?;
        self.joined += in_read.saturating_sub(1);
        if call.body.is_done() {
            self.calls[number] = None;
            self.finished += 1;
        }
        Ok(())
    }
}
