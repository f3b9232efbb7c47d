//! The file of virtual keys.

use std::collections::HashMap;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

use serde::Deserialize;

/// Most keys of a file.
const MAX_KEYS: usize = 1024;
/// Most bytes of a file.
const MAX_FILE: u64 = 1024 * 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    keys: HashMap<String, KeyRules>,
}

/// What one key may do. Absent limits are none.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::gateway) struct KeyRules {
    /// Whose key it is; shown in metrics.
    pub(in crate::gateway) tenant: String,
    /// Requests in a minute.
    pub(super) rpm: Option<u64>,
    /// Prompt and completion tokens in a minute.
    pub(super) tpm: Option<u64>,
    /// USD in all.
    pub(super) budget_usd: Option<f64>,
    /// Price of 1M prompt tokens, USD.
    #[serde(default)]
    pub(super) usd_per_million_in: f64,
    /// Price of 1M completion tokens, USD.
    #[serde(default)]
    pub(super) usd_per_million_out: f64,
    /// Allowed models; an empty list allows none.
    pub(in crate::gateway) models: Option<Vec<String>>,
    /// Allowed tools by name; an empty list allows none.
    pub(in crate::gateway) tools: Option<Vec<String>>,
    #[serde(default)]
    pub(in crate::gateway) guardrails: Vec<Guardrail>,
}

/// Words that block a request or an answer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::gateway) struct Guardrail {
    /// Told in the error.
    pub(in crate::gateway) name: String,
    pub(in crate::gateway) on: Side,
    /// Looked for anywhere in the text, whatever their case.
    pub(in crate::gateway) words: Vec<String>,
    /// Time of the check, µs; added to the request leg or to the answer.
    #[serde(default)]
    pub(in crate::gateway) latency_us: u64,
}

/// What a guardrail looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::gateway) enum Side {
    Input,
    Output,
}

/// Reads and checks a file. No message quotes it: it holds keys.
pub(super) fn read(path: &Path) -> Result<HashMap<String, KeyRules>> {
    let wrong = |what: String| {
        Error::new(
            ErrorKind::InvalidData,
            format!("key file {}: {what}", path.display()),
        )
    };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| {
        Error::new(
            error.kind(),
            format!("key file {}: {error}: check --keys", path.display()),
        )
    })?;
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(wrong(format!(
            "more than {MAX_FILE} bytes: list fewer keys"
        )));
    }
    parse(&bytes).map_err(wrong)
}

fn parse(bytes: &[u8]) -> std::result::Result<HashMap<String, KeyRules>, String> {
    let file: KeyFile = serde_json::from_slice(bytes).map_err(|error| {
        // The library's text can quote a value.
        let (line, column) = (error.line(), error.column());
        format!("line {line}, column {column} is not as `hopscope sim gateway --help` describes it")
    })?;
    if file.keys.len() > MAX_KEYS {
        return Err(format!("more than {MAX_KEYS} keys: list fewer"));
    }
    for rules in file.keys.values() {
        let tenant = &rules.tenant;
        let money = [
            rules.budget_usd.unwrap_or(0.0),
            rules.usd_per_million_in,
            rules.usd_per_million_out,
        ];
        if tenant.is_empty() {
            return Err("a tenant has no name: give it one".to_owned());
        }
        if money.iter().any(|amount| *amount < 0.0) {
            return Err(format!(
                "tenant {tenant}: an amount of USD is negative: 0 is the least"
            ));
        }
        let words = rules
            .guardrails
            .iter()
            .flat_map(|guardrail| &guardrail.words);
        if words.into_iter().any(String::is_empty) {
            return Err(format!(
                "tenant {tenant}: an empty word would block everything: take it out"
            ));
        }
    }
    Ok(file.keys)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn wrong_files_are_told_why_without_a_key() {
        let error = |text: &str| parse(text.as_bytes()).unwrap_err();
        assert!(error("{\n\"keys\":{\"sk-secret\":{\"tenant\":7}}}").contains("line 2"));
        assert!(
            !error(r#"{"keys":{"sk-secret":{"tenant":"sk-secret","typo":1}}}"#).contains("secret")
        );
        assert!(error(r#"{"keys":{"k":{"tenant":""}}}"#).contains("no name"));
        assert!(error(r#"{"keys":{"k":{"tenant":"a","budget_usd":-1}}}"#).contains("negative"));
        let empty = r#"{"keys":{"k":{"tenant":"a","guardrails":[{"name":"g","on":"input","words":[""]}]}}}"#;
        assert!(error(empty).contains("empty word"));
        assert_eq!(
            parse(br#"{"keys":{"k":{"tenant":"a"}}}"#).unwrap()["k"].rpm,
            None
        );
    }
}
