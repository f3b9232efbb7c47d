//! A tap as a process: how it starts, shows itself, bears load, drains and ends.

use crate::rig::{END, PATIENCE, chat, connect, exchange, free, read_until};
use record::exchange::Outcome;
use record::pairing::CallClass;
use sim::engine::EngineOptions;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// `hopscope tap` with an outer and an inner tap before an engine stand-in of this process.
struct Process {
    child: Child,
    outer: SocketAddr,
    telemetry: SocketAddr,
    admin: SocketAddr,
    dir: tempfile::TempDir,
    _engine: Runtime,
}

impl Process {
    fn start(options: EngineOptions, limits: &str) -> Self {
        let (engine, at) = crate::rig::engine(options);
        let dir = tempfile::tempdir().unwrap();
        let (outer, inner, telemetry, admin) = (free(), free(), free(), free());
        let chain = format!(
            "name: life\nkind: loop\nsimulated: true\nentry: http://{outer}\nmodel: m\ntaps:\n\
             \x20 - {{name: outer, position: outer, listen: \"{outer}\", upstream: {{addresses: [\"{inner}\"]}}{limits}}}\n\
             \x20 - {{name: inner, position: inner, listen: \"{inner}\", upstream: {{addresses: [\"{at}\"]}}}}\n"
        );
        let tap = format!(
            "chains: [chain.yaml]\ntelemetry: \"{telemetry}\"\nadmin: \"{admin}\"\ndrain_timeout: 20s\n"
        );
        std::fs::write(dir.path().join("chain.yaml"), chain).unwrap();
        std::fs::write(dir.path().join("tap.yaml"), tap).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_hopscope"))
            .arg("tap")
            .arg("--config")
            .arg(dir.path().join("tap.yaml"))
            .arg("--record")
            .arg(dir.path().join("run/taps/tap"))
            .spawn()
            .unwrap();
        let process = Self {
            child,
            outer,
            telemetry,
            admin,
            dir,
            _engine: engine,
        };
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(process.outer).is_err() {
            assert!(Instant::now() < until, "the tap does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        process
    }

    fn get(&self, path: &str) -> String {
        let request = format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
        let got = exchange(&mut connect(self.telemetry), request.as_bytes(), b"never");
        String::from_utf8_lossy(&got).into_owned()
    }

    fn terminate(&self) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
        assert!(status.success());
    }

    fn ended(&mut self) -> std::process::ExitStatus {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "the tap does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn calls(&self) -> Vec<record::pairing::Call> {
        crate::rig::pair(&self.dir.path().join("run"))
    }

    fn memory(&self) -> u64 {
        memory_of(self.child.id()).unwrap()
    }
}

/// Memory of a process' own, bytes; `None` of one that has ended. Not the whole proportional set size: the
/// pages of the program are shared with whatever other processes of it run beside this test.
pub(crate) fn memory_of(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find(|l| l.starts_with("Pss_Anon:"))?;
    let kilobytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1024)
}

