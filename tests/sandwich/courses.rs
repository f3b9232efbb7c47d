//! Whole runs of other shapes than steady load: courses, shared system prompts, tenants.

use crate::rig::{Rig, chain, upstream};
use config::{ChainKind, Scenario};
use loadgen::progress::Silent;
use loadgen::{Plan, PlannedChain, PlannedTap, Stop};
use record::manifest::{Company, Drive};
use report::Report;
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

/// Answers with sixteen tokens, of which the first carries `first`.
fn answer(socket: &mut TcpStream, first: &str) {
    let mut events = String::new();
    for n in 0..16 {
        let text = if n == 0 { first } else { "word " };
        events += &format!(
            "data: {{\"id\":\"x\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
        );
    }
    events += "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n\
               data: {\"id\":\"x\",\"choices\":[],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":16,\"total_tokens\":116,\"prompt_tokens_details\":{\"cached_tokens\":25}}}\n\n\
               data: [DONE]\n\n";
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    let all = format!("{head}{:x}\r\n{events}\r\n0\r\n\r\n", events.len());
    // A client that left is noticed by the next read.
    let _ = socket.write_all(all.as_bytes());
}

/// Runs `scenario` through one tap against `at`, and reports it.
fn run(scenario: &str, at: SocketAddr) -> Report {
    let mut rig = Rig::around(at);
    let records = rig.records.path().join("taps/tap");
    let parsed = config::from_text::<Scenario>(Path::new("course.yaml"), scenario)
        .unwrap_or_else(|error| panic!("{error}"));
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let mut plan = Plan::new("course", &out, parsed.into_inner(), scenario.to_owned());
    let mut driven = chain(&[("outer", rig.outer, at)]);
    driven.name = "rig".to_owned();
    driven.kind = ChainKind::Service;
    plan.chains.push(PlannedChain {
        chain: driven,
        text: "name: rig".to_owned(),
        base: dir.path().to_owned(),
        pids: Vec::new(),
        injected: None,
    });
    plan.taps.push(PlannedTap { records, pid: None });
    let run = loadgen::run(&plan, Arc::new(Silent), &Stop::default()).unwrap();
    drop(rig.calls());
    let report = report::build(&[run.root().to_owned()]).unwrap();
    assert!(report.losses.is_empty(), "{:?}", report.losses);
    let page = report::render::html(&report);
    assert!(page.contains("What the client sees") && !page.contains("NaN"));
    // It can be read without a network.
    assert!(
        ["src=", "@import", "url(", "<link"]
            .iter()
            .all(|loads| !page.contains(loads))
    );
    assert!(report::render::markdown(&report).contains("What the client sees"));
    report
}

/// The contents of the messages of each request, by role.
fn messages(seen: &Receiver<(String, Vec<u8>)>) -> Vec<BTreeMap<String, String>> {
    seen.try_iter()
        .map(|(_, body)| {
            let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
            let all = json["messages"].as_array().unwrap();
            all.iter()
                .map(|m| {
                    let text = |key: &str| m[key].as_str().unwrap().to_owned();
                    (text("role"), text("content"))
                })
                .collect()
        })
        .collect()
}

