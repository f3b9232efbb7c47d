//! AWS' own clients get through a tap that signs what they get of the service itself. Only the endpoint differs.

use super::aws_rig::{Caller, Place, SIGN, equal, of, told, urls};
use super::installed;
use record::exchange::Outcome;
use record::pairing::Call;
use serde_json::Value;

/// What a script prints, once of the stand-ins themselves and once through taps, and what those recorded.
struct Compared {
    direct: Vec<Value>,
    calls: Vec<Call>,
}

impl Compared {
    fn of(component: &str, script: &str) -> Self {
        let place = Place::new();
        let taps = place.taps(&place.bedrock(Caller::Tap), SIGN);
        let keys = Caller::Client.environment();
        let direct = urls(&place.bedrock(Caller::Client));
        let direct = told(component, script, &direct, &keys);
        let tapped = told(component, script, &urls(&taps.at), &keys);
        equal(&tapped, &direct);
        Self {
            direct,
            calls: taps.calls(),
        }
    }

    fn says(&self, what: &str, pointer: &str, expected: &str) {
        let line = of(&self.direct, what);
        let found = line.pointer(pointer).unwrap_or(&Value::Null);
        let found = found
            .as_str()
            .map_or_else(|| found.to_string(), str::to_owned);
        assert!(
            found.contains(expected),
            "`{expected}` at {pointer} of {line}"
        );
    }

    fn outcomes(&self, wanted: Outcome) -> usize {
        self.calls
            .iter()
            .filter(|call| call.outer.outcome == wanted)
            .count()
    }
}

const TOO_MANY: &str = "Too many tokens, please wait before trying again.";
const NOT_READY: &str = "Model is not ready for inference. Wait and try your request again.";
const SORRY: &str = "Sorry, the model cannot answer this question.";

/// What boto3 must have been told, whoever told it.
fn whole_of_bedrock(found: &Compared) {
    for (what, pointer, expected) in [
        ("converse", "/got/stopReason", "max_tokens"),
        ("converse", "/got/usage/outputTokens", "16"),
        ("converse stop", "/got/stopReason", "stop_sequence"),
        (
            "converse tool",
            "/got/output/message/content/0/toolUse/input/x",
            "1",
        ),
        ("converse tool result", "/got/stopReason", "max_tokens"),
        ("stream", "/got", "end"),
        ("stream of an imported model", "/got", "end"),
        ("stream tool", "/got", "end"),
        ("stream tool result", "/got", "end"),
        ("invoke claude", "/got/body/stop_reason", "max_tokens"),
        (
            "invoke claude",
            "/got/counted/x-amzn-bedrock-output-token-count",
            "16",
        ),
        ("invoke llama", "/got/body/generation_token_count", "16"),
        ("invoke stream claude", "/got", "application/json"),
        ("invoke stream llama", "/got", "application/json"),
        ("invoke stream tool", "/got", "application/json"),
        ("invoke tool result", "/got/body/stop_reason", "max_tokens"),
        ("guardrail", "/got/stopReason", "guardrail_intervened"),
        ("guardrail", "/got/output/message/content/0/text", SORRY),
        (
            "guardrail",
            "/got/trace/guardrail/inputAssessment/g1/wordPolicy/customWords/0/match",
            "forbidden",
        ),
        ("guardrail stream", "/got", "end"),
        (
            "guardrail that lets pass",
            "/got/trace/guardrail/inputAssessment/g1",
            "invocationMetrics",
        ),
        (
            "invoke guardrail",
            "/got/body/amazon-bedrock-guardrailAction",
            "INTERVENED",
        ),
        ("invoke stream guardrail", "/got", "application/json"),
        ("exception", "/stream/Code", "internalServerException"),
        ("exception", "/stream/Message", "injected by the stand-in"),
        (
            "invoke exception",
            "/stream/Code",
            "internalServerException",
        ),
        ("damaged", "/kind", "ChecksumMismatch"),
        ("without metadata", "/got", "end"),
        ("unavailable", "/kind", "ServiceUnavailableException"),
        ("model error", "/kind", "ModelErrorException"),
        ("invalid", "/error/Message", "anthropic_version"),
    ] {
        found.says(what, pointer, expected);
    }
    for operation in ["converse", "stream", "invoke", "invoke stream"] {
        for (what, kind, message) in [
            ("throttled", "ThrottlingException", TOO_MANY),
            ("not ready", "ModelNotReadyException", NOT_READY),
        ] {
            let what = format!("{what} {operation}");
            found.says(&what, "/kind", kind);
            found.says(&what, "/error/Code", kind);
            found.says(&what, "/error/Message", message);
            found.says(&what, "/status", "429");
            found.says(&what, "/retries", "0");
        }
    }
    let events = |what: &str| {
        let lines = found.direct.iter().filter(|line| line["what"] == what);
        let events = lines.filter_map(|line| line["event"].as_object());
        let first = |event: &serde_json::Map<String, Value>| event.keys().next().unwrap().clone();
        events.map(first).collect::<Vec<String>>()
    };
    let kinds = events("stream");
    assert_eq!(kinds[..2], ["messageStart", "contentBlockDelta"]);
    assert_eq!(
        kinds[kinds.len() - 3..],
        ["contentBlockStop", "messageStop", "metadata"]
    );
    assert_eq!(events("exception").len(), 4, "the events before it came");
    assert!(events("stream tool").contains(&"contentBlockStart".to_owned()));
    assert!(!events("without metadata").contains(&"metadata".to_owned()));
}

