//! A chain of client → outer tap → gateway → inner tap → engine on free ports, ended on drop.

use config::Chain;
use config::tap::Traceparent;
use hopscope::meter::MeterOptions;
use hopscope::tap::{NamedChain, ProcessOptions, TapServer};
use record::pairing::Call;
use record::rundir::RunDir;
use sim::engine::EngineOptions;
use sim::gateway::GatewayOptions;
use sim::truth::Log;
use std::collections::{BTreeSet, HashSet};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Nothing in these tests takes longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Rig {
    pub(crate) outer: SocketAddr,
    /// Where the inner tap listens; without one, the outer tap.
    pub(crate) inner: SocketAddr,
    /// What stands behind the outer tap.
    pub(crate) gateway: SocketAddr,
    /// What stands behind the innermost tap.
    pub(crate) engine: SocketAddr,
    pub(crate) truth: Log,
    pub(crate) records: tempfile::TempDir,
    server: Option<TapServer>,
    runtime: Option<Runtime>,
}

/// An address that nobody listens on, and that no other call of this process was given.
pub(crate) fn free() -> SocketAddr {
    static GIVEN: Mutex<BTreeSet<SocketAddr>> = Mutex::new(BTreeSet::new());
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        if GIVEN.lock().unwrap().insert(address) {
            return address;
        }
    }
}

pub(crate) fn chain(taps: &[(&str, SocketAddr, SocketAddr)]) -> Chain {
    let lines: String = taps
        .iter()
        .map(|(name, listen, upstream)| {
            format!("  - {{name: {name}, position: {name}, listen: \"{listen}\", upstream: {{addresses: [\"{upstream}\"]}}, limits: {{request_body_max: 1MiB}}}}\n")
        })
        .collect();
    let entry = taps[0].1;
    let kind = match taps {
        [_] => "direct",
        [outer, inner] if outer.2 == inner.1 => "loop",
        _ => "gateway",
    };
    let gateway = if kind == "gateway" {
        "gateway: {name: stand-in, cache_hit_header: {name: x-cache-hit}}\nrecipe: {forward: header, tried: true, explain: a stand-in passes headers on}\n"
    } else {
        ""
    };
    let text = format!(
        "name: rig\nkind: {kind}\nsimulated: true\nentry: http://{entry}\nmodel: m\n{gateway}taps:\n{lines}"
    );
    config::from_text::<Chain>(Path::new("rig.yaml"), &text)
        .unwrap()
        .into_inner()
}

/// Taps of `chain` in this process, recording into `dir`.
pub(crate) fn serve(chain: &Chain, dir: &Path, instance: &str) -> TapServer {
    let options = ProcessOptions {
        threads: 2,
        kernel_stamps: true,
        traceparent: Traceparent::Pass,
        meter: MeterOptions {
            queue: 8192,
            record: Some(dir.to_owned()),
            segment_bytes: 64 << 20,
            wait: Duration::from_secs(30),
            paired: HashSet::new(),
            instance: instance.to_owned(),
        },
    };
    TapServer::start(
        options,
        &[NamedChain {
            chain,
            place: &|_| "rig.yaml".to_owned(),
            base: dir,
        }],
    )
    .unwrap()
}

/// An engine stand-in of this runtime.
pub(crate) async fn spawn_engine(options: EngineOptions) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(sim::engine::serve(
        listener,
        options,
        Log::off(),
        std::future::pending(),
    ));
    at
}

/// An engine stand-in of this process, for as long as its runtime lives.
pub(crate) fn engine(options: EngineOptions) -> (Runtime, SocketAddr) {
    let runtime = Runtime::new().unwrap();
    let at = runtime.block_on(spawn_engine(options));
    (runtime, at)
}

