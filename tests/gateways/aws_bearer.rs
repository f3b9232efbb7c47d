//! Keys that are borne and not signed with: passed on as they are, or put in by the tap. AgentCore's runtime, whose
//! agents take either.

use super::aws_rig::{BEARER, Caller, Place, equal, of, told, urls};
use super::installed;
use super::rig::{Rig, connect, exchange, upstream};
use record::exchange::Outcome;
use serde_json::Value;
use sim::agentcore::AgentCoreOptions;
use std::io::Write as _;
use std::net::SocketAddr;
use std::process::Command;

/// An agent that starts quickly, in one session.
fn agent(place: &Place, caller: Caller) -> SocketAddr {
    place.agentcore(AgentCoreOptions {
        cold_start_ms: 5,
        first_us: 1_000,
        gap_us: 500,
        pieces: 12,
        max_sessions: 1,
        keys: place.keys(caller),
        ..AgentCoreOptions::default()
    })
}

fn ask(at: SocketAddr, way: &[&str], environment: &[(&str, &str)]) -> Vec<Value> {
    let mut arguments = urls(&[at]);
    arguments.extend(way.iter().map(|word| (*word).to_owned()));
    told("clients", "agentcore.py", &arguments, environment)
}

#[test]
fn a_json_web_token_reaches_the_agent_through_a_tap_that_does_not_sign() {
    let Some(_turn) = installed("clients") else {
        return;
    };
    let place = Place::new();
    let taps = place.taps(&[agent(&place, Caller::Tap)], "host_header: keep");
    let tapped = ask(taps.at[0], &["jwt", BEARER], &[]);
    equal(
        &tapped,
        &ask(agent(&place, Caller::Client), &["jwt", BEARER], &[]),
    );
    for (what, status, kind) in [
        (
            "jwt text/event-stream",
            200,
            "text/event-stream; charset=utf-8",
        ),
        ("jwt application/json", 200, "application/json"),
        ("another text/event-stream", 403, "application/json"),
        ("none application/json", 403, "application/json"),
    ] {
        let line = of(&tapped, what);
        assert_eq!(
            (&line["status"], &line["kind"]),
            (&status.into(), &kind.into()),
            "{line}"
        );
    }
    let session = &of(&tapped, "jwt application/json")["session"];
    assert_eq!(session, "session-of-a-conformance-client-0001");
    let outcomes: Vec<Outcome> = taps.calls().iter().map(|call| call.outer.outcome).collect();
    let (yes, no) = (Outcome::Complete, Outcome::Refused);
    assert_eq!(outcomes, [yes, no, no, yes, no, no]);
}

#[test]
fn boto3_invokes_an_agent_through_a_tap_that_signs_as_it_does_without() {
    let Some(_turn) = installed("clients") else {
        return;
    };
    let place = Place::new();
    let sign = "host_header: upstream, sign: {service: bedrock-agentcore, region: us-east-1}";
    let taps = place.taps(&[agent(&place, Caller::Tap)], sign);
    let keys = Caller::Client.environment();
    let tapped = ask(taps.at[0], &["sigv4"], &keys);
    equal(
        &tapped,
        &ask(agent(&place, Caller::Client), &["sigv4"], &keys),
    );
    let streamed = of(&tapped, "text/event-stream");
    assert_eq!(
        streamed["body"].as_str().unwrap().matches("data: ").count(),
        12
    );
    let refused = of(&tapped, "one session too many");
    assert_eq!(refused["kind"], "ServiceQuotaExceededException");
    assert_eq!(refused["status"], 402);
    let outcomes: Vec<Outcome> = taps.calls().iter().map(|call| call.outer.outcome).collect();
    assert_eq!(
        outcomes,
        [Outcome::Complete, Outcome::Complete, Outcome::Refused]
    );
}

const YES: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";

fn request(fields: &str) -> String {
    format!(
        "POST /runtimes/arn/invocations HTTP/1.1\r\nHost: h\r\n{fields}Content-Length: 2\r\n\r\n{{}}"
    )
}

/// The lines of a head that tell who asks.
fn authorizations(head: &str) -> Vec<String> {
    let lines = head.lines().map(str::to_owned);
    lines
        .filter(|line| line.to_lowercase().starts_with("authorization:"))
        .collect()
}

#[test]
fn what_a_client_bears_passes_byte_for_byte() {
    let (at, seen) = upstream(|socket, _| socket.write_all(YES).unwrap());
    let rig = Rig::around(at);
    // As some client spells it: the tap is not to tidy it up.
    let line = format!("authorization:  Bearer {BEARER}");
    let got = exchange(
        &mut connect(rig.outer),
        request(&format!("{line}\r\n")).as_bytes(),
        b"{}",
    );
    assert!(got.starts_with(b"HTTP/1.1 200"));
    let (head, _) = seen.recv().unwrap();
    let passed = authorizations(&head);
    assert_eq!(passed.len(), 1, "{head}");
    assert!(passed[0].ends_with(&format!("Bearer {BEARER}")), "{head}");
}

#[test]
fn a_taps_own_bearer_key_takes_the_place_of_the_clients() {
    let (at, seen) = upstream(|socket, _| socket.write_all(YES).unwrap());
    let place = Place::new();
    let settings = "host_header: upstream, bearer_env: CONFORMANCE_TOKEN";
    let taps = place.taps_with(&[at], settings, &[("CONFORMANCE_TOKEN", BEARER)]);
    for fields in ["", "authorization: Bearer of-the-client\r\n"] {
        exchange(&mut connect(taps.at[0]), request(fields).as_bytes(), b"{}");
        let (head, _) = seen.recv().unwrap();
        assert_eq!(
            authorizations(&head),
            [format!("Authorization: Bearer {BEARER}")]
        );
    }
    assert!(!taps.log().contains(BEARER));
    assert_eq!(taps.calls().len(), 2);
}

#[test]
fn a_bearer_key_that_is_not_there_is_told_at_the_start_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let chain = "name: c\nkind: direct\nsimulated: true\nentry: http://127.0.0.1:1\nmodel: m\ntaps:\n  - name: outer\n    position: outer\n    listen: \"127.0.0.1:1\"\n    upstream: {addresses: [\"127.0.0.1:2\"], bearer_env: NO_SUCH_KEY}\n";
    std::fs::write(dir.path().join("chain.yaml"), chain).unwrap();
    std::fs::write(dir.path().join("tap.yaml"), "chains: [chain.yaml]\n").unwrap();
    let run = Command::new(env!("CARGO_BIN_EXE_hopscope"))
        .arg("tap")
        .arg("--config")
        .arg(dir.path().join("tap.yaml"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(!run.status.success());
    for part in [
        "chain.yaml:",
        "NO_SUCH_KEY",
        "set it, or remove `bearer_env`",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let line = said.split("chain.yaml:").nth(1).unwrap();
    assert!(line.starts_with("9:"), "{said}");
}
