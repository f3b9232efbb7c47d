//! Where a tap sends: addresses resolved asynchronously, taken in turn, connections kept and reused.

use super::http2::{Session, Sessions};
use super::socket::Socket;
use config::chain::HostHeader;
use hickory_resolver::TokioResolver;
use pingora::connectors::{ConnectorOptions, TransportConnector};
use pingora::protocols::ALPN;
use pingora::upstreams::peer::{HttpPeer, Peer as _};
use record::clock;
use record::stamp::StampClass;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Idle connections kept per thread and tap.
const POOL: usize = 1024;

/// Why no connection could be had. Names the address.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpstreamError {
    #[error("{host}: cannot resolve the name: {why}")]
    Resolve { host: String, why: String },
    #[error("{address}: {why}")]
    Connect { address: String, why: String },
}

/// The servers behind a tap, for one thread: connections never cross threads.
pub(crate) struct Upstream {
    settings: config::chain::Upstream,
    resolver: Option<Arc<TokioResolver>>,
    connector: Arc<TransportConnector>,
    sessions: Sessions,
    turn: Arc<AtomicUsize>,
    kernel_stamps: bool,
}

/// The connection pools of one thread, by the file of certificates that they trust.
#[derive(Default)]
pub(crate) struct Connectors(HashMap<Option<String>, Arc<TransportConnector>>);

impl Connectors {
    fn with(&mut self, ca: Option<&str>) -> Arc<TransportConnector> {
        let make = || {
            let mut options = ConnectorOptions::new(POOL);
            options.ca_file = ca.map(str::to_owned);
            Arc::new(TransportConnector::new(Some(options)))
        };
        let key = ca.map(str::to_owned);
        self.0.entry(key).or_insert_with(make).clone()
    }
}

/// A connection and where it leads.
pub(crate) struct Connected {
    pub(crate) link: Link,
    pub(crate) address: Arc<str>,
    /// Nanoseconds to connect; `None` for a reused connection.
    pub(crate) took: Option<u64>,
}

/// How the upstream is spoken to.
pub(crate) enum Link {
    /// A connection to itself; `key` is its place in the pool.
    H1 { socket: Socket, key: u64 },
    /// A share of a connection.
    H2(Session),
}

impl Connected {
    /// Stamp class of the upstream side.
    pub(crate) fn class(&self) -> StampClass {
        match &self.link {
            Link::H1 { socket, .. } => socket.class(),
            Link::H2(_) => StampClass::H2,
        }
    }
}

/// The first address as a client would write it in `Host`: without the port that its scheme implies
/// (RFC 9110 §7.2, §4.2).
pub(crate) fn host_of(settings: &config::chain::Upstream) -> Option<String> {
    let address = settings.addresses.first()?;
    let implied = if settings.tls.is_some() {
        ":443"
    } else {
        ":80"
    };
    let text = address.to_string();
    Some(text.strip_suffix(implied).unwrap_or(&text).to_owned())
}

impl Upstream {
    /// `turn` is shared by the threads, so that they take addresses in turn together; `connectors`
    /// by the taps of one thread, since each holds the system's certificates.
    pub(crate) fn new(
        settings: config::chain::Upstream,
        resolver: Option<Arc<TokioResolver>>,
        turn: Arc<AtomicUsize>,
        (connectors, kernel_stamps): (&mut Connectors, bool),
    ) -> Self {
        let ca = settings
            .tls
            .as_ref()
            .and_then(|tls| Some(tls.ca.as_ref()?.to_string_lossy().into_owned()));
        let connector = connectors.with(ca.as_deref());
        Self {
            settings,
            resolver,
            connector,
            sessions: Sessions::default(),
            turn,
            kernel_stamps,
        }
    }

    /// Stamp class of the upstream side, as far as it is known before a connection is.
    pub(crate) fn class(&self) -> StampClass {
        if self.settings.http2 {
            StampClass::H2
        } else if self.settings.tls.is_some() {
            StampClass::Tls
        } else {
            StampClass::Socket
        }
    }

    /// The `Host` to send in place of the client's.
    pub(crate) fn host(&self) -> Option<String> {
        (self.settings.host_header == HostHeader::Upstream)
            .then(|| host_of(&self.settings))
            .flatten()
    }

    /// Every address that the servers have now.
    async fn addresses(&self) -> Result<Vec<(SocketAddr, String)>, UpstreamError> {
        let mut all = Vec::with_capacity(self.settings.addresses.len());
        for server in &self.settings.addresses {
            if let Some(address) = server.socket() {
                all.push((address, server.host().to_owned()));
                continue;
            }
            let fail = |why: String| UpstreamError::Resolve {
                host: server.host().to_owned(),
                why,
            };
            let resolver = self
                .resolver
                .as_ref()
                .ok_or_else(|| fail("this host has no resolver configuration".to_owned()))?;
            let found = resolver
                .lookup_ip(server.host())
                .await
                .map_err(|e| fail(e.to_string()))?;
            all.extend(
                found
                    .iter()
                    .map(|ip| (SocketAddr::new(ip, server.port()), server.host().to_owned())),
            );
        }
        Ok(all)
    }

