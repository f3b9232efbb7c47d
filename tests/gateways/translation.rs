//! Clients that speak OpenAI's protocol get of a service that speaks Converse, through a tap that translates and
//! signs, what they get of the same service where it speaks their own.

use super::aws_rig::{BEARER, Caller, Place, SIGN, Taps, equal, of, quick, told, urls};
use super::driven::{ready, start};
use super::rig::free;
use super::{KEY, installed, there};
use record::exchange::Outcome;
use serde_json::Value;
use sim::managed::ManagedOptions;
use std::net::SocketAddr;

const MODEL: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";

/// A service with a prompt cache, and one whose imported model sleeps.
fn service(place: &Place, caller: Caller) -> [SocketAddr; 2] {
    let options = ManagedOptions {
        prompt_cache: true,
        cache_min_tokens: 32,
        ..quick(place.keys(caller))
    };
    let [_, cold] = place.bedrock(caller);
    [place.managed(options), cold]
}

fn translating(place: &Place) -> Taps {
    let settings = format!(
        "{SIGN}, translate: {{from: openai-chat, to: converse, model: \"{MODEL}\", cache_system_from: 100}}"
    );
    place.taps(&service(place, Caller::Tap), &settings)
}

/// What is said of each call but for the body of an error, whose form is the protocol's, and those bodies.
fn apart(lines: &[Value]) -> (Vec<Value>, Vec<Value>) {
    let without = |line: &Value| {
        let mut line = line.clone();
        let body = line.as_object_mut().unwrap().remove("body");
        (line, body.unwrap_or_default())
    };
    lines.iter().map(without).unzip()
}

/// What every client must have been told.
fn as_asked(lines: &[Value]) {
    for (what, pointer, expected) in [
        ("chat", "/got/finish", "length"),
        ("chat", "/got/usage/completion_tokens", "16"),
        ("chat stream", "/got/usage/completion_tokens", "16"),
        ("without a limit", "/got/finish", "stop"),
        ("stop", "/got/finish", "stop"),
        ("stop stream", "/got/finish", "stop"),
        ("tool", "/got/finish", "tool_calls"),
        ("tool", "/got/tools/0/0", "double"),
        ("tool stream", "/got/tools/0/1", "{\"x\":1}"),
        ("tool result", "/got/finish", "length"),
        ("cached", "/got/usage/cached", "0"),
        ("cached stream", "/got/usage/cached", "64"),
        ("throttled", "/kind", "RateLimitError"),
        ("throttled stream", "/status", "429"),
    ] {
        let line = of(lines, what);
        let found = line.pointer(pointer).unwrap_or(&Value::Null);
        let found = found
            .as_str()
            .map_or_else(|| found.to_string(), str::to_owned);
        assert_eq!(found, expected, "{pointer} of {line}");
    }
    let stopped = of(lines, "stop")["got"]["text"].as_str().unwrap();
    assert!(
        !stopped.contains(" the") && !stopped.contains("ab"),
        "{stopped}"
    );
    assert_eq!(
        of(lines, "chat")["got"]["text"],
        of(lines, "chat stream")["got"]["text"]
    );
    let exception = of(lines, "exception stream");
    let before = exception["text_before"].as_str();
    let before = before.unwrap_or_else(|| panic!("{exception}"));
    assert_eq!(
        before.split_whitespace().count(),
        3,
        "what came before the exception"
    );
}

/// The original that each error of the translation keeps.
fn originals(lines: &[Value], bodies: &[Value]) {
    for (what, code, kind, message) in [
        (
            "throttled",
            "rate_limit_exceeded",
            "ThrottlingException",
            "Too many tokens, please wait before trying again.",
        ),
        (
            "not ready",
            "model_not_ready",
            "ModelNotReadyException",
            "Model is not ready for inference. Wait and try your request again.",
        ),
        (
            "status 400",
            "validation",
            "ValidationException",
            "injected by the stand-in",
        ),
        (
            "status 403",
            "access_denied",
            "AccessDeniedException",
            "injected by the stand-in",
        ),
        (
            "status 404",
            "model_not_found",
            "ResourceNotFoundException",
            "injected by the stand-in",
        ),
        (
            "status 503",
            "service_unavailable",
            "ServiceUnavailableException",
            "injected by the stand-in",
        ),
        (
            "status 500 stream",
            "internal",
            "InternalServerException",
            "injected by the stand-in",
        ),
        (
            "exception stream",
            "internal",
            "internalServerException",
            "injected by the stand-in",
        ),
    ] {
        let at = lines.iter().position(|line| line["what"] == what);
        let body = &bodies[at.unwrap_or_else(|| panic!("no {what}"))];
        assert_eq!(body["code"], code, "{what}: {body}");
        assert_eq!(
            (&body["original"]["type"], &body["original"]["message"]),
            (&kind.into(), &message.into())
        );
        assert_eq!(body["message"], message);
    }
}

