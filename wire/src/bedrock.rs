//! What Bedrock says beside the model's own answer: members `amazon-bedrock-…` of InvokeModel's last event or
//! body, and headers of a response.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::event::{Guardrail, ServerFigures, Usage};
use crate::guardrail;
use crate::text::Text;
use crate::tokens::Tokens;

/// The prefix of every member that the service adds.
const PREFIX: &[u8] = b"\"amazon-bedrock-";

/// What the service added to a model's event or body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Added {
    /// Counts and times, which come on the last event of a stream.
    pub(crate) metrics: Option<(Tokens, ServerFigures)>,
    pub(crate) guardrail: Option<Guardrail>,
    /// Metrics or a trace that cannot be read.
    pub(crate) odd: bool,
}

#[derive(Deserialize)]
struct Members<'a> {
    /// Read apart: odd ones must not cost the end of the stream.
    #[serde(borrow, default, rename = "amazon-bedrock-invocationMetrics")]
    metrics: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "amazon-bedrock-guardrailAction")]
    action: Option<Text<'a>>,
    /// As Converse's `trace`, but for the names within.
    #[serde(borrow, default, rename = "amazon-bedrock-trace")]
    trace: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metrics {
    #[serde(default)]
    input_token_count: Option<u64>,
    #[serde(default)]
    output_token_count: Option<u64>,
    #[serde(default)]
    cache_read_input_token_count: Option<u64>,
    #[serde(default)]
    cache_write_input_token_count: Option<u64>,
    #[serde(default)]
    invocation_latency: Option<u64>,
    #[serde(default)]
    first_byte_latency: Option<u64>,
}

impl Added {
    /// What was added to this object; a usual event, without any of it, is only searched.
    pub(crate) fn of(json: &str) -> Self {
        if memchr::memmem::find(json.as_bytes(), PREFIX).is_none() {
            return Self::default();
        }
        let Ok(members) = serde_json::from_str::<Members<'_>>(json) else {
            return Self::default();
        };
        let metrics = members.metrics.map(metrics);
        let trace = members.trace.map(guardrail::read);
        let action = members.action.map(|action| Guardrail {
            intervened: action.as_str() == "INTERVENED",
            ..Guardrail::default()
        });
        let mut guardrail = trace.flatten();
        if let Some(action) = action {
            guardrail.get_or_insert_default().add(action);
        }
        Self {
            odd: metrics == Some(None) || trace == Some(None),
            metrics: metrics.flatten(),
            guardrail,
        }
    }
}

fn metrics(raw: &RawValue) -> Option<(Tokens, ServerFigures)> {
    raw.get().starts_with('{').then_some(())?;
    let metrics: Metrics = serde_json::from_str(raw.get()).ok()?;
    let tokens = Tokens {
        input: metrics.input_token_count,
        cache_read: metrics.cache_read_input_token_count,
        cache_write: metrics.cache_write_input_token_count,
        output: metrics.output_token_count,
        total: None,
    };
    let server = ServerFigures {
        latency_ms: metrics.invocation_latency,
        first_byte_ms: metrics.first_byte_latency,
    };
    Some((tokens, server))
}

/// Figures in the headers of a response of Bedrock's that is not streamed: `x-amzn-bedrock-invocation-latency`
/// (milliseconds), `-input-token-count`, `-output-token-count`, `-cache-read-input-token-count` and
/// `-cache-write-input-token-count`. They are there before the body is, and of InvokeModel also where the body
/// has no counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HeaderFigures {
    tokens: Tokens,
    server: ServerFigures,
}

impl HeaderFigures {
    /// Takes a header, whatever its name and case; one of another name, or whose value is no whole number,
    /// says nothing.
    pub fn take(&mut self, name: &str, value: &[u8]) {
        const OURS: &str = "x-amzn-bedrock-";
        let (Some(prefix), Some(rest)) = (name.get(..OURS.len()), name.get(OURS.len()..)) else {
            return;
        };
        if !prefix.eq_ignore_ascii_case(OURS) {
            return;
        }
        for (known, place) in [
            ("invocation-latency", &mut self.server.latency_ms),
            ("input-token-count", &mut self.tokens.input),
            ("output-token-count", &mut self.tokens.output),
            ("cache-read-input-token-count", &mut self.tokens.cache_read),
            (
                "cache-write-input-token-count",
                &mut self.tokens.cache_write,
            ),
        ] {
            if rest.eq_ignore_ascii_case(known) {
                let number = std::str::from_utf8(value).ok();
                *place = number.and_then(|text| text.trim().parse().ok());
            }
        }
    }

