//! One tap: a listening socket of the proxy on one hop of a chain.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Sign, Translate};
use crate::scalar::{ByteSize, EnvName, HostPort, Listen, Period};

/// One listening socket of the proxy, placed on one hop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TapPoint {
    /// The tap's name within its chain; records and metrics carry it. Letters, digits, `-`, `_`, `.`.
    pub name: String,
    /// On which hop the tap sits.
    pub position: Position,
    /// Where the tap listens.
    pub listen: Listen,
    /// Serve TLS with this certificate. Absent: cleartext.
    #[serde(default)]
    pub tls: Option<ServerTls>,
    /// Accept HTTP/2 as well: by ALPN over TLS, by prior knowledge in cleartext. A write over HTTP/2
    /// may be a hand-over to a queue, so its stamps are a class of their own.
    #[serde(default)]
    pub http2: bool,
    /// Where the tap sends what it receives.
    pub upstream: Upstream,
    /// Bounds of this tap.
    #[serde(default)]
    pub limits: TapLimits,
}

/// On which hop a tap sits.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Position {
    /// Between the client and the component. Makes the call id.
    Outer,
    /// Between the component and what it calls. Reads and strips the call id.
    Inner,
    /// Directly before an engine, behind a router that the inner tap precedes.
    Engine,
}

impl Position {
    /// The name as it is written in a file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Outer => "outer",
            Self::Inner => "inner",
            Self::Engine => "engine",
        }
    }
}

/// The certificate with which a tap serves TLS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerTls {
    /// The certificate chain, PEM, leaf first. Relative to the chain's file.
    pub cert: PathBuf,
    /// The private key, PEM. Relative to the chain's file.
    pub key: PathBuf,
}

/// Where a tap sends what it receives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// The servers, used in turn. A measured chain names one: taps never balance there.
    #[schemars(length(min = 1))]
    pub addresses: Vec<HostPort>,
    /// Connect with TLS. Absent: cleartext.
    #[serde(default)]
    pub tls: Option<ClientTls>,
    /// Speak HTTP/2 to the server: by ALPN over TLS, by prior knowledge in cleartext.
    #[serde(default)]
    pub http2: bool,
    /// The longest wait for a connection, resolving and TLS handshake included.
    #[serde(default = "default_connect_timeout")]
    pub connect_timeout: Period,
    /// How long an unused connection stays open.
    #[serde(default = "default_idle_timeout")]
    pub idle_timeout: Period,
    /// Which `Host` the server sees.
    #[serde(default)]
    pub host_header: HostHeader,
    /// Translate between what clients speak and what the server does. Absent: bytes pass as they are.
    #[serde(default)]
    pub translate: Option<Translate>,
    /// Send `Authorization: Bearer` with the key that this environment variable holds (a Bedrock API key, an OAuth
    /// token for AgentCore), in place of the client's. Absent: the client's passes.
    #[serde(default)]
    pub bearer_env: Option<EnvName>,
    /// Sign requests for AWS. Absent: they pass as the client signed them.
    #[serde(default)]
    pub sign: Option<Sign>,
}

/// How a tap connects with TLS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientTls {
    /// The name in SNI and in the certificate. Absent: the host of the address.
    #[serde(default)]
    pub server_name: Option<String>,
    /// A file of certificates (PEM) to trust in place of the system's. Relative to the chain's file.
    #[serde(default)]
    pub ca: Option<PathBuf>,
    /// Verify the server's certificate. `false` trusts anybody: for a test on one host only.
    #[serde(default = "default_verify")]
    pub verify: bool,
}

/// Which `Host` an upstream sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum HostHeader {
    /// The client's own, unchanged.
    #[default]
    Keep,
    /// The address of the upstream: for virtual hosts and public endpoints.
    Upstream,
}

/// Bounds of one tap. What exceeds one is refused or closed, and counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TapLimits {
    /// The longest request body; a longer one is refused with 413. Default 64 MiB: long contexts with images.
    pub request_body_max: ByteSize,
    /// The longest time from the first byte of a request head to its last. Default 30 s.
    pub request_head_timeout: Period,
    /// The longest wait for the head of the response. Default 10 min: an engine may queue.
    pub response_head_timeout: Period,
    /// The longest silence within a response. Default 10 min: reasoning may be silent.
    pub stream_idle_timeout: Period,
    /// How long one write to the client may block before the client counts as gone. Default 1 min.
    pub client_write_timeout: Period,
    /// How long an unused client connection stays open. Default 75 s, longer than the pools of common clients.
    pub client_idle_timeout: Period,
    /// The most client connections at once; further ones are accepted and wait unread until one ends. Default 8192.
    #[schemars(range(min = 1))]
    pub connections_max: u32,
    /// The longest single event of an SSE stream that is decoded; a longer one passes unread. Default 4 MiB. Of
    /// Amazon event streams every frame is decoded that the service allows: up to 16 MiB, or this if it is more.
    pub event_max: ByteSize,
}

impl Default for TapLimits {
    fn default() -> Self {
        Self {
            request_body_max: ByteSize::mib(64),
            request_head_timeout: Period::secs(30),
            response_head_timeout: Period::secs(600),
            stream_idle_timeout: Period::secs(600),
            client_write_timeout: Period::secs(60),
            client_idle_timeout: Period::secs(75),
            connections_max: 8192,
            event_max: ByteSize::mib(4),
        }
    }
}

fn default_connect_timeout() -> Period {
    Period::secs(5)
}

fn default_idle_timeout() -> Period {
    Period::secs(60)
}

fn default_verify() -> bool {
    true
}
