//! Event streams are timed as exactly as events: the same run, half its cells over SSE and half over Converse, through
//! two taps around a relay of bytes, held against the stamps of the engine and the relay.

use super::{LIMITS, MODEL};
use crate::rig::{chain, free, pair, serve};
use config::{Api, Chain, Scenario};
use loadgen::progress::Silent;
use loadgen::{Plan, PlannedChain, PlannedTap, Stop};
use record::client::{CallOutcome, ClientCall};
use record::exchange::Exchange;
use record::pairing::Call;
use record::rundir::RunDir;
use record::stamp::Passage;
use record::timeline::TextMark;
use sim::engine::EngineOptions;
use sim::relay::RelayOptions;
use sim::truth::{Direction, ExchangeTruth, Log, Mark, SegmentTruth};
use std::collections::{BTreeMap, HashMap};
use std::future::pending;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

const TOKENS: usize = 24;
const CALLS: usize = 40;
const BLOCKS: usize = 3;

/// What was measured less what was true, by what it is of. Nanoseconds.
type Errors = BTreeMap<&'static str, Vec<i64>>;

fn minus(a: u64, b: u64) -> i64 {
    a.cast_signed() - b.cast_signed()
}

fn median(values: &[i64]) -> i64 {
    let mut values = values.to_vec();
    values.sort_unstable();
    values[values.len() / 2]
}

/// Engine and relay, each with its truth, and where they listen.
struct Backend {
    runtime: Runtime,
    engine: (SocketAddr, Log),
    relay: (SocketAddr, Log),
}

impl Backend {
    fn start(inner: SocketAddr) -> Self {
        let runtime = Runtime::new().unwrap();
        let logs = [Log::memory(10_000), Log::memory(10_000)];
        let [engine_log, relay_log] = logs.clone();
        let (engine, relay) = runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let engine = listener.local_addr().unwrap();
            let options = EngineOptions {
                ttft_us: 20_000,
                gap_us: 3_000,
                ..EngineOptions::default()
            };
            tokio::spawn(sim::engine::serve(listener, options, engine_log, pending()));
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let relay = listener.local_addr().unwrap();
            let options = RelayOptions {
                upstream: inner.to_string(),
                ..RelayOptions::default()
            };
            tokio::spawn(sim::relay::serve(listener, options, relay_log, pending()));
            (engine, relay)
        });
        let [engine_log, relay_log] = logs;
        Self {
            runtime,
            engine: (engine, engine_log),
            relay: (relay, relay_log),
        }
    }
}

/// The relay's truths by call.
fn by_call(log: &Log) -> HashMap<String, ExchangeTruth> {
    let truths = log.take().into_iter();
    truths
        .filter_map(|truth| Some((truth.call.clone()?, truth)))
        .collect()
}

/// The engine's by their text, which no two calls share: a call's name ends at the inner tap.
fn by_text(log: &Log) -> HashMap<Vec<u64>, ExchangeTruth> {
    let mut found = HashMap::new();
    for truth in log.take() {
        let ends = truth.tokens.iter().map(|token| token.end_text_offset);
        let twice = found.insert(ends.collect(), truth);
        assert!(twice.is_none_or(|t: ExchangeTruth| t.tokens.len() < TOKENS));
    }
    found
}

/// A run: its directory, its calls as the taps saw them, and the truths of engine and relay.
struct Ran {
    run: RunDir,
    _dir: tempfile::TempDir,
    tapped: HashMap<String, Call>,
    engine: HashMap<Vec<u64>, ExchangeTruth>,
    relay: HashMap<String, ExchangeTruth>,
}

