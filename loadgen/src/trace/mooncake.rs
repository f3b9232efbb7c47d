//! Lines of JSON as Mooncake's traces have them, and as AIPerf and others read them: `timestamp`,
//! `input_length`, `output_length`, and `hash_ids`, which name the blocks of a prompt: equal beginnings of two
//! lists are equal beginnings of two prompts (github.com/kvcache-ai/Mooncake, `FAST25-release/traces`).

use super::{Entry, nanos};
use config::scenario::TimeUnit;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Number;

#[derive(Deserialize)]
struct Line {
    timestamp: Number,
    input_length: u64,
    output_length: u64,
    #[serde(default)]
    hash_ids: Vec<i64>,
    // What AIPerf's form may say beside, and what a replay by lengths and times would get wrong.
    session_id: Option<IgnoredAny>,
    delay: Option<IgnoredAny>,
    text_input: Option<IgnoredAny>,
    messages: Option<IgnoredAny>,
    payload: Option<IgnoredAny>,
}

/// What `text` says.
pub(super) fn entry(text: &str, unit: TimeUnit) -> Result<Entry, String> {
    let line: Line = serde_json::from_str(text).map_err(|error| {
        let error = error.to_string();
        let what = error.split(" at line ").next().unwrap_or_default();
        format!("{what}; a line is an object with `timestamp`, `input_length`, `output_length` and, if it has them, `hash_ids`")
    })?;
    let others = [
        ("session_id", line.session_id.is_some()),
        ("delay", line.delay.is_some()),
        ("text_input", line.text_input.is_some()),
        ("messages", line.messages.is_some()),
        ("payload", line.payload.is_some()),
    ];
    if let Some((name, _)) = others.into_iter().find(|(_, there)| *there) {
        return Err(format!(
            "has `{name}`: only arrival times and lengths are replayed, no sessions and no texts; remove the field if that is enough"
        ));
    }
    let at = match line.timestamp.as_i64() {
        Some(whole) => i128::from(whole) * i128::from(nanos(unit)),
        // Within the range of what an i64 of milliseconds can say: the cast saturates beyond it.
        None => {
            let time = line.timestamp.as_f64().unwrap_or(f64::NAN);
            if !time.is_finite() {
                return Err("`timestamp` is no number of time".to_owned());
            }
            (time * nanos(unit) as f64).round() as i128
        }
    };
    Ok(Entry {
        at,
        input: line.input_length,
        output: line.output_length,
        blocks: line.hash_ids,
    })
}