/// What the taps recorded of it. Each call was made once.
fn recorded_of_bedrock(found: &Compared) {
    assert_eq!(
        found.outcomes(Outcome::Refused),
        8 + 3,
        "429s, 503, 424, 400"
    );
    assert_eq!(found.outcomes(Outcome::ErrorInStream), 2);
    assert_eq!(found.outcomes(Outcome::Truncated), 1);
    // The client hangs up at a frame that it cannot read, or the stream was over before.
    let damaged = found
        .calls
        .iter()
        .filter(|call| call.outer.stream.counts.malformed > 0);
    assert_eq!(damaged.count(), 1);
    let of_the_rest = found.outcomes(Outcome::Complete) + found.outcomes(Outcome::Aborted);
    assert_eq!(found.calls.len(), of_the_rest + 8 + 3 + 2 + 1);
    let stopped = found.calls.iter().filter(|call| {
        let guardrail = call.outer.stream.guardrail;
        guardrail.is_some_and(|it| it.intervened && it.units.word == Some(1))
    });
    assert_eq!(stopped.count(), 4, "the guardrail's trace was read");
    let imported = "arn:aws:bedrock:us-east-1:123456789012:imported-model/abcdef123456";
    let asked = |call: &&Call| call.outer.request.model.as_deref() == Some(imported);
    assert_eq!(found.calls.iter().filter(asked).count(), 3 + 2);
    let in_stream = found
        .calls
        .iter()
        .find(|call| call.outer.outcome == Outcome::ErrorInStream);
    let kind = in_stream.unwrap().outer.stream.error.clone();
    assert_eq!(kind.as_deref(), Some("internalServerException"));
}

#[test]
fn boto3_gets_through_a_tap_that_signs_what_it_gets_of_the_service() {
    let Some(_turn) = installed("clients") else {
        return;
    };
    let found = Compared::of("clients", "bedrock.py");
    whole_of_bedrock(&found);
    recorded_of_bedrock(&found);
}

#[test]
fn langchain_gets_through_a_tap_that_signs_what_it_gets_of_the_service() {
    let Some(_turn) = installed("clients") else {
        return;
    };
    let found = Compared::of("clients", "langchain_bedrock.py");
    for api in ["converse", "invoke"] {
        for (what, pointer, expected) in [
            ("", "/got/usage_metadata/output_tokens", "16"),
            (" stream", "/got/usage_metadata/output_tokens", "16"),
            (" tool", "/got/tool_calls/0/args/x", "1"),
            (" tool stream", "/got/tool_calls/0/args/x", "1"),
            (" tool result", "/got/usage_metadata/output_tokens", "16"),
            (
                " tool result stream",
                "/got/usage_metadata/output_tokens",
                "16",
            ),
            (" guardrail", "/got/content", SORRY),
            (" guardrail stream", "/got/content", SORRY),
            (" exception", "/message", "injected by the stand-in"),
            (" throttled", "/error/Code", "ThrottlingException"),
            (" throttled", "/error/Message", TOO_MANY),
            (" throttled stream", "/error/Code", "ThrottlingException"),
            (" not ready", "/error/Code", "ModelNotReadyException"),
            (" not ready", "/error/Message", NOT_READY),
            (" not ready stream", "/error/Code", "ModelNotReadyException"),
        ] {
            found.says(&format!("{api}{what}"), pointer, expected);
        }
    }
    found.says(
        "converse guardrail",
        "/got/response_metadata/stopReason",
        "guardrail_intervened",
    );
    found.says("intervention", "/reason", "GUARDRAIL_INTERVENED");
    assert_eq!(found.outcomes(Outcome::Refused), 8);
    assert_eq!(found.outcomes(Outcome::ErrorInStream), 2);
    assert_eq!(found.calls.len(), found.outcomes(Outcome::Complete) + 8 + 2);
}
