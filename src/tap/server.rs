//! Opens the taps of a process: every socket is bound before any of them serves.
//!
//! Each serving thread has a runtime of its own with its own accept loops and its own upstream
//! connections, so that a connection's reads and writes never cross threads.

use super::aws::{Keys, Signer};
use super::bearer::Bearer;
use super::connection;
use super::context::{Ids, TapContext, Timeouts, call_headers};
use super::socket::Socket;
use super::translation::Translator;
use super::upstream::{Connectors, Upstream, host_of};
use crate::lag;
use crate::meter::{Meter, MeterHandle, MeterOptions};
use async_trait::async_trait;
use config::chain::{Chain, Forward, TapPoint};
use config::tap::TapProcess;
use hickory_resolver::TokioResolver;
use pingora::apps::ServerApp;
use pingora::listeners::{ListenerConfig, TcpSocketOptions};
use pingora::protocols::Stream;
use pingora::protocols::l4::stream::L4BufferSettings;
use pingora::server::{Fds, ListenFds, ShutdownWatch};
use pingora::services::Service as _;
use pingora::services::listening::Service;
use record::exchange::Position;
use std::collections::{HashMap, HashSet};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::IntoRawFd as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, watch};

/// Why a tap process cannot start.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// A listening address cannot be taken.
    #[error("{place}: tap `{tap}` cannot listen on {address}: {source}; {remedy}")]
    Bind {
        /// Where the configuration says so.
        place: String,
        /// The tap.
        tap: String,
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: std::io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// A certificate or key cannot be used.
    #[error("{place}: tap `{tap}` cannot serve TLS: {why}")]
    Tls {
        /// Where the configuration says so.
        place: String,
        /// The tap.
        tap: String,
        /// What is wrong.
        why: String,
    },
    /// The environment variable of a bearer key is not set.
    #[error(
        "{place}: tap `{tap}` sends a bearer key, and {variable} is not set; set it, or remove `bearer_env`"
    )]
    Bearer {
        /// Where the configuration says so.
        place: String,
        /// The tap.
        tap: String,
        /// The variable.
        variable: String,
    },
    /// Anything else that the process needs.
    #[error(transparent)]
    Other(#[from] anyhow::Error),
}

/// A chain and where its file says what, for messages.
pub struct NamedChain<'a> {
    /// The chain.
    pub chain: &'a Chain,
    /// `file:line:column` of the n-th tap's `listen`.
    pub place: &'a dyn Fn(usize) -> String,
    /// The directory of its file, against which certificates are meant.
    pub base: &'a Path,
}

struct Bound {
    listener: TcpListener,
    address: SocketAddr,
    point: TapPoint,
    chain: Arc<str>,
    template: Template,
}

/// What all threads of a tap have in common.
#[derive(Clone)]
struct Template {
    call_headers: &'static [&'static str],
    echoes: bool,
    overhead_header: Option<String>,
    cache_header: Option<config::chain::HeaderEvidence>,
    bearer: Option<Bearer>,
    turn: Arc<AtomicUsize>,
    connections: Arc<Semaphore>,
}

/// The running taps.
pub struct TapServer {
    threads: Vec<JoinHandle<()>>,
    shutdown: watch::Sender<bool>,
    meter: Meter,
    addresses: HashMap<(String, String), SocketAddr>,
}

/// Options of a process that are not of any chain.
pub struct ProcessOptions {
    /// Serving threads.
    pub threads: usize,
    /// Ask the kernel for receive stamps.
    pub kernel_stamps: bool,
    /// What to do with the trace context.
    pub traceparent: config::tap::Traceparent,
    /// The meter.
    pub meter: MeterOptions,
}

