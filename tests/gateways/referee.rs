//! A referee from outside: packets captured on the loopback device, against the marks that the taps
//! took of the same bytes.
//!
//! The kernel stamps a captured packet where it passes the device, inside the system call that sends
//! it. So a packet must lie between the begin and the end of the write that a tap stamped, and not
//! before the earliest nor behind the instant of the read that a tap dates it by.

use super::rig::{END, chain, chat, connect, exchange, free, pair, serve};
use super::{Running, engine, installed, target};
use record::clock::{self, Nanos};
use record::exchange::Exchange;
use record::stamp::Passage;
use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const STREAMS: usize = 20;
/// What putting the wall clock on the monotonic one, and a packet that waits for its soft interrupt,
/// may cost.
const SLACK: u64 = 50_000;
/// The share of marks that must lie where they claim to. A packet may be held up by the scheduler of
/// a shared machine after the call that sent it returned.
const SHARE: f64 = 0.9;

/// One direction of a connection: where it is sent from and to.
type Flow = (u16, u16);

/// The bytes of a flow, and the packet that carried each.
#[derive(Default)]
struct Carried {
    bytes: Vec<u8>,
    /// Length of `bytes` after a packet, and its instant on the monotonic clock.
    packets: Vec<(usize, Nanos)>,
    next: Option<u32>,
}

impl Carried {
    /// When the byte at `at` passed.
    fn instant(&self, at: usize) -> Option<Nanos> {
        let (_, instant) = self.packets.iter().find(|(end, _)| *end > at)?;
        Some(*instant)
    }

    fn find(&self, needle: &str, from: usize) -> Option<usize> {
        let needle = needle.as_bytes();
        let rest = self.bytes.get(from..)?;
        rest.windows(needle.len())
            .position(|w| w == needle)
            .map(|at| at + from)
    }

    /// When the last byte of each event of text passed.
    fn texts(&self) -> Vec<Nanos> {
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some(begin) = self.find("data: ", at) {
            let Some(end) = self.find("\n\n", begin) else {
                break;
            };
            let event = String::from_utf8_lossy(&self.bytes[begin..end]);
            let json: serde_json::Value =
                serde_json::from_str(&event["data: ".len()..]).unwrap_or_default();
            let content = json["choices"][0]["delta"]["content"].as_str();
            if content.is_some_and(|text| !text.is_empty()) {
                found.extend(self.instant(end + 1));
            }
            at = end + 2;
        }
        found
    }
}

/// Reads a capture with nanosecond stamps of an Ethernet-like device (the `pcap` file format).
fn read(path: &Path, offset: i64) -> HashMap<Flow, Carried> {
    let bytes = std::fs::read(path).unwrap();
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    assert_eq!(word(0), 0xa1b2_3c4d, "nanosecond stamps");
    assert_eq!(word(20), 1, "Ethernet");
    let mut flows: HashMap<Flow, Carried> = HashMap::new();
    let mut at = 24;
    while at + 16 <= bytes.len() {
        let wall = u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4));
        let length = word(at + 8) as usize;
        let Some(packet) = bytes.get(at + 16..at + 16 + length) else {
            break;
        };
        at += 16 + length;
        let ip = &packet[14..];
        let total = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        let tcp = &ip[usize::from(ip[0] & 15) * 4..total];
        let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let sequence = u32::from_be_bytes(tcp[4..8].try_into().unwrap());
        let payload = &tcp[usize::from(tcp[12] >> 4) * 4..];
        let carried = flows.entry((port(0), port(2))).or_default();
        if tcp[13] & 2 != 0 {
            carried.next = Some(sequence.wrapping_add(1));
        }
        if payload.is_empty() || carried.next != Some(sequence) {
            continue;
        }
        carried.next = Some(sequence.wrapping_add(payload.len() as u32));
        carried.bytes.extend_from_slice(payload);
        let mono = wall.cast_signed() - offset;
        carried
            .packets
            .push((carried.bytes.len(), mono.cast_unsigned()));
    }
    flows
}

/// Counts what lies where it claims to.
#[derive(Default)]
struct Count {
    checked: usize,
    right: usize,
    wrong: Vec<String>,
}

impl Count {
    fn check(&mut self, what: &str, packet: Option<Nanos>, from: Nanos, to: Nanos) {
        let Some(packet) = packet else { return };
        self.checked += 1;
        if packet + SLACK >= from && packet <= to + SLACK {
            self.right += 1;
        } else {
            let (early, late) = (from.saturating_sub(packet), packet.saturating_sub(to));
            self.wrong
                .push(format!("{what}: {early} ns too early, {late} ns too late"));
        }
    }

    fn passage(&mut self, what: &str, passage: &Passage, came: Option<Nanos>, went: Option<Nanos>) {
        let arrival = passage.arrival;
        self.check(&format!("{what} in"), came, arrival.earliest, arrival.at);
        if let Some(departure) = passage.departure {
            self.check(&format!("{what} out"), went, departure.begin, departure.end);
        }
    }
}

