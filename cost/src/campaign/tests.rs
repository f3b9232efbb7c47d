//! Against sums made by hand.

use super::*;

const CHAIN: &str = "\
name: baseline
kind: service
gateway: {name: G}
entry: http://127.0.0.1:9000
model: m
taps:
  - name: outer
    position: outer
    listen: 127.0.0.1:9000
    upstream: {addresses: [\"127.0.0.1:9001\"]}
";

const HEAD: &str = "name: s\nnumber: 7\nquestion: how much?\nworkload: {input_tokens: 500, output_tokens: 1000}\nseed: 1\n";

fn load(rest: &str) -> Load {
    let scenario = config::from_text::<Scenario>("s.yaml", &format!("{HEAD}{rest}")).unwrap();
    let chain = config::from_text::<Chain>("c.yaml", CHAIN).unwrap();
    let benchmark = Benchmark {
        matrix: "m.yaml".into(),
        ttft_seconds: 1.0,
        tokens_per_second: 50.0,
        budget_usd: None,
        days: None,
        source: "a test".to_owned(),
    };
    Drive::new(&scenario, &benchmark).of(&chain)
}

fn is(load: Load, seconds: f64, calls: f64) {
    assert!((load.seconds - seconds).abs() < 1e-6, "{load:?}");
    assert!((load.calls - calls).abs() < 1e-6, "{load:?}");
}

#[test]
fn rates_are_counted_with_their_warm_up_in_every_block() {
    let load = load(
        "open_loop: {rates: [1, 5], cell: {duration: 300s}}\nblocks: 10\nwarmup: {duration: 60s, calls: 10}\n",
    );
    // 1/s: 10 s of warm-up, for ten calls end it; 5/s: 2 s. Then 300 s each, ten times.
    is(
        load,
        10.0 * (310.0 + 302.0),
        10.0 * (10.0 + 300.0 + 10.0 + 1500.0),
    );
    assert!((load.input_tokens - load.calls * 500.0).abs() < 1e-6);
    assert!((load.output_tokens - load.calls * 1000.0).abs() < 1e-6);
}

#[test]
fn callers_who_wait_make_as_many_calls_as_their_answers_allow() {
    // A call takes 1 + 1000 ÷ 50 = 21 s: 42 callers make two a second.
    let load = load(
        "closed_loop: {concurrency: [42], cell: {duration: 300s}}\nblocks: 2\nwarmup: {duration: 60s}\n",
    );
    is(load, 2.0 * 360.0, 2.0 * 720.0);
}

#[test]
fn a_day_at_thirty_is_two_and_a_half_million_calls() {
    let load = load(
        "profile: {phases: [{name: day, rate: 30, duration: 24h}]}\nblocks: 1\nwarmup: {duration: 60s}\n",
    );
    is(load, 86_400.0, 2_592_000.0);
}

#[test]
fn an_agents_prompts_grow_by_its_answers() {
    let load = load("agent: {turns: 3, tasks: 4, concurrency: 2}\nblocks: 1\nwarmup: {calls: 1}\n");
    is(load, 4.0 * 3.0 * 21.0 / 2.0, 12.0);
    // 500, 500 + 1000 + 500, 500 + 1000 + 500 + 1000 + 500 for each task.
    assert!(
        (load.input_tokens - 4.0 * (500.0 + 2000.0 + 3500.0)).abs() < 1e-6,
        "{load:?}"
    );
}

#[test]
fn the_search_for_a_capacity_is_counted_once() {
    let load = load(
        "capacity: {slo: {ttft_p95: 2s}, start_rate: 1, step: 2, max_rate: 8, hold: 10s, precision: 0.25}\n\
         open_loop: {rates: [1], cell: {duration: 10s}}\nblocks: 2\nwarmup: {duration: 1s}\n",
    );
    // 1, 2, 4, 8 and two halvings at 8, ten seconds each; then twice eleven seconds at 1.
    is(load, 60.0 + 22.0, 150.0 + 160.0 + 22.0);
}