fn ran() -> Ran {
    let (outer, inner) = (free(), free());
    let backend = Backend::start(inner);
    let chain = chain(&[
        ("outer", outer, backend.relay.0),
        ("inner", inner, backend.engine.0),
    ]);
    let records = tempfile::tempdir().unwrap();
    let taps = serve(&chain, &records.path().join("taps/tap"), "tap");
    let text = format!(
        "name: exact\nnumber: 4\nquestion: Are frames timed as events are?\nworkload: {{input_tokens: 20, output_tokens: {TOKENS}}}\nclosed_loop: {{concurrency: [4], cell: {{calls: {CALLS}}}}}\nblocks: {BLOCKS}\nwarmup: {{calls: 4}}\nseed: 7\n{LIMITS}"
    );
    let scenario = config::from_text::<Scenario>(Path::new("exact.yaml"), &text).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut plan = Plan::new(
        "exact",
        &dir.path().join("run"),
        scenario.into_inner(),
        text,
    );
    let frames = Chain {
        name: "frames".to_owned(),
        api: Api::Converse,
        model: MODEL.to_owned(),
        ..chain.clone()
    };
    let events = Chain {
        name: "events".to_owned(),
        ..chain
    };
    for chain in [events, frames] {
        plan.chains.push(PlannedChain {
            chain,
            text: String::new(),
            base: dir.path().to_owned(),
            pids: Vec::new(),
            injected: None,
        });
    }
    plan.taps.push(PlannedTap {
        records: records.path().join("taps/tap"),
        pid: None,
    });
    let run = loadgen::run(&plan, Arc::new(Silent), &Stop::default()).unwrap();
    taps.stop(Duration::from_secs(2));
    // The relay's last call on a connection is told when the connection ends.
    backend.runtime.shutdown_timeout(Duration::from_secs(2));
    let tapped = pair(records.path()).into_iter();
    let tapped = tapped.filter_map(|call| Some((call.outer.keys.client.clone()?, call)));
    Ran {
        run,
        _dir: dir,
        engine: by_text(&backend.engine.1),
        relay: by_call(&backend.relay.1),
        tapped: tapped.collect(),
    }
}

fn add(errors: &mut Errors, of: &'static str, error: i64) {
    errors.entry(of).or_default().push(error);
}

/// The passage of a text mark at a tap.
fn text(exchange: &Exchange, mark: &TextMark) -> Passage {
    exchange.stream.timeline.passage(mark).unwrap()
}

/// What the relay took for the bytes that were written to it from `begin` on.
fn passed(segments: &[SegmentTruth], direction: Direction, begin: u64) -> i64 {
    let first = segments
        .iter()
        .find(|s| s.direction == direction && s.read_at >= begin);
    let first = first.unwrap();
    minus(first.write_begin, first.read_at)
}

/// What the engine did for the call whose exchange at the inner tap this is.
fn engine<'a>(ran: &'a Ran, inner: &Exchange) -> &'a ExchangeTruth {
    let marks = inner.stream.timeline.texts.iter();
    let ends: Vec<u64> = marks.map(|mark| u64::from(mark.end)).collect();
    let truth = ran.engine.get(&ends);
    truth.expect("the positions of the text are those of one of the engine's answers")
}

/// Everything that the generator and the taps say of one call, against the truth.
fn compare(errors: &mut Errors, call: &ClientCall, tapped: &Call, ran: &Ran) {
    let inner = tapped.served_by().unwrap();
    let truth = engine(ran, inner);
    let id = tapped.outer.keys.call.as_ref().unwrap();
    let relay = ran.relay.get(id).expect("the relay's truth of the call");
    let (Some(first), Some(last)) = (truth.tokens.first(), truth.tokens.last()) else {
        panic!("{truth:?}");
    };
    // The generator: TTFT, the time of all tokens, the longest gap.
    let (text_first, text_last) = (call.first_text.unwrap(), call.last_text.unwrap());
    add(errors, "TTFT", minus(text_first, first.write_begin));
    let true_span = minus(last.write_begin, first.write_begin);
    add(errors, "tokens", minus(text_last, text_first) - true_span);
    let gaps = truth.tokens.windows(2);
    let longest = gaps
        .map(|pair| minus(pair[1].write_begin, pair[0].write_begin))
        .max();
    let seen = call.longest_gap.unwrap().cast_signed();
    add(errors, "longest gap", seen - longest.unwrap());
    let end = truth.mark(Mark::End).and_then(|mark| mark.write_begin);
    add(errors, "E2E", minus(call.end, end.unwrap()));
    // The inner tap reads what the engine wrote.
    let marks = &inner.stream.timeline.texts;
    for (mark, token) in marks.iter().zip(&truth.tokens) {
        let read = text(inner, mark).arrival.at;
        add(errors, "tap's read", minus(read, token.write_begin));
    }
    // The legs between the taps, less what the relay took.
    let legs = tapped.legs().unwrap();
    let sent = tapped.outer.request_out().unwrap().begin;
    let through = passed(&relay.segments, Direction::Up, sent);
    add(errors, "request leg", legs.request.unwrap().value - through);
    let back = |mark: &TextMark| {
        let begin = text(inner, mark).departure.unwrap().begin;
        passed(&relay.segments, Direction::Down, begin)
    };
    let first = legs.first_token.unwrap().value;
    add(errors, "first token leg", first - back(&marks[0]));
    let delays = &legs.tokens.delays;
    if delays.len() + 1 == marks.len() {
        for (mark, delay) in marks[1..].iter().zip(delays) {
            add(errors, "token leg", delay.value - back(mark));
        }
    }
}

