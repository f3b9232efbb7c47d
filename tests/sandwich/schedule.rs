//! The schedule of the load generator, as a process of its own, against an engine stand-in: every call that
//! was due is sent, when it was due, and callers are as many as were asked for.

use crate::rig::engine;
use record::client::{CallOutcome, ClientCall};
use record::manifest::Cell;
use record::rundir::RunDir;
use sim::engine::EngineOptions;
use sim::truth::{ExchangeTruth, Log, Mark};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use tokio::runtime::Runtime;

const SECOND: u64 = 1_000_000_000;

fn quick() -> EngineOptions {
    EngineOptions {
        ttft_us: 5_000,
        gap_us: 1_000,
        ..EngineOptions::default()
    }
}

/// Drives the engine at `at` by `load`, a part of a scenario, with two lanes.
fn drive(at: SocketAddr, load: &str) -> (tempfile::TempDir, Cell, Vec<ClientCall>) {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let chain = format!(
        "name: rig\nkind: service\ngateway: {{name: stand-in}}\nsimulated: true\nentry: http://{at}\nmodel: m\n\
         taps: [{{name: outer, position: outer, listen: \"{at}\", upstream: {{addresses: [\"127.0.0.1:9\"]}}}}]\n"
    );
    std::fs::write(path("chain.yaml"), chain).unwrap();
    let scenario = format!(
        "name: schedule\nnumber: 4\nquestion: Is it kept?\nworkload: {{input_tokens: 20, output_tokens: 16}}\n\
         {load}\nblocks: 1\nwarmup: {{duration: 1us}}\nseed: 7\n"
    );
    std::fs::write(path("scenario.yaml"), scenario).unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_hopscope"))
        .args(["load", "--quiet", "--lanes", "2", "--scenario"])
        .arg(path("scenario.yaml"))
        .arg("--chain")
        .arg(path("chain.yaml"))
        .arg("--out")
        .arg(path("run"))
        .status()
        .unwrap();
    // Nobody looks at taps here, so the run is not shown to be valid.
    assert_eq!(status.code(), Some(1));
    let (cell, calls) = read(&path("run"));
    (dir, cell, calls)
}

fn read(run: &Path) -> (Cell, Vec<ClientCall>) {
    let run = RunDir::open(run).unwrap();
    let (mut calls, losses) = run.read_calls().unwrap();
    assert!(losses.is_empty(), "{losses:?}");
    calls.sort_unstable_by_key(|c| c.seq);
    (run.manifest().unwrap().cells.remove(0), calls)
}

/// Equal gaps: the schedule is known without its seed.
fn uniform(rate: u64, seconds: u64) -> (Cell, Vec<ClientCall>) {
    let (_engine, at) = engine(quick());
    let load = format!(
        "open_loop: {{rates: [{rate}], arrivals: uniform, cell: {{duration: {seconds}s}}}}"
    );
    let (_dir, cell, calls) = drive(at, &load);
    let due = rate * seconds;
    assert_eq!((cell.scheduled, cell.sent), (Some(due), due));
    assert_eq!(calls.len() as u64, due);
    assert_eq!(cell.to - cell.from, seconds * SECOND);
    for (n, call) in (0_u64..).zip(&calls) {
        let wanted = (2 * n + 1) * SECOND / (2 * rate);
        assert!(
            (call.intended - cell.from).abs_diff(wanted) <= 1,
            "call {n}"
        );
        assert_eq!(call.outcome, CallOutcome::Complete, "{:?}", call.fault);
    }
    // A machine that does other things too is late now and then, and never more and more.
    let middle = |calls: &[ClientCall]| {
        let mut late: Vec<u64> = calls.iter().map(ClientCall::lag).collect();
        late.sort_unstable();
        late[late.len() / 2]
    };
    let (all, last) = (middle(&calls), middle(&calls[calls.len() / 2..]));
    let bound = 5_000_000;
    assert!(all < bound && last < bound, "late by {all} and {last} ns");
    (cell, calls)
}

