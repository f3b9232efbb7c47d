//! AWS' SDK for Rust gets through a tap that signs what it gets of the service itself. Only the endpoint differs.

mod asking;
mod parts;
mod told;

use super::aws_rig::{Caller, Place, SIGN, urls};
use record::exchange::Outcome;
use told::Told;

/// What the SDK must have been told, whoever told it.
fn as_asked(told: &Told) {
    for (what, parts) in [
        ("converse", &["MaxTokens", "output_tokens: 16"][..]),
        (
            "stream",
            &[
                "MessageStart",
                "ContentBlockDelta",
                "MessageStop",
                "output_tokens: 16",
                "end",
            ],
        ),
        ("stream of an imported model", &["output_tokens: 16", "end"]),
        ("tool", &["ToolUse", "\"double\"", "PosInt(1)"]),
        (
            "tool stream",
            &["ContentBlockStart", "ToolUse", "{\\\"x\\\""],
        ),
        ("tool result", &["MaxTokens"]),
        ("tool result stream", &["MaxTokens", "end"]),
        (
            "invoke claude",
            &["application/json", "\"stop_reason\":\"max_tokens\""],
        ),
        (
            "invoke stream claude",
            &["message_start", "amazon-bedrock-invocationMetrics", "end"],
        ),
        (
            "invoke stream llama",
            &[
                "prompt_token_count",
                "amazon-bedrock-invocationMetrics",
                "end",
            ],
        ),
        (
            "guardrail",
            &[
                "GuardrailIntervened",
                "forbidden",
                "Sorry, the model",
                "word_policy_units: 1",
            ],
        ),
        (
            "guardrail stream",
            &[
                "GuardrailIntervened",
                "forbidden",
                "word_policy_units: 1",
                "end",
            ],
        ),
        ("invoke guardrail", &["INTERVENED", "forbidden"]),
        (
            "invoke guardrail stream",
            &["INTERVENED", "forbidden", "end"],
        ),
        (
            "exception",
            &[
                "MessageStart",
                "InternalServerException",
                "injected by the stand-in",
            ],
        ),
        (
            "invoke exception",
            &[
                "message_start",
                "InternalServerException",
                "injected by the stand-in",
            ],
        ),
        ("without metadata", &["MessageStop", "end"]),
    ] {
        told.says(what, parts);
    }
    for operation in ["converse", "stream", "invoke", "invoke stream"] {
        for (what, kind, message) in [
            (
                "throttled",
                "ThrottlingException",
                "Too many tokens, please wait before trying again.",
            ),
            (
                "not ready",
                "ModelNotReadyException",
                "Model is not ready for inference. Wait and try your request again.",
            ),
        ] {
            let line = format!("Some(429) {kind} Some({kind:?}) Some({message:?})");
            assert_eq!(told.of(&format!("{what} {operation}")), [line]);
        }
    }
    assert!(
        told.of("damaged")
            .last()
            .unwrap()
            .to_lowercase()
            .contains("checksum"),
        "{:?}",
        told.of("damaged")
    );
    assert_eq!(
        told.of("exception").len(),
        5,
        "what came before the exception"
    );
}

#[test]
fn awss_sdk_for_rust_gets_through_a_tap_that_signs_what_it_gets_of_the_service() {
    let place = Place::new();
    let taps = place.taps(&place.bedrock(Caller::Tap), SIGN);
    let direct = place.bedrock(Caller::Client);
    let ask = |at: &[std::net::SocketAddr]| {
        let all_of = urls(at);
        place.runtime.block_on(asking::all(&all_of[0], &all_of[1]))
    };
    let (tapped, direct) = (ask(&taps.at), ask(&direct));
    for (with, without) in tapped.0.iter().zip(&direct.0) {
        assert_eq!(with, without);
    }
    assert_eq!(tapped.0.len(), direct.0.len());
    as_asked(&direct);
    let calls = taps.calls();
    let count = |wanted| {
        calls
            .iter()
            .filter(|call| call.outer.outcome == wanted)
            .count()
    };
    assert_eq!(count(Outcome::Refused), 8);
    assert_eq!(count(Outcome::ErrorInStream), 2);
    assert_eq!(count(Outcome::Truncated), 1);
    assert_eq!(
        calls.len(),
        4 + 4 + 4 + 4 + 8 + 4,
        "each call was made once"
    );
}