impl Drop for Process {
    fn drop(&mut self) {
        // Ended already in most tests.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn engine(ttft_us: u64, gap_us: u64) -> EngineOptions {
    EngineOptions {
        ttft_us,
        gap_us,
        ..EngineOptions::default()
    }
}

#[test]
fn a_tap_that_is_told_to_stop_is_not_ready_and_lets_its_streams_end() {
    let mut process = Process::start(engine(20_000, 20_000), "");
    assert!(process.get("/livez").starts_with("HTTP/1.1 200"));
    assert!(process.get("/readyz").starts_with("HTTP/1.1 200"));
    let mut socket = connect(process.outer);
    socket.write_all(chat(60, "", "").as_bytes()).unwrap();
    let begun = read_until(&mut socket, b"data: ");
    process.terminate();
    let until = Instant::now() + PATIENCE;
    while !process.get("/readyz").starts_with("HTTP/1.1 503") {
        assert!(Instant::now() < until, "still ready while it drains");
    }
    assert!(
        process.get("/livez").starts_with("HTTP/1.1 200"),
        "draining is alive"
    );
    let rest = read_until(&mut socket, END);
    assert!(
        [begun, rest].concat().ends_with(END),
        "the stream came to its end"
    );
    assert!(process.ended().success());
    let calls = process.calls();
    assert_eq!(calls.len(), 1);
    assert_eq!(
        (calls[0].class, calls[0].outer.outcome),
        (CallClass::Served, Outcome::Complete)
    );
    assert_eq!(calls[0].outer.stream.counts.text_events, 60);
}

#[test]
fn the_live_feed_gives_each_call_as_it_ends_and_as_the_record_has_it() {
    let mut process = Process::start(engine(2_000, 200), "");
    let mut feed = connect(process.admin);
    feed.write_all(b"GET /calls HTTP/1.1\r\nHost: h\r\n\r\n")
        .unwrap();
    let mut lines = BufReader::new(feed).lines();
    let head: Vec<String> = lines
        .by_ref()
        .map(|l| l.unwrap())
        .take_while(|l| !l.is_empty())
        .collect();
    assert!(head[0].starts_with("HTTP/1.1 200"), "{head:?}");
    for _ in 0..5 {
        let got = exchange(
            &mut connect(process.outer),
            chat(16, "", "").as_bytes(),
            END,
        );
        assert!(got.ends_with(END));
    }
    let live: Vec<serde_json::Value> = lines
        .map(|l| l.unwrap())
        .filter(|l| l.starts_with('{'))
        .take(5)
        .map(|l| serde_json::from_str(&l).unwrap())
        .collect();
    process.terminate();
    assert!(process.ended().success());
    let calls = process.calls();
    assert_eq!(calls.len(), 5);
    for (live, call) in live.iter().zip(&calls) {
        assert_eq!(live["call"].as_str(), call.outer.keys.call.as_deref());
        let added = call.legs().unwrap().added_ttft.unwrap().value;
        assert_eq!(live["legs"]["added_ttft"]["value"].as_i64(), Some(added));
    }
}

#[test]
fn ten_thousand_calls_leave_the_memory_where_it_was() {
    let mut process = Process::start(engine(0, 0), "");
    let body = chat(16, "", "");
    // Some 600 calls a second: pairing holds a call for a second before it lets go of it, so what the
    // tap holds grows with the rate, and must not grow with the number.
    let drive = |count: usize| {
        let callers: Vec<_> = (0..8)
            .map(|_| {
                let (outer, body) = (process.outer, body.clone());
                std::thread::spawn(move || {
                    let mut socket = connect(outer);
                    for _ in 0..count / 8 {
                        let next = Instant::now() + Duration::from_millis(13);
                        let got = exchange(&mut socket, body.as_bytes(), END);
                        assert!(got.ends_with(END));
                        std::thread::sleep(next.saturating_duration_since(Instant::now()));
                    }
                })
            })
            .collect();
        callers.into_iter().for_each(|c| c.join().unwrap());
    };
    drive(1_000);
    let after_one = process.memory();
    drive(9_000);
    let after_ten = process.memory();
    let grown = after_ten.saturating_sub(after_one);
    println!("{after_one} bytes after 1,000 calls, {after_ten} after 10,000");
    assert!(
        grown < 6 << 20,
        "grew by {grown} bytes: {after_one} to {after_ten}"
    );
    process.terminate();
    assert!(process.ended().success());
    assert_eq!(process.calls().len(), 10_000);
}

#[test]
fn a_client_that_reads_slowly_is_no_delay_of_what_is_measured() {
    // Long events, so that the sockets' buffers fill: thousands of events of some 300 bytes.
    let mut process = Process::start(engine(2_000, 0), "");
    let outer = process.outer;
    let slow = std::thread::spawn(move || {
        let mut socket = connect(outer);
        rustix::net::sockopt::set_socket_recv_buffer_size(&socket, 64 * 1024).unwrap();
        socket.write_all(chat(20_000, "", "").as_bytes()).unwrap();
        // Stops reading for three seconds, then takes the rest.
        let mut first = [0; 1024];
        let begun = socket.read(&mut first).unwrap();
        std::thread::sleep(Duration::from_secs(3));
        let mut all = first[..begun].to_vec();
        let mut buffer = vec![0; 64 * 1024];
        while !all.ends_with(END) {
            let count = socket.read(&mut buffer).unwrap();
            assert!(count > 0, "the stream broke");
            all.extend_from_slice(&buffer[..count]);
        }
        all.len()
    });
    // Others beside it notice nothing.
    std::thread::sleep(Duration::from_millis(500));
    for _ in 0..10 {
        let got = exchange(&mut connect(outer), chat(50, "", "").as_bytes(), END);
        assert!(got.ends_with(END));
    }
    assert!(slow.join().unwrap() > 2_000_000);
    process.terminate();
    assert!(process.ended().success());
    let calls = process.calls();
    let (held, quick): (Vec<_>, Vec<_>) = calls
        .iter()
        .partition(|c| c.outer.stream.counts.text_events > 1_000);
    let call = held[0];
    assert_eq!(call.outer.outcome, Outcome::Complete);
    assert!(
        call.outer.pressure.client_blocked > 500_000_000,
        "the blocked write is a result of its own: {:?}",
        call.outer.pressure
    );
    let legs = call.legs().unwrap();
    assert!(
        legs.tokens.pressured > 100,
        "{} positions under pressure",
        legs.tokens.pressured
    );
    let longest = legs
        .tokens
        .delays
        .iter()
        .map(|d| d.value)
        .max()
        .unwrap_or(0);
    assert!(
        longest < 500_000_000,
        "three seconds of the client's are in no headline leg: {longest} ns"
    );
    assert_eq!(quick.len(), 10);
    for call in quick {
        assert_eq!(call.outer.outcome, Outcome::Complete);
        assert_eq!(call.legs().unwrap().tokens.pressured, 0);
    }
}

#[test]
fn connections_beyond_the_bound_wait_and_are_served_in_their_turn() {
    let process = Process::start(engine(2_000, 200), ", limits: {connections_max: 2}");
    let first = connect(process.outer);
    let mut second = connect(process.outer);
    let got = exchange(&mut second, chat(16, "", "").as_bytes(), END);
    assert!(got.ends_with(END));
    let mut third = connect(process.outer);
    third
        .set_read_timeout(Some(Duration::from_millis(300)))
        .unwrap();
    let none = exchange(&mut third, chat(16, "", "").as_bytes(), END);
    assert!(none.is_empty(), "served beyond the bound");
    drop(first);
    third.set_read_timeout(Some(PATIENCE)).unwrap();
    assert!(read_until(&mut third, END).ends_with(END));
}
