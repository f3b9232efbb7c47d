//! For tests: stand-ins on free ports and a client that sees every byte.

use std::future::Future;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::clock::now;
use crate::truth::{ExchangeTruth, Log, Mark, Outcome};
use crate::{agentcore, engine, gateway, managed, relay, router};

/// No test waits longer for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A running stand-in.
pub(crate) struct Running {
    pub(crate) address: String,
    pub(crate) log: Log,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Running {
    async fn start<F>(serve: impl FnOnce(TcpListener, Log, oneshot::Receiver<()>) -> F) -> Self
    where
        F: Future<Output = std::io::Result<()>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let log = Log::memory(100_000);
        let (stop, stopped) = oneshot::channel();
        let task = tokio::spawn(serve(listener, log.clone(), stopped));
        Self {
            address,
            log,
            stop,
            task,
        }
    }

    pub(crate) async fn engine(options: engine::EngineOptions) -> Self {
        Self::start(|listener, log, stop| engine::serve(listener, options, log, until(stop))).await
    }

    pub(crate) async fn managed(options: managed::ManagedOptions) -> Self {
        Self::start(|listener, log, stop| managed::serve(listener, options, log, until(stop))).await
    }

    pub(crate) async fn agentcore(options: agentcore::AgentCoreOptions) -> Self {
        Self::start(|listener, log, stop| agentcore::serve(listener, options, log, until(stop)))
            .await
    }

    pub(crate) async fn gateway(options: gateway::GatewayOptions) -> Self {
        Self::start(|listener, log, stop| gateway::serve(listener, options, log, until(stop))).await
    }

    pub(crate) async fn router(options: router::RouterOptions) -> Self {
        Self::start(|listener, log, stop| router::serve(listener, options, log, until(stop))).await
    }

    pub(crate) async fn relay(options: relay::RelayOptions) -> Self {
        Self::start(|listener, log, stop| relay::serve(listener, options, log, until(stop))).await
    }

    /// Stops it and gives all truths, also those of exchanges that were cut by the stop.
    pub(crate) async fn stop(self) -> Vec<ExchangeTruth> {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap();
        assert_eq!(self.log.dropped(), 0);
        self.log.take()
    }

    /// Waits until `count` exchanges have been recorded and gives them.
    pub(crate) async fn truths(&self, count: usize) -> Vec<ExchangeTruth> {
        let mut truths = Vec::new();
        let deadline = now() + PATIENCE.as_nanos() as u64;
        while truths.len() < count && now() < deadline {
            tokio::time::sleep(Duration::from_millis(2)).await;
            truths.extend(self.log.take());
        }
        assert_eq!(truths.len(), count, "exchanges recorded");
        truths
    }
}

async fn until(stop: oneshot::Receiver<()>) {
    let _ = stop.await;
}

/// What a client got: the bytes of one answer and when each read returned.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) bytes: Vec<u8>,
    /// (bytes so far, ns).
    pub(crate) reads: Vec<(usize, u64)>,
    /// The server closed (`Some(false)`) or reset (`Some(true)`) the connection.
    pub(crate) ended: Option<bool>,
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    pub(crate) fn status(&self) -> u16 {
        self.text().split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// The body with chunked framing taken off, by code that shares nothing with the stand-ins.
    pub(crate) fn body(&self) -> String {
        let text = self.text();
        let at = text.rfind("HTTP/1.1 ").unwrap_or(0);
        let (head, mut rest) = text[at..].split_once("\r\n\r\n").unwrap();
        if !head.to_lowercase().contains("transfer-encoding: chunked") {
            return rest.to_owned();
        }
        let mut body = String::new();
        while let Some((size, after)) = rest.split_once("\r\n") {
            let size = usize::from_str_radix(size, 16).unwrap();
            if size == 0 || after.len() < size {
                break;
            }
            body.push_str(&after[..size]);
            rest = &after[size + 2..];
        }
        body
    }

    /// The data of the events of the stream.
    pub(crate) fn datas(&self) -> Vec<String> {
        self.body()
            .replace("\r\n", "\n")
            .split("\n\n")
            .filter_map(|event| event.strip_prefix("data: ").map(str::to_owned))
            .collect()
    }

    /// The chunks of the stream that are JSON.
    pub(crate) fn chunks(&self) -> Vec<serde_json::Value> {
        let datas = self.datas();
        let parsed = datas.iter().map(|data| serde_json::from_str(data));
        parsed.filter_map(Result::ok).collect()
    }

    /// The concatenated content of choice 0.
    pub(crate) fn content(&self) -> String {
        self.chunks()
            .iter()
            .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
            .collect()
    }

    /// When the read came that brought the byte at `offset` of the answer.
    pub(crate) fn arrival(&self, offset: usize) -> u64 {
        let read = self.reads.iter().find(|(total, _)| *total > offset);
        read.expect("the byte came").1
    }
}