impl ProcessOptions {
    /// As the process' file says; `record` overrides its directory.
    #[must_use]
    pub fn of(process: &TapProcess, record: Option<std::path::PathBuf>, instance: String) -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let recorded = process.record.as_ref();
        Self {
            threads: process.threads.map_or(cpus.min(4), usize::from),
            kernel_stamps: process.kernel_stamps,
            traceparent: process.traceparent,
            meter: MeterOptions {
                queue: process.queue as usize,
                record: record.or_else(|| recorded.map(|r| r.dir.clone())),
                segment_bytes: recorded.map_or(64 << 20, |r| r.segment_bytes.get()),
                wait: process.pairing.wait.into(),
                paired: HashSet::new(),
                instance,
            },
        }
    }
}

impl TapServer {
    /// Binds every tap of `chains`, then serves them.
    ///
    /// # Errors
    /// An address cannot be taken, a certificate cannot be read, or the meter cannot start. Then
    /// nothing serves.
    pub fn start(mut options: ProcessOptions, chains: &[NamedChain<'_>]) -> Result<Self, TapError> {
        let mut bound = Vec::new();
        for named in chains {
            for (index, point) in named.chain.taps.iter().enumerate() {
                bound.push(bind(named, index, point)?);
            }
            let has = |p: Position| named.chain.taps.iter().any(|t| position(t.position) == p);
            if has(Position::Outer) && has(Position::Inner) {
                options
                    .meter
                    .paired
                    .insert(named.chain.name.as_str().into());
            }
        }
        let addresses = bound
            .iter()
            .map(|b| ((b.chain.to_string(), b.point.name.clone()), b.address))
            .collect();
        let meter = Meter::start(options.meter.clone())?;
        let resolver = resolver();
        let ids = Arc::new(Ids::new());
        let keys = keys(&bound)?;
        let (shutdown, watch) = watch::channel(false);
        let mut threads = Vec::new();
        for number in 0..options.threads.max(1) {
            let services = services(
                &bound,
                &options,
                &meter.handle(),
                (&ids, resolver.as_ref(), keys.as_ref()),
            )?;
            threads.push(serve_on_thread(number, services, watch.clone())?);
        }
        Ok(Self {
            threads,
            shutdown,
            meter,
            addresses,
        })
    }

    /// Where a tap listens.
    #[must_use]
    pub fn address(&self, chain: &str, tap: &str) -> Option<SocketAddr> {
        self.addresses
            .get(&(chain.to_owned(), tap.to_owned()))
            .copied()
    }

    /// The meter.
    #[must_use]
    pub fn meter(&self) -> &Meter {
        &self.meter
    }

    /// Stops accepting, lets running exchanges end for at most `drain`, writes the record down.
    pub fn stop(self, drain: Duration) {
        // Nobody listening is a process whose threads ended already.
        let _ = self.shutdown.send(true);
        let until = Instant::now() + drain;
        while self.meter.active() > 0 && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        let cut = self.meter.active();
        if cut > 0 {
            tracing::warn!(exchanges = cut, "drain timeout: cutting what still runs");
        }
        // The threads' runtimes, and with them what still runs, end when this end is gone.
        drop(self.shutdown);
        for thread in self.threads {
            if thread.join().is_err() {
                tracing::error!("a tap thread ended with a panic");
            }
        }
        self.meter.stop();
    }
}

fn position(written: config::Position) -> Position {
    match written {
        config::Position::Outer => Position::Outer,
        config::Position::Inner => Position::Inner,
        config::Position::Engine => Position::Engine,
    }
}

fn bind(named: &NamedChain<'_>, index: usize, point: &TapPoint) -> Result<Bound, TapError> {
    let address = point.listen.get();
    let listener = TcpListener::bind(address).map_err(|source| TapError::Bind {
        place: (named.place)(index),
        tap: point.name.clone(),
        address,
        remedy: match source.kind() {
            std::io::ErrorKind::AddrInUse => {
                "another program has the port: stop it, or choose another port"
            }
            std::io::ErrorKind::PermissionDenied => {
                "ports below 1024 need a privilege: choose a higher one"
            }
            _ => "choose an address of this machine",
        },
        source,
    })?;
    let address = listener.local_addr().map_err(anyhow::Error::from)?;
    let chain = named.chain;
    let has = |p: Position| chain.taps.iter().any(|t| position(t.position) == p);
    let forward = chain.recipe.as_ref().map_or(Forward::Header, |r| r.forward);
    let gateway = chain.gateway.as_ref();
    let outer = position(point.position) == Position::Outer;
    Ok(Bound {
        listener,
        address,
        point: against(named.base, point),
        chain: chain.name.as_str().into(),
        template: Template {
            call_headers: call_headers(
                position(point.position),
                forward,
                has(Position::Inner),
                has(Position::Engine),
            ),
            echoes: position(point.position) == Position::Inner && has(Position::Outer),
            overhead_header: gateway
                .filter(|_| outer)
                .and_then(|g| g.overhead_header.as_ref())
                .map(|h| h.as_str().to_owned()),
            cache_header: gateway
                .filter(|_| outer)
                .and_then(|g| g.cache_hit_header.clone()),
            bearer: bearer(named, index, point)?,
            turn: Arc::default(),
            connections: Arc::new(Semaphore::new(point.limits.connections_max as usize)),
        },
    })
}

/// The tap with the paths of its certificates made whole.
fn against(base: &Path, point: &TapPoint) -> TapPoint {
    let mut point = point.clone();
    if let Some(tls) = &mut point.tls {
        (tls.cert, tls.key) = (base.join(&tls.cert), base.join(&tls.key));
    }
    if let Some(ca) = point.upstream.tls.as_mut().and_then(|tls| tls.ca.as_mut()) {
        *ca = base.join(&*ca);
    }
    point
}

/// The system's resolver; `None` where the host has no configuration for one, which matters only
/// to upstreams that are named.
fn resolver() -> Option<Arc<TokioResolver>> {
    match TokioResolver::builder_tokio().and_then(|builder| builder.build()) {
        Ok(resolver) => Some(Arc::new(resolver)),
        Err(error) => {
            tracing::debug!(%error, "no resolver");
            None
        }
    }
}

/// Where any tap signs, the keys for all that do.
fn keys(bound: &[Bound]) -> Result<Option<Keys>, TapError> {
    let region = bound.iter().find_map(|tap| tap.point.region());
    let keys = region.map(|region| Keys::start(region.to_owned()));
    Ok(keys.transpose().map_err(anyhow::Error::from)?)
}

fn signer(point: &TapPoint, keys: Option<&Keys>) -> Option<Signer> {
    let service = point.upstream.sign.as_ref()?.service.as_str();
    let region = point.region()?.to_owned();
    Some(Signer::new(
        keys?.clone(),
        host_of(&point.upstream)?,
        service,
        region,
    ))
}

/// The bearer key that a tap sends, where it sends one.
fn bearer(
    named: &NamedChain<'_>,
    index: usize,
    point: &TapPoint,
) -> Result<Option<Bearer>, TapError> {
    let Some(variable) = &point.upstream.bearer_env else {
        return Ok(None);
    };
    let found = Bearer::from_env(variable);
    found.map(Some).ok_or_else(|| TapError::Bearer {
        place: (named.place)(index),
        tap: point.name.clone(),
        variable: variable.as_str().to_owned(),
    })
}

type TapService = (Service<App>, ListenFds);

fn services(
    bound: &[Bound],
    options: &ProcessOptions,
    meter: &MeterHandle,
    (ids, resolver, keys): (&Arc<Ids>, Option<&Arc<TokioResolver>>, Option<&Keys>),
) -> Result<Vec<TapService>, TapError> {
    let mut services = Vec::new();
    let mut connectors = Connectors::default();
    for tap in bound {
        let point = &tap.point;
        let context = TapContext {
            chain: tap.chain.clone(),
            name: point.name.as_str().into(),
            position: position(point.position),
            http2: point.http2,
            call_headers: tap.template.call_headers,
            echoes: tap.template.echoes,
            upstream: Upstream::new(
                point.upstream.clone(),
                resolver.cloned(),
                tap.template.turn.clone(),
                (&mut connectors, options.kernel_stamps),
            ),
            signer: signer(point, keys),
            bearer: tap.template.bearer.clone(),
            translator: point.upstream.translate.as_ref().map(Translator::from),
            timeouts: Timeouts::from(&point.limits),
            connections: tap.template.connections.clone(),
            body_max: point.limits.request_body_max.get(),
            event_max: usize::try_from(point.limits.event_max.get()).unwrap_or(usize::MAX),
            overhead_header: tap.template.overhead_header.clone(),
            cache_header: tap.template.cache_header.clone(),
            traceparent: options.traceparent,
            kernel_stamps: options.kernel_stamps,
            meter: meter.clone(),
            ids: ids.clone(),
        };
        services.push(service(tap, context)?);
    }
    Ok(services)
}

fn service(tap: &Bound, context: TapContext) -> Result<TapService, TapError> {
    let name = tap.address.to_string();
    let mut listen = ListenerConfig::tcp(name.clone())
        .l4_buffer(L4BufferSettings::unbuffered())
        .tcp_socket_options(TcpSocketOptions::default());
    if let Some(tls) = &tap.point.tls {
        listen = listen.tls(tls_settings(tap, tls)?);
    }
    let fd = tap.listener.try_clone().map_err(anyhow::Error::from)?;
    fd.set_nonblocking(true).map_err(anyhow::Error::from)?;
    let mut fds = Fds::new();
    fds.add(name.clone(), fd.into_raw_fd());
    let mut service = Service::new(name, App { tap: context });
    service.add_listener(listen);
    Ok((service, Arc::new(parking_lot::Mutex::new(fds))))
}

fn tls_settings(
    tap: &Bound,
    tls: &config::chain::ServerTls,
) -> Result<pingora::listeners::tls::TlsSettings, TapError> {
    let fail = |why: String| TapError::Tls {
        place: tls.cert.display().to_string(),
        tap: tap.point.name.clone(),
        why,
    };
    let (cert, key) = (tls.cert.to_string_lossy(), tls.key.to_string_lossy());
    let mut settings = pingora::listeners::tls::TlsSettings::intermediate(&cert, &key)
        .map_err(|e| fail(e.to_string()))?;
    if tap.point.http2 {
        settings.enable_h2();
    }
    Ok(settings)
}

fn serve_on_thread(
    number: usize,
    services: Vec<TapService>,
    watch: ShutdownWatch,
) -> Result<JoinHandle<()>, TapError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(anyhow::Error::from)?;
    let spawned = std::thread::Builder::new()
        .name(format!("tap-{number}"))
        .spawn(move || {
            runtime.block_on(async move {
                lag::watch_this_thread();
                let mut running = tokio::task::JoinSet::new();
                let drained = watch.clone();
                for (mut service, fds) in services {
                    let watch = watch.clone();
                    running.spawn(async move { service.start_service(Some(fds), watch, 1).await });
                }
                while running.join_next().await.is_some() {}
                drain(drained).await;
            });
        });
    Ok(spawned.map_err(anyhow::Error::from)?)
}

/// After the accept loops ended, connections go on as tasks of this runtime until they are done;
/// the process decides how long to wait by dropping its end of the watch.
async fn drain(mut watch: ShutdownWatch) {
    while watch.changed().await.is_ok() {}
}

/// What pingora calls for each connection.
struct App {
    tap: TapContext,
}

#[async_trait]
impl ServerApp for App {
    async fn process_new(
        self: &Arc<Self>,
        stream: Stream,
        shutdown: &ShutdownWatch,
    ) -> Option<Stream> {
        let _connection = self.tap.meter.connection_begins();
        let socket = Socket::accepted(stream, self.tap.kernel_stamps);
        // Never closed, so there is always a permit to come.
        let _permit = self.tap.connections.acquire().await.ok()?;
        connection::serve(&self.tap, socket, shutdown).await;
        None
    }
}
