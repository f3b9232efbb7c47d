//! A service that verifies signatures, twice: one for clients that ask it themselves, one behind a tap that signs.
//! Each knows only the keys of who is to ask it, so that nothing but a signature of the tap's own passes the second.

use super::Running;
use super::clients::printed;
use super::rig::{PATIENCE, free, pair};
use record::pairing::Call;
use serde_json::{Value, json};
use sim::agentcore::AgentCoreOptions;
use sim::aws::KeyOptions;
use sim::engine::GuardrailOptions;
use sim::managed::ManagedOptions;
use sim::truth::Log;
use std::net::SocketAddr;
use std::process::Command;
use std::time::Instant;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

/// How a tap signs for a stand-in, which has no region in its address.
pub(super) const SIGN: &str = "host_header: upstream, sign: {service: bedrock, region: us-east-1}";

/// What all stand-ins take as a bearer key, in the form of a JSON web token.
pub(super) const BEARER: &str = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJjb25mb3JtYW5jZSJ9.c2lnbmF0dXJl-_";
/// The key that `run/litellm.sh` has LiteLLM send.
const OF_LITELLM: &str = "none";

/// Who may call a stand-in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    Client,
    Tap,
}

impl Caller {
    fn key(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Client => ("AKIDCLIENT", "secret-of-the-client", "token-of-the-client"),
            Self::Tap => ("AKIDTAP", "secret-of-the-tap", "token-of-the-tap"),
        }
    }

    /// Its keys as AWS' SDKs read them.
    pub(super) fn environment(self) -> Vec<(&'static str, &'static str)> {
        let (id, secret, token) = self.key();
        vec![
            ("AWS_ACCESS_KEY_ID", id),
            ("AWS_SECRET_ACCESS_KEY", secret),
            ("AWS_SESSION_TOKEN", token),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ]
    }
}

/// What runs for a comparison.
pub(super) struct Place {
    pub(super) dir: TempDir,
    pub(super) runtime: Runtime,
}

impl Place {
    pub(super) fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
            runtime: Runtime::new().unwrap(),
        }
    }

    /// Asks for signatures by the keys of `caller`, or for [`BEARER`].
    pub(super) fn keys(&self, caller: Caller) -> KeyOptions {
        let (id, secret, token) = caller.key();
        let path = self.dir.path().join(format!("{id}.json"));
        let file = json!({"keys": {id: {"secret": secret, "session_token": token}}, "bearer": [BEARER, OF_LITELLM]});
        std::fs::write(&path, file.to_string()).unwrap();
        KeyOptions {
            aws_keys: Some(path),
            ..KeyOptions::default()
        }
    }

    fn bind(&self) -> (TcpListener, SocketAddr) {
        let listener = self.runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.unwrap();
        let at = listener.local_addr().unwrap();
        (listener, at)
    }

    pub(super) fn managed(&self, options: ManagedOptions) -> SocketAddr {
        let (listener, at) = self.bind();
        let served = sim::managed::serve(listener, options, Log::off(), std::future::pending());
        self.runtime.spawn(served);
        at
    }

    pub(super) fn agentcore(&self, options: AgentCoreOptions) -> SocketAddr {
        let (listener, at) = self.bind();
        let served = sim::agentcore::serve(listener, options, Log::off(), std::future::pending());
        self.runtime.spawn(served);
        at
    }

    /// A service that answers `caller`, and one whose imported model sleeps.
    pub(super) fn bedrock(&self, caller: Caller) -> [SocketAddr; 2] {
        [quick(self.keys(caller)), asleep(self.keys(caller))].map(|options| self.managed(options))
    }

    /// A tap before each upstream, with these settings of its upstream, in one process whose keys are the tap's.
    pub(super) fn taps(&self, upstreams: &[SocketAddr], settings: &str) -> Taps {
        self.taps_with(upstreams, settings, &Caller::Tap.environment())
    }

    /// The same with another environment.
    pub(super) fn taps_with(
        &self,
        upstreams: &[SocketAddr],
        settings: &str,
        environment: &[(&str, &str)],
    ) -> Taps {
        let root = tempfile::tempdir_in(self.dir.path()).unwrap();
        let path = |name: &str| root.path().join(name);
        let at: Vec<SocketAddr> = upstreams.iter().map(|_| free()).collect();
        let mut chains = Vec::new();
        for (number, (listen, upstream)) in at.iter().zip(upstreams).enumerate() {
            let name = format!("chain-{number}");
            let text = format!(
                "name: {name}\nkind: direct\nsimulated: true\nentry: http://{listen}\nmodel: m\ntaps:\n  - name: outer\n    position: outer\n    listen: \"{listen}\"\n    upstream: {{addresses: [\"{upstream}\"], {settings}}}\n    limits: {{request_body_max: 25MB}}\n"
            );
            std::fs::write(path(&format!("{name}.yaml")), text).unwrap();
            chains.push(format!("{name}.yaml"));
        }
        let chains = chains.join(", ");
        std::fs::write(path("tap.yaml"), format!("chains: [{chains}]\n")).unwrap();
        let running = Command::new(env!("CARGO_BIN_EXE_hopscope"))
            .arg("tap")
            .arg("--config")
            .arg(path("tap.yaml"))
            .arg("--record")
            .arg(path("taps/tap"))
            .arg("--ready-file")
            .arg(path("ready"))
            .env_clear()
            .env("HOME", root.path())
            .envs(environment.iter().copied())
            .stderr(std::fs::File::create(path("log")).unwrap())
            .spawn()
            .unwrap();
        let mut taps = Taps {
            running: Some(Running(running)),
            at,
            root,
        };
        taps.wait();
        taps
    }
}

