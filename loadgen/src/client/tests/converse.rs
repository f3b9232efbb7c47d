//! Bedrock's Converse, as its service model has it.

use super::*;
use crate::api::Api;
use record::service::ServiceFault;
use std::net::TcpStream;
use wire::eventstream::encode;

const PAUSE: Duration = Duration::from_millis(60);
const MILLISECOND: u64 = 1_000_000;
const FRAMES: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/vnd.amazon.eventstream\r\ntransfer-encoding: chunked\r\n\r\n";

fn event(kind: &str, payload: &str) -> Vec<u8> {
    let headers = [
        (":event-type", kind),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];
    encode(&headers, payload.as_bytes())
}

fn start() -> Vec<u8> {
    event("messageStart", r#"{"role":"assistant","p":"abcdefghijkl"}"#)
}

fn text(text: &str) -> Vec<u8> {
    let payload = format!(r#"{{"contentBlockIndex":0,"delta":{{"text":"{text}"}},"p":"abc"}}"#);
    event("contentBlockDelta", &payload)
}

fn stop() -> Vec<u8> {
    event("messageStop", r#"{"stopReason":"max_tokens"}"#)
}

fn metadata() -> Vec<u8> {
    event(
        "metadata",
        r#"{"usage":{"inputTokens":3,"outputTokens":2,"totalTokens":16,"cacheReadInputTokens":7,"cacheWriteInputTokens":4},"metrics":{"latencyMs":50}}"#,
    )
}

fn exception(kind: &str, message: &str) -> Vec<u8> {
    let headers = [(":exception-type", kind), (":message-type", "exception")];
    encode(&headers, format!(r#"{{"message":"{message}"}}"#).as_bytes())
}

fn write(stream: &mut TcpStream, piece: &[u8]) {
    let mut chunk = format!("{:x}\r\n", piece.len()).into_bytes();
    chunk.extend_from_slice(piece);
    chunk.extend_from_slice(b"\r\n");
    stream.write_all(&chunk).unwrap();
}

/// The answer of `server`, asked as a chain that speaks Converse.
fn asked(server: &Server) -> Told {
    let mut chain = server.chain("c", "direct");
    chain.api = config::Api::Converse;
    chain.model = "us.meta.llama3-1-70b-instruct-v1:0".to_owned();
    let planned = PlannedChain {
        chain,
        text: String::new(),
        base: std::path::PathBuf::new(),
        pids: Vec::new(),
        injected: None,
    };
    let target = Target::of(&planned, &Timeouts::default(), true).unwrap();
    assert_eq!(target.api, Api::Converse { cache_from: None });
    // An experiment may ask for another model, which stands in the path.
    let other = target.asking("arn:x/y").unwrap();
    assert_eq!(other.uri, "/model/arn%3Ax%2Fy/converse-stream");
    let client = Arc::new(Client::new(Arc::new(target), 1, Cut::default()));
    let told = one(&Lanes::start(1).unwrap(), &client, 0);
    let path = "POST /model/us.meta.llama3-1-70b-instruct-v1%3A0/converse-stream HTTP/1.1";
    let seen = server.seen();
    assert_eq!(seen.len(), 1, "nothing is asked twice");
    assert!(seen[0].head.starts_with(path), "{}", seen[0].head);
    told
}

/// An answer of these frames, each in a write of its own with a pause before it.
fn answered(pieces: Vec<Vec<u8>>) -> Told {
    asked(&Server::start(move |_, stream| {
        stream.write_all(FRAMES.as_bytes()).unwrap();
        for piece in &pieces {
            std::thread::sleep(PAUSE);
            write(stream, piece);
        }
        stream.write_all(b"0\r\n\r\n").is_ok()
    }))
}

#[test]
fn marks_gaps_and_usage_are_those_of_the_same_stream_as_events() {
    let mut late = text("b");
    let rest = late.split_off(20);
    let told = answered(vec![start(), text("a"), late, rest, stop(), metadata()]);
    let call = &told.call;
    assert_eq!(
        (call.outcome, call.fault.as_deref()),
        (CallOutcome::Complete, None)
    );
    assert_eq!((told.text.as_str(), call.text_events), ("ab", 2));
    // `messageStart` is no text, and a frame is there with its last byte.
    let choice = call.ttft_choice().unwrap();
    assert!(call.ttft().unwrap() >= choice + 50 * MILLISECOND);
    assert_eq!(told.gaps.len(), 1);
    assert!(told.gaps[0] >= 110 * MILLISECOND, "{:?}", told.gaps);
    assert!(call.finish.unwrap() >= call.last_text.unwrap() + 50 * MILLISECOND);
    assert!(call.done.unwrap() >= call.finish.unwrap() + 50 * MILLISECOND);
    let usage = (
        call.usage_prompt,
        call.usage_cached,
        call.usage_cache_write,
        call.usage_completion,
    );
    assert_eq!(usage, (Some(14), Some(7), Some(4), Some(2)));
}

#[test]
fn a_stream_without_its_stop_its_metadata_or_a_sound_frame_is_incomplete() {
    let mut damaged = text("b");
    let last = damaged.len() - 1;
    damaged[last] ^= 1;
    let half = text("b")[..30].to_vec();
    for (pieces, fault) in [
        (vec![start(), text("a")], "no finish reason"),
        (vec![start(), text("a"), metadata()], "no finish reason"),
        (vec![start(), text("a"), stop()], "metadata"),
        (
            vec![start(), text("a"), damaged, stop(), metadata()],
            "could not be read",
        ),
        (
            vec![start(), text("a"), stop(), metadata(), half],
            "could not be read",
        ),
    ] {
        let call = answered(pieces).call;
        let told = call.fault.unwrap_or_default();
        assert_eq!(call.outcome, CallOutcome::Truncated, "{told}");
        assert!(told.contains(fault), "{told}");
    }
}

#[test]
fn an_exception_inside_a_stream_is_a_failure_of_its_class() {
    for (kind, message, class) in [
        (
            "throttlingException",
            "Too many tokens, secret",
            Some(ServiceFault::ThrottledTokens),
        ),
        (
            "modelStreamErrorException",
            "secret",
            Some(ServiceFault::ModelError),
        ),
        (
            "serviceUnavailableException",
            "secret",
            Some(ServiceFault::Capacity),
        ),
        ("otherException", "secret", None),
    ] {
        let call = answered(vec![start(), text("a"), exception(kind, message)]).call;
        let wanted = class.map_or(CallOutcome::ErrorInStream, CallOutcome::Service);
        assert_eq!((call.outcome, call.status), (wanted, Some(200)), "{kind}");
        assert!(call.first_text.is_some() && call.usage_completion.is_none());
        let fault = call.fault.unwrap();
        assert!(fault.contains(kind) && !fault.contains("secret"), "{fault}");
    }
}

#[test]
fn refusals_of_one_status_are_told_apart_by_their_type() {
    let field = |kind: &str| format!("x-amzn-ErrorType: {kind}:http://internal\r\n");
    let body = |message: &str| format!(r#"{{"message":"{message}"}}"#);
    let tokens = "Too many tokens, please wait before trying again.";
    for (status, head, body, class) in [
        (
            429,
            field("ThrottlingException"),
            body(tokens),
            ServiceFault::ThrottledTokens,
        ),
        (
            429,
            field("ThrottlingException"),
            body("Too many requests, please wait before trying again."),
            ServiceFault::ThrottledRequests,
        ),
        (
            429,
            field("ModelNotReadyException"),
            body("Model is not ready for inference."),
            ServiceFault::NotReady,
        ),
        (
            503,
            field("ServiceUnavailableException"),
            body("busy"),
            ServiceFault::Capacity,
        ),
        (
            408,
            field("ModelTimeoutException"),
            String::new(),
            ServiceFault::ModelTimeout,
        ),
        (
            424,
            field("ModelErrorException"),
            body("m"),
            ServiceFault::ModelError,
        ),
        (
            400,
            String::new(),
            format!(r#"{{"__type":"a#ValidationException","message":"{tokens}"}}"#),
            ServiceFault::Invalid,
        ),
        (
            403,
            field("AccessDeniedException"),
            body("no"),
            ServiceFault::Denied,
        ),
    ] {
        let server = Server::start(move |_, stream| {
            let answer = format!(
                "HTTP/1.1 {status} No\r\ncontent-type: application/json\r\n{head}content-length: {}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).is_ok()
        });
        let told = asked(&server);
        let call = &told.call;
        assert_eq!(
            call.outcome,
            CallOutcome::Service(class),
            "{:?}",
            call.fault
        );
        assert_eq!((call.status, call.ttft()), (Some(status), None));
        let fault = call.fault.as_deref().unwrap();
        assert!(
            fault.contains("Exception") && !fault.contains("Too many"),
            "{fault}"
        );
        assert!(told.said.answer(call).error.unwrap().ends_with("Exception"));
    }
}

#[test]
fn a_whole_answer_in_json_is_read_as_one() {
    let body = r#"{"output":{"message":{"role":"assistant","content":[{"text":"hello"}]}},"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":2,"totalTokens":5},"metrics":{"latencyMs":5}}"#;
    let server = Server::start(move |_, stream| {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head}{body}").as_bytes()).is_ok()
    });
    let told = asked(&server);
    assert_eq!(
        told.call.outcome,
        CallOutcome::Complete,
        "{:?}",
        told.call.fault
    );
    assert_eq!(
        (told.text.as_str(), told.call.usage_completion),
        ("hello", Some(2))
    );
}