/// A client connection.
pub(crate) struct Client(pub(crate) TcpStream);

impl Client {
    pub(crate) async fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    /// A client whose kernel holds few bytes for it, so that its server soon blocks.
    pub(crate) async fn with_small_buffer(address: &str) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(16 * 1024).unwrap();
        Self(socket.connect(address.parse().unwrap()).await.unwrap())
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }

    /// Posts `body` with extra header lines and reads the whole answer.
    pub(crate) async fn post(&mut self, path: &str, extra: &str, body: &str) -> Answer {
        let request = post(path, extra, body);
        self.send(request.as_bytes()).await;
        self.read_until(complete).await
    }

    /// Reads until `enough` or the end.
    pub(crate) async fn read_until(&mut self, enough: impl Fn(&[u8]) -> bool) -> Answer {
        let mut answer = Answer::default();
        let mut buffer = vec![0; 1 << 16];
        while !enough(&answer.bytes) {
            let read = tokio::time::timeout(PATIENCE, self.0.read(&mut buffer)).await;
            match read.expect("an answer in time") {
                Ok(0) => {
                    answer.ended = Some(false);
                    break;
                }
                Ok(count) => {
                    answer.bytes.extend_from_slice(&buffer[..count]);
                    answer.reads.push((answer.bytes.len(), now()));
                }
                Err(_) => {
                    answer.ended = Some(true);
                    break;
                }
            }
        }
        answer
    }

    /// Whether the server closes within `patience`.
    pub(crate) async fn closes(&mut self, patience: Duration) -> bool {
        let mut byte = [0];
        let read = tokio::time::timeout(patience, self.0.read(&mut byte)).await;
        matches!(read, Ok(Ok(0) | Err(_)))
    }
}

pub(crate) fn post(path: &str, extra: &str, body: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{extra}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Whether the bytes hold one whole answer, by a reading of the framing that is good enough for stand-ins.
pub(crate) fn complete(bytes: &[u8]) -> bool {
    // Heads are short: looking further would take long in long answers.
    let beginning = String::from_utf8_lossy(&bytes[..bytes.len().min(2048)]);
    let Some(at) = beginning.rfind("HTTP/1.1 ") else {
        return false;
    };
    let Some((head, _)) = beginning[at..].split_once("\r\n\r\n") else {
        return false;
    };
    let body = &bytes[at + head.len() + 4..];
    let head = head.to_lowercase();
    if let Some((_, length)) = head.split_once("content-length: ") {
        let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
        return body.len() >= length;
    }
    let end = String::from_utf8_lossy(&body[body.len().saturating_sub(64)..]);
    head.contains("transfer-encoding: chunked")
        && end.ends_with("\r\n\r\n")
        && (end.contains("\r\n0\r\n") || body.starts_with(b"0\r\n"))
}

/// A request for a stream of `tokens` tokens.
pub(crate) fn stream_of(tokens: u64) -> String {
    format!(
        r#"{{"model":"m","stream":true,"stream_options":{{"include_usage":true}},"max_tokens":{tokens},"messages":[{{"role":"user","content":"one two three"}}]}}"#
    )
}

pub(crate) const CHAT: &str = "/v1/chat/completions";

/// Every mark of `truth` that was written, in the order of the stream, has ordered stamps.
pub(crate) fn assert_ordered(truth: &ExchangeTruth) {
    let mut last = 0;
    for token in &truth.tokens {
        assert!(token.read_at.is_none_or(|read| read <= token.write_begin));
        assert!(token.write_begin <= token.write_end);
        assert!(last <= token.write_begin, "writes are in order");
        last = token.write_begin;
    }
    let read = |mark| truth.mark(mark).and_then(|mark| mark.read_at).unwrap();
    assert!(read(Mark::RequestHead) <= read(Mark::RequestBody));
    let mut last = read(Mark::RequestBody);
    let order = [
        Mark::ResponseHead,
        Mark::Role,
        Mark::Finish,
        Mark::Usage,
        Mark::Done,
        Mark::End,
    ];
    for mark in order.into_iter().filter_map(|mark| truth.mark(mark)) {
        let (begin, end) = (mark.write_begin.unwrap(), mark.write_end.unwrap());
        assert!(
            last <= begin && begin <= end,
            "{:?} out of order",
            mark.mark
        );
        last = begin;
    }
}

pub(crate) fn assert_complete(truth: &ExchangeTruth) {
    assert_eq!(truth.outcome, Outcome::Complete);
    assert_ordered(truth);
}