    /// The peers to try, the one whose turn it is first.
    pub(crate) async fn peers(&self) -> Result<Vec<HttpPeer>, UpstreamError> {
        let mut addresses = self.addresses().await?;
        if addresses.is_empty() {
            let host = self
                .settings
                .addresses
                .first()
                .map_or_else(String::new, ToString::to_string);
            return Err(UpstreamError::Resolve {
                host,
                why: "the name has no address".to_owned(),
            });
        }
        let turn = self.turn.fetch_add(1, Ordering::Relaxed) % addresses.len();
        addresses.rotate_left(turn);
        Ok(addresses
            .into_iter()
            .map(|(address, host)| self.peer(address, host))
            .collect())
    }

    fn peer(&self, address: SocketAddr, host: String) -> HttpPeer {
        let tls = self.settings.tls.as_ref();
        let name = tls
            .map(|t| t.server_name.clone().unwrap_or(host))
            .unwrap_or_default();
        // A resolved address cannot fail to resolve, which is what `HttpPeer::new` panics on.
        let mut peer = HttpPeer::new(address, tls.is_some(), name);
        let timeout: Duration = self.settings.connect_timeout.into();
        peer.options.connection_timeout = Some(timeout);
        peer.options.total_connection_timeout = Some(timeout);
        if self.settings.http2 && tls.is_some() {
            peer.options.alpn = ALPN::H2H1;
        }
        let verify = tls.is_none_or(|t| t.verify);
        peer.options.verify_cert = verify;
        peer.options.verify_hostname = verify;
        peer
    }

    /// A connection: a used one unless `fresh`, else a new one, to the first server that answers.
    pub(crate) async fn connect(&self, fresh: bool) -> Result<Connected, UpstreamError> {
        let mut last = None;
        for peer in self.peers().await? {
            if !fresh && let Some(link) = self.used(&peer).await {
                return Ok(Connected {
                    link,
                    address: peer.address().to_string().into(),
                    took: None,
                });
            }
            let began = clock::now();
            let address: Arc<str> = peer.address().to_string().into();
            match self.open(&peer).await {
                Ok(link) => {
                    let took = Some(clock::now().saturating_sub(began));
                    return Ok(Connected {
                        link,
                        address,
                        took,
                    });
                }
                Err(why) => {
                    let address = address.to_string();
                    last = Some(UpstreamError::Connect { address, why });
                }
            }
        }
        Err(last.unwrap_or(UpstreamError::Resolve {
            host: String::new(),
            why: "no address".to_owned(),
        }))
    }

    /// A connection that is there already.
    async fn used(&self, peer: &HttpPeer) -> Option<Link> {
        if self.settings.http2
            && let Some(address) = peer.address().as_inet()
            && let Some(session) = self
                .sessions
                .get(*address, self.settings.idle_timeout.into())
        {
            return Some(Link::H2(session));
        }
        let stream = self.connector.reused_stream(peer).await?;
        Some(Link::H1 {
            socket: Socket::new(stream, self.kernel_stamps, true),
            key: peer.reuse_hash(),
        })
    }

    /// A new connection, of HTTP/2 where that is asked for and, over TLS, agreed on.
    async fn open(&self, peer: &HttpPeer) -> Result<Link, String> {
        let stream = self
            .connector
            .new_stream(peer)
            .await
            .map_err(|error| explain(&error))?;
        let socket = Socket::new(stream, self.kernel_stamps, false);
        let tls = self.settings.tls.is_some();
        match peer.address().as_inet() {
            Some(address) if self.settings.http2 && (!tls || socket.speaks_http2()) => self
                .sessions
                .open(*address, socket, tls)
                .await
                .map(Link::H2)
                .map_err(|error| format!("HTTP/2 cannot begin: {error}")),
            _ => Ok(Link::H1 {
                socket,
                key: peer.reuse_hash(),
            }),
        }
    }

    /// Gives a connection back for the next exchange. HTTP/2 never left.
    pub(crate) fn release(&self, connected: Connected) {
        if let Link::H1 { socket, key } = connected.link {
            let idle: Duration = self.settings.idle_timeout.into();
            self.connector
                .release_stream(socket.into_stream(), key, Some(idle));
        }
    }
}

/// The innermost cause, in one line.
fn explain(error: &pingora::Error) -> String {
    let cause = error.root_cause();
    let kind = error.etype().as_str();
    match cause.downcast_ref::<std::io::Error>() {
        Some(io) => io.to_string(),
        None => error
            .context
            .as_ref()
            .map_or_else(|| kind.to_owned(), |c| format!("{kind}: {}", c.as_str())),
    }
}
