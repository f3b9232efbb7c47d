mod converse;
mod shapes;

use super::*;
use crate::PlannedChain;
use crate::lanes::Lanes;
use crate::testbed::{HEAD, Server, answer, chunk, tail, token};
use config::scenario::Timeouts;
use std::io::Write as _;
use std::sync::Mutex;
use std::time::Duration;

fn client(server: &Server, timeouts: &Timeouts, cut: Cut) -> Arc<Client> {
    let planned = PlannedChain {
        chain: server.chain("c", "direct"),
        text: String::new(),
        base: std::path::PathBuf::new(),
        pids: Vec::new(),
        injected: None,
    };
    let mut target = Target::of(&planned, timeouts, true).unwrap();
    target.tapped = true;
    target.overhead_header = Some(http::HeaderName::from_static("x-overhead-ms"));
    Arc::new(Client::new(Arc::new(target), 1, cut))
}

fn ask(seq: u64) -> Ask {
    Ask {
        cell: 3,
        seq,
        task: None,
        warmup: false,
        intended: now(),
        prompt_tokens: 5,
        body: Bytes::from_static(b"{\"stream\":true}"),
        collect: true,
        session: None,
    }
}

fn one(lanes: &Lanes, client: &Arc<Client>, seq: u64) -> Told {
    let client = client.clone();
    lanes
        .block_on(async move { client.call(0, ask(seq)).await })
        .unwrap()
}

#[test]
fn a_whole_answer_is_stamped_where_the_bytes_came() {
    let truth: Arc<Mutex<Vec<u64>>> = Arc::default();
    let log = truth.clone();
    let server = Server::start(move |_, stream| {
        stream
            .write_all(
                HEAD.replace("chunked", "chunked\r\nx-overhead-ms: 1.5")
                    .as_bytes(),
            )
            .unwrap();
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(5));
            log.lock().unwrap().push(now());
            chunk(stream, &token("word ")).unwrap();
        }
        chunk(stream, &tail(20)).unwrap();
        stream.write_all(b"0\r\n\r\n").is_ok()
    });
    let lanes = Lanes::start(1).unwrap();
    let client = client(&server, &Timeouts::default(), Cut::default());
    let told = one(&lanes, &client, 9);
    let call = &told.call;
    assert_eq!(
        (call.outcome, call.fault.as_deref()),
        (CallOutcome::Complete, None)
    );
    assert_eq!(
        (call.text_events, call.usage_completion, call.usage_prompt),
        (20, Some(20), Some(7))
    );
    assert_eq!(told.text, "word ".repeat(20));
    assert_eq!(call.claimed_overhead, Some(1_500_000));
    assert_eq!(call.response_id.as_deref(), Some("chatcmpl-1"));
    assert!(!call.reused);
    let seen = &server.seen()[0];
    assert_eq!(seen.header("x-hopscope-request"), Some("3-9"));
    assert!(
        seen.head.starts_with("POST /v1/chat/completions HTTP/1.1"),
        "{}",
        seen.head
    );
    assert_eq!(seen.body, "{\"stream\":true}");
    let order = [
        Some(call.started),
        call.sent,
        Some(seen.at),
        call.head,
        call.first_choice,
        call.first_text,
        call.last_text,
        call.finish,
        call.done,
        Some(call.end),
    ];
    let order: Vec<u64> = order.into_iter().flatten().collect();
    assert!(order.len() == 10 && order.is_sorted(), "{order:?}");
    // The stamp against the server's own, which is taken just before its write.
    let truth = truth.lock().unwrap();
    let error = call.first_text.unwrap() - truth[0];
    let whole = call.first_text.unwrap() - call.sent.unwrap();
    assert!(error * 2 < whole, "{error} of {whole}");
    assert_eq!(told.gaps.len(), 19);
    assert_eq!(call.longest_gap, told.gaps.iter().copied().max());
    let sum: u64 = told.gaps.iter().sum();
    assert_eq!(sum, call.last_text.unwrap() - call.first_text.unwrap());
}

