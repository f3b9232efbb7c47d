//! A tap that signs for AWS, as a process, with keys from an agent such as that of Pod Identity.

use crate::rig::{PATIENCE, connect, exchange, free, upstream};
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use sim::aws::KeyOptions;
use sim::engine::EngineOptions;
use sim::pod_identity::{Agent, Hands, Keys, Trouble};
use sim::truth::Log;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};
use tokio::runtime::Runtime;

const PATH: &str = "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aimported-model%2Fab/converse";
const BODY: &str = r#"{"messages":[{"role":"user","content":[{"text":"hi"}]}]}"#;

/// A signing tap before a server, with keys from an agent.
pub(crate) struct Signing {
    tap: Child,
    at: SocketAddr,
    server: SocketAddr,
    agent: Agent,
    dir: tempfile::TempDir,
    _runtime: Runtime,
}

impl Drop for Signing {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.tap.kill();
        let _ = self.tap.wait();
    }
}

impl Signing {
    /// Before a server that says yes to everything, and what it sees.
    fn start() -> (Self, Receiver<(String, Vec<u8>)>) {
        let (server, seen) = upstream(|socket, _| {
            let answer =
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
            socket.write_all(answer.as_bytes()).unwrap();
        });
        (Self::before(server), seen)
    }

    fn before(server: SocketAddr) -> Self {
        Self::with_keys_of(server, |dir, agent| {
            vec![
                (
                    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                    format!("http://{agent}/v1/credentials"),
                ),
                (
                    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                    dir.join("token").display().to_string(),
                ),
            ]
        })
    }

    /// Before `server`, with keys from where these variables of its environment say; they are given its folder, in which
    /// `token` is a file, and where the agent is.
    pub(crate) fn with_keys_of(
        server: SocketAddr,
        source: impl FnOnce(&Path, SocketAddr) -> Vec<(&'static str, String)>,
    ) -> Self {
        let at = free();
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write("tap.yaml", "chains: [chain.yaml]\n");
        write(
            "chain.yaml",
            &format!(
                "name: aws\nkind: direct\nsimulated: true\nentry: http://{at}\nmodel: m\ntaps:\n  - name: outer\n    position: outer\n    listen: \"{at}\"\n    upstream: {{addresses: [\"{server}\"], host_header: upstream, sign: {{service: bedrock, region: us-east-1}}}}\n    limits: {{request_body_max: 64KiB}}\n"
            ),
        );
        write("token", "pod-token");
        let runtime = Runtime::new().unwrap();
        let agent = Agent::default();
        let agent_at = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let at = listener.local_addr().unwrap();
            let (agent, token) = (agent.clone(), dir.path().join("token"));
            tokio::spawn(async move { agent.serve(listener, token, std::future::pending()).await });
            at
        });
        let tap = Command::new(env!("CARGO_BIN_EXE_hopscope"))
            .args(["tap", "--config"])
            .arg(dir.path().join("tap.yaml"))
            .arg("--record")
            .arg(dir.path().join("records"))
            .env_remove("AWS_ACCESS_KEY_ID")
            .env_remove("AWS_PROFILE")
            .env("HOME", dir.path())
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .envs(source(dir.path(), agent_at))
            .stderr(std::fs::File::create(dir.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        let begun = Instant::now();
        while std::net::TcpStream::connect(at).is_err() {
            assert!(begun.elapsed() < PATIENCE, "the tap does not come up");
            std::thread::sleep(Duration::from_millis(20));
        }
        Self {
            tap,
            at,
            server,
            agent,
            dir,
            _runtime: runtime,
        }
    }

    /// Has the agent hand out keys with this id that hold for so many seconds, or none.
    fn hand(&self, keys: Option<(&str, u64)>) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let hands = keys.map_or(Hands::Trouble(Trouble::Refuse), |(id, seconds)| {
            Hands::Keys(Keys {
                id: id.to_owned(),
                secret: format!("secret-{id}"),
                token: format!("token-{id}"),
                expires: now.unwrap().as_secs() + seconds,
            })
        });
        self.agent.hand(hands);
    }

    /// Sends a request with these further fields and this body as it is.
    fn send(&self, fields: &str, body: &str) -> String {
        let request = format!("POST {PATH} HTTP/1.1\r\nHost: tap\r\n{fields}\r\n{body}");
        let got = exchange(&mut connect(self.at), request.as_bytes(), b"}");
        String::from_utf8_lossy(&got).into_owned()
    }

