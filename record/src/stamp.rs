//! Instants at a tap: when bytes arrived (an interval) and when they left (a bracket).

use crate::clock::Nanos;
use serde::{Deserialize, Serialize};

/// How a hop's bytes were stamped. Bounds and calibration hold per class; classes are never pooled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StampClass {
    /// Cleartext HTTP/1: a stamp sits on the system call itself.
    Socket,
    /// HTTP/1 under TLS: decryption lies between the system call and the stamp.
    Tls,
    /// HTTP/2: reads come from, and writes go to, the connection's own task.
    H2,
}

impl StampClass {
    /// The word used in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::Tls => "tls",
            Self::H2 => "h2",
        }
    }
}

/// When the bytes of one read arrived: within `[earliest, latest()]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// The read returned.
    pub at: Nanos,
    /// The bytes cannot have arrived before this: the last read that drained the socket, or, for
    /// a read that waited, `at` less the tap's own lateness bound of the moment.
    pub earliest: Nanos,
    /// The kernel's receive stamp of the read's last segment, on the monotonic clock, where the
    /// hop is cleartext HTTP/1 and the kernel gave one.
    pub kernel: Option<Nanos>,
    /// The read was pending before it returned, so its bytes arrived just before.
    pub waited: bool,
}

impl Arrival {
    /// An arrival known only as the instant `at`, with nothing to bound it from below.
    #[must_use]
    pub fn instant(at: Nanos) -> Self {
        Self {
            at,
            earliest: at,
            kernel: None,
            waited: true,
        }
    }

    /// The latest that the bytes can have arrived, and the best estimate of when they did: the
    /// kernel's stamp where there is one, else the instant at which the read returned.
    #[must_use]
    pub fn latest(&self) -> Nanos {
        // A stamp past the read's return can only be error of the clock conversion.
        self.kernel.map_or(self.at, |kernel| kernel.min(self.at))
    }

    /// The earliest arrival, never later than [`Self::latest`].
    #[must_use]
    pub fn earliest(&self) -> Nanos {
        self.earliest.min(self.latest())
    }
}

/// A write: it began, it returned. The peer can have the bytes before the write returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Departure {
    /// Just before the first write call of these bytes.
    pub begin: Nanos,
    /// Just after the write call that took the last of them.
    pub end: Nanos,
    /// The socket refused bytes in between: the peer, not this host, set the pace.
    pub blocked: bool,
}

impl Departure {
    /// Nanoseconds for which the peer held this write back; 0 where it took the bytes at once.
    #[must_use]
    pub fn blocked_for(&self) -> u64 {
        if self.blocked {
            self.end.saturating_sub(self.begin)
        } else {
            0
        }
    }
}

/// The same bytes, read and passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passage {
    /// When they came in.
    pub arrival: Arrival,
    /// When they went out; `None` where they never did, or where the reader is their end.
    pub departure: Option<Departure>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_stamp_narrows_the_bound_but_never_leaves_it() {
        let arrival = Arrival {
            at: 100,
            earliest: 40,
            kernel: Some(90),
            waited: true,
        };
        assert_eq!((arrival.earliest(), arrival.latest()), (40, 90));
        let skewed = Arrival {
            kernel: Some(130),
            ..arrival
        };
        assert_eq!(skewed.latest(), 100);
        let before = Arrival {
            kernel: Some(30),
            ..arrival
        };
        assert_eq!((before.earliest(), before.latest()), (30, 30));
    }
}
