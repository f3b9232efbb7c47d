//! The result of `vllm bench serve --save-result`, by the definitions of its `vllm/benchmarks/serve.py`
//! (release 0.32): TTFT to the first chunk with a choice, latency to the last one, TPOT = (latency −
//! TTFT) ÷ (tokens − 1), ITL = every gap between two chunks, all of completed requests; tokens as the server
//! counts them.

use super::cell::{CellData, input_tokens, millis};
use super::sample::{Sample, at};
use config::scenario::Arrivals;
use hdrhistogram::Histogram;
use record::client::ClientCall;
use record::histogram;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const PERCENTILES: [u32; 4] = [50, 90, 95, 99];

pub(super) fn render(data: &CellData<'_>) -> Value {
    let (manifest, cell) = (data.manifest, data.cell);
    let completed = data.complete().count();
    let ended = data.calls.iter().map(|call| call.end).max();
    let duration = millis(Some(cell.from), ended).map(|ms| ms / 1e3);
    let input = data.tokens(|call| Some(input_tokens(call)));
    let output = data.tokens(|call| call.usage_completion);
    let per_second = |count: Option<f64>| Some(count? / duration.filter(|d| *d > 0.0)?);
    let mut result = json!({
        "date": date(&manifest.started),
        "endpoint_type": "openai-chat",
        "backend": "openai-chat",
        "label": data.name(),
        "model_id": data.chain.map(|chain| chain.model.clone()),
        "tokenizer_id": manifest.workload.tokenizer,
        "num_prompts": data.calls.len(),
        "request_rate": request_rate(data),
        "burstiness": burstiness(data),
        "max_concurrency": data.concurrency(),
        "duration": duration,
        "completed": completed,
        "failed": data.lost(),
        "total_input_tokens": input,
        "total_output_tokens": output,
        "request_throughput": per_second(Some(completed as f64)),
        "request_goodput": null,
        "output_throughput": per_second(output.map(|n| n as f64)),
        "total_token_throughput": per_second(input.zip(output).map(|(i, o)| (i + o) as f64)),
        "max_output_tokens_per_s": null,
        "max_concurrent_requests": peak(data),
        "hopscope": data.origin(),
    });
    if let Value::Object(fields) = &mut result {
        let streamed = data.streamed();
        let only = |value: Option<f64>| value.filter(|_| streamed);
        put(fields, "ttft", &data.sample(|c| only(ttft(c))), data);
        put(fields, "tpot", &data.sample(|c| only(tpot(c))), data);
        put(fields, "e2el", &data.sample(latency), data);
        put_gaps(fields, data);
    }
    result
}

fn ttft(call: &ClientCall) -> Option<f64> {
    millis(call.sent, call.first_choice)
}

/// The last chunk with a choice: the finish reason's, or the last text's where that came later. An
/// answer of another kind has neither.
fn last(call: &ClientCall) -> u64 {
    call.finish.max(call.last_text).unwrap_or(call.end)
}

fn latency(call: &ClientCall) -> Option<f64> {
    millis(call.sent, Some(last(call)))
}

fn tpot(call: &ClientCall) -> Option<f64> {
    let tokens = call.usage_completion.filter(|n| *n > 1)?;
    Some((latency(call)? - ttft(call)?) / f64::from(tokens - 1))
}

fn put(fields: &mut Map<String, Value>, name: &str, sample: &Sample, data: &CellData<'_>) {
    let rules = data.rules();
    fields.insert(format!("mean_{name}_ms"), json!(sample.mean()));
    fields.insert(format!("median_{name}_ms"), json!(sample.at(0.5, &rules)));
    fields.insert(format!("std_{name}_ms"), json!(sample.deviation()));
    for p in PERCENTILES {
        let value = sample.at(f64::from(p) / 100.0, &rules);
        fields.insert(format!("p{p}_{name}_ms"), json!(value));
    }
}

fn put_gaps(fields: &mut Map<String, Value>, data: &CellData<'_>) {
    let gaps = gaps(data).filter(|gaps| !gaps.is_empty());
    let rules = data.rules();
    let lost = (data.lost(), data.calls.len());
    let figure = |of: &dyn Fn(&Histogram<u64>) -> Option<f64>| {
        json!(gaps.as_ref().and_then(of).map(|nanos| nanos / 1e6))
    };
    fields.insert("mean_itl_ms".to_owned(), figure(&|g| Some(g.mean())));
    fields.insert("std_itl_ms".to_owned(), figure(&|g| Some(g.stdev())));
    let median = figure(&|g| at(g, lost, 0.5, &rules));
    fields.insert("median_itl_ms".to_owned(), median);
    for p in PERCENTILES {
        let value = figure(&|g| at(g, lost, f64::from(p) / 100.0, &rules));
        fields.insert(format!("p{p}_itl_ms"), value);
    }
}

/// Our gaps are between events with text; theirs between chunks with a choice. So the gap before the first
/// text, where a role came alone, and the one to a finish reason that came alone are added.
fn gaps(data: &CellData<'_>) -> Option<Histogram<u64>> {
    let mut gaps = data.gaps.filter(|_| data.streamed())?.clone();
    for call in data.complete() {
        let edges = [
            call.first_choice.zip(call.first_text),
            call.last_text.zip(call.finish),
        ];
        for (from, to) in edges.into_iter().flatten().filter(|(from, to)| to > from) {
            histogram::add(&mut gaps, to - from);
        }
    }
    Some(gaps)
}

/// Most completed requests in one second, counted from the first send: each is in every second that it
/// touches, so these are more than ever ran at once.
pub(super) fn peak(data: &CellData<'_>) -> Option<i64> {
    let spans = || {
        let calls = data.complete();
        calls.filter_map(|call| Some((call.sent?, last(call))))
    };
    let first = spans().map(|(sent, _)| sent).min()?;
    let second = |at: u64| (at - first) / 1_000_000_000;
    let mut steps: BTreeMap<u64, i64> = BTreeMap::new();
    for (sent, end) in spans() {
        *steps.entry(second(sent)).or_default() += 1;
        *steps.entry(second(end) + 1).or_default() -= 1;
    }
    let mut now = 0;
    let counts = steps.into_values().map(|step| {
        now += step;
        now
    });
    counts.max()
}

/// Callers that wait send as fast as they are answered: vLLM writes `inf`.
fn request_rate(data: &CellData<'_>) -> Value {
    match (data.rate(), data.concurrency()) {
        (Some(rate), _) => json!(rate),
        (None, Some(_)) => json!("inf"),
        (None, None) => Value::Null,
    }
}

/// The shape of the gamma-distributed gaps: 1 is Poisson, equal gaps are its limit. Where callers wait it means
/// nothing, and vLLM writes its default.
fn burstiness(data: &CellData<'_>) -> Value {
    match data.arrivals() {
        None if data.concurrency().is_some() => json!(1.0),
        Some(Arrivals::Poisson) => json!(1.0),
        Some(Arrivals::Gamma { cv }) => json!(1.0 / (cv * cv)),
        Some(Arrivals::Uniform) => json!("inf"),
        None => Value::Null,
    }
}

/// `2026-12-01T08:09:10Z` as `20261201-080910`.
fn date(started: &str) -> String {
    let digits: String = started.chars().filter(char::is_ascii_digit).collect();
    match (digits.get(..8), digits.get(8..14)) {
        (Some(day), Some(time)) => format!("{day}-{time}"),
        _ => started.to_owned(),
    }
}
