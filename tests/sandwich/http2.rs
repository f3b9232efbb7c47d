//! HTTP/2 on either side: what passes is what HTTP/1 would pass, and the stamps are of class `h2`.

use crate::rig::{END, certificate, chat, connect, exchange, free, pair, serve, spawn_engine};
use bytes::Bytes;
use config::Chain;
use h2::client::SendRequest;
use hopscope::tap::TapServer;
use http::{HeaderMap, Request, Response};
use record::exchange::Outcome;
use record::pairing::{Call, CallClass};
use record::stamp::StampClass;
use sim::engine::EngineOptions;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// Client → outer tap → inner tap → upstream, with HTTP/2 where it is asked for.
struct Chained {
    outer: SocketAddr,
    dir: tempfile::TempDir,
    server: Option<TapServer>,
}

impl Chained {
    /// `between`: the taps speak HTTP/2 to each other; `far`: the inner tap does to `upstream`.
    fn new(between: bool, far: bool, upstream: SocketAddr) -> Self {
        Self::over("", "", between, far, upstream)
    }

    fn over(near_tls: &str, far_tls: &str, between: bool, far: bool, at: SocketAddr) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let taps = dir.path().join("taps/tap");
        std::fs::create_dir_all(&taps).unwrap();
        certificate(&taps);
        let (outer, inner) = (free(), free());
        let text = format!(
            "name: rig\nkind: loop\nsimulated: true\nentry: http://{outer}\nmodel: m\ntaps:\n\
             \x20 - {{name: outer, position: outer, listen: \"{outer}\", http2: true, upstream: {{addresses: [\"{inner}\"], http2: {between}{far_tls}}}, limits: {{request_body_max: 8MiB}}}}\n\
             \x20 - {{name: inner, position: inner, listen: \"{inner}\", http2: true{near_tls}, upstream: {{addresses: [\"{at}\"], http2: {far}}}, limits: {{request_body_max: 8MiB}}}}\n"
        );
        let chain = config::from_text::<Chain>(&taps.join("rig.yaml"), &text)
            .unwrap()
            .into_inner();
        let server = serve(&chain, &taps, "tap");
        Self {
            outer,
            dir,
            server: Some(server),
        }
    }

    fn calls(&mut self) -> Vec<Call> {
        self.server.take().unwrap().stop(Duration::from_secs(2));
        pair(Path::new(self.dir.path()))
    }
}

fn quick() -> EngineOptions {
    EngineOptions {
        ttft_us: 5_000,
        gap_us: 2_000,
        ..EngineOptions::default()
    }
}

async fn client(to: SocketAddr) -> SendRequest<Bytes> {
    // A window that is never full, so that the client puts no pressure on the tap.
    let (send, connection) = h2::client::Builder::new()
        .initial_window_size(16 << 20)
        .initial_connection_window_size(16 << 20)
        .handshake(TcpStream::connect(to).await.unwrap())
        .await
        .unwrap();
    tokio::spawn(connection);
    send.ready().await.unwrap()
}

/// Sends a request whole and reads its answer whole.
async fn ask(
    send: &mut SendRequest<Bytes>,
    request: Request<()>,
    body: Bytes,
) -> Result<(Response<()>, Bytes, Option<HeaderMap>), h2::Error> {
    let (response, mut sending) = send
        .clone()
        .ready()
        .await?
        .send_request(request, body.is_empty())?;
    if !body.is_empty() {
        sending.send_data(body, true)?;
    }
    read(response.await?).await
}

async fn read(
    response: Response<h2::RecvStream>,
) -> Result<(Response<()>, Bytes, Option<HeaderMap>), h2::Error> {
    let (parts, mut stream) = response.into_parts();
    let mut all = Vec::new();
    while let Some(data) = stream.data().await {
        let data = data?;
        stream.flow_control().release_capacity(data.len())?;
        all.extend_from_slice(&data);
    }
    let trailers = stream.trailers().await?;
    Ok((Response::from_parts(parts, ()), all.into(), trailers))
}

fn post(to: SocketAddr, path: &str) -> Request<()> {
    Request::builder()
        .method("POST")
        .uri(format!("http://{to}{path}"))
        .header("content-type", "application/json")
        .body(())
        .unwrap()
}

/// The head and the body of a chat request of HTTP/2.
fn chat2(to: SocketAddr, tokens: u32) -> (Request<()>, Bytes) {
    let text = chat(tokens, "", "");
    let body = text.split_once("\r\n\r\n").unwrap().1.to_owned();
    (post(to, "/v1/chat/completions"), body.into())
}

/// What a chunked answer carries, after its head.
fn payload(answer: &[u8]) -> Vec<u8> {
    let at = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
    let (mut rest, mut out) = (&answer[at..], Vec::new());
    while let Some(end) = rest.windows(2).position(|w| w == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        out.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 4 + size..];
    }
    out
}

