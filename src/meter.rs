//! What happens to an exchange once it is over: one bounded channel, one thread behind it.
//!
//! Nothing behind the channel can slow or break traffic: where it is full, the record is dropped
//! and counted.

mod facts;
mod sinks;
mod worker;

pub use sinks::{Feed, LiveCall, LiveLegs};
pub use worker::{Meter, MeterOptions};

use record::exchange::Exchange;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use wire::Dialect;

/// An exchange on its way to the meter.
pub(crate) struct Finished {
    pub(crate) exchange: Box<Exchange>,
    /// The request as it was sent upstream: bytes, where its body begins, whether it is chunked.
    /// `None` where it was too long to keep.
    pub(crate) sent: Option<(Vec<u8>, usize, bool)>,
    pub(crate) dialect: Dialect,
}

/// Counters that the taps share.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Exchanges begun.
    pub(crate) begun: AtomicU64,
    /// Exchanges under way.
    pub(crate) active: AtomicU64,
    /// Records dropped because the channel was full.
    pub(crate) lost: AtomicU64,
    /// Requests that were none.
    pub(crate) malformed: AtomicU64,
    /// Connections open.
    pub(crate) connections: AtomicU64,
}

/// The taps' end of the channel.
#[derive(Clone)]
pub(crate) struct MeterHandle {
    sender: SyncSender<Finished>,
    pub(crate) tally: Arc<Tally>,
}

/// Counts an exchange, or a connection, as under way for as long as it lives.
pub(crate) struct Underway {
    tally: Arc<Tally>,
    connection: bool,
}

impl Drop for Underway {
    fn drop(&mut self) {
        let counter = if self.connection {
            &self.tally.connections
        } else {
            &self.tally.active
        };
        counter.fetch_sub(1, Ordering::Relaxed);
    }
}

impl MeterHandle {
    /// Hands a record over; never waits.
    pub(crate) fn finished(&self, finished: Finished) {
        match self.sender.try_send(finished) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.tally.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// An exchange begins.
    pub(crate) fn exchange_begins(&self) -> Underway {
        self.tally.begun.fetch_add(1, Ordering::Relaxed);
        self.tally.active.fetch_add(1, Ordering::Relaxed);
        Underway {
            tally: self.tally.clone(),
            connection: false,
        }
    }

    /// A connection was accepted.
    pub(crate) fn connection_begins(&self) -> Underway {
        self.tally.connections.fetch_add(1, Ordering::Relaxed);
        Underway {
            tally: self.tally.clone(),
            connection: true,
        }
    }

    /// Something came that was no request.
    pub(crate) fn malformed_request(&self) {
        self.tally.malformed.fetch_add(1, Ordering::Relaxed);
    }
}
