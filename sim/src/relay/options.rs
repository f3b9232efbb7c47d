//! Where a relay sends its bytes and what it notes.

use serde::{Deserialize, Serialize};

/// A relay's options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, default)]
pub struct RelayOptions {
    /// Where connections go, `host:port`.
    #[arg(long, default_value_t = Self::default().upstream)]
    pub upstream: String,
    /// Does not look for HTTP/1 requests and tokens in the bytes: one exchange is then a whole connection.
    #[arg(long)]
    pub opaque: bool,
    /// Does not note the stamps of every read.
    #[arg(long)]
    pub no_segments: bool,
}

impl Default for RelayOptions {
    /// Notes everything.
    fn default() -> Self {
        Self {
            upstream: "127.0.0.1:8000".to_owned(),
            opaque: false,
            no_segments: false,
        }
    }
}
