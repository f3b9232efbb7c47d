//! Editing chunks as JSON.

use serde_json::{Map, Value, json};

use crate::truth::Field;

/// An event with this chunk, its keys in the order of a sorted map: another order than the upstream's.
pub(super) fn serialized(chunk: &Value) -> Vec<u8> {
    format!("data: {chunk}\n\n").into_bytes()
}

/// The same chunk without finish reasons and usage.
pub(super) fn without_finish(chunk: &Value) -> Value {
    let mut chunk = chunk.clone();
    if let Some(fields) = chunk.as_object_mut() {
        fields.remove("usage");
    }
    for choice in choices_mut(&mut chunk) {
        if let Some(choice) = choice.as_object_mut() {
            choice.insert("finish_reason".to_owned(), Value::Null);
        }
    }
    chunk
}

/// A chunk with nothing but the finish reasons of this one.
pub(super) fn finish_chunk(chunk: &Value) -> Value {
    let choices = chunk["choices"].as_array().map_or(&[][..], Vec::as_slice);
    let finished: Vec<Value> = choices
        .iter()
        .filter(|choice| !choice["finish_reason"].is_null())
        .map(|choice| {
            let mut finished = json!({
                "index": choice["index"],
                "finish_reason": choice["finish_reason"],
            });
            let (name, empty) = match choice.get("text") {
                Some(_) => ("text", json!("")),
                None => ("delta", json!({})),
            };
            finished[name] = empty;
            finished
        })
        .collect();
    let mut finish = frame(chunk);
    finish.insert("choices".to_owned(), Value::from(finished));
    Value::from(finish)
}

/// A chunk with nothing but the usage of this one.
pub(super) fn usage_chunk(chunk: &Value) -> Value {
    let mut usage = frame(chunk);
    usage.insert("choices".to_owned(), json!([]));
    usage.insert("usage".to_owned(), chunk["usage"].clone());
    Value::from(usage)
}

/// Replaces the one text of a chunk with one choice.
pub(super) fn merge_text(chunk: &mut Value, field: Field, text: &str) {
    let places: &[&str] = match field {
        Field::Content => &["/choices/0/delta/content", "/choices/0/text"],
        Field::Reasoning => &[
            "/choices/0/delta/reasoning_content",
            "/choices/0/delta/reasoning",
        ],
        Field::ToolArguments => &["/choices/0/delta/tool_calls/0/function/arguments"],
    };
    for place in places {
        if let Some(old) = chunk.pointer_mut(place).filter(|old| old.is_string()) {
            *old = Value::from(text);
        }
    }
}

fn frame(chunk: &Value) -> Map<String, Value> {
    ["id", "object", "created", "model"]
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), chunk.get(*name)?.clone())))
        .collect()
}

fn choices_mut(chunk: &mut Value) -> &mut [Value] {
    chunk
        .get_mut("choices")
        .and_then(Value::as_array_mut)
        .map_or(&mut [], Vec::as_mut_slice)
}
