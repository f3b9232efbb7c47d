//! One value against one schema: its type, its bounds, its format.

use serde_json::Value;

use crate::scalar;
use crate::tree::Node;

/// What is wrong with the value itself, its parts apart; `None` if nothing is.
pub(super) fn problem(node: &Node, schema: &Value) -> Option<String> {
    let words: Vec<&str> = words(schema).collect();
    if !words.is_empty() {
        return not_among(node, &words);
    }
    let kinds = kinds(schema);
    if !kinds.is_empty() && !kinds.iter().any(|kind| fits(node, kind)) {
        return Some(wrong_type(node, &kinds));
    }
    match node {
        Node::Text(text) => text_problem(text, schema),
        Node::Integer(value) => number_problem(*value as f64, schema),
        Node::Float(value) => number_problem(*value, schema),
        Node::List(items) => too_few(items.len(), schema),
        _ => None,
    }
}

/// The words that a schema allows, when it allows only words.
pub(super) fn words(schema: &Value) -> impl Iterator<Item = &str> {
    let several = schema
        .get("enum")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    schema
        .get("const")
        .into_iter()
        .chain(several)
        .filter_map(Value::as_str)
}

/// What is wrong when the value is not one of `words`.
pub(super) fn not_among(node: &Node, words: &[&str]) -> Option<String> {
    match node {
        Node::Text(text) if words.contains(&text.as_str()) => None,
        Node::Text(text) => Some(format!("is `{text}`; {}", nearest(text, words))),
        // YAML readers take these words for booleans, which is a trap for `off`.
        Node::Bool => Some(format!(
            "is a yes-or-no value; write one of {}, in quotes if need be",
            listed(words)
        )),
        other => Some(format!(
            "is {}; write one of {}",
            described(other),
            listed(words)
        )),
    }
}

/// Advice for a word that is not among those known.
pub(super) fn nearest(word: &str, known: &[&str]) -> String {
    let close = known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(word, name), name))
        .min()
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4 || name.starts_with(word));
    match close {
        Some((_, name)) => format!("did you mean `{name}`? (one of {})", listed(known)),
        None if known.is_empty() => "remove it, for no key may stand here".to_owned(),
        None => format!("use one of {}", listed(known)),
    }
}

/// Words in backquotes, with commas.
pub(super) fn listed(words: &[&str]) -> String {
    words
        .iter()
        .map(|word| format!("`{word}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn kinds(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn fits(node: &Node, kind: &str) -> bool {
    match node {
        Node::Null => kind == "null",
        Node::Bool => kind == "boolean",
        Node::Integer(_) => kind == "integer" || kind == "number",
        Node::Float(_) => kind == "number",
        Node::Text(_) => kind == "string",
        Node::List(_) => kind == "array",
        Node::Map(_) => kind == "object",
    }
}

fn described(node: &Node) -> &'static str {
    match node {
        Node::Null => "empty",
        Node::Bool => "a yes-or-no value",
        Node::Integer(_) => "a whole number",
        Node::Float(_) => "a number",
        Node::Text(_) => "a text",
        Node::List(_) => "a list",
        Node::Map(_) => "a mapping",
    }
}

fn wrong_type(node: &Node, kinds: &[&str]) -> String {
    let wanted = match kinds.iter().find(|kind| **kind != "null") {
        Some(&"string") if !matches!(node, Node::List(_) | Node::Map(_) | Node::Null) => {
            "a text; put it in quotes"
        }
        Some(&"string") => "a text",
        Some(&"boolean") => "`true` or `false`",
        Some(&"integer") => "a whole number",
        Some(&"number") => "a number",
        Some(&"array") => "a list; write `[a, b]` or one `- item` a line",
        Some(&"object") => "a mapping of keys to values",
        _ => "nothing",
    };
    format!("is {}, and must be {wanted}", described(node))
}

fn text_problem(text: &str, schema: &Value) -> Option<String> {
    let format = schema.get("format").and_then(Value::as_str)?;
    scalar::problem(format, text).map(|problem| format!("is wrong: {problem}"))
}

fn number_problem(value: f64, schema: &Value) -> Option<String> {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let by_format = match schema.get("format").and_then(Value::as_str) {
        Some("uint16") => Some(f64::from(u16::MAX)),
        Some("uint32") => Some(f64::from(u32::MAX)),
        // Two to the 53rd: beyond it the whole numbers of JSON are not exact.
        Some("uint64") => Some(9_007_199_254_740_992.0),
        _ => None,
    };
    let (low, high) = (bound("minimum"), bound("maximum").or(by_format));
    let inside = value.is_finite()
        && low.is_none_or(|low| value >= low)
        && high.is_none_or(|high| value <= high);
    if inside {
        return None;
    }
    let limits = match (low, high) {
        (Some(low), Some(high)) => format!("from {low} to {high}"),
        (Some(low), None) => format!("of at least {low}"),
        (None, Some(high)) => format!("of at most {high}"),
        (None, None) => "that is finite".to_owned(),
    };
    Some(format!("is {value}; write a number {limits}"))
}

fn too_few(count: usize, schema: &Value) -> Option<String> {
    let least = schema.get("minItems").and_then(Value::as_u64)?;
    (u64::try_from(count).is_ok_and(|count| count < least))
        .then(|| format!("has {count} items; list at least {least}"))
}