/// The stand-in's answer differs from call to call in its id and its time.
fn content(body: &[u8]) -> Vec<String> {
    let text = String::from_utf8(body.to_vec()).unwrap();
    text.split("\n\n")
        .map(|event| match event.split_once("\"choices\"") {
            Some((_, rest)) => rest.to_owned(),
            None => event.to_owned(),
        })
        .collect()
}

#[test]
fn all_four_ways_give_the_same_stream_and_are_measured() {
    let runtime = Runtime::new().unwrap();
    let at = runtime.block_on(spawn_engine(quick()));
    for between in [false, true] {
        let mut chained = Chained::new(between, false, at);
        let one = payload(&exchange(
            &mut connect(chained.outer),
            chat(16, "", "").as_bytes(),
            END,
        ));
        let (response, two, _) = runtime.block_on(async {
            let (request, body) = chat2(chained.outer, 16);
            ask(&mut client(chained.outer).await, request, body)
                .await
                .unwrap()
        });
        assert_eq!(response.status(), 200);
        assert!(!format!("{:?}", response.headers()).contains("hopscope"));
        assert!(one.ends_with(b"data: [DONE]\n\n"));
        assert_eq!(content(&one), content(&two), "between {between}");
        let calls = chained.calls();
        assert_eq!(calls.len(), 2);
        for (call, near) in calls.iter().zip([StampClass::Socket, StampClass::H2]) {
            let class = if between {
                StampClass::H2
            } else {
                StampClass::Socket
            };
            assert_eq!(call.class, CallClass::Served);
            assert_eq!(call.outer.connection.client_class, near);
            assert_eq!(call.outer.connection.upstream_class, class);
            assert_eq!(call.attempts[0].connection.client_class, class);
            assert_eq!(call.outer.stream.counts.text_events, 16);
            assert_eq!(call.confirmed, record::pairing::Confirmed::Echo);
            let legs = call.legs().unwrap();
            let ttft = legs.added_ttft.unwrap();
            assert!(ttft.low <= ttft.high, "{ttft:?}");
            assert!(
                ttft.high > 0 && ttft.high < 500_000_000,
                "two hops take microseconds, not {ttft:?}"
            );
        }
    }
}

#[test]
fn alpn_chooses_http2_over_tls() {
    let runtime = Runtime::new().unwrap();
    let at = runtime.block_on(spawn_engine(quick()));
    let near = ", tls: {cert: cert.pem, key: key.pem}";
    let far = ", tls: {server_name: localhost, ca: cert.pem}";
    for http2 in [true, false] {
        let mut chained = Chained::over(near, far, http2, false, at);
        let got = exchange(&mut connect(chained.outer), chat(8, "", "").as_bytes(), END);
        assert!(got.ends_with(END), "{}", String::from_utf8_lossy(&got));
        let calls = chained.calls();
        let class = if http2 {
            StampClass::H2
        } else {
            StampClass::Tls
        };
        assert_eq!(calls[0].outer.connection.upstream_class, class);
        assert_eq!(calls[0].attempts[0].connection.client_class, class);
        assert_eq!(calls[0].class, CallClass::Served);
    }
}

/// An upstream of HTTP/2 that gives back what it is sent, with a trailer.
async fn echo(listener: TcpListener) {
    while let Ok((socket, _)) = listener.accept().await {
        tokio::spawn(async move {
            let mut connection = h2::server::handshake(socket).await.unwrap();
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                tokio::spawn(async move {
                    let mut stream = request.into_body();
                    let mut send = respond.send_response(Response::new(()), false).unwrap();
                    let mut sum = 0_usize;
                    while let Some(Ok(data)) = stream.data().await {
                        stream.flow_control().release_capacity(data.len()).unwrap();
                        sum += data.len();
                        send.send_data(data, false).unwrap();
                    }
                    let mut trailers = HeaderMap::new();
                    trailers.insert("x-sum", sum.into());
                    send.send_trailers(trailers).unwrap();
                });
            }
        });
    }
}

fn echo_at(runtime: &Runtime) -> SocketAddr {
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        tokio::spawn(echo(listener));
        at
    })
}