#[test]
fn connections_are_used_again_unless_they_were_closed_meanwhile() {
    // Each connection carries two answers, then closes without saying so.
    let count = Arc::new(Mutex::new(std::collections::HashMap::<usize, u32>::new()));
    let server = Server::start(move |seen, stream| {
        answer(stream, 2, Duration::ZERO).unwrap();
        let mut count = count.lock().unwrap();
        let served = count.entry(seen.connection).or_default();
        *served += 1;
        *served < 2
    });
    let lanes = Lanes::start(1).unwrap();
    let client = client(&server, &Timeouts::default(), Cut::default());
    let mut reused = Vec::new();
    for seq in 0..6 {
        let told = one(&lanes, &client, seq);
        assert_eq!(
            told.call.outcome,
            CallOutcome::Complete,
            "{:?}",
            told.call.fault
        );
        reused.push(told.call.reused);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(reused, [false, true, false, true, false, true]);
    let connections: Vec<usize> = server.seen().iter().map(|s| s.connection).collect();
    assert_eq!(connections, [0, 0, 1, 1, 2, 2]);
}

#[test]
fn what_breaks_an_answer_is_named_and_never_complete() {
    let server = Server::start(|seen, stream| {
        let kind = seen.header("x-hopscope-request").unwrap();
        match kind {
            "3-0" => stream.write_all(b"HTTP/1.1 503 Busy\r\ncontent-type: application/json\r\ncontent-length: 26\r\n\r\n{\"error\":{\"type\":\"full\"}}\n").unwrap(),
            "3-1" => {
                stream.write_all(HEAD.as_bytes()).unwrap();
                chunk(stream, &token("a")).unwrap();
                return false;
            }
            "3-2" => return false,
            "3-3" => {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n").unwrap();
                stream.write_all(format!("{}{}", token("a"), tail(1)).as_bytes()).unwrap();
                return false;
            }
            _ => {
                stream.write_all(HEAD.as_bytes()).unwrap();
                chunk(stream, &token("a")).unwrap();
                stream.write_all(b"0\r\n\r\n").unwrap();
            }
        }
        true
    });
    let lanes = Lanes::start(1).unwrap();
    let client = client(&server, &Timeouts::default(), Cut::default());
    let outcomes: Vec<CallOutcome> = (0..5)
        .map(|seq| {
            let call = one(&lanes, &client, seq).call;
            assert_eq!(
                call.fault.is_none(),
                call.outcome == CallOutcome::Complete,
                "{call:?}"
            );
            call.outcome
        })
        .collect();
    use CallOutcome::{Complete, Status, Transport, Truncated};
    assert_eq!(
        outcomes,
        [Status, Truncated, Transport, Complete, Truncated]
    );
}

#[test]
fn nobody_listening_is_a_connect_failure() {
    let server = Server::engine(1, Duration::ZERO, Duration::ZERO);
    let lanes = Lanes::start(1).unwrap();
    let mut nobody = server;
    nobody.address = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let call = one(
        &lanes,
        &client(&nobody, &Timeouts::default(), Cut::default()),
        0,
    )
    .call;
    assert_eq!((call.outcome, call.sent), (CallOutcome::Connect, None));
}

#[test]
fn silence_and_the_end_of_the_cell_leave_lower_bounds() {
    let server = Server::start(|_, stream| {
        stream.write_all(HEAD.as_bytes()).unwrap();
        chunk(stream, &token("a")).unwrap();
        std::thread::sleep(Duration::from_secs(3));
        false
    });
    let lanes = Lanes::start(1).unwrap();
    let timeouts = Timeouts {
        silence: config::Period::millis(150),
        ..Timeouts::default()
    };
    let call = one(&lanes, &client(&server, &timeouts, Cut::default()), 0).call;
    assert_eq!(
        (call.outcome, call.fault.as_deref()),
        (CallOutcome::TimedOut, Some(watch::SILENCE))
    );
    let waited = call.end - call.first_text.unwrap();
    assert!((150_000_000..2_000_000_000).contains(&waited), "{waited}");

    let cut = Cut::default();
    let client = client(&server, &Timeouts::default(), cut.clone());
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(200));
        cut.now();
    });
    let call = one(&lanes, &client, 1).call;
    assert_eq!(call.outcome, CallOutcome::CutOff);
    assert!(call.first_text.is_some() && call.end - call.started < 2_000_000_000);
    // Whatever begins after the cut ends at once.
    assert_eq!(one(&lanes, &client, 2).call.outcome, CallOutcome::CutOff);
}
