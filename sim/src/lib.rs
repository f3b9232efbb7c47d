//! Stand-ins: engine, managed service, agent service, gateway, router and relay, each with a log of its own truth,
//! and an agent that hands out keys.
//!
//! They exist to prove an instrument: each knows what it did and when, from stamps taken right around
//! its own system calls, and writes it to a [`truth`] log. Bytes and truth are made by code of this crate
//! alone, so that an error of the instrument cannot cancel out. Everything that is measured against a
//! stand-in is *simulated*.
//!
//! Each is a `serve(listener, options, log, stop)` on the caller's runtime. The caller binds the listener,
//! closes the log, and marks results.

mod accept;
pub mod agentcore;
pub mod aws;
mod bucket;
pub mod clock;
mod delta;
pub mod engine;
mod exposition;
pub mod gateway;
mod http;
pub mod managed;
pub mod pod_identity;
mod prompt;
mod reading;
pub mod relay;
#[cfg(test)]
mod rig;
pub mod router;
mod sse;
pub mod truth;
