//! Experiments of operation that could not be made, or would show nothing, are refused with their place.

#![expect(clippy::panic, reason = "a test fails loudly")]

use config::Scenario;

const RECOVERY: &str = "\
name: r
number: 2
question: how long?
workload: {input_tokens: 10, output_tokens: 16}
experiment:
  kind: recovery
  trigger: {run: [kubectl, delete, pod, engine]}
  before: 20s
  rate: 2
  settle: 10s
  limit: 5m
warmup: {calls: 1}
seed: 1
";

const DRAIN: &str = "\
name: d
number: 9
question: how long?
workload: {input_tokens: 10, output_tokens: 16}
experiment: {kind: queue-drain, before: 20s, rate: 2, raised: {rate: 20, duration: 10s}, settle: 10s, limit: 5m}
warmup: {calls: 1}
seed: 1
";

const COLD: &str = "\
name: c
number: 2
question: how long?
workload: {input_tokens: 10, output_tokens: 16}
experiment: {kind: cold-start, idle: 10m, rate: 2, settle: 10s, limit: 5m}
warmup: {calls: 1}
seed: 1
";

fn refused(good: &str, from: &str, to: &str) -> String {
    assert!(good.contains(from), "{from}");
    match config::from_text::<Scenario>("e.yaml", &good.replacen(from, to, 1)) {
        Ok(_) => panic!("accepted: {to}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_good_files_of_this_test_are_good() {
    for text in [RECOVERY, DRAIN, COLD] {
        config::from_text::<Scenario>("e.yaml", text).unwrap();
    }
}

#[test]
fn experiments_that_would_show_nothing_are_refused_with_their_place() {
    for (good, from, to, told) in [
        (
            RECOVERY,
            "  trigger: {run: [kubectl, delete, pod, engine]}\n",
            "",
            "e.yaml:6:9: nothing happens to the chain; add `trigger`",
        ),
        (
            RECOVERY,
            "  before: 20s\n",
            "",
            "no latency to come back to",
        ),
        (
            RECOVERY,
            "before: 20s",
            "before: 2s",
            "e.yaml:8:11: only 4.0 calls fall into it",
        ),
        (
            RECOVERY,
            "settle: 10s",
            "settle: 400ms",
            "e.yaml:10:11: 400ms is shorter than the time between two calls",
        ),
        (
            RECOVERY,
            "settle: 10s",
            "settle: 10s\n  window: 1s",
            "only 2.0 calls fall into 1s",
        ),
        (
            RECOVERY,
            "limit: 5m",
            "limit: 10s",
            "e.yaml:11:10: `limit` 10s is no longer than `settle` 10s",
        ),
        (
            RECOVERY,
            "rate: 2\n",
            "rate: 2\n  raised: {rate: 9}\n",
            "only `scale-out` and `queue-drain` have more load",
        ),
        (
            RECOVERY,
            "rate: 2\n",
            "rate: 2\n  model: other\n",
            "only `cold-start` and `model-update` wait for another name",
        ),
        (
            RECOVERY,
            "{run: [kubectl, delete, pod, engine]}",
            "{}",
            "e.yaml:7:12: nothing is done",
        ),
        (
            RECOVERY,
            "[kubectl, delete, pod, engine]",
            "[]",
            "the command is empty",
        ),
        (
            RECOVERY,
            "{run: [",
            "{http: {url: \"http://127.0.0.1:1/x\"}, run: [",
            "two events; remove one",
        ),
        (
            RECOVERY,
            "{run: [kubectl, delete, pod, engine]}",
            "{http: {url: \"https://admin/x\"}}",
            "triggers speak cleartext HTTP only",
        ),
        (
            RECOVERY,
            "{run: [kubectl, delete, pod, engine]}",
            "{shell: x}",
            "unknown key `shell`",
        ),
        (
            RECOVERY,
            "kind: recovery",
            "kind: recover",
            "did you mean `recovery`",
        ),
        (
            RECOVERY,
            "kind: recovery",
            "kind: model-update\n  model: new",
            "no call by the new name is answered before the update",
        ),
        (
            RECOVERY,
            "kind: recovery",
            "kind: cold-start",
            "would keep the chain warm",
        ),
        (
            RECOVERY,
            "experiment:",
            "closed_loop: {concurrency: [1], cell: {calls: 1}}\nexperiment:",
            "move them to a scenario of their own",
        ),
        (DRAIN, ", duration: 10s", "", "there is no burst to drain"),
        (
            DRAIN,
            "rate: 20",
            "rate: 2",
            "no more than the probe's `rate`",
        ),
        (
            DRAIN,
            "kind: queue-drain",
            "kind: scale-out",
            "remove `duration`",
        ),
        (
            DRAIN,
            "kind: queue-drain",
            "kind: queue-drain, trigger: {run: [a]}",
            "the end of the burst is the event",
        ),
        (COLD, "idle: 10m, ", "", "nothing makes the chain cold"),
        (
            COLD,
            "kind: cold-start, idle: 10m",
            "kind: scale-out, before: 20s",
            "add `raised` or `trigger`",
        ),
    ] {
        let error = refused(good, from, to);
        assert!(error.contains(told), "{to}\n{error}\nexpected: {told}");
        assert!(error.starts_with("e.yaml:"), "{error}");
    }
}