/// Writes `cert.pem` and `key.pem` of `localhost` into `dir`.
pub(crate) fn certificate(dir: &Path) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(dir.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(dir.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
}

impl Rig {
    /// Engine and gateway stand-ins with these options, taps on both sides.
    pub(crate) fn start(engine: EngineOptions, gateway: GatewayOptions) -> Self {
        let runtime = Runtime::new().unwrap();
        let truth = Log::memory(100_000);
        let (outer, inner) = (free(), free());
        let (engine_at, gateway_at) = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let at = (spawn_engine(engine).await, listener.local_addr().unwrap());
            let options = GatewayOptions {
                upstream: inner.to_string(),
                ..gateway
            };
            tokio::spawn(sim::gateway::serve(
                listener,
                options,
                truth.clone(),
                std::future::pending(),
            ));
            at
        });
        let chain = chain(&[("outer", outer, gateway_at), ("inner", inner, engine_at)]);
        let records = tempfile::tempdir().unwrap();
        let server = serve(&chain, &records.path().join("taps/tap"), "tap");
        Self {
            outer,
            inner,
            gateway: gateway_at,
            engine: engine_at,
            truth,
            records,
            server: Some(server),
            runtime: Some(runtime),
        }
    }

    /// Taps around anything that already listens on `upstream`: one outer tap, no gateway.
    pub(crate) fn around(upstream: SocketAddr) -> Self {
        Self::with(upstream, |_| ())
    }

    /// The same, of a chain that `change` has changed.
    pub(crate) fn with(upstream: SocketAddr, change: impl FnOnce(&mut Chain)) -> Self {
        let outer = free();
        let mut chain = chain(&[("outer", outer, upstream)]);
        change(&mut chain);
        let records = tempfile::tempdir().unwrap();
        let server = serve(&chain, &records.path().join("taps/tap"), "tap");
        Self {
            outer,
            inner: outer,
            gateway: upstream,
            engine: upstream,
            truth: Log::off(),
            records,
            server: Some(server),
            runtime: None,
        }
    }

    /// Ends the taps and gives the calls that they recorded.
    pub(crate) fn calls(&mut self) -> Vec<Call> {
        self.server.take().unwrap().stop(Duration::from_secs(2));
        pair(self.records.path())
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            server.stop(Duration::ZERO);
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Pairs all that is recorded under `root/taps`.
pub(crate) fn pair(root: &Path) -> Vec<Call> {
    std::fs::write(root.join("manifest.json"), "{}").unwrap();
    let mut paired = RunDir::open(root).unwrap().pair().unwrap();
    let calls = paired.by_ref().collect();
    assert_eq!(paired.losses().next(), None);
    calls
}

pub(crate) fn connect(to: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(to).unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket.set_nodelay(true).unwrap();
    socket
}

/// A chat request of `tokens` tokens with further header lines and body members.
pub(crate) fn chat(tokens: u32, fields: &str, members: &str) -> String {
    let body = format!(
        r#"{{"model":"m","stream":true,"stream_options":{{"include_usage":true}},"max_tokens":{tokens},"messages":[{{"role":"user","content":"hello there"}}]{members}}}"#
    );
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: rig\r\n{fields}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends `request` and reads until the peer closes or `until` was seen.
pub(crate) fn exchange(socket: &mut TcpStream, request: &[u8], until: &[u8]) -> Vec<u8> {
    socket.write_all(request).unwrap();
    read_until(socket, until)
}

pub(crate) fn read_until(socket: &mut TcpStream, until: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    let mut buffer = [0_u8; 4096];
    loop {
        match socket.read(&mut buffer) {
            Ok(0) | Err(_) => return all,
            Ok(n) => all.extend_from_slice(&buffer[..n]),
        }
        if all.windows(until.len()).any(|w| w == until) {
            return all;
        }
    }
}

/// The end of a chunked body.
pub(crate) const END: &[u8] = b"\r\n0\r\n\r\n";

/// An upstream of this test: for each connection reads one request head (and body by its length),
/// then does what `answer` says. Gives the heads and bodies it saw.
pub(crate) fn upstream(
    answer: impl Fn(&mut TcpStream, &str) + Send + Sync + 'static,
) -> (SocketAddr, std::sync::mpsc::Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let (sender, seen) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let answer = std::sync::Arc::new(answer);
        for socket in listener.incoming().flatten() {
            let (sender, answer) = (sender.clone(), answer.clone());
            std::thread::spawn(move || {
                let mut socket = socket;
                while let Some((head, body)) = request(&mut socket) {
                    // A test that has seen enough no longer listens.
                    let _ = sender.send((head.clone(), body));
                    answer(&mut socket, &head);
                }
            });
        }
    });
    (at, seen)
}

/// The page of metrics of what listens there, with its head.
pub(crate) fn metrics(at: SocketAddr) -> String {
    let mut socket = connect(at);
    socket
        .write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut page = String::new();
    socket.read_to_string(&mut page).unwrap();
    page
}

/// A figure on it; `name` has its labels.
pub(crate) fn metric(at: SocketAddr, name: &str) -> f64 {
    let page = metrics(at);
    let line = page
        .lines()
        .find_map(|l| l.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{page}")).parse().unwrap()
}

fn request(socket: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut one = [0_u8; 1];
    while !bytes.ends_with(b"\r\n\r\n") {
        if socket.read(&mut one).ok()? == 0 {
            return None;
        }
        bytes.push(one[0]);
    }
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let length = head.lines().find_map(|l| {
        l.to_lowercase()
            .strip_prefix("content-length:")?
            .trim()
            .parse()
            .ok()
    });
    let mut body = vec![0_u8; length.unwrap_or(0)];
    socket.read_exact(&mut body).ok()?;
    Some((head, body))
}