/// The errors of the calls of `chain`.
fn errors(ran: &Ran, chain: &str) -> Errors {
    let manifest = ran.run.manifest().unwrap();
    let (calls, _) = ran.run.read_calls().unwrap();
    let cells = manifest.cells.iter().filter(|cell| cell.chain == chain);
    let cells: Vec<u32> = cells.map(|cell| cell.id).collect();
    let own = calls
        .iter()
        .filter(|call| !call.warmup && cells.contains(&call.cell));
    let mut errors = Errors::new();
    for call in own.clone() {
        assert_eq!(
            (call.outcome, call.fault.as_deref()),
            (CallOutcome::Complete, None)
        );
        assert_eq!(call.usage_completion, Some(TOKENS as u32));
        compare(&mut errors, call, &ran.tapped[&call.key()], ran);
    }
    assert_eq!(own.count(), CALLS * BLOCKS);
    gaps(&mut errors, ran, &cells);
    errors
}

/// The median gap between two events, as the run's histograms have it, against that of the engine's writes.
fn gaps(errors: &mut Errors, ran: &Ran, cells: &[u32]) {
    let log = std::fs::read(ran.run.histograms()).unwrap();
    let all = record::histogram::read_log(&log).unwrap();
    for cell in cells {
        let own = ran.tapped.iter().filter(|(key, call)| {
            let of = ClientCall::parse_key(key).is_some_and(|(of, _)| of == *cell);
            of && call.served_by().is_some()
        });
        let truths = own.map(|(_, call)| engine(ran, call.served_by().unwrap()));
        let true_gaps: Vec<i64> = truths
            .flat_map(|truth| {
                let pairs = truth.tokens.windows(2);
                pairs.map(|pair| minus(pair[1].write_begin, pair[0].write_begin))
            })
            .collect();
        let seen = record::histogram::quantile(&all[&format!("cell{cell}.chunk-gap")], 0.5);
        let error = minus(seen.unwrap(), 0) - median(&true_gaps);
        add(errors, "median gap", error);
    }
}

#[test]
fn event_streams_are_timed_as_exactly_as_events() {
    let ran = ran();
    let (events, frames) = (errors(&ran, "events"), errors(&ran, "frames"));
    assert_eq!(events.len(), 9, "{:?}: a figure is missing", events.keys());
    assert_eq!(
        events.keys().collect::<Vec<_>>(),
        frames.keys().collect::<Vec<_>>()
    );
    println!(
        "{:<16} {:>10} {:>10}  median error, µs",
        "", "events", "frames"
    );
    for (of, events) in &events {
        let (sse, frames) = (median(events), median(&frames[of]));
        println!("{of:<16} {:>10} {:>10}", sse / 1_000, frames / 1_000);
        // Hops and wake-ups of a shared machine lie in both; what one form costs more than the other is small beside
        // them.
        let slack = 400_000 + sse.abs() / 2;
        assert!(
            (frames - sse).abs() <= slack,
            "{of}: {frames} against {sse} ns"
        );
        assert!(frames.abs() < 5_000_000, "{of}: {frames} ns");
    }
}
