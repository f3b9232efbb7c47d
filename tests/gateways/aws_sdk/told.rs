//! What the SDK's client was told.

use aws_sdk_bedrockruntime::config::http::HttpResponse;
use aws_sdk_bedrockruntime::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use std::error::Error;

/// What a client was told, a line a call or event, by the names under which it is looked for.
#[derive(Default)]
pub(super) struct Told(pub(super) Vec<(String, String)>);

impl Told {
    pub(super) fn add(&mut self, what: &str, said: &str) {
        self.0.push((what.to_owned(), settled(said)));
    }

    /// All lines of a call.
    pub(super) fn of(&self, what: &str) -> Vec<&str> {
        let lines = self.0.iter().filter(|(name, _)| name == what);
        lines.map(|(_, said)| said.as_str()).collect()
    }

    pub(super) fn says(&self, what: &str, parts: &[&str]) {
        let lines = self.of(what).join("\n");
        for part in parts {
            assert!(lines.contains(part), "{what}: `{part}` in {lines}");
        }
    }

    pub(super) fn failed<E>(&mut self, what: &str, error: &SdkError<E, HttpResponse>)
    where
        E: Error + ProvideErrorMetadata + 'static,
    {
        let status = error
            .raw_response()
            .map(|response| response.status().as_u16());
        self.add(what, &format!("{status:?} {}", meant(error)));
    }
}

/// Type, code and message of a service's error, as the SDK gives them (an exception inside a stream has no code); any
/// other in its own words.
pub(super) fn meant<E, R>(error: &SdkError<E, R>) -> String
where
    E: Error + ProvideErrorMetadata + 'static,
    R: std::fmt::Debug,
{
    match error.as_service_error() {
        Some(error) => {
            let debug = format!("{error:?}");
            let kind = debug.split('(').next().unwrap_or_default();
            format!("{kind} {:?} {:?}", error.code(), error.message())
        }
        None => DisplayErrorContext(error).to_string(),
    }
}

/// Times and made-up ids replaced: they differ from run to run.
fn settled(said: &str) -> String {
    let mut settled = String::new();
    let mut rest = said;
    let marks = [
        "latency_ms: ",
        "latency: Some(",
        "tool_use_id: \"",
        "\"id\":\"",
        "Latency\":",
    ];
    while let Some((at, mark)) = marks
        .iter()
        .filter_map(|mark| Some((rest.find(mark)?, mark)))
        .min()
    {
        let (before, after) = rest.split_at(at + mark.len());
        settled.push_str(before);
        settled.push('…');
        let value = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        rest = after.trim_start_matches(value);
    }
    settled + rest
}
