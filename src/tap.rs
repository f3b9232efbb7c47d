//! The proxy: one listening socket a hop, and the relay behind it.
//!
//! The way of a token: `relay` reads it from the upstream (stamp), writes it to the client
//! (stamps), then hands the bytes to `live`, which decodes them into the exchange's timeline.

mod aws;
mod bearer;
mod connection;
mod context;
mod crossing;
mod early;
mod ending;
mod exchange;
mod fault;
mod framing;
mod head;
mod http2;
mod live;
mod passing;
mod patience;
mod portion;
mod relay;
mod sending;
mod server;
mod socket;
mod translation;
mod upstream;
mod whole;

pub use server::{NamedChain, ProcessOptions, TapError, TapServer};

use framing::{BodyLength, Framing};

/// The payload of a chunked body; what follows a framing error is left out.
pub(crate) fn dechunk(bytes: &[u8]) -> Vec<u8> {
    let mut ranges = Vec::new();
    // The relay followed the same bytes before: an error here ends what can be read, no more.
    let _ = Framing::new(BodyLength::Chunked).follow(bytes, &mut ranges);
    let mut out = Vec::with_capacity(bytes.len());
    for range in ranges {
        out.extend_from_slice(&bytes[range]);
    }
    out
}
