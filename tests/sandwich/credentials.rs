//! Where a tap that signs finds its keys, besides an agent: each source of AWS' SDKs, by its own variables.

use crate::rig::{PATIENCE, upstream};
use crate::signing::Signing;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::mpsc::Receiver;

type Seen = Receiver<(String, Vec<u8>)>;

fn answer(socket: &mut TcpStream, status: &str, kind: &str, body: &str) {
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    socket.write_all(text.as_bytes()).unwrap();
}

/// A service that says yes to everything.
fn service() -> (SocketAddr, Seen) {
    upstream(|socket, _| answer(socket, "200 OK", "application/json", "{}"))
}

/// A tap with these keys, whose first request is signed with those of this id.
fn signs_with(wanted: &str, source: impl FnOnce(&Path, SocketAddr) -> Vec<(&'static str, String)>) {
    let (server, seen) = service();
    let rig = Signing::with_keys_of(server, source);
    let got = rig.ask();
    assert!(got.starts_with("HTTP/1.1 200"), "{got}{}", rig.log());
    let (head, body) = seen.recv_timeout(PATIENCE).unwrap();
    assert_eq!(rig.verify(&head, &body), wanted);
    let log = rig.log();
    for secret in ["secret-", "token-", "pod-token"] {
        assert!(!log.contains(secret), "{log}");
    }
}

#[test]
fn keys_come_from_the_environment() {
    signs_with("AKIDENV", |_, _| {
        vec![
            ("AWS_ACCESS_KEY_ID", "AKIDENV".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret-AKIDENV".to_owned()),
            ("AWS_SESSION_TOKEN", "token-AKIDENV".to_owned()),
        ]
    });
}

#[test]
fn keys_come_from_a_profile() {
    signs_with("AKIDFILE", |dir, _| {
        let file = dir.join("credentials");
        let keys = "[default]\naws_access_key_id = AKIDOTHER\naws_secret_access_key = other\n[bench]\naws_access_key_id = AKIDFILE\naws_secret_access_key = secret-AKIDFILE\naws_session_token = token-AKIDFILE\n";
        std::fs::write(&file, keys).unwrap();
        vec![
            ("AWS_PROFILE", "bench".to_owned()),
            ("AWS_SHARED_CREDENTIALS_FILE", file.display().to_string()),
        ]
    });
}

/// The variables that a service account with a role gets (IRSA), and where STS is.
fn role(dir: &Path, sts: SocketAddr) -> Vec<(&'static str, String)> {
    let token = dir.join("token").display().to_string();
    vec![
        (
            "AWS_ROLE_ARN",
            "arn:aws:iam::111122223333:role/bench".to_owned(),
        ),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token),
        ("AWS_ROLE_SESSION_NAME", "hopscope".to_owned()),
        ("AWS_ENDPOINT_URL_STS", format!("http://{sts}")),
    ]
}

#[test]
fn keys_come_from_a_web_identity() {
    let (sts, asked) = upstream(|socket, _| {
        let keys = "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><AssumeRoleWithWebIdentityResult><AssumedRoleUser><AssumedRoleId>AROA:hopscope</AssumedRoleId><Arn>arn:aws:sts::111122223333:assumed-role/bench/hopscope</Arn></AssumedRoleUser><Credentials><AccessKeyId>AKIDROLE</AccessKeyId><SecretAccessKey>secret-AKIDROLE</SecretAccessKey><SessionToken>token-AKIDROLE</SessionToken><Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";
        answer(socket, "200 OK", "text/xml", keys);
    });
    signs_with("AKIDROLE", |dir, _| role(dir, sts));
    let (head, body) = asked.recv_timeout(PATIENCE).unwrap();
    let body = String::from_utf8(body).unwrap();
    assert!(head.starts_with("POST / HTTP/1.1"), "{head}");
    for part in [
        "Action=AssumeRoleWithWebIdentity",
        "RoleSessionName=hopscope",
        "WebIdentityToken=pod-token",
    ] {
        assert!(body.contains(part), "{body}");
    }
}

#[test]
fn a_role_that_may_not_be_assumed_is_told() {
    let (sts, _asked) = upstream(|socket, _| {
        let refusal = "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>Not authorized to perform sts:AssumeRoleWithWebIdentity</Message></Error><RequestId>1</RequestId></ErrorResponse>";
        answer(socket, "403 Forbidden", "text/xml", refusal);
    });
    let (server, _seen) = service();
    let rig = Signing::with_keys_of(server, |dir, _| role(dir, sts));
    let got = rig.ask_until("why there are no keys", |got| {
        got.contains("Not authorized to perform sts:AssumeRoleWithWebIdentity")
    });
    assert!(
        got.starts_with("HTTP/1.1 502") && got.contains("cannot be signed"),
        "{got}"
    );
    assert!(!got.contains("pod-token") && !rig.log().contains("pod-token"));
}