    /// The token counts, if there were any.
    pub fn usage(&self) -> Option<Usage> {
        self.tokens.usage()
    }

    /// The service's own times, if there were any.
    pub fn server(&self) -> Option<ServerFigures> {
        (self.server != ServerFigures::default()).then_some(self.server)
    }
}

#[cfg(test)]
mod tests {
    use super::{Added, HeaderFigures};
    use crate::event::{Guardrail, ServerFigures, Usage};

    fn figures(headers: &[(&str, &str)]) -> HeaderFigures {
        let mut figures = HeaderFigures::default();
        for (name, value) in headers {
            figures.take(name, value.as_bytes());
        }
        figures
    }

    #[test]
    fn headers_give_counts_and_latency() {
        let seen = figures(&[
            ("X-Amzn-Bedrock-Invocation-Latency", " 1181 "),
            ("x-amzn-bedrock-input-token-count", "365"),
            ("x-amzn-bedrock-output-token-count", "41"),
            ("x-amzn-bedrock-cache-read-input-token-count", "100"),
            ("x-amzn-bedrock-cache-write-input-token-count", "20"),
            ("x-amzn-requestid", "7"),
        ]);
        let usage = Usage {
            prompt_tokens: Some(485),
            completion_tokens: Some(41),
            cached_tokens: Some(100),
            cache_write_tokens: Some(20),
            ..Usage::default()
        };
        assert_eq!(seen.usage(), Some(usage));
        let server = ServerFigures {
            latency_ms: Some(1181),
            first_byte_ms: None,
        };
        assert_eq!(seen.server(), Some(server));
    }

    #[test]
    fn headers_that_say_nothing_are_absent_and_not_zero() {
        let seen = figures(&[
            ("x-amzn-bedrock-input-token-count", "-1"),
            ("x-amzn-bedrock-invocation-latency", "fast"),
            ("x-amzn-bedrock-performanceconfig-latency", "5"),
            ("x-amzn-bedröck", "5"),
            ("", "5"),
        ]);
        assert_eq!((seen.usage(), seen.server()), (None, None));
    }

    #[test]
    fn members_of_the_service_are_found_among_the_model_s() {
        assert_eq!(Added::of(r#"{"type":"x"}"#), Added::default());
        let text = r#"{"text":"\"amazon-bedrock-invocationMetrics\""}"#;
        assert_eq!(Added::of(text), Added::default());
        for (action, intervened) in [("INTERVENED", true), ("NONE", false)] {
            let added = Added::of(&format!(
                r#"{{"amazon-bedrock-guardrailAction":"{action}"}}"#
            ));
            let guardrail = Guardrail {
                intervened,
                ..Guardrail::default()
            };
            assert_eq!(added.guardrail, Some(guardrail));
        }
        let trace = |assessments: &str| {
            Added::of(&format!(
                r#"{{"stop_reason":"x","amazon-bedrock-guardrailAction":"NONE","amazon-bedrock-trace":{{"guardrail":{assessments}}}}}"#
            ))
        };
        // The names differ from Converse's; so may the order.
        let added = trace(
            r#"{"input":{"g":{"topicPolicy":{"topics":[{"action":"BLOCKED"}]},"invocationMetrics":{"guardrailProcessingLatency":7,"usage":{"topicPolicyUnits":2}}}},"outputs":[{"g":{"invocationMetrics":{"guardrailProcessingLatency":4,"usage":{"topicPolicyUnits":1}}}}]}"#,
        );
        let seen = added.guardrail.unwrap();
        assert_eq!(
            (seen.intervened, seen.latency_ms, seen.units.topic),
            (true, Some(11), Some(3))
        );
        let odd = Added::of(r#"{"amazon-bedrock-trace":[1]}"#);
        assert_eq!((odd.guardrail, odd.odd), (None, true));
        let odd = Added::of(r#"{"amazon-bedrock-invocationMetrics":[1]}"#);
        assert_eq!((odd.metrics, odd.odd), (None, true));
    }
}
