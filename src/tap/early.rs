//! Bytes of a client that were read before their turn.

use super::socket::Socket;
use record::stamp::Arrival;
use std::future::poll_fn;
use std::time::Duration;
use tokio::time::timeout;

/// Bytes of one read of a head.
const READ: usize = 8 * 1024;

/// For how long the books of an exchange stay open after its last byte went out. Long enough for that
/// byte to pass through a gateway to the tap on its other side, which may be served by this thread.
const PAUSE: Duration = Duration::from_millis(1);

/// See the module.
#[derive(Default)]
pub(crate) struct Early {
    pub(crate) bytes: Vec<u8>,
    /// Of their last read; `None` where that was during the exchange before.
    pub(crate) arrival: Option<Arrival>,
}

impl Early {
    /// Lets other connections of this thread go first, until the client's next bytes come or [`PAUSE`]
    /// is over. `surplus` is what came of them already. `None` where the client left.
    pub(crate) async fn pause(client: &mut Socket, surplus: Vec<u8>) -> Option<Self> {
        let mut early = Self {
            bytes: surplus,
            arrival: None,
        };
        if !early.bytes.is_empty() {
            return Some(early);
        }
        match timeout(PAUSE, early.read(client)).await {
            Err(_) | Ok(true) => {}
            Ok(false) => return None,
        }
        Some(early)
    }

    /// Reads on, once; `false` where the client left.
    pub(crate) async fn read(&mut self, client: &mut Socket) -> bool {
        let from = self.bytes.len();
        self.bytes.resize(from + READ, 0);
        let mut room = Room {
            early: self,
            length: from,
        };
        let target = &mut room.early.bytes[from..];
        match poll_fn(|cx| client.poll_read(cx, target)).await {
            Ok((count @ 1.., arrival)) => {
                room.length += count;
                room.early.arrival = Some(arrival);
                true
            }
            _ => false,
        }
    }
}

/// Cuts the bytes back to what was read, also where the read is given up.
struct Room<'a> {
    early: &'a mut Early,
    length: usize,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.early.bytes.truncate(self.length);
    }
}