    pub(crate) fn ask(&self) -> String {
        let length = BODY.len();
        let fields = format!(
            "Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n"
        );
        self.send(&fields, BODY)
    }

    /// Checks the signature as the service does: from what was received.
    pub(crate) fn verify(&self, head: &str, body: &[u8]) -> String {
        let value = |wanted: &str| {
            let mut fields = head.lines().filter_map(|line| line.split_once(": "));
            let found = fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found
                .unwrap_or_else(|| panic!("{wanted} is missing in {head}"))
                .1
        };
        assert_eq!(value("host"), self.server.to_string());
        let authorization = value("authorization");
        let part = |name: &str| {
            authorization
                .split(name)
                .nth(1)
                .unwrap()
                .split(',')
                .next()
                .unwrap()
        };
        let scope: Vec<&str> = part("Credential=").split('/').collect();
        let id = scope[0];
        assert_eq!(&scope[2..], ["us-east-1", "bedrock", "aws4_request"]);
        assert_eq!(value("x-amz-security-token"), format!("token-{id}"));
        let keys = Credentials::new(
            id,
            format!("secret-{id}"),
            Some(format!("token-{id}")),
            None,
            "test",
        );
        let identity = keys.into();
        let parameters = v4::SigningParams::builder()
            .identity(&identity)
            .region("us-east-1")
            .name("bedrock")
            .time(time_of(value("x-amz-date")))
            .settings(SigningSettings::default())
            .build()
            .unwrap()
            .into();
        let names = part("SignedHeaders=").split(';');
        let own = ["x-amz-date", "x-amz-security-token"];
        let fields: Vec<(&str, &str)> = names
            .filter(|name| !own.contains(name))
            .map(|name| (name, value(name)))
            .collect();
        let target = head.split(' ').nth(1).unwrap();
        let uri = format!("https://{}{target}", value("host"));
        let request =
            SignableRequest::new("POST", uri, fields.into_iter(), SignableBody::Bytes(body))
                .unwrap();
        let (_, signature) = sign(request, &parameters).unwrap().into_parts();
        assert_eq!(part("Signature="), signature, "{head}");
        id.to_owned()
    }

    /// Asks until an answer is such as is waited for.
    pub(crate) fn ask_until(&self, what: &str, wanted: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let got = self.ask();
            if wanted(&got) {
                return got;
            }
            assert!(begun.elapsed() < PATIENCE, "{what} does not come: {got}");
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap()
    }
}