/// Runs a way of `chat.py` through a tap and without it; gives what it printed through the tap.
fn compared(component: &str, way: &str, outcome: impl FnOnce(usize, usize, usize)) -> Vec<Value> {
    let place = Place::new();
    let taps = translating(&place);
    let ask = |all: &[SocketAddr]| {
        let [service, cold] = <[String; 2]>::try_from(urls(all)).unwrap();
        let arguments = [
            way.to_owned(),
            service,
            BEARER.to_owned(),
            MODEL.to_owned(),
            cold,
        ];
        told(component, "chat.py", &arguments, &[])
    };
    let tapped = ask(&taps.at);
    let direct = ask(&service(&place, Caller::Client));
    equal(&apart(&tapped).0, &apart(&direct).0);
    as_asked(&tapped);
    let calls = taps.calls();
    let count = |wanted| {
        calls
            .iter()
            .filter(|call| call.outer.outcome == wanted)
            .count()
    };
    outcome(
        count(Outcome::Complete),
        count(Outcome::Refused),
        count(Outcome::ErrorInStream),
    );
    tapped
}

#[test]
fn the_openai_client_gets_through_the_translation_what_it_gets_of_its_own_protocol() {
    let Some(_turn) = installed("clients") else {
        return;
    };
    let tapped = compared("clients", "openai", |complete, refused, in_stream| {
        // Each twice, but for the tool's turn, the stream without usage, and the exception, which only a stream has.
        assert_eq!(
            (complete, refused, in_stream),
            (8 * 2 + 1 + 1 + 1, 7 * 2, 1)
        );
    });
    let (lines, bodies) = apart(&tapped);
    originals(&lines, &bodies);
    assert_eq!(of(&lines, "not ready")["kind"], "RateLimitError");
    assert_eq!(of(&lines, "silent stream")["got"]["usage"], Value::Null);
}

#[test]
fn litellm_gets_through_the_translation_what_it_gets_of_its_own_protocol() {
    let Some(_turn) = installed("litellm") else {
        return;
    };
    let tapped = compared("litellm", "litellm", |complete, refused, in_stream| {
        assert_eq!(
            (complete, refused, in_stream),
            (8 * 2 + 1 + 1 + 1, 7 * 2, 1)
        );
    });
    let throttled = of(&tapped, "throttled")["body"].to_string();
    assert!(throttled.contains("Too many tokens"), "{throttled}");
}

#[test]
fn litellms_own_client_of_bedrock_gets_the_same_through_a_tap_that_signs() {
    let Some(_turn) = installed("litellm") else {
        return;
    };
    let place = Place::new();
    let taps = place.taps(&service(&place, Caller::Tap), SIGN);
    let ask = |all: &[SocketAddr]| {
        let [service, cold] = <[String; 2]>::try_from(urls(all)).unwrap();
        let arguments = ["bedrock".to_owned(), service, MODEL.to_owned(), cold];
        told(
            "litellm",
            "chat.py",
            &arguments,
            &Caller::Client.environment(),
        )
    };
    let (tapped, direct) = (ask(&taps.at), ask(&service(&place, Caller::Client)));
    equal(&tapped, &direct);
    for (what, kind) in [
        ("chat", Value::Null),
        ("throttled", "RateLimitError".into()),
    ] {
        assert_eq!(of(&tapped, what)["kind"], kind);
    }
}

#[test]
fn a_litellm_proxy_before_the_translation_answers_as_it_does_before_an_openai_service() {
    let Some(_turn) = installed("litellm").filter(|_| there("clients")) else {
        return;
    };
    let place = Place::new();
    let taps = translating(&place);
    let (proxy, dir) = (free(), place.dir.path());
    let upstreams = [taps.at[0], service(&place, Caller::Client)[0]];
    let _running = start(
        "litellm",
        dir,
        proxy,
        &upstreams,
        &[("LITELLM_MASTER_KEY", KEY)],
    );
    ready("litellm", dir, proxy, "/health/liveliness");
    let ask = |model: &str| {
        let arguments = ["openai", &format!("http://{proxy}"), KEY, model].map(str::to_owned);
        told("clients", "chat.py", &arguments, &[])
    };
    let (tapped, direct) = (ask("m"), ask("m-untapped"));
    equal(&apart(&tapped).0, &apart(&direct).0);
    as_asked(&tapped);
    assert!(
        of(&tapped, "throttled")["body"]["message"]
            .as_str()
            .unwrap()
            .contains("Too many tokens")
    );
    let calls = taps.calls();
    let refused = calls
        .iter()
        .filter(|call| call.outer.outcome == Outcome::Refused);
    assert_eq!(refused.count(), 6 * 2, "no call is tried again");
}
