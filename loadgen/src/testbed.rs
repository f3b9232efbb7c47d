//! A tiny server for tests: one thread a connection, each answer written by hand.

use config::Chain;
use record::clock::now;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request as the server read it.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) head: String,
    pub(crate) body: String,
    /// Number of the connection, from 0.
    pub(crate) connection: usize,
    /// When its last byte was read.
    pub(crate) at: u64,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// See the module. Lives as long as the process: its threads wait for connections.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Answers each request with `answer`; a connection ends where that returns false.
    pub(crate) fn start(
        answer: impl Fn(&Seen, &mut TcpStream) -> bool + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<Seen>>> = Arc::default();
        let (log, answer, count) = (seen.clone(), Arc::new(answer), AtomicUsize::new(0));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                stream.set_nodelay(true).unwrap();
                let (log, answer) = (log.clone(), answer.clone());
                let connection = count.fetch_add(1, Ordering::Relaxed);
                std::thread::spawn(move || {
                    while let Some(request) = read(&mut stream, connection) {
                        log.lock().unwrap().push(request.clone());
                        if !answer(&request, &mut stream) {
                            break;
                        }
                    }
                });
            }
        });
        Self { address, seen }
    }

    /// Streams `tokens` events after `first`, `gap` apart.
    pub(crate) fn engine(tokens: u32, first: Duration, gap: Duration) -> Self {
        Self::start(move |_, stream| {
            std::thread::sleep(first);
            answer(stream, tokens, gap).is_ok()
        })
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// A chain without taps that leads here.
    pub(crate) fn chain(&self, name: &str, kind: &str) -> Chain {
        let text = format!(
            "{{\"name\": {name:?}, \"kind\": {kind:?}, \"simulated\": true, \"entry\": \"http://{}\", \"model\": \"m\"}}",
            self.address
        );
        serde_json::from_str(&text).unwrap()
    }
}

fn read(stream: &mut TcpStream, connection: usize) -> Option<Seen> {
    let mut bytes = Vec::new();
    let mut buffer = [0_u8; 16_384];
    loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let mut seen = Seen {
                head,
                body: String::new(),
                connection,
                at: now(),
            };
            let length: usize = seen
                .header("content-length")
                .map_or(0, |n| n.parse().unwrap());
            if bytes.len() >= end + 4 + length {
                seen.body = String::from_utf8_lossy(&bytes[end + 4..]).into_owned();
                return Some(seen);
            }
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    }
}

pub(crate) const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Writes one HTTP chunk.
pub(crate) fn chunk(stream: &mut TcpStream, text: &str) -> std::io::Result<()> {
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes())
}

pub(crate) fn token(text: &str) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-1\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
    )
}

pub(crate) fn tail(tokens: u32) -> String {
    format!(
        "data: {{\"choices\":[{{\"index\":0,\"delta\":{{}},\"finish_reason\":\"length\"}}]}}\n\n\
         data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":7,\"completion_tokens\":{tokens},\"total_tokens\":9}}}}\n\n\
         data: [DONE]\n\n"
    )
}

/// A whole streamed answer.
pub(crate) fn answer(stream: &mut TcpStream, tokens: u32, gap: Duration) -> std::io::Result<()> {
    stream.write_all(HEAD.as_bytes())?;
    for index in 0..tokens {
        if index > 0 {
            std::thread::sleep(gap);
        }
        chunk(stream, &token("word "))?;
    }
    chunk(stream, &tail(tokens))?;
    stream.write_all(b"0\r\n\r\n")
}