/// The instant that an `x-amz-date` names.
fn time_of(date: &str) -> SystemTime {
    let spaced = format!(
        "{}-{}-{}T{}:{}:{}Z",
        &date[..4],
        &date[4..6],
        &date[6..8],
        &date[9..11],
        &date[11..13],
        &date[13..15]
    );
    let seconds = Command::new("date")
        .args(["-u", "-d", &spaced, "+%s"])
        .output()
        .unwrap();
    let seconds: u64 = String::from_utf8(seconds.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn what_the_client_signed_is_taken_off_and_the_request_signed_for_the_upstream() {
    let (rig, seen) = Signing::start();
    rig.hand(Some(("AKIDONE", 3_600)));
    let foreign = "Content-Type: application/json\r\nAuthorization: AWS4-HMAC-SHA256 Credential=AKIDCLIENT/20260101/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=00\r\nX-Amz-Date: 20260101T000000Z\r\nX-Amz-Security-Token: stale\r\nX-Amz-Content-Sha256: 00\r\ntraceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01\r\nTE: trailers\r\n";
    let (first, second) = BODY.split_at(10);
    let chunked = format!(
        "{:x}\r\n{first}\r\n{:x}\r\n{second}\r\n0\r\n\r\n",
        first.len(),
        second.len()
    );
    let got = rig.send(
        &format!("{foreign}Transfer-Encoding: chunked\r\n"),
        &chunked,
    );
    assert!(got.starts_with("HTTP/1.1 200"), "{got}");
    let (head, body) = seen.recv_timeout(PATIENCE).unwrap();
    assert_eq!(body, BODY.as_bytes(), "without its chunking");
    assert_eq!(rig.verify(&head, &body), "AKIDONE");
    let lower = head.to_lowercase();
    for gone in [
        "akidclient",
        "stale",
        "x-amz-content-sha256",
        "transfer-encoding",
        "\nte: ",
    ] {
        assert!(!lower.contains(gone), "{gone} in {head}");
    }
    assert!(head.starts_with(&format!("POST {PATH} HTTP/1.1")), "{head}");
    assert!(lower.contains("traceparent: 00-4bf9"));
    let signed = lower.split("signedheaders=").nth(1).unwrap();
    let signed = signed.split(',').next().unwrap();
    assert!(!signed.contains("traceparent") && signed.contains("host"));
    // A client that waits to be asked for its body is asked.
    let length = BODY.len();
    let mut socket = connect(rig.at);
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHost: tap\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n"
    );
    let asked = exchange(&mut socket, head.as_bytes(), b"\r\n\r\n");
    assert_eq!(asked, b"HTTP/1.1 100 Continue\r\n\r\n");
    let got = exchange(&mut socket, BODY.as_bytes(), b"}");
    assert!(got.starts_with(b"HTTP/1.1 200"));
    let (head, body) = seen.recv_timeout(PATIENCE).unwrap();
    rig.verify(&head, &body);
    let large = "x".repeat(70_000);
    let got = rig.send(&format!("Content-Length: {}\r\n", large.len()), &large);
    assert!(got.starts_with("HTTP/1.1 413"), "{got}");
    for secret in ["secret-AKIDONE", "token-AKIDONE"] {
        assert!(!rig.log().contains(secret));
    }
}

#[test]
fn keys_appear_rotate_and_come_back_and_a_lack_of_them_is_told() {
    let (rig, seen) = Signing::start();
    let got = rig.ask();
    assert!(
        got.starts_with("HTTP/1.1 502")
            && got.contains("cannot be signed")
            && got.contains("aws_credentials"),
        "{got}"
    );
    // The keys of the answer that was just got, none where the tap had none.
    let signed_with = |got: &str| {
        got.starts_with("HTTP/1.1 200").then(|| {
            let (head, body) = seen.recv_timeout(PATIENCE).unwrap();
            rig.verify(&head, &body)
        })
    };
    let until = |wanted: Option<&str>| {
        let what = wanted.unwrap_or("an end");
        rig.ask_until(what, |got| signed_with(got).as_deref() == wanted)
    };
    rig.hand(Some(("AKIDONE", 6)));
    until(Some("AKIDONE"));
    // Fetched ahead of the end of the first ones.
    rig.hand(Some(("AKIDTWO", 8)));
    until(Some("AKIDTWO"));
    // The agent dies: what holds is used on, and then it is told.
    rig.hand(None);
    assert_eq!(signed_with(&rig.ask()).as_deref(), Some("AKIDTWO"));
    let got = until(None);
    assert!(
        got.starts_with("HTTP/1.1 502") && got.contains("AWS credentials"),
        "{got}"
    );
    rig.hand(Some(("AKIDTHREE", 3_600)));
    until(Some("AKIDTHREE"));
    assert!(rig.log().contains("AWS credentials cannot be fetched"));
}

/// A verifying engine stand-in of `runtime` with these keys.
fn verifying(runtime: &Runtime, keys: &Path, aws_clock_offset_s: i64) -> SocketAddr {
    let options = EngineOptions {
        ttft_us: 1_000,
        gap_us: 0,
        tokens: 3,
        keys: KeyOptions {
            aws_keys: Some(keys.to_owned()),
            aws_clock_offset_s,
            ..KeyOptions::default()
        },
        ..EngineOptions::default()
    };
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let stop = std::future::pending();
        tokio::spawn(sim::engine::serve(listener, options, Log::off(), stop));
        at
    })
}

/// Bytes that are replaced by others on the way.
type Change = Arc<Mutex<Option<(&'static str, &'static str)>>>;

/// Passes requests on to `server`, with a change where one is set.
fn meddler(server: SocketAddr) -> (SocketAddr, Change) {
    let change = Change::default();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let changes = change.clone();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let changes = changes.clone();
            std::thread::spawn(move || meddle(client, server, &changes));
        }
    });
    (at, change)
}

