//! Whatever breaks, the record says so, the client is told as far as that is honest, and the tap
//! goes on.

use crate::rig::{END, Rig, chat, connect, exchange, upstream};
use record::exchange::Outcome;
use record::pairing::CallClass;
use sim::engine::EngineOptions;
use sim::gateway::GatewayOptions;
use std::io::{Read, Write};
use std::time::{Duration, Instant};

fn quick() -> EngineOptions {
    EngineOptions {
        ttft_us: 5_000,
        gap_us: 2_000,
        ..EngineOptions::default()
    }
}

/// One call with an injected fault of the engine, and a sound one after it.
fn with_fault(fault: &str) -> (Vec<u8>, Vec<record::pairing::Call>) {
    let mut rig = Rig::start(quick(), GatewayOptions::default());
    let fields = format!("x-sim-fault: {fault}\r\n");
    let got = exchange(
        &mut connect(rig.outer),
        chat(20, &fields, "").as_bytes(),
        END,
    );
    let sound = exchange(&mut connect(rig.outer), chat(20, "", "").as_bytes(), END);
    assert!(
        sound.windows(6).any(|w| w == b"[DONE]"),
        "the tap goes on after {fault}"
    );
    let calls = rig.calls();
    assert_eq!(calls.len(), 2, "{fault}");
    assert_eq!(calls[1].class, CallClass::Served, "{fault}");
    (got, calls)
}

#[test]
fn a_stream_that_breaks_is_cut_and_never_complete() {
    for fault in ["close-after=5", "reset-after=5"] {
        let (got, calls) = with_fault(fault);
        assert!(
            !got.ends_with(END),
            "{fault}: an honest cut has no last chunk"
        );
        assert_ne!(calls[0].outer.outcome, Outcome::Complete, "{fault}");
        let inner = &calls[0].attempts[0];
        assert_eq!(inner.outcome, Outcome::Truncated, "{fault}");
        assert!(inner.fault.is_some());
    }
}

#[test]
fn an_error_before_the_head_keeps_its_status_and_one_inside_the_stream_is_seen() {
    let mut rig = Rig::start(
        quick(),
        GatewayOptions {
            refuse_every: 1,
            ..GatewayOptions::default()
        },
    );
    let got = String::from_utf8_lossy(&exchange(
        &mut connect(rig.outer),
        chat(20, "", "").as_bytes(),
        b"}}",
    ))
    .into_owned();
    assert!(got.starts_with("HTTP/1.1 429"), "{got}");
    let calls = rig.calls();
    assert_eq!(
        (calls[0].class, calls[0].attempts.len()),
        (CallClass::Refused, 0)
    );
    let (_, calls) = with_fault("error-event=3");
    assert_eq!(calls[0].attempts[0].outcome, Outcome::ErrorInStream);
}

#[test]
fn an_unreachable_upstream_is_an_openai_error_that_names_the_address() {
    let nowhere = crate::rig::free();
    let mut rig = Rig::around(nowhere);
    let got = String::from_utf8_lossy(&exchange(
        &mut connect(rig.outer),
        chat(20, "", "").as_bytes(),
        b"}}",
    ))
    .into_owned();
    assert!(
        got.starts_with("HTTP/1.1 502") && got.contains(&nowhere.to_string()),
        "{got}"
    );
    let body = got.split("\r\n\r\n").nth(1).unwrap();
    let error: serde_json::Value = serde_json::from_str(body).unwrap();
    assert!(error["error"]["message"].is_string() && error["error"]["type"].is_string());
    assert_eq!(rig.calls()[0].outer.outcome, Outcome::Failed);
}

#[test]
fn an_answer_that_is_not_http_is_a_502() {
    let (at, _) = upstream(|socket, _| socket.write_all(b"SSH-2.0-x\r\n\r\n").unwrap());
    let rig = Rig::around(at);
    let got = exchange(
        &mut connect(rig.outer),
        b"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        b"}}",
    );
    assert!(got.starts_with(b"HTTP/1.1 502"));
}

#[test]
fn a_client_that_leaves_closes_the_upstream_at_once_and_is_recorded() {
    let (told, gone) = std::sync::mpsc::channel();
    let (at, _) = upstream(move |socket, _| {
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n").unwrap();
        let mut byte = [0_u8; 1];
        // Blocks until the tap closes.
        let _ = socket.read(&mut byte);
        told.send(Instant::now()).unwrap();
    });
    let mut rig = Rig::around(at);
    let mut socket = connect(rig.outer);
    exchange(&mut socket, chat(20, "", "").as_bytes(), b"hello");
    let left = Instant::now();
    drop(socket);
    let closed = gone.recv_timeout(Duration::from_secs(5)).unwrap();
    // Milliseconds on an idle machine; the room is for a busy one.
    assert!(closed.duration_since(left) < Duration::from_millis(500));
    assert_eq!(rig.calls()[0].outer.outcome, Outcome::Aborted);
}