#[test]
fn a_course_is_reported_whole_and_phase_by_phase_with_shared_system_prompts() {
    let (at, seen) = upstream(|socket, _| answer(socket, "word "));
    let report = run(
        "
name: course
number: 9
question: What does a burst do?
workload: {input_tokens: 20, output_tokens: 16, system: {count: 3, tokens: 40}}
profile:
  arrivals: uniform
  phases:
    - {name: before, rate: 10, duration: 1s}
    - {name: ramp, rate: 10, to: 60, duration: 1s}
    - {name: burst, rate: 60, duration: 1s}
blocks: 2
warmup: {calls: 4}
seed: 7
",
        at,
    );
    let labels: Vec<&str> = report.arms.iter().map(|a| a.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "course: before, ramp, burst",
            "before (10/s)",
            "ramp (10 to 60/s)",
            "burst (60/s)"
        ]
    );
    let sent: Vec<usize> = report.arms.iter().map(|a| a.strata.sent).collect();
    // Uniform arrivals: exact, twice, and nothing was left out as warm-up.
    assert_eq!(sent, [210, 20, 70, 120]);
    let burst = &report.arms[3];
    assert!(
        // Never more than was due, and hardly less.
        (57.0..=60.01).contains(&burst.rate.unwrap()),
        "{:?}",
        burst.rate
    );
    let tokens = burst.tokens_rate.unwrap() / burst.rate.unwrap();
    assert!((tokens - 16.0).abs() < 1e-6, "{tokens}");
    assert_eq!(burst.cached_share, Some(0.25));
    assert_eq!((burst.goodput, burst.leaked), (None, None));
    assert!(burst.ttft.p50.value().is_some() && burst.legs.is_empty());
    let table = "scenario: 9\nvariants: [{name: awq, kind: quantisation, sets: none, cells: [{on: A, chain: rig}, {on: B, chain: other}, \
                 {on: C, not_offered: why}]}]\n";
    let table = config::from_text::<config::Variants>("variants.yaml", table).unwrap();
    let mut with_table = report.clone();
    with_table.variants = report::variants(&report, &table);
    // Four arms of the one chain, and a line for each of the other cells.
    assert_eq!(with_table.variants.len(), 6);
    for text in [
        report::render::html(&with_table),
        report::render::markdown(&with_table),
    ] {
        assert!(text.contains("hopscope load --scenario 9 --chain other --out runs/other"));
        assert!(text.contains("not offered: why") && text.contains("burst (60/s)"));
    }
    let asked = messages(&seen);
    // The run's own calls, behind the one that tried the chain.
    let systems: Vec<&String> = asked.iter().filter_map(|m| m.get("system")).collect();
    assert_eq!(systems.len(), 210);
    // Three in each of two cells: no block finds what the other left in a cache.
    let distinct: BTreeSet<&&String> = systems.iter().collect();
    assert_eq!(distinct.len(), 6);
    let users: BTreeSet<&String> = asked.iter().filter_map(|m| m.get("user")).collect();
    assert!(users.len() >= 210, "every user's part is another");
}

const TENANTS: &str = "
name: tenants
number: 6
question: Does anything leak?
workload: {input_tokens: 20, output_tokens: 16}
tenants:
  arrivals: uniform
  members:
    - {name: one, rate: 10, system_tokens: 30, headers: {x-tenant: one}}
    - {name: two, rate: 5, system_tokens: 30, headers: {x-tenant: two}}
    - {name: three, rate: 5, system_tokens: 30, headers: {x-tenant: three}}
  flood: {tenant: three, rate: 60}
  cell: {duration: 1s}
blocks: 1
warmup: {calls: 1}
seed: 7
";

/// Runs the tenants against an engine that tells, where `leaks` says so, the secret of the call before.
fn tenants(leaks: bool) -> (Report, Vec<(String, Vec<u8>)>) {
    let last: Mutex<String> = Mutex::default();
    let bodies: Arc<Mutex<Option<String>>> = Arc::default();
    let sent = bodies.clone();
    let (at, seen) = upstream(move |socket, _| {
        // The secret of the request that was read just before is known to the test's receiver only;
        // the engine here takes it from what the test hands it.
        let mut last = last.lock().unwrap();
        let told = if leaks { last.clone() } else { String::new() };
        if let Some(secret) = sent.lock().unwrap().clone() {
            *last = secret;
        }
        answer(socket, &format!("word {told} "));
    });
    let relay = relay(at, bodies);
    let report = run(TENANTS, relay);
    (report, seen.try_iter().collect())
}