fn meddle(mut client: TcpStream, server: SocketAddr, change: &Change) {
    let mut server = TcpStream::connect(server).unwrap();
    let (mut answers, mut back) = (server.try_clone().unwrap(), client.try_clone().unwrap());
    std::thread::spawn(move || std::io::copy(&mut answers, &mut back));
    while let Some(request) = whole_request(&mut client) {
        let mut text = String::from_utf8(request).unwrap();
        if let Some((from, to)) = *change.lock().unwrap() {
            assert!(text.contains(from) && from.len() == to.len(), "{text}");
            text = text.replace(from, to);
        }
        if server.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

/// Head and body of a request with a length, `None` at the end.
fn whole_request(socket: &mut TcpStream) -> Option<Vec<u8>> {
    let (mut bytes, mut one) = (Vec::new(), [0_u8; 1]);
    while !bytes.ends_with(b"\r\n\r\n") {
        socket.read_exact(&mut one).ok()?;
        bytes.push(one[0]);
    }
    let head = String::from_utf8_lossy(&bytes).to_lowercase();
    let length = head.split("content-length: ").nth(1)?.split('\r').next()?;
    let mut body = vec![0; length.parse().ok()?];
    socket.read_exact(&mut body).ok()?;
    bytes.extend(body);
    Some(bytes)
}

#[test]
fn a_service_that_verifies_takes_what_a_tap_signed_and_says_what_it_does_not_take() {
    let dir = tempfile::tempdir().unwrap();
    let keys = dir.path().join("keys.json");
    std::fs::write(
        &keys,
        r#"{"keys": {
            "AKIDONE": {"secret": "secret-AKIDONE", "session_token": "token-AKIDONE"},
            "AKIDOLD": {"secret": "secret-AKIDOLD", "session_token": "a later one"},
            "AKIDPAST": {"secret": "secret-AKIDPAST", "session_token": "token-AKIDPAST", "expires": "2026-01-01T00:00:00Z"}
        }}"#,
    )
    .unwrap();
    let runtime = Runtime::new().unwrap();
    let (at, change) = meddler(verifying(&runtime, &keys, 0));
    let rig = Signing::before(at);
    let passes = || {
        rig.ask_until("an answer", |got| {
            got.starts_with("HTTP/1.1 200") && got.contains("\"output\"")
        })
    };
    let refused = |kind: &str, differs: &str| {
        let differs = format!("x-sim-signature-differs: {differs}");
        let got = rig.ask_until(kind, |got| got.contains(kind));
        assert!(got.starts_with("HTTP/1.1 403"), "{got}");
        assert!(got.to_lowercase().contains(&differs), "{got}");
        assert!(!got.contains("secret-") && !got.contains("token-"), "{got}");
    };
    rig.hand(Some(("AKIDONE", 6)));
    passes();
    let unknown = "canonical request: path, query, a signed header or the body has changed";
    for (from, to) in [
        (r#""text":"hi""#, r#""text":"ho""#),
        ("application/json", "application/jsan"),
        ("imported-model%2Fab", "imported-model%2Fac"),
    ] {
        *change.lock().unwrap() = Some((from, to));
        refused("InvalidSignatureException", unknown);
    }
    // An encoded character in its other spelling is another path.
    *change.lock().unwrap() = Some(("arn%3Aaws", "arn%3aaws"));
    refused("InvalidSignatureException", unknown);
    *change.lock().unwrap() = None;
    passes();
    rig.hand(Some(("AKIDOLD", 6)));
    refused(
        "ExpiredTokenException",
        "token: it is not the one that these keys have now",
    );
    rig.hand(Some(("AKIDPAST", 6)));
    rig.ask_until("an end", |got| {
        got.contains("the keys expired at 2026-01-01")
    });
    rig.hand(Some(("AKIDNEW", 6)));
    refused(
        "UnrecognizedClientException",
        "credential: the key file has no access key akidnew",
    );

    for (offset, side) in [(900, "behind"), (-900, "ahead of")] {
        let rig = Signing::before(verifying(&runtime, &keys, offset));
        rig.hand(Some(("AKIDONE", 3_600)));
        let got = rig.ask_until("a wrong clock", |got| {
            got.contains("InvalidSignatureException")
        });
        assert!(got.starts_with("HTTP/1.1 403"), "{got}");
        let told = got.lines().find(|it| it.contains("signature-differs"));
        let told = told.unwrap();
        assert!(
            told.contains("date: signed ") && told.contains(side),
            "{told}"
        );
    }
}