/// The flow towards `client` of the hop to `server` that carried the response `id`.
fn answer<'a>(
    flows: &'a HashMap<Flow, Carried>,
    server: SocketAddr,
    id: &str,
) -> (&'a Carried, &'a Carried) {
    let (flow, answer) = flows
        .iter()
        .find(|((from, _), carried)| *from == server.port() && carried.find(id, 0).is_some())
        .unwrap_or_else(|| panic!("no packets of {id} from {server}"));
    // The marks of a flow are then those of one call.
    let heads = answer
        .find("HTTP/1.1 200", 0)
        .map(|at| answer.find("HTTP/1.1 200", at + 1));
    assert_eq!(heads, Some(None), "a connection carried more than one call");
    (answer, &flows[&(flow.1, flow.0)])
}

fn compare(
    count: &mut Count,
    exchange: &Exchange,
    flows: &HashMap<Flow, Carried>,
    (near, far): (SocketAddr, SocketAddr),
) {
    let id = exchange.stream.response_id.as_ref().unwrap();
    let (near_answer, near_request) = answer(flows, near, id);
    let (far_answer, far_request) = answer(flows, far, id);
    let last = |c: &Carried| c.packets.last().map(|(_, at)| *at);
    let tap = &exchange.tap;
    let marks = &exchange.marks;
    if let Some(request) = &marks.request {
        let (came, went) = (last(near_request), last(far_request));
        count.passage(&format!("{tap} request"), request, came, went);
    }
    let (came, went) = (far_answer.texts(), near_answer.texts());
    let stream = &exchange.stream.marks;
    if let Some(first) = &stream.first_text {
        let (came, went) = (came.first().copied(), went.first().copied());
        count.passage(&format!("{tap} first text"), first, came, went);
    }
    if let Some(text) = &stream.last_text {
        let (came, went) = (came.last().copied(), went.last().copied());
        count.passage(&format!("{tap} last text"), text, came, went);
    }
    if let Some(end) = &marks.end {
        let (came, went) = (last(far_answer), last(near_answer));
        count.passage(&format!("{tap} end"), end, came, went);
    }
}

/// tcpdump on the loopback device, once it listens; `None` where it may not.
fn capture(to: &Path, ports: &[SocketAddr]) -> Option<Running> {
    let filter: Vec<String> = ports
        .iter()
        .map(|at| format!("tcp port {}", at.port()))
        .collect();
    let mut child = Command::new(target().join("real/tcpdump/bin/tcpdump"))
        // Debian's changes to a user that its package would have made, where root runs it.
        .args([
            "-Z", "root", "-i", "lo", "-n", "-s", "0", "-U", "-B", "16384",
        ])
        .args(["--immediate-mode", "--time-stamp-precision=nano", "-w"])
        .arg(to)
        .arg(filter.join(" or "))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let said = BufReader::new(child.stderr.take().unwrap());
    let running = Running(child);
    for line in said.lines().map_while(Result::ok) {
        if line.contains("listening on") {
            return Some(running);
        }
        println!("tcpdump: {line}");
    }
    None
}

#[test]
fn captured_packets_lie_where_the_taps_say_that_the_bytes_passed() {
    let Some(_turn) = installed("tcpdump") else {
        return;
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let at = engine(&runtime);
    let (outer, inner) = (free(), free());
    let chain = chain(&[("outer", outer, inner), ("inner", inner, at)]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("lo.pcap");
    let Some(running) = capture(&file, &[outer, inner, at]) else {
        assert!(
            std::env::var_os("HOPSCOPE_REQUIRE_REAL").is_none(),
            "tcpdump may not capture here: it needs CAP_NET_RAW"
        );
        println!("skipped: tcpdump may not capture here: it needs CAP_NET_RAW");
        return;
    };
    let server = serve(&chain, &dir.path().join("taps/tap"), "tap");
    let before = clock::pair().offset;
    let callers: Vec<_> = (0..STREAMS)
        .map(|n| {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(n as u64 * 7));
                let got = exchange(&mut connect(outer), chat(24, "", "").as_bytes(), END);
                assert!(got.ends_with(END));
            })
        })
        .collect();
    callers.into_iter().for_each(|c| c.join().unwrap());
    server.stop(Duration::from_secs(2));
    std::thread::sleep(Duration::from_millis(500));
    drop(running);
    let after = clock::pair().offset;
    assert!(before.abs_diff(after) < SLACK / 2, "the wall clock moved");
    let flows = read(&file, before);
    let mut count = Count::default();
    let calls = pair(dir.path());
    assert_eq!(calls.len(), STREAMS);
    for call in &calls {
        compare(&mut count, &call.outer, &flows, (outer, inner));
        compare(&mut count, call.served_by().unwrap(), &flows, (inner, at));
    }
    println!(
        "{} of {} marks lie where their packets passed; the others: {:#?}",
        count.right, count.checked, count.wrong
    );
    // Four marks at two taps, each coming and going, of twenty calls.
    assert!(count.checked >= STREAMS * 14, "{}", count.checked);
    assert!(
        count.right as f64 >= SHARE * count.checked as f64,
        "{:#?}",
        count.wrong
    );
    runtime.shutdown_background();
}
