//! What is wrong with a file is said with its place and the remedy, all of it at once.

#![expect(clippy::panic, reason = "a test fails loudly")]

mod scenarios;

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

#[test]
fn a_tap_that_signs_names_one_host_of_one_region_and_one_service() {
    let with = |address: &str, sign: &str, more: &str| {
        let upstream = format!("upstream: {{addresses: [{address}], sign: {sign}{more}}}");
        chain_with("upstream: {addresses: [\"127.0.0.1:8000\"]}", &upstream)
    };
    let host = "\"bedrock-runtime.us-east-1.amazonaws.com:443\"";
    let upstream = ", host_header: upstream";
    for (address, sign, more, says) in [
        (
            "\"127.0.0.1:8000\"",
            "{service: bedrock}",
            upstream,
            "names no region",
        ),
        (
            host,
            "{service: bedrock, region: eu-west-1}",
            upstream,
            "is of us-east-1; remove `region`",
        ),
        (
            host,
            "{service: bedrock-agentcore}",
            upstream,
            "is of the other one",
        ),
        (
            host,
            "{service: bedrock}",
            "",
            "add `host_header: upstream`",
        ),
        (
            "\"a:1\", \"b:1\"",
            "{service: bedrock, region: eu-west-1}",
            upstream,
            "name one address",
        ),
        (host, "{service: s3}", upstream, "s3"),
        (
            host,
            "{service: bedrock}",
            ", host_header: upstream, bearer_env: AWS_BEARER_TOKEN_BEDROCK",
            "both are asked for",
        ),
        (
            host,
            "{service: bedrock}",
            ", host_header: upstream, translate: {from: openai-chat, to: converse, model: gpt-4o}",
            "no model of Bedrock",
        ),
        (
            host,
            "{service: bedrock}",
            ", host_header: upstream, http2: true, translate: {from: openai-chat, to: converse}",
            "HTTP/1.1 on both sides",
        ),
    ] {
        let found = with(address, sign, more);
        assert!(found.contains(says) && found.contains("c.yaml:"), "{found}");
    }
}

#[test]
fn an_api_that_the_chain_cannot_speak_is_refused() {
    let model = "model: us.meta.llama3-1-70b-instruct-v1:0\napi: converse";
    let good = CHAIN.replacen("model: m", model, 1);
    let chain = config::from_text::<Chain>("c.yaml", &good).unwrap();
    assert_eq!(Chain::path(&chain, "/x"), "/x");
    let chain = config::from_text::<Chain>("c.yaml", CHAIN).unwrap();
    assert_eq!(Chain::path(&chain, "/x"), "/v1/x");
    let outer = "upstream: {addresses: [\"127.0.0.1:9001\"]";
    for (text, says) in [
        (
            CHAIN.replacen("model: m", "model: m\napi: converse", 1),
            "c.yaml:5:8: `m` is no model of Bedrock",
        ),
        (
            CHAIN.replacen("model: m", "model: m\ncache_system_from: 9", 1),
            "c.yaml:6:20: cache points are Converse's",
        ),
        (
            CHAIN.replacen("model: m", "model: m\napi: converze", 1),
            "did you mean `converse`?",
        ),
        (
            good.replacen(
                outer,
                &format!("{outer}, translate: {{from: openai-chat, to: converse}}"),
                1,
            ),
            "remove `translate`, or `api`",
        ),
    ] {
        let error = refused::<Chain>(&text);
        assert!(error.contains(says), "{error}\nexpected: {says}");
    }
}
