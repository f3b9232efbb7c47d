//! AIPerf's `profile_export_aiperf.json` (schema 1.0), by its definitions: request latency ends at the last
//! content, inter-token latency is (latency − TTFT) ÷ (tokens − 1) of each request, throughputs divide by
//! the time from the first request to the last response. Tokens are the server's count, as with AIPerf's
//! `--use-server-token-count`.

use super::cell::{CellData, input_tokens, millis};
use super::sample::{Sample, at};
use crate::quantile::Rules;
use record::client::{CallOutcome, ClientCall};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const PERCENTILES: [u32; 9] = [1, 5, 10, 25, 50, 75, 90, 95, 99];

pub(super) fn render(data: &CellData<'_>) -> Value {
    let mut fields = Map::new();
    fields.insert("schema_version".to_owned(), json!("1.0"));
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            fields.insert(name.to_owned(), value);
        }
    };
    let rules = data.rules();
    let whole = |call: &ClientCall| millis(call.sent, Some(call.end));
    let text = |call: &ClientCall| millis(call.sent, call.last_text).or_else(|| whole(call));
    let streamed = data.streamed();
    let latency = data.sample(text);
    put("request_latency", spread(&latency, "ms", &rules));
    if streamed {
        let ttft = data.sample(|call| millis(call.sent, call.first_text));
        put("time_to_first_token", spread(&ttft, "ms", &rules));
        // TPOT as we define it: between the first text and the last.
        let itl = |call: &ClientCall| call.tpot().map(|nanos| nanos / 1e6);
        put(
            "inter_token_latency",
            spread(&data.sample(itl), "ms", &rules),
        );
        let user = data.sample(|call| itl(call).filter(|ms| *ms > 0.0).map(|ms| 1e3 / ms));
        let unit = "tokens/sec/user";
        put(
            "output_token_throughput_per_user",
            spread(&user, unit, &rules),
        );
        put("inter_chunk_latency", chunks(data, &rules));
    }
    let input = data.sample(|call| Some(f64::from(input_tokens(call))));
    put("input_sequence_length", spread(&input, "tokens", &rules));
    put("total_isl", input.sum().map(|sum| one(sum, "tokens")));
    let output = data.sample(|call| call.usage_completion.map(f64::from));
    put("output_sequence_length", spread(&output, "tokens", &rules));
    let total = data.tokens(|call| call.usage_completion).map(|n| n as f64);
    put("total_osl", total.map(|sum| one(sum, "tokens")));
    let (completed, lost) = (data.complete().count() as f64, data.lost() as f64);
    put("request_count", Some(one(completed, "requests")));
    put("error_request_count", Some(one(lost, "requests")));
    let seconds = duration(data).filter(|seconds| *seconds > 0.0);
    put("benchmark_duration", seconds.map(|s| one(s, "sec")));
    let rate = seconds.map(|s| one(completed / s, "requests/sec"));
    put("request_throughput", rate);
    let throughput = |tokens: Option<f64>| {
        let tokens = tokens.zip(seconds);
        tokens.map(|(n, s)| one(n / s, "tokens/sec"))
    };
    put("output_token_throughput", throughput(total));
    let both = input.sum().zip(total).map(|(input, output)| input + output);
    put("total_token_throughput", throughput(both));
    put("was_cancelled", Some(json!(data.cell.cut)));
    put("error_summary", Some(errors(data)));
    put("hopscope", Some(data.origin()));
    Value::Object(fields)
}

/// A metric that has one value.
fn one(value: f64, unit: &str) -> Value {
    json!({"unit": unit, "avg": value})
}

/// A metric of each request; `None` where no request has it.
fn spread(sample: &Sample, unit: &str, rules: &Rules) -> Option<Value> {
    let mut fields = Map::new();
    fields.insert("unit".to_owned(), json!(unit));
    fields.insert("avg".to_owned(), json!(sample.mean()?));
    for p in PERCENTILES {
        let value = sample.at(f64::from(p) / 100.0, rules);
        fields.insert(format!("p{p}"), json!(value));
    }
    fields.insert("min".to_owned(), json!(sample.smallest()));
    fields.insert("max".to_owned(), json!(sample.largest()));
    fields.insert("std".to_owned(), json!(sample.deviation()));
    Some(Value::Object(fields))
}

/// Every gap between two events with text, of all requests together.
fn chunks(data: &CellData<'_>, rules: &Rules) -> Option<Value> {
    let gaps = data.gaps.filter(|gaps| !gaps.is_empty())?;
    let lost = (data.lost(), data.calls.len());
    let mut fields = Map::new();
    fields.insert("unit".to_owned(), json!("ms"));
    fields.insert("avg".to_owned(), json!(gaps.mean() / 1e6));
    for p in PERCENTILES {
        let value = at(gaps, lost, f64::from(p) / 100.0, rules).map(|nanos| nanos / 1e6);
        fields.insert(format!("p{p}"), json!(value));
    }
    fields.insert("min".to_owned(), json!(gaps.min() as f64 / 1e6));
    fields.insert("max".to_owned(), json!(gaps.max() as f64 / 1e6));
    fields.insert("std".to_owned(), json!(gaps.stdev() / 1e6));
    Some(Value::Object(fields))
}

/// From the first request to the last response, seconds.
fn duration(data: &CellData<'_>) -> Option<f64> {
    let first = data.complete().filter_map(|call| call.sent).min();
    let last = data.complete().map(|call| call.end).max();
    millis(first, last).map(|ms| ms / 1e3)
}

fn errors(data: &CellData<'_>) -> Value {
    let mut kinds: BTreeMap<(&str, &str, Option<u16>), u64> = BTreeMap::new();
    for call in data.calls {
        if call.outcome != CallOutcome::Complete {
            let fault = call.fault.as_deref().unwrap_or_default();
            *kinds
                .entry((call.outcome.name(), fault, call.status))
                .or_default() += 1;
        }
    }
    let kinds = kinds.into_iter().map(|((kind, fault, status), count)| {
        json!({"error_details": {"code": status, "type": kind, "message": fault}, "count": count})
    });
    kinds.collect()
}