/// Without waiting, and with a quota of tokens that one greedy call exceeds.
pub(super) fn quick(keys: KeyOptions) -> ManagedOptions {
    ManagedOptions {
        ttft_us: 2_000,
        gap_us: 500,
        prefill_token_us: 0,
        rpm: 0,
        tpm: 200_000,
        keys,
        guardrail: GuardrailOptions {
            guardrail_words: vec!["forbidden".to_owned()],
            guardrail_latency_us: 1_000,
        },
        ..ManagedOptions::default()
    }
}

/// An imported model of which no copy comes up within a test.
fn asleep(keys: KeyOptions) -> ManagedOptions {
    ManagedOptions {
        imported: true,
        cold_start_ms: 3_600_000,
        ..quick(keys)
    }
}

/// Running taps, each before a stand-in.
pub(super) struct Taps {
    running: Option<Running>,
    pub(super) at: Vec<SocketAddr>,
    root: TempDir,
}

impl Taps {
    fn wait(&mut self) {
        let begun = Instant::now();
        while !self.root.path().join("ready").exists() {
            assert!(begun.elapsed() < PATIENCE, "{}", self.log());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.root.path().join("log")).unwrap_or_default()
    }

    /// Ends them and gives what they recorded, in the order of asking.
    pub(super) fn calls(mut self) -> Vec<Call> {
        drop(self.running.take());
        let log = self.log();
        for secret in [Caller::Client, Caller::Tap].map(Caller::key) {
            assert!(!log.contains(secret.1) && !log.contains(secret.2), "{log}");
        }
        pair(self.root.path())
    }
}

/// What a client's script prints of its calls, one value a line, with these keys and no others.
pub(super) fn told(
    component: &str,
    script: &str,
    arguments: &[String],
    environment: &[(&str, &str)],
) -> Vec<Value> {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let lines = printed(
        component,
        &format!("clients/{script}"),
        &arguments,
        environment,
    );
    let value = |line: &String| {
        serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}"))
    };
    lines.iter().map(value).collect()
}

/// The stand-ins' addresses as URLs.
pub(super) fn urls(all: &[SocketAddr]) -> Vec<String> {
    all.iter().map(|at| format!("http://{at}")).collect()
}

/// Both printed the same, line by line.
pub(super) fn equal(with: &[Value], without: &[Value]) {
    for (with, without) in with.iter().zip(without) {
        assert_eq!(with, without);
    }
    assert_eq!(with.len(), without.len());
}

/// What was printed of the call `what`, its last line.
pub(super) fn of<'v>(all: &'v [Value], what: &str) -> &'v Value {
    let found = all.iter().rev().find(|line| line["what"] == what);
    found.unwrap_or_else(|| panic!("no `{what}` among {all:?}"))
}
