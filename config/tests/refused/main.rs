//! What is wrong with a file is said with its place and the remedy, all of it at once.

#![expect(clippy::panic, reason = "a test fails loudly")]

use std::fs;
use std::path::PathBuf;

use config::scenario::Tokenizer;
use config::{Chain, Form, Scenario};

const CHAIN: &str = "\
name: c
kind: gateway
gateway: {name: G}
entry: http://127.0.0.1:9000
model: m
recipe: {forward: header, tried: true, explain: none needed}
taps:
  - name: outer
    position: outer
    listen: 127.0.0.1:9000
    upstream: {addresses: [\"127.0.0.1:9001\"]}
  - name: inner
    position: inner
    listen: 127.0.0.1:9002
    upstream: {addresses: [\"127.0.0.1:8000\"]}
";

const SCENARIO: &str = "\
name: s
number: 4
question: how much?
workload: {input_tokens: 10, output_tokens: 16}
capacity: {slo: {ttft_p95: 1s}, start_rate: 1, step: 2, max_rate: 9, hold: 1s}
open_loop: {shares: [0.5], cell: {duration: 1s}}
warmup: {calls: 1}
seed: 1
";

fn refused<T: Form>(text: &str) -> String {
    match config::from_text::<T>("c.yaml", text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// Replaces `from` in the good chain and returns the findings.
fn chain_with(from: &str, to: &str) -> String {
    assert!(CHAIN.contains(from), "{from}");
    refused::<Chain>(&CHAIN.replacen(from, to, 1))
}

fn scenario_with(from: &str, to: &str) -> String {
    assert!(SCENARIO.contains(from), "{from}");
    refused::<Scenario>(&SCENARIO.replacen(from, to, 1))
}

#[test]
fn the_good_files_of_this_test_are_good() {
    config::from_text::<Chain>("c.yaml", CHAIN).unwrap();
    config::from_text::<Scenario>("s.yaml", SCENARIO).unwrap();
}

#[test]
fn a_tokenizer_is_a_word_or_a_file() {
    let with = |written: &str| {
        let workload = format!("workload: {{tokenizer: {written}, ");
        SCENARIO.replace("workload: {", &workload)
    };
    for (written, wanted) in [
        ("cl100k", Tokenizer::Cl100k),
        (
            "{file: a/tokenizer.json}",
            Tokenizer::File("a/tokenizer.json".into()),
        ),
    ] {
        let scenario = config::from_text::<Scenario>("s.yaml", &with(written)).unwrap();
        assert_eq!(scenario.workload.tokenizer, wanted);
    }
    let error = refused::<Scenario>(&with("{fil: a}"));
    assert!(
        error.contains("`workload.tokenizer` must have exactly one of the keys `file`"),
        "{error}"
    );
}

#[test]
fn an_unknown_key_is_named_with_its_place_and_the_nearest_one() {
    let error = chain_with("    listen: 127.0.0.1:9002", "    lisen: 127.0.0.1:9002");
    assert!(
        error.contains("c.yaml:14:5: unknown key `lisen`; did you mean `listen`?"),
        "{error}"
    );
    assert!(
        error.contains("c.yaml:12:5: `taps[1]` lacks the key `listen`; add it"),
        "{error}"
    );
}

#[test]
fn all_findings_come_at_once_in_the_order_of_the_file() {
    let text = CHAIN
        .replace("kind: gateway", "kind: gatewy")
        .replace("http://127.0.0.1:9000", "127.0.0.1")
        .replace("model: m", "model: 7\ncolour: red")
        .replace("listen: 127.0.0.1:9002", "listen: nowhere");
    let error = refused::<Chain>(&text);
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 5, "{error}");
    assert!(
        lines[0].starts_with("c.yaml:2:7: `kind` is `gatewy`; did you mean `gateway`?"),
        "{error}"
    );
    assert!(
        lines[1].starts_with("c.yaml:4:8: `entry` is wrong: `127.0.0.1` is not an HTTP address"),
        "{error}"
    );
    assert!(
        lines[2].starts_with(
            "c.yaml:5:8: `model` is a whole number, and must be a text; put it in quotes"
        ),
        "{error}"
    );
    assert!(
        lines[3].starts_with("c.yaml:6:1: unknown key `colour`; use one of "),
        "{error}"
    );
    assert!(
        lines[4]
            .starts_with("c.yaml:15:13: `taps[1].listen` is wrong: `nowhere` is not an address"),
        "{error}"
    );
}

#[test]
fn two_taps_on_one_port_are_reported_with_both_lines() {
    let error = chain_with("127.0.0.1:9002", "0.0.0.0:9000");
    assert!(
        error.contains(
            "c.yaml:14:13: `0.0.0.0:9000` is already taken by the tap `outer` at c.yaml:10:13"
        ),
        "{error}"
    );
}

#[test]
fn wrong_types_and_bounds_say_what_is_wanted() {
    for (from, to, said) in [
        (
            "gateway: {name: G}",
            "gateway: [G]",
            "3:10: `gateway` is a list, and must be a mapping",
        ),
        (
            "gateway: {name: G}",
            "gateway: {name: G, workers: 0}",
            "`gateway.workers` is 0; write a number from 1",
        ),
        (
            "gateway: {name: G}",
            "gateway: {name: G, processes: [{pid: 3}]}",
            "exactly one of the keys `pid_file`",
        ),
        (
            "addresses: [\"127.0.0.1:9001\"]",
            "addresses: []",
            "`taps[0].upstream.addresses` has 0 items",
        ),
        (
            "addresses: [\"127.0.0.1:9001\"]",
            "addresses: \"127.0.0.1:9001\"",
            "must be a list; write `[a, b]`",
        ),
        (
            "addresses: [\"127.0.0.1:9001\"]",
            "addresses: [a:1], connect_timeout: 5",
            "must be a text",
        ),
        (
            "addresses: [\"127.0.0.1:9001\"]",
            "addresses: [a:1], connect_timeout: 5 sec",
            "`5 sec` is not a duration",
        ),
        (
            "position: inner",
            "position: off",
            "`taps[1].position` is `off`; use one of `outer`",
        ),
        (
            "tried: true",
            "tried: maybe",
            "`recipe.tried` is a text, and must be `true` or `false`",
        ),
        (
            "model: m",
            "model:",
            "5:6: `model` is empty, and must be a text",
        ),
        ("model: m", "model: m\nmodel: n", "6:1: "),
        (
            "model: m",
            "model: m\nkey_env: sk-hunter2",
            "`key_env` is wrong: not the name of an environment variable",
        ),
        (
            "model: m",
            "model: m\nrequest_headers: {\"a b\": c}",
            "`a b` is not the name of an HTTP header",
        ),
    ] {
        let error = chain_with(from, to);
        assert!(
            error.contains(said) && error.starts_with("c.yaml:"),
            "{to}\n{error}\nexpected: {said}"
        );
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn parts_that_do_not_fit_each_other_are_refused() {
    for (from, to, said) in [
        (
            "kind: gateway",
            "kind: direct",
            "has one outer tap and no other, but this one has 2",
        ),
        ("kind: gateway", "kind: untapped", "lacks `control_of`"),
        (
            "gateway: {name: G}\n",
            "",
            "2:7: a chain of kind `gateway` lacks `gateway`",
        ),
        (
            "entry: http://127.0.0.1:9000",
            "entry: http://127.0.0.1:9009",
            "4:8: `http://127.0.0.1:9009` leads past the outer tap",
        ),
        (
            "entry: http://127.0.0.1:9000",
            "entry: https://127.0.0.1:9000",
            "the outer tap serves cleartext",
        ),
        (
            "entry: http://127.0.0.1:9000",
            "entry: http://127.0.0.1:9000/v1",
            "move it to `path_prefix`",
        ),
        (
            "model: m",
            "model: m\npath_prefix: v1/",
            "6:14: `path_prefix` is `v1/`",
        ),
        (
            "model: m",
            "model: m\nrequest_headers: {Authorization: Bearer x}",
            "holds a secret; remove it here",
        ),
        (
            "127.0.0.1:9001",
            "127.0.0.1:9002",
            "leads straight to the inner tap",
        ),
        (
            "127.0.0.1:9001",
            "localhost:9000",
            "the tap `outer` leads to itself",
        ),
        (
            "name: inner",
            "name: outer",
            "12:11: the name `outer` is taken at c.yaml:8:11",
        ),
        (
            "name: c",
            "name: ../c",
            "`name` is `../c`; use 1 to 64 letters",
        ),
        (
            "name: G",
            "name: G, overhead_header: x-o",
            "`overhead_span` is missing",
        ),
        ("name: G", "name: G, cpuset: 3-1", "no list of CPUs"),
        (
            "    listen: 127.0.0.1:9002",
            "    tls: {cert: no.pem, key: no.key}\n    listen: 127.0.0.1:9002",
            "14:17: `no.pem` is not a file",
        ),
    ] {
        let error = chain_with(from, to);
        assert!(error.contains(said), "{to}\n{error}\nexpected: {said}");
    }
}

#[test]
fn scenarios_that_could_not_be_run_or_judged_are_refused() {
    for (from, to, said) in [
        ("shares: [0.5]", "shares: [1.5]", "6:22: 1.5 is no share"),
        ("shares: [0.5]", "shares: []", "`open_loop` has no rate"),
        (
            "warmup: {calls: 1}",
            "warmup: {}",
            "7:9: `warmup` would never end",
        ),
        (
            "warmup: {calls: 1}",
            "warmup: {calls: 1}\ncontrols: [loop, gateway, loop]",
            "`gateway` is what is measured",
        ),
        (
            "output_tokens: 16",
            "output_tokens: 8",
            "write a number from 16",
        ),
        ("slo: {ttft_p95: 1s}", "slo: {}", "bounds no latency"),
        (
            "start_rate: 1",
            "start_rate: 10",
            "`start_rate` 10 is above `max_rate` 9 at c.yaml:5:",
        ),
        ("seed: 1", "seed: -1", "`seed` is -1; write a number from 0"),
        (
            "seed: 1",
            "seed: 1\nlimits: {pairing_share_min: 2}",
            "`limits.pairing_share_min` is 2",
        ),
        ("seed: 1", "seed: 1\nblocks: 0", "`blocks` is 0"),
        (
            "capacity: {slo: {ttft_p95: 1s}, start_rate: 1, step: 2, max_rate: 9, hold: 1s}\n",
            "",
            "add `capacity`",
        ),
    ] {
        let error = scenario_with(from, to);
        assert!(error.contains(said), "{to}\n{error}\nexpected: {said}");
    }
}

#[test]
fn prompts_that_could_not_be_made_or_corrected_are_refused() {
    let trace = "seed: 1\ntrace: {file: t.jsonl}";
    for (from, to, said) in [
        (
            "output_tokens: 16}",
            "output_tokens: 16, usage_probe: {referense: x}}",
            "unknown key `referense`",
        ),
        (
            "output_tokens: 16}",
            "output_tokens: 16, usage_probe: {reference: a/b}}",
            "4:74: `workload.usage_probe.reference` is `a/b`",
        ),
        (
            "seed: 1",
            "seed: 1\ntrace: {speed: 2.0}",
            "lacks the key `file`",
        ),
        (
            "seed: 1",
            "seed: 1\ntrace: {file: t, speed: 0.0}",
            "`trace.speed`",
        ),
        (
            "seed: 1",
            "seed: 1\ntrace: {file: t, time_unit: us}",
            "(one of `ms`, `s`)",
        ),
        (
            "seed: 1",
            "seed: 1\ntrace: {file: t, duration: 0s}",
            "nothing would be replayed",
        ),
    ] {
        let error = scenario_with(from, to);
        assert!(error.contains(said), "{to}\n{error}\nexpected: {said}");
    }
    let with = |workload: &str, more: &str| {
        let text = SCENARIO.replacen("output_tokens: 16", workload, 1);
        refused::<Scenario>(&text.replacen("seed: 1", more, 1))
    };
    for (workload, more, said) in [
        (
            "output_tokens: 16, usage_probe: {}",
            trace,
            "the lengths of a trace's prompts are not corrected",
        ),
        (
            "output_tokens: 16, system: {count: 1, tokens: 9}",
            trace,
            "how long whole prompts are",
        ),
        (
            "output_tokens: 16, usage_probe: {}",
            "seed: 1\nagent: {turns: 1, tasks: 1, concurrency: 1}",
            "agents' prompts are not corrected",
        ),
    ] {
        let error = with(workload, more);
        assert!(error.contains(said), "{more}\n{error}\nexpected: {said}");
    }
}

#[test]
fn agents_whose_tools_could_not_be_called_are_refused() {
    let good = "seed: 1\nagent: {turns: 3, tasks: 1, tools: {server: \"http://h/mcp\", calls: [{turn: 1, tool: a}, {turn: 2, tool: b}]}}";
    let text = SCENARIO.replacen("seed: 1", good, 1);
    config::from_text::<Scenario>("s.yaml", &text).unwrap();
    for (from, to, said) in [
        ("http:", "https:", "speaks cleartext HTTP only"),
        (
            "turn: 2",
            "turn: 3",
            "no turn after 3 reads the tool's result",
        ),
        ("turn: 2", "turn: 1", "turn 1 calls two tools"),
        ("turn: 2", "turn: 0", "write a number from 1"),
        (
            "[{turn: 1, tool: a}, {turn: 2, tool: b}]",
            "[]",
            "`agent.tools.calls`",
        ),
        (
            "tool: b}]",
            "tool: b}], filter_check: {may_not: []}",
            "`agent.tools.filter_check.may_not`",
        ),
        ("tool: b", "tol: b", "did you mean `tool`?"),
    ] {
        let error = refused::<Scenario>(&text.replacen(from, to, 1));
        assert!(error.contains(said), "{to}\n{error}\nexpected: {said}");
    }
}

#[test]
fn probes_that_could_show_nothing_are_refused() {
    let good = "seed: 1\ntenants: {cell: {duration: 1s}, members: [{name: a, rate: 1, system_tokens: 5}, {name: b, rate: 1, system_tokens: 5}], probes: {limits: [{name: rpm, limit: {requests: 60}, window: 60s, concurrency: [1, 10]}, {name: spend, limit: {usd: {amount: 1, per_million_in: 1, per_million_out: 2}}, concurrency: [50]}], cache_timing: [{primer: a, observer: b, prompt_tokens: 500, pairs: 20}], guardrails: [{tenant: a, unguarded: b, block: [bad], pass: [good]}], semantic: [{tenant: a, sets: [{ask: one, same: [uno], near: [two]}]}]}}";
    let text = SCENARIO.replacen("seed: 1", good, 1);
    config::from_text::<Scenario>("s.yaml", &text).unwrap();
    for (from, to, said) in [
        ("window: 60s, ", "", "a rate needs the time it is for"),
        ("window: 60s", "window: 0s", "`window` is 0"),
        ("[1, 10]", "[1, 1]", "1 is listed twice"),
        ("[50]", "[1, 50]", "can be used up once"),
        (
            "amount: 1",
            "amount: 0",
            "a budget that no call could use up",
        ),
        ("name: spend", "name: rpm", "the name `rpm` is taken"),
        ("requests: 60", "requests: 0", "write a number from 1"),
        (
            "requests: 60",
            "calls: 60",
            "must have exactly one of the keys",
        ),
        ("observer: b", "observer: a", "may know its own cache"),
        ("primer: a", "primer: c", "no tenant is called `c`"),
        ("pairs: 20", "pairs: 20, confidence: 1", "is no confidence"),
        (
            "pairs: 20",
            "pairs: 8, confidence: 0.999",
            "8 pairs can show nothing",
        ),
        ("unguarded: b", "unguarded: a", "compared with itself"),
        (
            "block: [bad], pass: [good]",
            "repeats: 2",
            "no prompt to try",
        ),
        ("pass: [good]", "pass: [bad]", "the prompt is listed twice"),
        (
            "prompt_tokens",
            "prompt_token",
            "did you mean `prompt_tokens`?",
        ),
        (
            "same: [uno], near: [two]",
            "same: []",
            "nothing to try the cache with",
        ),
        ("near: [two]", "near: [one]", "any cache would know it"),
        ("same: [uno]", "same: ['']", "an empty prompt"),
        (
            "semantic: [{tenant: a",
            "semantic: [{tenant: z",
            "no tenant is called `z`",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        let error = refused::<Scenario>(&text.replacen(from, to, 1));
        assert!(error.contains(said), "{to}\n{error}\nexpected: {said}");
    }
}

#[test]
fn black_boxes_that_could_not_be_driven_are_refused() {
    let good = "seed: 1\nagent: {turns: 1, tasks: 1, endpoint: {path: /run, body: '{\"input\": \"{prompt}\"}'}}";
    let load = "capacity: {slo: {ttft_p95: 1s}, start_rate: 1, step: 2, max_rate: 9, hold: 1s}\nopen_loop: {shares: [0.5], cell: {duration: 1s}}\n";
    let whole = SCENARIO.replacen("seed: 1", good, 1);
    assert!(refused::<Scenario>(&whole).contains("is an agent and no model's API"));
    let text = whole.replacen(load, "", 1);
    config::from_text::<Scenario>("s.yaml", &text).unwrap();
    for (from, to, said) in [
        ("turns: 1", "turns: 5", "write `turns: 1`"),
        ("path: /run", "path: run", "begin it with /"),
        ("{prompt}", "prompt", "no JSON with `{prompt}`"),
        ("'{\"input\"", "'{input", "no JSON with `{prompt}`"),
    ] {
        let error = refused::<Scenario>(&text.replacen(from, to, 1));
        assert!(error.contains(said), "{to}\n{error}\nexpected: {said}");
    }
}

#[test]
fn endpoints_of_metrics_that_could_not_be_read_are_refused() {
    let good = "model: m\nscrape:\n  - {component: e, kind: vllm, url: \"http://127.0.0.1:8000/metrics\", every: 1s}\n  - {component: g, kind: other, url: \"http://h/metrics\", figures: {cache_hits: my_hits}}";
    let text = CHAIN.replacen("model: m", good, 1);
    config::from_text::<Chain>("c.yaml", &text).unwrap();
    for (from, to, said) in [
        (
            "component: g",
            "component: e",
            "the name `e` is taken at c.yaml:",
        ),
        ("component: g", "component: g h", "use 1 to 64 letters"),
        ("http://h", "https://h", "read in the clear only"),
        ("every: 1s", "every: 10ms", "write 100ms or more"),
        ("every: 1s", "evry: 1s", "did you mean `every`?"),
        ("kind: vllm", "kind: vlm", "`vllm`"),
        (
            ", figures: {cache_hits: my_hits}",
            "",
            "name them under `figures`",
        ),
        ("my_hits", "'my_hits{a=\"b\"}'", "without labels"),
        ("my_hits", "''", "is no name of a metric"),
        ("cache_hits: my", "cache_hit: my", "cache_hit"),
    ] {
        assert!(text.contains(from), "{from}");
        let error = refused::<Chain>(&text.replacen(from, to, 1));
        assert!(error.contains(said), "{to}\n{error}\nexpected: {said}");
        assert!(error.starts_with("c.yaml:"), "{error}");
    }
}

#[test]
fn text_that_is_no_yaml_is_refused_with_its_place() {
    for text in [
        "name: [",
        "name: c\n\tkind: x",
        "a: &x 1\n<<: *x",
        "- a\n- b",
        "just words",
        "name: *nothing",
        "name: c\n---\nname: d",
    ] {
        let error = refused::<Chain>(text);
        assert!(error.starts_with("c.yaml:"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    for text in ["", "\n\n", "# only a comment\n"] {
        assert!(refused::<Chain>(text).contains("is empty; start from one of the shipped files"));
    }
}

#[test]
fn files_that_cannot_be_read_are_refused_in_words() {
    let dir = tempfile::tempdir().unwrap();
    let said = |path: PathBuf| config::load::<Chain>(path).unwrap_err().to_string();
    assert!(
        said(dir.path().join("no.yaml"))
            .contains("no.yaml: no such file; give the path of a chain file")
    );
    assert!(said(dir.path().to_path_buf()).contains("is a directory; name a chain file in it"));
    fs::write(dir.path().join("latin.yaml"), b"name: c\nmodel: caf\xe9\n").unwrap();
    let error = said(dir.path().join("latin.yaml"));
    assert!(error.contains("latin.yaml:2:11: is not UTF-8"), "{error}");
}
