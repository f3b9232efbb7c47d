//! The llm-d benchmark report, schema 0.2. It leaves the definitions to the tool: TTFT ends at the first text,
//! latency at the last byte, TPOT = (latency − TTFT) ÷ (tokens − 1) as its schema notes, and inter-token
//! latency is given only where every event carried one token.

use super::cell::{CellData, millis};
use super::sample::{Sample, at};
use crate::quantile::Rules;
use record::client::{CallOutcome, ClientCall};
use record::timeline::hash;
use serde_json::{Map, Value, json};

const QUANTILES: [(&str, f64); 11] = [
    ("p0p1", 0.001),
    ("p1", 0.01),
    ("p5", 0.05),
    ("p10", 0.1),
    ("p25", 0.25),
    ("p50", 0.5),
    ("p75", 0.75),
    ("p90", 0.9),
    ("p95", 0.95),
    ("p99", 0.99),
    ("p99p9", 0.999),
];

pub(super) fn render(data: &CellData<'_>) -> Value {
    json!({
        "version": "0.2",
        "run": run(data),
        "scenario": {"stack": stack(data), "load": load(data)},
        "results": {"request_performance": {"aggregate": {
            "requests": requests(data),
            "latency": latency(data),
            "throughput": throughput(data),
        }}},
    })
}

fn run(data: &CellData<'_>) -> Value {
    let manifest = data.manifest;
    let mut words = vec!["hopscope".to_owned()];
    if manifest.simulated {
        words.push("simulated".to_owned());
    }
    let valid = manifest
        .verdict
        .as_ref()
        .is_some_and(record::verdict::Verdict::valid);
    if !valid {
        words.push("not-shown-to-be-valid".to_owned());
    }
    json!({
        "uid": format!("{}-{}-{}", manifest.run, manifest.started, data.name()),
        "eid": format!("{}-{}", manifest.run, manifest.started),
        "time": {"duration": seconds(data).map(|seconds| format!("PT{seconds}S"))},
        "description": format!("hopscope {}: {}", manifest.run, words.join(", ")),
        "keywords": words,
    })
}

/// The chain as one component: what stands in it and how it is set up is in its file.
fn stack(data: &CellData<'_>) -> Value {
    let text = data
        .manifest
        .config
        .get(&format!("chain {}", data.cell.chain));
    let text = text.map_or("", String::as_str);
    let component = data.chain.and_then(|chain| chain.gateway.as_ref());
    let version = component.and_then(|component| component.version.as_deref());
    json!([{
        "metadata": {"label": data.cell.chain, "cfg_id": fingerprint(text)},
        "standardized": {
            "kind": "generic",
            "tool": component.map_or("no component", |component| component.name.as_str()),
            "tool_version": version.unwrap_or("not stated"),
            "model": {"name": data.chain.map(|chain| chain.model.clone())},
        },
        "native": {"config": text},
    }])
}

/// The same for the same text, on every machine.
fn fingerprint(text: &str) -> String {
    format!("{:016x}", hash(text.as_bytes()))
}

fn load(data: &CellData<'_>) -> Value {
    let manifest = data.manifest;
    let scenario = manifest.config.get("scenario").map_or("", String::as_str);
    let length = |asked: u32, of: fn(&ClientCall) -> u32| {
        let mut differ = data.calls.iter().map(of).filter(|tokens| *tokens != asked);
        match differ.next() {
            None => json!({"distribution": "fixed", "value": asked}),
            Some(_) => {
                let sum: u64 = data.calls.iter().map(|call| u64::from(of(call))).sum();
                json!({"distribution": "other", "value": sum as f64 / data.calls.len() as f64})
            }
        }
    };
    json!({
        "metadata": {"cfg_id": fingerprint(scenario)},
        "standardized": {
            "tool": "hopscope",
            "tool_version": manifest.version,
            "source": "random",
            "input_seq_len": length(manifest.workload.input_tokens, |call| call.prompt_tokens),
            "rate_qps": data.rate(),
            "concurrency": data.concurrency(),
        },
        "native": {"config": {"scenario": scenario, "hopscope": data.origin()}},
    })
}