#[test]
fn at_one_call_a_second_all_are_sent_when_due_and_waiting_costs_no_cpu() {
    let (cell, _) = uniform(1, 5);
    let (cpu, seconds) = (cell.generator_cpu.unwrap(), cell.counted.seconds);
    assert!(cpu < 0.1 * seconds, "{cpu} s of CPU in {seconds} s");
}

#[test]
fn at_thirty_calls_a_second_all_are_sent_when_due() {
    uniform(30, 4);
}

#[test]
fn at_three_hundred_calls_a_second_all_are_sent_when_due() {
    uniform(300, 3);
}

#[test]
fn a_poisson_run_sends_its_own_schedule_and_again_the_same() {
    let (_engine, at) = engine(quick());
    let load = "open_loop: {rates: [60], arrivals: poisson, cell: {duration: 3s}}";
    let offsets = || {
        let (_dir, cell, calls) = drive(at, load);
        assert_eq!(cell.scheduled, Some(cell.sent));
        assert_eq!(calls.len() as u64, cell.sent);
        let offsets = calls.iter().map(|c| c.intended - cell.from);
        offsets.collect::<Vec<u64>>()
    };
    let first = offsets();
    assert!(first.is_sorted() && first.last().unwrap() < &(3 * SECOND));
    assert_eq!(first, offsets());
    // Held against the schedule, not against 180: that many are only expected, give or take 13.
    assert!(first.len().abs_diff(180) < 80, "{}", first.len());
}

/// From the request read to the last byte written, by the engine's own stamps.
fn spans(truth: &[ExchangeTruth]) -> Vec<(u64, u64)> {
    let span = |one: &ExchangeTruth| {
        let read = one.mark(Mark::RequestBody)?.read_at?;
        Some((read, one.mark(Mark::End)?.write_end?))
    };
    truth.iter().filter_map(span).collect()
}

#[test]
fn as_many_calls_are_in_flight_at_the_engine_as_callers_were_asked_for() {
    let truth = Log::memory(10_000);
    let runtime = Runtime::new().unwrap();
    let log = truth.clone();
    let at = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let options = EngineOptions {
            ttft_us: 200_000,
            gap_us: 10_000,
            ..quick()
        };
        tokio::spawn(sim::engine::serve(
            listener,
            options,
            log,
            std::future::pending(),
        ));
        at
    });
    // More than the hundred connections that pools of other clients hold, and no multiple of the lanes.
    let callers = 151;
    let load = format!("closed_loop: {{concurrency: [{callers}], cell: {{duration: 3s}}}}");
    let (dir, cell, calls) = drive(at, &load);
    let truth = truth.take();
    let inside = (cell.from + SECOND, cell.from + 2 * SECOND);
    let mut held = 0;
    let mut steps = Vec::new();
    for (from, to) in spans(&truth) {
        let (begin, end) = (from.max(inside.0), to.min(inside.1));
        held += end.saturating_sub(begin);
        steps.extend([(from, 1_i64), (to, -1)]);
    }
    let mean = held as f64 / SECOND as f64;
    let least = 0.9 * f64::from(callers);
    assert!(mean > least && mean <= f64::from(callers), "{mean}");
    // An end at the instant of a begin is counted first.
    steps.sort_unstable();
    let most = steps.iter().scan(0, |sum, (_, step)| {
        *sum += step;
        Some(*sum)
    });
    assert!(most.max().unwrap() <= i64::from(callers));
    // One connection a caller, kept, and one that tried the chain before.
    let connections: BTreeSet<u64> = truth.iter().map(|one| one.connection).collect();
    assert_eq!(connections.len(), callers as usize + 1);
    assert!(calls.len() > 5 * callers as usize);

    // Nobody stood behind the client: what it saw tells no legs.
    let report = report::build(&[dir.path().join("run")]).unwrap();
    assert!(report.arms[0].legs.is_empty());
}
