//! What monitoring sees: Prometheus metrics, health, and the live feed.

mod labels;
mod metrics;
mod server;

pub use metrics::Metrics;
pub use server::{Endpoints, serve_admin, serve_telemetry};
