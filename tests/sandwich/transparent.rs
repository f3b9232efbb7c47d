//! Bytes and headers pass unchanged, but for our own.

use crate::rig::{END, Rig, chat, connect, exchange, read_until, upstream};
use std::io::{Read, Write};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_response_passes_byte_for_byte_with_its_trailers_and_unknown_content() {
    let answer: &[u8] = b"HTTP/1.1 207 Odd Reason\r\nX-B: 1\r\nx-A: 2\r\nContent-Type: application/x-odd\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n5;ext=1\r\n\x00\xff\xfe\r\n\r\n0\r\nX-T: end\r\n\r\n";
    let (at, seen) = upstream(move |socket, _| socket.write_all(answer).unwrap());
    let rig = Rig::around(at);
    let mut socket = connect(rig.outer);
    let got = exchange(&mut socket, b"GET /odd?q=1 HTTP/1.1\r\nHost: here\r\nX-One: a\r\nx-hopscope-call: forged\r\nConnection: X-Hop\r\nX-Hop: gone\r\n\r\n", b"X-T: end\r\n\r\n");
    assert_eq!(text(&got), text(answer));
    let (head, _) = seen.recv().unwrap();
    assert_eq!(
        head, "GET /odd?q=1 HTTP/1.1\r\nHost: here\r\nX-One: a\r\n\r\n",
        "no call id without an inner tap, no forged one, no hop-by-hop field"
    );
}

#[test]
fn bodies_of_megabytes_pass_both_ways_on_one_connection() {
    let (at, seen) = upstream(|socket, head| {
        let length = head
            .lines()
            .find_map(|l| l.strip_prefix("Content-Length: ")?.parse::<usize>().ok())
            .unwrap();
        socket
            .write_all(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").as_bytes())
            .unwrap();
        socket.write_all(&vec![b'r'; length]).unwrap();
    });
    let rig = Rig::around(at);
    let mut socket = connect(rig.outer);
    for length in [0_usize, 1, 70_000, 1_000_000] {
        let mut request =
            format!("PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n").into_bytes();
        request.extend(vec![b'q'; length]);
        socket.write_all(&request).unwrap();
        let head = read_until_head(&mut socket);
        assert!(head.starts_with("HTTP/1.1 200 OK"), "{head}");
        let mut body = vec![0_u8; length];
        socket.read_exact(&mut body).unwrap();
        assert!(body.iter().all(|b| *b == b'r'));
        assert_eq!(seen.recv().unwrap().1, vec![b'q'; length]);
    }
}

fn read_until_head(socket: &mut std::net::TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut one = [0_u8; 1];
    while !bytes.ends_with(b"\r\n\r\n") {
        assert!(socket.read(&mut one).unwrap() > 0, "{}", text(&bytes));
        bytes.push(one[0]);
    }
    text(&bytes)
}

#[test]
fn what_is_too_large_or_no_request_is_refused_with_a_reason() {
    let (at, _) = upstream(|_, _| {});
    let rig = Rig::around(at);
    for (request, status) in [
        (
            "POST /v1/x HTTP/1.1\r\nHost: h\r\nContent-Length: 2000000\r\n\r\n",
            "413",
        ),
        (
            "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "400",
        ),
        ("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", "405"),
        ("nonsense\r\n\r\n", "400"),
    ] {
        let got = text(&exchange(
            &mut connect(rig.outer),
            request.as_bytes(),
            b"no such thing",
        ));
        assert!(
            got.starts_with(&format!("HTTP/1.1 {status}")) && got.contains("\"error\""),
            "{request}: {got}"
        );
    }
}

#[test]
fn interim_responses_head_requests_and_upgrades_pass() {
    let (at, _) = upstream(|socket, head| {
        if head.starts_with("HEAD") {
            socket
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n")
                .unwrap();
        } else if head.contains("Upgrade: echo") {
            socket.write_all(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n").unwrap();
            let mut buffer = [0_u8; 4];
            socket.read_exact(&mut buffer).unwrap();
            socket.write_all(&buffer).unwrap();
        } else {
            socket
                .write_all(
                    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
                )
                .unwrap();
        }
    });
    let rig = Rig::around(at);
    let mut socket = connect(rig.outer);
    let got = text(&exchange(
        &mut socket,
        b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
        b"ok",
    ));
    assert_eq!(
        got,
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    );
    let got = text(&exchange(
        &mut socket,
        b"HEAD / HTTP/1.1\r\nHost: h\r\n\r\n",
        b"\r\n\r\n",
    ));
    assert_eq!(
        got, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n",
        "and the connection goes on"
    );
    let got = text(&exchange(
        &mut socket,
        b"GET / HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n",
        b"\r\n\r\n",
    ));
    assert!(got.starts_with("HTTP/1.1 101 "), "{got}");
    assert_eq!(exchange(&mut socket, b"ping", b"ping"), b"ping");
}

#[test]
fn the_engine_sees_no_header_of_ours_and_the_client_none_either() {
    let (at, seen) = upstream(|socket, _| {
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello").unwrap();
        socket.write_all(END).unwrap();
    });
    // Outer tap → inner tap → engine.
    let (outer, inner) = (crate::rig::free(), crate::rig::free());
    let chain = crate::rig::chain(&[("outer", outer, inner), ("inner", inner, at)]);
    let dir = tempfile::tempdir().unwrap();
    let server = crate::rig::serve(&chain, &dir.path().join("taps/tap"), "tap");
    let mut socket = connect(outer);
    let got = text(&exchange(
        &mut socket,
        chat(16, "x-hopscope-request: 1-2\r\n", "").as_bytes(),
        END,
    ));
    assert!(!got.to_lowercase().contains("hopscope"), "{got}");
    let (head, _) = seen.recv().unwrap();
    assert!(!head.to_lowercase().contains("hopscope"), "{head}");
    drop(socket);
    server.stop(std::time::Duration::from_secs(2));
    let calls = crate::rig::pair(dir.path());
    assert_eq!(calls[0].outer.keys.client.as_deref(), Some("1-2"));
    assert_eq!(calls[0].confirmed, record::pairing::Confirmed::Echo);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let (at, _) = upstream(|socket, head| {
        let path = head.split(' ').nth(1).unwrap().to_owned();
        socket
            .write_all(
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{path}",
                    path.len()
                )
                .as_bytes(),
            )
            .unwrap();
    });
    let rig = Rig::around(at);
    let mut socket = connect(rig.outer);
    socket
        .write_all(b"GET /a HTTP/1.1\r\nHost: h\r\n\r\nGET /b HTTP/1.1\r\nHost: h\r\n\r\n")
        .unwrap();
    let got = text(&read_until(&mut socket, b"/b"));
    assert!(got.find("/a").unwrap() < got.find("/b").unwrap());
}

/// One event of content in a chunk of its own.
fn event(text: &str) -> String {
    let event = format!(
        "data: {{\"id\":\"x\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":\"stop\"}}]}}\n\n"
    );
    format!("{:x}\r\n{event}\r\n", event.len())
}

#[test]
fn events_that_share_a_read_are_counted_however_they_are_chunked() {
    // Three events in three chunks, all in one write, so in one read of the tap.
    let (at, _) = upstream(|socket, _| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
        let all = [
            head,
            &event("a"),
            &event("b"),
            &event("c"),
            "e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n",
        ]
        .concat();
        socket.write_all(all.as_bytes()).unwrap();
    });
    let mut rig = Rig::around(at);
    exchange(&mut connect(rig.outer), chat(16, "", "").as_bytes(), END);
    let calls = rig.calls();
    let outer = &calls[0].outer;
    assert_eq!(outer.stream.counts.text_events, 3);
    // Three of content and [DONE]: three of them came with an earlier one.
    assert_eq!(outer.pressure.joined_events, 3);
}