#[test]
fn long_bodies_and_trailers_cross_both_ways() {
    let runtime = Runtime::new().unwrap();
    let at = echo_at(&runtime);
    let body: Vec<u8> = (0..5_000_000_u32).map(|n| (n % 251) as u8).collect();
    for between in [false, true] {
        let chained = Chained::new(between, true, at);
        let (_, back, trailers) = runtime.block_on(async {
            let mut send = client(chained.outer).await;
            ask(&mut send, post(chained.outer, "/echo"), body.clone().into())
                .await
                .unwrap()
        });
        assert!(back == body, "between {between}: {} bytes", back.len());
        assert_eq!(trailers.unwrap()["x-sum"], "5000000");
        let mut socket = connect(chained.outer);
        let head =
            "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\n\r\n";
        let got = exchange(
            &mut socket,
            format!("{head}5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n").as_bytes(),
            b"x-sum: 11\r\n\r\n",
        );
        let got = String::from_utf8_lossy(&got).to_lowercase();
        assert!(
            got.contains("transfer-encoding: chunked") && got.contains("hello"),
            "{got}"
        );
        assert!(got.ends_with("0\r\nx-sum: 11\r\n\r\n"), "{got}");
        // The connection goes on; a client that waits to be told to send is told.
        let expecting =
            "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n";
        let first = exchange(&mut socket, expecting.as_bytes(), b"Continue\r\n\r\n");
        let rest = exchange(&mut socket, b"ok", b"x-sum: 2\r\n\r\n");
        let got = String::from_utf8([first, rest].concat()).unwrap();
        assert!(
            got.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200"),
            "{got}"
        );
    }
}

#[test]
fn a_request_body_beyond_the_bound_is_refused_however_its_length_is_told() {
    let runtime = Runtime::new().unwrap();
    let at = echo_at(&runtime);
    let chained = Chained::new(true, true, at);
    let long = Bytes::from(vec![b'x'; 9 << 20]);
    runtime.block_on(async {
        let mut send = client(chained.outer).await;
        let mut told = post(chained.outer, "/echo");
        told.headers_mut()
            .insert("content-length", long.len().into());
        let (response, _sending) = send.send_request(told, false).unwrap();
        let (response, body, _) = read(response.await.unwrap()).await.unwrap();
        assert_eq!(response.status(), 413, "{body:?}");
        // Untold, it is cut once the bound is passed; the connection serves on.
        assert!(
            ask(&mut send, post(chained.outer, "/echo"), long)
                .await
                .is_err()
        );
        let (_, back, _) = ask(&mut send, post(chained.outer, "/echo"), "ok".into())
            .await
            .unwrap();
        assert_eq!(back, "ok");
    });
}

#[test]
fn many_streams_share_a_connection_and_none_is_lost() {
    let runtime = Runtime::new().unwrap();
    let at = runtime.block_on(spawn_engine(quick()));
    let mut chained = Chained::new(true, false, at);
    runtime.block_on(async {
        let send = client(chained.outer).await;
        let all = (0..60).map(|_| {
            let (request, body) = chat2(chained.outer, 20);
            let mut send = send.clone();
            tokio::spawn(async move { ask(&mut send, request, body).await.unwrap() })
        });
        for one in all.collect::<Vec<_>>() {
            let (_, body, _) = one.await.unwrap();
            assert!(body.ends_with(b"data: [DONE]\n\n"));
        }
    });
    let calls = chained.calls();
    assert_eq!(calls.len(), 60);
    for call in &calls {
        assert_eq!(call.class, CallClass::Served);
        assert_eq!(call.outer.outcome, Outcome::Complete);
        let legs = call.legs().unwrap();
        assert_eq!((legs.tokens.delays.len(), legs.tokens.pressured), (19, 0));
        for delay in &legs.tokens.delays {
            assert!(delay.low <= delay.high && delay.high > 0, "{delay:?}");
        }
    }
}

#[test]
fn a_client_that_resets_its_stream_frees_the_engine_at_once_and_only_itself() {
    let runtime = Runtime::new().unwrap();
    let slow = EngineOptions {
        gap_us: 20_000,
        ..quick()
    };
    let at = runtime.block_on(spawn_engine(slow));
    let mut chained = Chained::new(true, false, at);
    let took = runtime.block_on(async {
        let send = client(chained.outer).await;
        let (request, body) = chat2(chained.outer, 30);
        let mut beside = send.clone();
        let other = tokio::spawn(async move { ask(&mut beside, request, body).await.unwrap() });
        let (request, body) = chat2(chained.outer, 500);
        let (response, mut sending) = send
            .ready()
            .await
            .unwrap()
            .send_request(request, false)
            .unwrap();
        sending.send_data(body, true).unwrap();
        let mut stream = response.await.unwrap().into_body();
        stream.data().await.unwrap().unwrap();
        sending.send_reset(h2::Reason::CANCEL);
        let began = Instant::now();
        let (_, whole, _) = other.await.unwrap();
        assert!(whole.ends_with(b"data: [DONE]\n\n"));
        began.elapsed()
    });
    assert!(
        took < Duration::from_secs(8),
        "ten seconds is what the reset call would take"
    );
    let calls = chained.calls();
    let gone = calls
        .iter()
        .find(|c| c.outer.outcome == Outcome::Aborted)
        .unwrap();
    assert_eq!(gone.attempts[0].outcome, Outcome::Aborted);
    let lasted =
        gone.attempts[0].marks.closed - gone.outer.marks.closed.min(gone.attempts[0].marks.closed);
    assert!(
        lasted < 500_000_000,
        "the inner exchange ended with the outer: {lasted} ns"
    );
}

