//! What users get wrong, and what breaks around a run: one message that says what to do, and nothing that
//! was measured is lost.

use crate::rig::{engine, free, upstream};
use record::client::CallOutcome;
use record::rundir::RunDir;
use report::Reading;
use sim::engine::EngineOptions;
use std::fmt::Write as _;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const SCENARIO: &str = "
name: bad
number: 1
question: What does it say?
workload: {input_tokens: 20, output_tokens: 16}
closed_loop: {concurrency: [2], cell: {calls: 20}}
blocks: 1
warmup: {duration: 1us}
timeouts: {connect: 1s, first_byte: 1s, silence: 1s, total: 1s}
seed: 7
";

/// A chain that leads to `at`, with `more` lines.
fn write(dir: &Path, at: SocketAddr, scenario: &str, more: &str) {
    let chain = format!(
        "name: mine\nkind: service\ngateway: {{name: stand-in}}\nsimulated: true\nentry: http://{at}\nmodel: llama\n{more}\
         taps: [{{name: outer, position: outer, listen: \"{at}\", upstream: {{addresses: [\"127.0.0.1:9\"]}}}}]\n"
    );
    std::fs::write(dir.join("chain.yaml"), chain).unwrap();
    std::fs::write(dir.join("scenario.yaml"), scenario).unwrap();
}

/// The words of the command that drives it.
fn words(dir: &Path) -> Vec<String> {
    let path = |name: &str| dir.join(name).display().to_string();
    let words = [
        "load".to_owned(),
        "--quiet".to_owned(),
        "--scenario".to_owned(),
        path("scenario.yaml"),
        "--chain".to_owned(),
        path("chain.yaml"),
        "--out".to_owned(),
        path("run"),
    ];
    words.to_vec()
}

fn load(dir: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hopscope"))
        .args(words(dir))
        .env("BAD_INPUT_KEY", "sk-none")
        .output()
        .unwrap()
}

/// The one message of a command that could not do what it was asked for.
fn refusal(output: &Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert_eq!(said.matches("hopscope: ").count(), 1, "{said}");
    assert!(!said.contains("panicked"), "{said}");
    said
}

/// Refused, in words that hold all of `wanted`, before a run directory is made.
fn refused(dir: &Path, wanted: &[&str]) {
    let said = refusal(&load(dir));
    for words in wanted {
        assert!(said.contains(words), "{words} is not in: {said}");
    }
    assert!(!dir.join("run").exists());
}

/// A server that answers each request with this status and error.
fn refusing(status: &'static str, error: &'static str) -> SocketAddr {
    let (at, _) = upstream(move |socket, _| {
        let body = format!("{{\"error\":{error}}}");
        let head = format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\n");
        let all = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        socket.write_all(all.as_bytes()).unwrap();
    });
    at
}

fn piece(text: &str) -> String {
    format!("{:x}\r\n{text}\r\n", text.len())
}

fn token() -> String {
    piece("data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word \"}}]}\n\n")
}

/// Tokens for as long as somebody listens.
fn without_end(socket: &mut TcpStream) {
    let mut open = socket.write_all(HEAD.as_bytes()).is_ok();
    while open {
        open = socket.write_all(token().as_bytes()).is_ok();
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A whole answer of sixteen tokens.
fn whole(socket: &mut TcpStream) {
    let mut all = HEAD.to_owned();
    (0..16).for_each(|_| all += &token());
    let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n\
               data: {\"choices\":[],\"usage\":{\"prompt_tokens\":20,\"completion_tokens\":16,\"total_tokens\":36}}\n\n\
               data: [DONE]\n\n";
    write!(all, "{}0\r\n\r\n", piece(end)).unwrap();
    // A client that left is noticed by the next read.
    let _ = socket.write_all(all.as_bytes());
}

#[test]
fn a_chain_that_nobody_serves_is_named_with_its_address() {
    let dir = tempfile::tempdir().unwrap();
    let at = free();
    write(dir.path(), at, SCENARIO, "");
    refused(
        dir.path(),
        &["chain mine", &at.to_string(), "start the chain first"],
    );
}

#[test]
fn a_model_that_is_not_served_is_named() {
    // As vLLM answers, and as LiteLLM does.
    let missing = r#"{"message":"The model `llama` does not exist.","type":"NotFoundError"}"#;
    let invalid = r#"{"message":"Invalid model name","type":"invalid_request_error"}"#;
    for (status, error) in [("404 Not Found", missing), ("400 Bad Request", invalid)] {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), refusing(status, error), SCENARIO, "");
        refused(dir.path(), &["chain mine", &status[..3], "`model` (llama)"]);
    }
}

#[test]
fn a_key_that_is_refused_or_missing_is_told_by_the_name_of_its_variable() {
    let error = r#"{"message":"no","type":"auth_error"}"#;
    let cases = [
        ("key_env: BAD_INPUT_KEY\n", "check the key in BAD_INPUT_KEY"),
        ("", "`key_env`"),
    ];
    for (line, wanted) in cases {
        let dir = tempfile::tempdir().unwrap();
        let at = refusing("401 Unauthorized", error);
        write(dir.path(), at, SCENARIO, line);
        refused(dir.path(), &["chain mine", "status 401", wanted]);
        assert!(!refusal(&load(dir.path())).contains("sk-none"));
    }
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), free(), SCENARIO, "key_env: BAD_INPUT_UNSET\n");
    refused(dir.path(), &["chain mine", "BAD_INPUT_UNSET", "export it"]);
}

