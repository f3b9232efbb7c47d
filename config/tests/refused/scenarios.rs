//! Scenarios that could not be run, or would show nothing.

use super::*;

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
        ("path: /run, ", "", "either `path` or `agentcore`"),
        (
            "path: /run",
            "path: /run, agentcore: {runtime: arn:aws:bedrock-agentcore:us-east-1:1:runtime/a}",
            "either `path` or `agentcore`",
        ),
        (
            "path: /run",
            "agentcore: {runtime: arn:aws:bedrock:us-east-1:1:runtime/a}",
            "no runtime of AgentCore",
        ),
        (
            "path: /run",
            "agentcore: {runtime: \"arn:aws:bedrock-agentcore:us-east-1:1:runtime/a/b\"}",
            "no runtime of AgentCore",
        ),
        (
            "path: /run",
            "agentcore: {runtime: \"arn:aws:bedrock-agentcore:us-east-1:1:runtime/a\", qualifier: a b}",
            "no name of an endpoint",
        ),
        ("{prompt}", "prompt", "no JSON with `{prompt}`"),
        ("'{\"input\"", "'{input", "no JSON with `{prompt}`"),
    ] {
        let error = refused::<Scenario>(&text.replacen(from, to, 1));
        assert!(error.contains(said), "{to}\n{error}\nexpected: {said}");
    }
    // Sessions of AgentCore have several calls.
    let runtime = "agentcore: {runtime: \"arn:aws:bedrock-agentcore:us-east-1:1:runtime/a\"}";
    let sessions = text.replacen("path: /run", runtime, 1);
    let sessions = sessions.replacen("turns: 1", "turns: 5", 1);
    config::from_text::<Scenario>("s.yaml", &sessions).unwrap();
}