#[test]
fn an_upstream_that_breaks_inside_a_stream_leaves_a_cut_and_not_an_end() {
    let runtime = Runtime::new().unwrap();
    let at = runtime.block_on(spawn_engine(quick()));
    for fault in ["close-after=5", "reset-after=5"] {
        let mut chained = Chained::new(true, false, at);
        runtime.block_on(async {
            let mut send = client(chained.outer).await;
            let (mut request, body) = chat2(chained.outer, 20);
            request
                .headers_mut()
                .insert("x-sim-fault", fault.parse().unwrap());
            let error = ask(&mut send, request, body).await.unwrap_err();
            assert!(error.is_reset(), "{fault}: {error}");
            let (request, body) = chat2(chained.outer, 8);
            let (_, sound, _) = ask(&mut send, request, body).await.unwrap();
            assert!(
                sound.ends_with(b"data: [DONE]\n\n"),
                "and the connection goes on"
            );
        });
        // The same for a client of HTTP/1 behind which the taps speak HTTP/2.
        let fields = format!("x-sim-fault: {fault}\r\n");
        let got = exchange(
            &mut connect(chained.outer),
            chat(20, &fields, "").as_bytes(),
            END,
        );
        assert!(!got.ends_with(END), "{fault}");
        for call in chained
            .calls()
            .iter()
            .filter(|c| c.class != CallClass::Served)
        {
            assert_eq!(call.attempts[0].outcome, Outcome::Truncated, "{fault}");
            assert_ne!(call.outer.outcome, Outcome::Complete, "{fault}");
        }
    }
}

#[test]
fn an_upstream_that_is_not_there_is_a_502_and_one_that_speaks_no_http2_too() {
    let runtime = Runtime::new().unwrap();
    let at = runtime.block_on(spawn_engine(quick()));
    for (far, upstream) in [(false, free()), (true, free()), (true, at)] {
        let chained = Chained::new(true, far, upstream);
        runtime.block_on(async {
            let (request, body) = chat2(chained.outer, 8);
            let (response, body, _) = ask(&mut client(chained.outer).await, request, body)
                .await
                .unwrap();
            let body = String::from_utf8_lossy(&body).into_owned();
            assert_eq!(response.status(), 502, "{body}");
            assert!(body.contains(&upstream.to_string()), "{body}");
        });
    }
}

#[test]
fn methods_statuses_and_empty_answers_keep_their_meaning() {
    let runtime = Runtime::new().unwrap();
    let at = runtime.block_on(spawn_engine(quick()));
    let chained = Chained::new(true, false, at);
    runtime.block_on(async {
        let mut send = client(chained.outer).await;
        let get = |method: &str, path: &str| {
            Request::builder()
                .method(method)
                .uri(format!("http://{}{path}", chained.outer))
                .body(())
                .unwrap()
        };
        let (response, body, _) = ask(&mut send, get("GET", "/v1/models"), Bytes::new())
            .await
            .unwrap();
        assert_eq!(response.status(), 200);
        let length = response.headers()["content-length"].to_str().unwrap();
        assert_eq!(length.parse::<usize>().unwrap(), body.len());
        let (response, body, _) = ask(&mut send, get("GET", "/nowhere"), Bytes::new())
            .await
            .unwrap();
        assert_eq!(response.status(), 404, "{body:?}");
        let connect = Request::builder()
            .method("CONNECT")
            .uri("h:1")
            .body(())
            .unwrap();
        let (response, _, _) = ask(&mut send, connect, Bytes::new()).await.unwrap();
        assert_eq!(response.status(), 405);
    });
}

#[test]
fn what_is_no_http2_behind_the_preface_ends_the_connection_and_not_the_tap() {
    let runtime = Runtime::new().unwrap();
    let at = runtime.block_on(spawn_engine(quick()));
    let chained = Chained::new(true, false, at);
    for bad in [
        &b"garbage that is no frame at all, and longer than one"[..],
        b"\0\0\x05\x04\0\0\0\0\0hello",
    ] {
        let mut request = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        request.extend_from_slice(bad);
        // Reads to the end of the connection: the tap closes it.
        let _ = exchange(
            &mut connect(chained.outer),
            &request,
            b"never sent by anybody",
        );
    }
    let got = exchange(&mut connect(chained.outer), chat(8, "", "").as_bytes(), END);
    assert!(got.ends_with(END));
}
