//! A tap that signs for AWS, as a process, with keys from an agent such as that of Pod Identity.

use crate::rig::{PATIENCE, connect, exchange, free, upstream};
use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

/// What the agent hands out: the id of the keys and for how many seconds they hold; `None`: an error.
type Handed = Arc<Mutex<Option<(&'static str, u64)>>>;

const PATH: &str = "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aimported-model%2Fab/converse";
const BODY: &str = r#"{"messages":[{"role":"user","content":[{"text":"hi"}]}]}"#;

fn in_seconds(seconds: u64) -> String {
    let at = SystemTime::now() + Duration::from_secs(seconds);
    let at = at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let date = Command::new("date")
        .args(["-u", "-d", &format!("@{at}"), "+%FT%TZ"])
        .output()
        .unwrap();
    String::from_utf8(date.stdout).unwrap().trim().to_owned()
}

/// An agent that answers those who present the token.
fn agent(token: &'static str) -> (SocketAddr, Handed) {
    let handed: Handed = Arc::default();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    let hands = handed.clone();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let mut head = Vec::new();
            let mut one = [0_u8; 1];
            while !head.ends_with(b"\r\n\r\n") && socket.read(&mut one).unwrap_or(0) > 0 {
                head.push(one[0]);
            }
            let head = String::from_utf8_lossy(&head).to_lowercase();
            let known = head.contains(&format!("authorization: {token}"));
            let (status, body) = match *hands.lock().unwrap() {
                Some((id, seconds)) if known => {
                    let end = in_seconds(seconds);
                    let body = format!(
                        r#"{{"AccessKeyId":"{id}","SecretAccessKey":"secret-{id}","Token":"token-{id}","Expiration":"{end}"}}"#
                    );
                    (200, body)
                }
                _ => (500, "{}".to_owned()),
            };
            let answer = format!(
                "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            // Who does not read it asks again.
            let _ = socket.write_all(answer.as_bytes());
        }
    });
    (at, handed)
}

/// A signing tap before a server that says yes to everything.
struct Signing {
    tap: Child,
    at: SocketAddr,
    server: SocketAddr,
    seen: Receiver<(String, Vec<u8>)>,
    handed: Handed,
    dir: tempfile::TempDir,
}

impl Drop for Signing {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.tap.kill();
        let _ = self.tap.wait();
    }
}

impl Signing {
    fn start() -> Self {
        let (agent, handed) = agent("pod-token");
        let (server, seen) = upstream(|socket, _| {
            let answer =
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
            socket.write_all(answer.as_bytes()).unwrap();
        });
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
        let tap = Command::new(env!("CARGO_BIN_EXE_hopscope"))
            .args(["tap", "--config"])
            .arg(dir.path().join("tap.yaml"))
            .arg("--record")
            .arg(dir.path().join("records"))
            .env_remove("AWS_ACCESS_KEY_ID")
            .env_remove("AWS_PROFILE")
            .env("HOME", dir.path())
            .env("AWS_EC2_METADATA_DISABLED", "true")
            .env(
                "AWS_CONTAINER_CREDENTIALS_FULL_URI",
                format!("http://{agent}/v1/credentials"),
            )
            .env(
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
                dir.path().join("token"),
            )
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
            seen,
            handed,
            dir,
        }
    }

    fn hand(&self, keys: Option<(&'static str, u64)>) {
        *self.handed.lock().unwrap() = keys;
    }

    /// Sends a request with these further fields and this body as it is.
    fn send(&self, fields: &str, body: &str) -> String {
        let request = format!("POST {PATH} HTTP/1.1\r\nHost: tap\r\n{fields}\r\n{body}");
        let got = exchange(&mut connect(self.at), request.as_bytes(), b"}");
        String::from_utf8_lossy(&got).into_owned()
    }

    fn ask(&self) -> String {
        let length = BODY.len();
        let fields = format!(
            "Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n"
        );
        self.send(&fields, BODY)
    }

    /// The id of the keys that the next request is signed with; its signature is checked.
    fn signed_with(&self) -> String {
        let got = self.ask();
        assert!(got.starts_with("HTTP/1.1 200"), "{got}");
        let (head, body) = self.seen.recv_timeout(PATIENCE).unwrap();
        self.verify(&head, &body)
    }

    /// Checks the signature as the service does: from what was received.
    fn verify(&self, head: &str, body: &[u8]) -> String {
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

    fn log(&self) -> String {
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
    let rig = Signing::start();
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
    let (head, body) = rig.seen.recv_timeout(PATIENCE).unwrap();
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
    let (head, body) = rig.seen.recv_timeout(PATIENCE).unwrap();
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
    let rig = Signing::start();
    let got = rig.ask();
    assert!(
        got.starts_with("HTTP/1.1 502")
            && got.contains("cannot be signed")
            && got.contains("aws_credentials"),
        "{got}"
    );
    let until = |wanted: &str| {
        let begun = Instant::now();
        loop {
            let got = rig.ask();
            let id = got.starts_with("HTTP/1.1 200").then(|| {
                let (head, body) = rig.seen.recv_timeout(PATIENCE).unwrap();
                rig.verify(&head, &body)
            });
            if id.as_deref() == Some(wanted) || (wanted == "none" && id.is_none()) {
                return got;
            }
            assert!(begun.elapsed() < PATIENCE, "{wanted} does not come: {got}");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    rig.hand(Some(("AKIDONE", 6)));
    until("AKIDONE");
    // Fetched ahead of the end of the first ones.
    rig.hand(Some(("AKIDTWO", 8)));
    until("AKIDTWO");
    // The agent dies: what holds is used on, and then it is told.
    rig.hand(None);
    assert_eq!(rig.signed_with(), "AKIDTWO");
    let got = until("none");
    assert!(
        got.starts_with("HTTP/1.1 502") && got.contains("AWS credentials"),
        "{got}"
    );
    rig.hand(Some(("AKIDTHREE", 3_600)));
    until("AKIDTHREE");
    assert!(rig.log().contains("AWS credentials cannot be fetched"));
}
