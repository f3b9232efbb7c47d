//! The response side of one exchange and the ways in which it ends.

use std::io;
use std::time::SystemTime;

use crate::clock::Alarm;
use crate::http::{Conn, Framing, Headers, Outlet};
use crate::truth::{Mark, Outcome, Recorder};

/// What becomes of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    KeepAlive,
    Close,
    Reset,
}

/// An exchange that ended before its answer did.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stop {
    pub(super) outcome: Outcome,
    pub(super) next: Next,
}

impl Stop {
    /// An injected fault.
    pub(super) fn fault(next: Next) -> Self {
        Self {
            outcome: Outcome::Fault,
            next,
        }
    }

    /// The client closed.
    pub(super) fn gone() -> Self {
        Self {
            outcome: Outcome::ClientGone,
            next: Next::Close,
        }
    }
}

/// How an exchange ended.
pub(super) type Ending = Result<(Outcome, Next), Stop>;

/// Everything needed to answer.
pub(super) struct Reply<'c> {
    pub(super) conn: &'c mut Conn,
    pub(super) alarm: &'c mut Alarm,
    pub(super) recorder: Recorder,
    pub(super) outlet: Outlet,
    /// Minor version of the request.
    pub(super) minor: u8,
    pub(super) keep_alive: bool,
    /// Errors are in the shape of AWS.
    pub(super) aws: bool,
}

impl Reply<'_> {
    /// Begins a body with this framing.
    pub(super) fn open(&mut self, framing: Framing) {
        self.outlet = Outlet::new(framing);
    }

    /// When the last byte of the request was read, ns.
    pub(super) fn read_at(&self) -> u64 {
        let read = self.recorder.truth.mark(Mark::RequestBody);
        read.and_then(|mark| mark.read_at).unwrap_or_default()
    }

    /// The fields that vLLM sends with every answer.
    pub(super) fn headers(&self, content_type: &str) -> Headers {
        let mut headers = Headers(vec![
            (
                "date".to_owned(),
                httpdate::fmt_http_date(SystemTime::now()).into_bytes(),
            ),
            ("server".to_owned(), b"uvicorn".to_vec()),
            ("content-type".to_owned(), content_type.as_bytes().to_vec()),
        ]);
        if !self.keep_alive {
            headers.0.push(("connection".to_owned(), b"close".to_vec()));
        }
        headers
    }

    /// Promises to keep the connection open, in so many words, for an engine that then closes it.
    pub(super) fn promise_keep_alive(headers: &mut Headers) {
        for (name, value) in [
            ("connection", "keep-alive"),
            ("keep-alive", "timeout=5, max=100"),
        ] {
            headers.0.push((name.to_owned(), value.as_bytes().to_vec()));
        }
    }

    /// Waits for an instant, or for the client to go.
    pub(super) async fn wait_until(&mut self, deadline: u64) -> Result<(), Stop> {
        unless_gone(self.conn, self.alarm.until(deadline)).await
    }

    /// Waits for something, or for the client to go.
    pub(super) async fn unless_gone<T>(
        &mut self,
        wait: impl Future<Output = io::Result<T>>,
    ) -> Result<T, Stop> {
        unless_gone(self.conn, wait).await
    }

    /// Writes what waits in the outlet.
    pub(super) async fn flush(&mut self) -> Result<(), Stop> {
        let truth = &mut self.recorder.truth;
        match self.outlet.flush(self.conn, truth).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Stop::gone()),
        }
    }
}

async fn unless_gone<T>(
    conn: &mut Conn,
    wait: impl Future<Output = io::Result<T>>,
) -> Result<T, Stop> {
    tokio::select! {
        biased;
        () = conn.gone() => Err(Stop::gone()),
        came = wait => came.map_err(|_: io::Error| Stop {
            outcome: Outcome::Stopped,
            next: Next::Close,
        }),
    }
}