#[test]
fn an_answer_that_ends_with_its_connection_is_complete_and_claims_no_departure_of_its_end() {
    let (at, _) = upstream(|socket, _| {
        let body = "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        socket
            .write_all(
                format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n{body}")
                    .as_bytes(),
            )
            .unwrap();
        socket.shutdown(std::net::Shutdown::Both).unwrap();
    });
    let mut rig = Rig::around(at);
    let got = text(&exchange(
        &mut connect(rig.outer),
        chat(16, "", "").as_bytes(),
        b"never",
    ));
    assert!(got.ends_with("data: [DONE]\n\n"), "{got}");
    let end = rig.calls()[0].outer.marks.end.unwrap();
    assert_eq!(end.departure, None);
}

#[test]
fn an_upload_that_is_refused_midway_still_gets_its_answer() {
    // The upstream is never reached: the length alone is beyond the bound.
    let rig = Rig::around(crate::rig::free());
    for _ in 0..20 {
        let mut socket = connect(rig.outer);
        let mut sending = socket.try_clone().unwrap();
        let writer = std::thread::spawn(move || {
            let head =
                "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Length: 4000000\r\n\r\n";
            sending.write_all(head.as_bytes()).unwrap();
            for _ in 0..60 {
                // The tap may close once it has waited long enough.
                let _ = sending.write_all(&[b'x'; 64 * 1024]);
            }
        });
        let got = text(&read_until(&mut socket, b"}}"));
        assert!(got.starts_with("HTTP/1.1 413"), "{got:?}");
        writer.join().unwrap();
    }
}

#[test]
fn several_addresses_are_taken_in_turn_and_a_dead_one_is_passed_over() {
    let answering = |name: &'static str| {
        upstream(move |socket, _| {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", name.len());
            socket
                .write_all(format!("{head}{name}").as_bytes())
                .unwrap();
        })
        .0
    };
    let (a, b, dead) = (answering("aa"), answering("bb"), crate::rig::free());
    let outer = crate::rig::free();
    let mut chain = crate::rig::chain(&[("outer", outer, a)]);
    for more in [dead, b] {
        let text = more.to_string();
        chain.taps[0].upstream.addresses.push(text.parse().unwrap());
    }
    let dir = tempfile::tempdir().unwrap();
    let server = crate::rig::serve(&chain, &dir.path().join("taps/tap"), "tap");
    let mut seen = Vec::new();
    for _ in 0..12 {
        let got = text(&exchange(
            &mut connect(outer),
            b"GET / HTTP/1.1\r\nHost: h\r\n\r\n",
            b"\r\n\r\n",
        ));
        assert!(got.starts_with("HTTP/1.1 200"), "{got}");
        seen.push(got[got.len() - 2..].to_owned());
    }
    let count = |name: &str| seen.iter().filter(|s| *s == name).count();
    // A turn of three: one goes to a, one to the dead address and on to the next, one to b.
    assert_eq!((count("aa"), count("bb")), (4, 8), "{seen:?}");
    server.stop(std::time::Duration::from_secs(2));
}
