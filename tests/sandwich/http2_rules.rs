//! What RFC 9113 asks of a server, frame by frame, with frames of this test's own making.

use crate::rig::{chain, connect, free, serve, upstream};
use hopscope::tap::TapServer;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

const PROTOCOL_ERROR: u32 = 1;
const FLOW_CONTROL_ERROR: u32 = 3;
const FRAME_SIZE_ERROR: u32 = 6;

#[derive(Debug, Clone, PartialEq)]
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
    out
}

/// Fields as literals without indexing (RFC 7541 §6.2.2).
fn fields(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in fields {
        out.push(0);
        for text in [name, value] {
            assert!(text.len() < 127);
            out.push(text.len() as u8);
            out.extend_from_slice(text.as_bytes());
        }
    }
    out
}

const GET: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "http"),
    (":authority", "h"),
    (":path", "/"),
];

fn with(more: &[(&'static str, &'static str)]) -> Vec<u8> {
    fields(&[&GET[..], more].concat())
}

struct Peer {
    socket: TcpStream,
}

impl Peer {
    /// Preface and settings sent, nothing read yet.
    fn begin(to: SocketAddr, settings: &[u8]) -> Self {
        let mut socket = connect(to);
        socket
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        socket
            .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            .unwrap();
        socket.write_all(&frame(SETTINGS, 0, 0, settings)).unwrap();
        Self { socket }
    }

    fn send(&mut self, bytes: &[u8]) {
        // The tap may have closed already: what it said before is what counts.
        let _ = self.socket.write_all(bytes);
    }

    fn read(&mut self) -> Option<Frame> {
        let mut head = [0_u8; 9];
        self.socket.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.socket.read_exact(&mut payload).ok()?;
        Some(Frame {
            kind: head[3],
            flags: head[4],
            stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & 0x7fff_ffff,
            payload,
        })
    }

    fn until(&mut self, wanted: impl Fn(&Frame) -> bool) -> Option<Frame> {
        std::iter::from_fn(|| self.read()).find(|f| wanted(f))
    }

    /// The next error: of the stream, or (stream 0) of the connection.
    fn error(&mut self) -> Option<(u32, u32)> {
        let found = self.until(|f| matches!(f.kind, RST_STREAM | GOAWAY))?;
        let code = |at: usize| u32::from_be_bytes(found.payload[at..at + 4].try_into().unwrap());
        Some(match found.kind {
            RST_STREAM => (found.stream, code(0)),
            _ => (0, code(4)),
        })
    }
}

/// A tap before an upstream that answers every request with ten bytes.
fn tap() -> (SocketAddr, TapServer, tempfile::TempDir) {
    let (at, _) = upstream(|socket, _| {
        socket
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789")
            .unwrap();
    });
    let outer = free();
    let mut chain = chain(&[("outer", outer, at)]);
    chain.taps[0].http2 = true;
    let dir = tempfile::tempdir().unwrap();
    let server = serve(&chain, &dir.path().join("taps/tap"), "tap");
    (outer, server, dir)
}

#[test]
fn settings_are_acknowledged_pings_answered_and_unknown_frames_ignored() {
    let (at, _server, _dir) = tap();
    let mut peer = Peer::begin(at, &[]);
    // §6.5.3, §6.7, §5.5.
    peer.send(&frame(0xfa, 0xff, 0, b"unknown"));
    peer.send(&frame(PING, 0, 0, b"12345678"));
    assert!(
        peer.until(|f| f.kind == SETTINGS && f.flags & ACK == 0)
            .is_some()
    );
    let pong = peer.until(|f| f.kind == PING).unwrap();
    assert_eq!(
        (pong.flags & ACK, pong.payload.as_slice()),
        (ACK, &b"12345678"[..])
    );
    peer.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &with(&[])));
    let data = peer.until(|f| f.kind == DATA).unwrap();
    assert_eq!(
        (data.stream, data.payload.as_slice()),
        (1, &b"0123456789"[..])
    );
}

#[test]
fn malformed_requests_are_errors_of_their_stream_and_the_connection_goes_on() {
    let (at, _server, _dir) = tap();
    let bad: [(&str, Vec<u8>); 9] = [
        ("upper case, §8.2.1", with(&[("X-Upper", "1")])),
        ("connection, §8.2.2", with(&[("connection", "close")])),
        (
            "transfer-encoding, §8.2.2",
            with(&[("transfer-encoding", "chunked")]),
        ),
        ("te, §8.2.2", with(&[("te", "gzip")])),
        (
            "pseudo field behind a field, §8.3",
            with(&[("a", "b"), (":path", "/x")]),
        ),
        ("unknown pseudo field, §8.3", with(&[(":x", "y")])),
        ("no method, §8.3.1", fields(&GET[1..])),
        ("no path, §8.3.1", fields(&GET[..3])),
        ("response's pseudo field, §8.3", with(&[(":status", "200")])),
    ];
    let mut ended = Vec::new();
    for (what, block) in bad {
        let mut peer = Peer::begin(at, &[]);
        peer.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &block));
        let (stream, code) = peer.error().unwrap();
        assert_eq!(code, PROTOCOL_ERROR, "{what}");
        if stream == 0 {
            // Allowed (§5.4.2), and what the `h2` crate does where the block itself is bad.
            continue;
        }
        assert_eq!(stream, 1, "{what}");
        ended.push(what);
        peer.send(&frame(HEADERS, END_HEADERS | END_STREAM, 3, &with(&[])));
        assert!(
            peer.until(|f| f.kind == DATA && f.stream == 3).is_some(),
            "after {what}"
        );
    }
    assert!(ended.len() >= 5, "only {ended:?} left the connection alive");
}

