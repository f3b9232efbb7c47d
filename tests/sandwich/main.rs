//! End to end through real sockets: taps in this process, stand-ins as engine and gateway.

// Clippy's leave for tests covers test functions, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod agents;
mod bad_input;
mod converse;
mod courses;
mod credentials;
mod experiments;
mod faults;
mod http2;
mod http2_rules;
mod legs;
mod life;
mod managed;
mod matrix;
mod measured;
mod probes;
mod processes;
mod resume;
mod rig;
mod routing;
mod schedule;
mod scraping;
mod shards;
mod signing;
mod soak;
mod tenants;
mod tls;
mod translated;
mod transparent;
mod workload;