/// Passes requests on to `at` and notes the secret in each.
fn relay(at: SocketAddr, noted: Arc<Mutex<Option<String>>>) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let engine = TcpStream::connect(at).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), engine.try_clone().unwrap());
            let noted = noted.clone();
            std::thread::spawn(move || {
                let mut buffer = [0_u8; 64 * 1024];
                while let Ok(count @ 1..) = std::io::Read::read(&mut from, &mut buffer) {
                    let text = String::from_utf8_lossy(&buffer[..count]).into_owned();
                    if let Some((_, rest)) = text.split_once("hs-") {
                        *noted.lock().unwrap() = Some(format!("hs-{}", &rest[..16]));
                    }
                    if to.write_all(&buffer[..count]).is_err() {
                        return;
                    }
                }
                let _ = to.shutdown(std::net::Shutdown::Both);
            });
            let (mut from, mut to) = (engine, client);
            std::thread::spawn(move || std::io::copy(&mut from, &mut to));
        }
    });
    own
}

#[test]
fn tenants_are_driven_alone_together_and_flooded_and_a_leak_is_caught() {
    for leaks in [false, true] {
        let (report, seen) = tenants(leaks);
        let of = |wanted: Company| {
            report.arms.iter().filter(
                move |a| matches!(&a.drive, Drive::Tenant { company, .. } if *company == wanted),
            )
        };
        assert_eq!(of(Company::Alone).count(), 3);
        let sent =
            |company: Company| -> Vec<usize> { of(company).map(|a| a.strata.sent).collect() };
        // The window opens with the last warm-up call and closes before the call a second later.
        assert_eq!(sent(Company::Together), [9, 4, 4]);
        assert_eq!(sent(Company::Flooded), [9, 4, 59]);
        let leaked = |company: Company| -> u64 { of(company).map(|a| a.leaked.unwrap()).sum() };
        if leaks {
            assert!(leaked(Company::Together) > 0 && leaked(Company::Flooded) > 0);
            assert!(report::render::html(&report).contains(" leaked"));
        } else {
            let all: u64 = report.arms.iter().map(|a| a.leaked.unwrap()).sum();
            assert_eq!(all, 0);
        }
        assert!(report::render::html(&report).contains("Fairness of rig, together: 0.997"));
        // Each tenant's own header went with its calls.
        for name in ["one", "two", "three"] {
            let own = format!("x-tenant: {name}");
            assert!(seen.iter().any(|(head, _)| head.contains(&own)), "{name}");
        }
    }
}

#[test]
fn a_steady_course_tells_whether_it_drifts() {
    // Each answer comes later than the one before.
    let count = std::sync::atomic::AtomicU64::new(0);
    let (at, _) = upstream(move |socket, _| {
        let number = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        std::thread::sleep(std::time::Duration::from_millis(number));
        answer(socket, "word ");
    });
    let phases: String = (1..=8)
        .map(|n| format!("    - {{name: part-{n}, rate: 20, duration: 500ms}}\n"))
        .collect();
    let report = run(
        &format!(
            "name: course\nnumber: 8\nquestion: Does it drift?\nworkload: {{input_tokens: 20, output_tokens: 16}}\n\
             profile:\n  arrivals: uniform\n  phases:\n{phases}blocks: 1\nwarmup: {{calls: 1}}\nseed: 7\n"
        ),
        at,
    );
    let ttft = report
        .drifts
        .iter()
        .find(|d| d.figure == "TTFT p50")
        .unwrap();
    // Ten calls, so ten milliseconds, a phase of half a second.
    let per_phase = ttft.slope_per_hour / 7200.0 / 1e6;
    assert!((8.0..12.0).contains(&per_phase), "{per_phase} ms a phase");
    assert!(ttft.p < 0.01, "{}", ttft.p);
    let lost = report
        .drifts
        .iter()
        .find(|d| d.figure.starts_with("share"))
        .unwrap();
    assert!((lost.p - 1.0).abs() < 1e-9 && lost.slope_per_hour.abs() < 1e-9);
    assert!(report::render::html(&report).contains("Drift over the course"));
}
