//! hopscope, the proxy: taps on both sides of a gateway, one clock, and what the gateway adds.
//!
//! The way of a token, and where to read it:
//! 1. [`tap`] reads it from the upstream's socket and stamps the read (`tap/socket.rs`),
//! 2. writes the same bytes to the client and stamps the write (`tap/relay.rs`, `tap/sending.rs`),
//! 3. then decodes them (`wire`) into the exchange's timeline (`tap/live.rs`, `record::stream`),
//! 4. at the end of the exchange sends one message over a bounded channel to [`meter`],
//! 5. which pairs exchanges to calls (`record::pairing`), computes legs (`record::leg`) and hands
//!    them to Prometheus and the live feed ([`telemetry`]) and to the record on disk.

pub mod calibrate;
pub mod lag;
pub mod meter;
pub mod spawn;
pub mod standin;
pub mod tap;
pub mod telemetry;
#[cfg(test)]
mod testbed;
pub mod truth;