#[test]
fn a_tokenizer_that_does_not_exist_is_named_with_what_can_be_had() {
    let dir = tempfile::tempdir().unwrap();
    let (_engine, at) = engine(EngineOptions::default());
    let with = |tokenizer: &str| {
        let workload = format!("output_tokens: 16, tokenizer: {tokenizer}}}");
        SCENARIO.replace("output_tokens: 16}", &workload)
    };
    write(dir.path(), at, &with("{file: nowhere.json}"), "");
    refused(dir.path(), &["nowhere.json", "No such file", "o200k"]);
    write(dir.path(), at, &with("p50k"), "");
    refused(dir.path(), &["scenario.yaml:", "p50k", "o200k"]);
}

#[test]
fn a_stream_that_never_ends_is_told_before_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let (at, _) = upstream(|socket, _| without_end(socket));
    // The longest answer may take ten minutes; a few tokens may not.
    let patient = SCENARIO.replace("total: 1s", "total: 10m");
    write(dir.path(), at, &patient, "");
    let began = Instant::now();
    refused(
        dir.path(),
        &["chain mine", "not over within 2s", "`max_tokens`", "[DONE]"],
    );
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn streams_that_never_end_are_given_up_and_the_others_are_kept() {
    let dir = tempfile::tempdir().unwrap();
    let asked = AtomicU64::new(0);
    // The first call is the one that tries the chain.
    let (at, _) = upstream(
        move |socket, _| match asked.fetch_add(1, Ordering::Relaxed) % 5 {
            4 => without_end(socket),
            _ => whole(socket),
        },
    );
    write(dir.path(), at, SCENARIO, "");
    let output = load(dir.path());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let root = dir.path().join("run");
    let (calls, losses) = RunDir::open(&root).unwrap().read_calls().unwrap();
    assert!(losses.is_empty() && calls.len() == 20, "{}", calls.len());
    let (ended, not): (Vec<_>, Vec<_>) = calls
        .iter()
        .partition(|c| c.outcome == CallOutcome::Complete);
    assert_eq!((ended.len(), not.len()), (16, 4));
    for call in not {
        assert_eq!(call.outcome, CallOutcome::TimedOut);
        assert!(call.fault.as_deref().unwrap().contains("timeouts.total"));
        assert!(call.text_events > 16 && call.end - call.started >= 1_000_000_000);
    }
    // Four of twenty are lost: their latencies are not known, and so is no tail.
    let report = report::build(&[root]).unwrap();
    let [arm] = &report.arms[..] else {
        panic!("{:?}", report.arms);
    };
    let timed_out = ("timed-out".to_owned(), 4);
    assert!(arm.strata.outcomes.contains(&timed_out));
    assert!(matches!(arm.e2e.p50, Reading::Refused(_)), "{:?}", arm.e2e);
}

#[test]
fn a_run_in_which_nothing_is_answered_is_not_valid() {
    let dir = tempfile::tempdir().unwrap();
    let asked = AtomicU64::new(0);
    let (at, _) = upstream(
        move |socket, _| match asked.fetch_add(1, Ordering::Relaxed) {
            0 => whole(socket),
            _ => {
                let busy = b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
                socket.write_all(busy).unwrap();
            }
        },
    );
    write(dir.path(), at, SCENARIO, "");
    let output = load(dir.path());
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("INVALID cells-without-answer: 1") && said.contains("mine"),
        "{said}"
    );
}

/// No file may grow beyond 16 KiB (or 32, as the shell counts): what a full disk does, without one.
fn load_without_room(dir: &Path) -> Output {
    Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 32; exec \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_hopscope"))
        .args(words(dir))
        .output()
        .unwrap()
}

#[test]
fn a_full_disk_ends_the_run_with_one_message_and_it_goes_on_when_there_is_room() {
    let dir = tempfile::tempdir().unwrap();
    let (_engine, at) = engine(EngineOptions {
        ttft_us: 5_000,
        gap_us: 1_000,
        ..EngineOptions::default()
    });
    let course = SCENARIO.replace(
        "closed_loop: {concurrency: [2], cell: {calls: 20}}",
        "profile: {arrivals: uniform, phases: [{name: all, rate: 200, duration: 6s}]}",
    );
    write(dir.path(), at, &course, "");
    let began = Instant::now();
    let said = refusal(&load_without_room(dir.path()));
    for words in ["calls-000000.seg", "make room", "--resume", "is kept"] {
        assert!(said.contains(words), "{words} is not in: {said}");
    }
    // Not at the end of the load, when hours would be lost.
    assert!(began.elapsed() < Duration::from_secs(5), "{said}");
    let root = dir.path().join("run");
    let run = RunDir::open(&root).unwrap();
    let (kept, _) = run.read_calls().unwrap();
    assert!(kept.len() > 50, "{} calls are kept", kept.len());
    report::build(std::slice::from_ref(&root)).unwrap();

    let mut again = words(dir.path());
    again.push("--resume".to_owned());
    let output = Command::new(env!("CARGO_BIN_EXE_hopscope"))
        .args(again)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let (calls, _) = run.read_calls().unwrap();
    let mut numbers: Vec<u64> = calls.iter().map(|c| c.intended).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!((calls.len(), numbers.len()), (1200, 1200));
    let complete = calls.iter().filter(|c| c.outcome == CallOutcome::Complete);
    assert!(complete.count() > 800);
}