#[test]
fn a_body_that_is_not_as_long_as_told_is_an_error_of_its_stream() {
    let (at, _server, _dir) = tap();
    // §8.1.1.
    let mut peer = Peer::begin(at, &[]);
    peer.send(&frame(
        HEADERS,
        END_HEADERS,
        1,
        &with(&[("content-length", "3")]),
    ));
    peer.send(&frame(DATA, END_STREAM, 1, b"four"));
    assert_eq!(peer.error(), Some((1, PROTOCOL_ERROR)));
}

#[test]
fn broken_frames_are_errors_of_the_connection() {
    let (at, _server, _dir) = tap();
    let bad: [(&str, Vec<u8>, u32); 7] = [
        (
            "data of stream 0, §6.1",
            frame(DATA, 0, 0, b"x"),
            PROTOCOL_ERROR,
        ),
        (
            "data of an idle stream, §5.1",
            frame(DATA, 0, 1, b"x"),
            PROTOCOL_ERROR,
        ),
        (
            "even stream, §5.1.1",
            frame(HEADERS, END_HEADERS | END_STREAM, 2, &with(&[])),
            PROTOCOL_ERROR,
        ),
        (
            "frame beyond the bound, §4.2",
            frame(DATA, 0, 1, &vec![0; 20_000]),
            FRAME_SIZE_ERROR,
        ),
        // By the text a frame size error, and the next but one a compression error: the `h2`
        // crate ends the connection as it must, with another word.
        (
            "ping of six bytes, §6.7",
            frame(PING, 0, 0, b"123456"),
            PROTOCOL_ERROR,
        ),
        (
            "window beyond 2^31-1, §6.9.1",
            frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff]),
            FLOW_CONTROL_ERROR,
        ),
        (
            "block that is none, §4.3",
            frame(
                HEADERS,
                END_HEADERS | END_STREAM,
                1,
                &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            ),
            PROTOCOL_ERROR,
        ),
    ];
    for (what, bytes, code) in bad {
        let mut peer = Peer::begin(at, &[]);
        peer.send(&bytes);
        let (stream, said) = peer.error().unwrap();
        assert_eq!((stream, said), (0, code), "{what}");
    }
}

#[test]
fn the_window_of_the_client_is_kept() {
    let (at, _server, _dir) = tap();
    // SETTINGS_INITIAL_WINDOW_SIZE 4, §6.9.2.
    let mut peer = Peer::begin(at, &[0, 4, 0, 0, 0, 4]);
    peer.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &with(&[])));
    assert_eq!(peer.until(|f| f.kind == DATA).unwrap().payload, b"0123");
    peer.send(&frame(WINDOW_UPDATE, 0, 1, &3_u32.to_be_bytes()));
    assert_eq!(peer.until(|f| f.kind == DATA).unwrap().payload, b"456");
    peer.send(&frame(WINDOW_UPDATE, 0, 1, &100_u32.to_be_bytes()));
    let last = peer.until(|f| f.kind == DATA).unwrap();
    assert_eq!(last.payload, b"789");
}

#[test]
fn a_tap_that_shuts_down_says_so_and_lets_the_stream_end() {
    let (at, _) = upstream(|socket, _| {
        socket
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n01234")
            .unwrap();
        std::thread::sleep(Duration::from_millis(400));
        socket.write_all(b"56789").unwrap();
    });
    let outer = free();
    let mut chain = chain(&[("outer", outer, at)]);
    chain.taps[0].http2 = true;
    let dir = tempfile::tempdir().unwrap();
    let server = serve(&chain, &dir.path().join("taps/tap"), "tap");
    let mut peer = Peer::begin(outer, &[]);
    peer.send(&frame(HEADERS, END_HEADERS | END_STREAM, 1, &with(&[])));
    assert_eq!(peer.until(|f| f.kind == DATA).unwrap().payload, b"01234");
    let stopping = std::thread::spawn(move || server.stop(Duration::from_secs(5)));
    // §6.8.
    assert!(peer.until(|f| f.kind == GOAWAY).is_some());
    assert_eq!(peer.until(|f| f.kind == DATA).unwrap().payload, b"56789");
    stopping.join().unwrap();
}