fn requests(data: &CellData<'_>) -> Value {
    let of = |wanted: &[CallOutcome]| {
        let calls = data.calls.iter();
        calls.filter(|call| wanted.contains(&call.outcome)).count()
    };
    let incomplete = of(&[
        CallOutcome::Truncated,
        CallOutcome::TimedOut,
        CallOutcome::CutOff,
    ]);
    let rules = data.rules();
    let input = data.sample(|call| Some(f64::from(call.prompt_tokens)));
    let output = data.sample(|call| call.usage_completion.map(f64::from));
    json!({
        "total": data.calls.len(),
        "failures": data.lost() - incomplete,
        "incomplete": incomplete,
        "input_length": spread(&input, "count", &rules),
        "output_length": spread(&output, "count", &rules),
    })
}

fn latency(data: &CellData<'_>) -> Value {
    let rules = data.rules();
    let whole = |call: &ClientCall| millis(call.sent, Some(call.end));
    let streamed = data.streamed();
    let first = |call: &ClientCall| millis(call.sent, call.first_text).filter(|_| streamed);
    let tokens = |call: &ClientCall, least| call.usage_completion.filter(|n| *n >= least);
    let each = data.sample(|call| Some(whole(call)? / f64::from(tokens(call, 1)?)));
    let later =
        data.sample(|call| Some((whole(call)? - first(call)?) / f64::from(tokens(call, 2)? - 1)));
    json!({
        "time_to_first_token": spread(&data.sample(first), "ms", &rules),
        "normalized_time_per_output_token": spread(&each, "ms/token", &rules),
        "time_per_output_token": spread(&later, "ms/token", &rules),
        "inter_token_latency": gaps(data, &rules),
        "request_latency": spread(&data.sample(whole), "ms", &rules),
    })
}

/// A gap between events is one between tokens only where each event has one.
fn gaps(data: &CellData<'_>, rules: &Rules) -> Option<Value> {
    let gaps = data
        .gaps
        .filter(|gaps| data.streamed() && !gaps.is_empty())?;
    let single = |call: &ClientCall| call.usage_completion == Some(call.text_events);
    if data.lost() > 0 || !data.complete().all(single) {
        return None;
    }
    let mut fields = Map::new();
    fields.insert("units".to_owned(), json!("ms/token"));
    fields.insert("mean".to_owned(), json!(gaps.mean() / 1e6));
    fields.insert("stddev".to_owned(), json!(gaps.stdev() / 1e6));
    fields.insert("min".to_owned(), json!(gaps.min() as f64 / 1e6));
    for (name, q) in QUANTILES {
        let value = at(gaps, (0, data.calls.len()), q, rules).map(|nanos| nanos / 1e6);
        fields.insert(name.to_owned(), json!(value));
    }
    fields.insert("max".to_owned(), json!(gaps.max() as f64 / 1e6));
    Some(Value::Object(fields))
}

fn throughput(data: &CellData<'_>) -> Value {
    let input = data
        .tokens(|call| Some(call.prompt_tokens))
        .map(|n| n as f64);
    let output = data.tokens(|call| call.usage_completion).map(|n| n as f64);
    let both = input.zip(output).map(|(input, output)| input + output);
    let seconds = seconds(data).filter(|seconds| *seconds > 0.0);
    let rate = |count: Option<f64>, units: &str| {
        let mean = count.zip(seconds).map(|(count, seconds)| count / seconds);
        mean.map(|mean| json!({"units": units, "mean": mean}))
    };
    json!({
        "input_token_rate": rate(input, "tokens/s"),
        "output_token_rate": rate(output, "tokens/s"),
        "total_token_rate": rate(both, "tokens/s"),
        "request_rate": rate(Some(data.complete().count() as f64), "queries/s"),
    })
}

/// From the opening of the measured window to the last answer.
fn seconds(data: &CellData<'_>) -> Option<f64> {
    let ended = data.calls.iter().map(|call| call.end).max();
    millis(Some(data.cell.from), ended).map(|ms| ms / 1e3)
}

/// A figure with its statistics; `None` where no call has it.
fn spread(sample: &Sample, units: &str, rules: &Rules) -> Option<Value> {
    let mut fields = Map::new();
    fields.insert("units".to_owned(), json!(units));
    fields.insert("mean".to_owned(), json!(sample.mean()?));
    fields.insert("stddev".to_owned(), json!(sample.deviation()));
    fields.insert("min".to_owned(), json!(sample.smallest()));
    for (name, q) in QUANTILES {
        fields.insert(name.to_owned(), json!(sample.at(q, rules)));
    }
    fields.insert("max".to_owned(), json!(sample.largest()));
    Some(Value::Object(fields))
}
