//! What was measured: marks, timeline, exchange, call, legs, pairing, histograms, verdict, and
//! the run directory.
//!
//! A tap fills an [`exchange::Exchange`]; [`pairing`] joins exchanges to calls; [`leg`] computes
//! what the component between two taps added. Nothing in here reads a clock but [`clock`], and
//! nothing but [`rundir`] touches a file.

pub mod agent;
pub mod client;
pub mod clock;
pub mod exchange;
pub mod experiment;
pub mod histogram;
pub mod host;
pub mod leg;
pub mod manifest;
pub mod pairing;
pub mod probe;
pub mod rundir;
#[cfg(test)]
mod sample;
pub mod scrape;
pub mod service;
pub mod span;
pub mod stamp;
pub mod stream;
pub mod timeline;
pub mod token_probe;
pub mod verdict;