#[test]
fn a_client_that_leaves_at_an_error_was_failed_by_the_server() {
    const EVENT: &str = "data: {\"error\":{\"message\":\"overloaded\",\"code\":\"busy\"}}\n\n";
    for (status, outcome) in [
        ("200 OK", Outcome::ErrorInStream),
        ("503 Service Unavailable", Outcome::Refused),
    ] {
        let (told, gone) = std::sync::mpsc::channel();
        let (at, _) = upstream(move |socket, _| {
            let length = EVENT.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n{length:x}\r\n{EVENT}\r\n"
            );
            socket.write_all(answer.as_bytes()).unwrap();
            let mut byte = [0_u8; 1];
            // The end of the body never comes: blocks until the tap closes.
            let _ = socket.read(&mut byte);
            told.send(()).unwrap();
        });
        let mut rig = Rig::around(at);
        let mut socket = connect(rig.outer);
        exchange(&mut socket, chat(20, "", "").as_bytes(), b"busy\"}}\n\n");
        drop(socket);
        gone.recv_timeout(Duration::from_secs(5)).unwrap();
        let outer = &rig.calls()[0].outer;
        assert_eq!(outer.outcome, outcome, "{:?}", outer.fault);
        assert!(
            outer
                .fault
                .as_deref()
                .unwrap()
                .contains("client left after an error")
        );
    }
}

#[test]
fn a_pooled_connection_that_the_server_closed_is_no_error_of_the_client() {
    // Announces keep-alive, and closes as soon as the next request has come in.
    let served = std::sync::atomic::AtomicU32::new(0);
    let (at, _) = upstream(move |socket, _| {
        let count = served.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        if count == 1 {
            socket.shutdown(std::net::Shutdown::Both).unwrap();
            return;
        }
        socket
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .unwrap();
    });
    let mut rig = Rig::around(at);
    let mut socket = connect(rig.outer);
    for _ in 0..2 {
        let got = exchange(&mut socket, chat(20, "", "").as_bytes(), b"ok");
        assert!(
            got.starts_with(b"HTTP/1.1 200"),
            "{}",
            String::from_utf8_lossy(&got)
        );
    }
    drop(socket);
    let calls = rig.calls();
    assert_eq!(
        calls
            .iter()
            .map(|c| c.outer.connection.resent)
            .collect::<Vec<_>>(),
        [false, true]
    );
    assert!(calls[1].legs().is_none(), "a resent call is in no leg");
}

/// A gateway that passes on some bytes of each answer and then dies: both of its connections close.
fn dying_gateway(inner: std::net::SocketAddr, after: usize) -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut engine = connect(inner);
            let mut buffer = [0_u8; 16 * 1024];
            let count = client.read(&mut buffer).unwrap();
            engine.write_all(&buffer[..count]).unwrap();
            let mut passed = 0;
            while passed < after {
                let count = engine.read(&mut buffer).unwrap().min(after - passed);
                client.write_all(&buffer[..count]).unwrap();
                passed += count;
            }
        }
    });
    at
}

#[test]
fn a_gateway_that_dies_at_any_point_of_a_stream_leaves_a_correct_record_and_a_healthy_tap() {
    let (_engine, engine) = crate::rig::engine(quick());
    // Inside the head, behind it, inside the first events, far into the stream.
    for after in [40, 300, 700, 1_500, 4_000] {
        let (outer, inner) = (crate::rig::free(), crate::rig::free());
        let gateway = dying_gateway(inner, after);
        let chain = crate::rig::chain(&[("outer", outer, gateway), ("inner", inner, engine)]);
        let dir = tempfile::tempdir().unwrap();
        let server = crate::rig::serve(&chain, &dir.path().join("taps/tap"), "tap");
        for _ in 0..2 {
            let got = exchange(&mut connect(outer), chat(60, "", "").as_bytes(), END);
            assert!(
                !got.ends_with(END),
                "{after}: an honest cut has no last chunk"
            );
        }
        server.stop(Duration::from_secs(2));
        let calls = crate::rig::pair(dir.path());
        assert_eq!(calls.len(), 2, "{after}");
        for call in &calls {
            let expected = if after < 100 {
                Outcome::Failed
            } else {
                Outcome::Truncated
            };
            assert_eq!(
                call.outer.outcome, expected,
                "{after}: {:?}",
                call.outer.fault
            );
            assert_eq!(call.attempts[0].outcome, Outcome::Aborted, "{after}");
        }
    }
}
