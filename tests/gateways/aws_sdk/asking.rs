//! Every call that the SDK's client makes.

use super::parts::{claude, limit, llama, spoiled, text, tools, turns};
use super::told::{Told, meant};
use crate::aws_rig::Caller;
use aws_credential_types::Credentials;
use aws_sdk_bedrockruntime::config::retry::RetryConfig;
use aws_sdk_bedrockruntime::config::{BehaviorVersion, Region};
use aws_sdk_bedrockruntime::operation::converse::builders::ConverseFluentBuilder;
use aws_sdk_bedrockruntime::operation::converse_stream::builders::ConverseStreamFluentBuilder;
use aws_sdk_bedrockruntime::primitives::Blob;
use aws_sdk_bedrockruntime::types as sdk;
use aws_sdk_bedrockruntime::{Client, Config};
use aws_smithy_http_client::tls::{Provider, rustls_provider::CryptoMode};
use serde_json::json;
use std::collections::HashMap;

const MODEL: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
const IMPORTED: &str = "arn:aws:bedrock:us-east-1:123456789012:imported-model/abcdef123456";
/// More than the stand-in's quota of tokens a minute: it reserves them.
const BEYOND_THE_QUOTA: i32 = 500_000;

fn client(url: &str) -> Client {
    let environment: HashMap<_, _> = Caller::Client.environment().into_iter().collect();
    let keys = Credentials::new(
        environment["AWS_ACCESS_KEY_ID"],
        environment["AWS_SECRET_ACCESS_KEY"],
        Some(environment["AWS_SESSION_TOKEN"].to_owned()),
        None,
        "test",
    );
    let http =
        aws_smithy_http_client::Builder::new().tls_provider(Provider::Rustls(CryptoMode::Ring));
    let config = Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
        .credentials_provider(keys)
        .endpoint_url(url)
        .retry_config(RetryConfig::disabled())
        .http_client(http.build_https())
        .build();
    Client::from_conf(config)
}

async fn converse(
    told: &mut Told,
    what: &str,
    asked: ConverseFluentBuilder,
) -> Option<sdk::Message> {
    match asked.send().await {
        Ok(answer) => {
            // Without the request's id, which every answer has anew.
            let parts = (
                answer.output(),
                answer.stop_reason(),
                answer.usage(),
                answer.metrics(),
                answer.trace(),
            );
            told.add(what, &format!("{parts:?}"));
            answer.output()?.as_message().ok().cloned()
        }
        Err(error) => {
            told.failed(what, &error);
            None
        }
    }
}

async fn stream(told: &mut Told, what: &str, asked: ConverseStreamFluentBuilder) {
    let mut events = match asked.send().await {
        Ok(answer) => answer.stream,
        Err(error) => return told.failed(what, &error),
    };
    loop {
        match events.recv().await {
            Ok(Some(event)) => told.add(what, &format!("{event:?}")),
            Ok(None) => return told.add(what, "end"),
            Err(error) => return told.add(what, &meant(&error)),
        }
    }
}

/// Whose answer may be looked at by a guardrail.
#[derive(Clone, Copy)]
struct Guarded(bool);

async fn invoke(
    told: &mut Told,
    what: &str,
    client: &Client,
    (model, body): (&str, String),
    guarded: Guarded,
) {
    let named = |value: &str| guarded.0.then(|| value.to_owned());
    let asked = client
        .invoke_model()
        .model_id(model)
        .body(Blob::new(body))
        .set_guardrail_identifier(named("g1"))
        .set_guardrail_version(named("1"))
        .set_trace(guarded.0.then_some(sdk::Trace::Enabled));
    match asked.send().await {
        Ok(answer) => {
            let body = String::from_utf8_lossy(answer.body().as_ref());
            told.add(what, &format!("{} {body}", answer.content_type()));
        }
        Err(error) => told.failed(what, &error),
    }
}

async fn invoke_stream(
    told: &mut Told,
    what: &str,
    client: &Client,
    (model, body): (&str, String),
    guarded: Guarded,
) {
    let named = |value: &str| guarded.0.then(|| value.to_owned());
    let asked = client
        .invoke_model_with_response_stream()
        .model_id(model)
        .body(Blob::new(body))
        .set_guardrail_identifier(named("g1"))
        .set_guardrail_version(named("1"))
        .set_trace(guarded.0.then_some(sdk::Trace::Enabled));
    let mut events = match asked.send().await {
        Ok(answer) => answer.body,
        Err(error) => return told.failed(what, &error),
    };
    loop {
        match events.recv().await {
            Ok(Some(sdk::ResponseStream::Chunk(part))) => {
                let bytes = part.bytes().map(|blob| blob.as_ref().to_vec());
                told.add(what, &String::from_utf8_lossy(&bytes.unwrap_or_default()));
            }
            Ok(Some(other)) => told.add(what, &format!("{other:?}")),
            Ok(None) => return told.add(what, "end"),
            Err(error) => return told.add(what, &meant(&error)),
        }
    }
}

/// The model calls the tool, is told its result, and answers.
async fn tool_turns(told: &mut Told, client: &Client) {
    let asked = || {
        client
            .converse()
            .model_id(MODEL)
            .set_messages(Some(turns()))
            .inference_config(limit(16))
    };
    let called = converse(told, "tool", asked().tool_config(tools(true)))
        .await
        .unwrap();
    let call = called.content()[0].as_tool_use().unwrap();
    let result = sdk::ToolResultBlock::builder()
        .tool_use_id(call.tool_use_id())
        .content(sdk::ToolResultContentBlock::Text("2".to_owned()))
        .build()
        .unwrap();
    let result = sdk::Message::builder()
        .role(sdk::ConversationRole::User)
        .content(sdk::ContentBlock::ToolResult(result))
        .build()
        .unwrap();
    let turn = asked().messages(called.clone()).messages(result.clone());
    converse(told, "tool result", turn.tool_config(tools(false))).await;
    let asked = || {
        client
            .converse_stream()
            .model_id(MODEL)
            .set_messages(Some(turns()))
            .inference_config(limit(16))
    };
    stream(told, "tool stream", asked().tool_config(tools(true))).await;
    let turn = asked().messages(called).messages(result);
    stream(told, "tool result stream", turn.tool_config(tools(false))).await;
}

async fn guarded(told: &mut Told, client: &Client) {
    let forbidden = || text(sdk::ConversationRole::User, "a forbidden word");
    let guardrail = sdk::GuardrailConfiguration::builder()
        .guardrail_identifier("g1")
        .guardrail_version("1")
        .trace(sdk::GuardrailTrace::Enabled);
    let asked = client.converse().model_id(MODEL).messages(forbidden());
    converse(told, "guardrail", asked.guardrail_config(guardrail.build())).await;
    let guardrail = sdk::GuardrailStreamConfiguration::builder()
        .guardrail_identifier("g1")
        .guardrail_version("1")
        .trace(sdk::GuardrailTrace::Enabled)
        .stream_processing_mode(sdk::GuardrailStreamProcessingMode::Sync);
    let asked = client
        .converse_stream()
        .model_id(MODEL)
        .messages(forbidden());
    stream(
        told,
        "guardrail stream",
        asked.guardrail_config(guardrail.build()),
    )
    .await;
    let body = || (MODEL, claude(16, "a forbidden word", &json!({})));
    invoke(told, "invoke guardrail", client, body(), Guarded(true)).await;
    invoke_stream(
        told,
        "invoke guardrail stream",
        client,
        body(),
        Guarded(true),
    )
    .await;
}

/// The same refusal by all four operations.
async fn refused(told: &mut Told, what: &str, client: &Client, tokens: i32) {
    let asked = client
        .converse()
        .model_id(MODEL)
        .set_messages(Some(turns()));
    converse(
        told,
        &format!("{what} converse"),
        asked.inference_config(limit(tokens)),
    )
    .await;
    let asked = client
        .converse_stream()
        .model_id(MODEL)
        .set_messages(Some(turns()));
    stream(
        told,
        &format!("{what} stream"),
        asked.inference_config(limit(tokens)),
    )
    .await;
    let body = (MODEL, claude(tokens, "hello", &json!({})));
    invoke(
        told,
        &format!("{what} invoke"),
        client,
        body,
        Guarded(false),
    )
    .await;
    let body = (IMPORTED, llama(tokens));
    invoke_stream(
        told,
        &format!("{what} invoke stream"),
        client,
        body,
        Guarded(false),
    )
    .await;
}

/// Everything that is asked of a service and of one whose imported model sleeps.
pub(super) async fn all(service: &str, cold: &str) -> Told {
    let (client, cold, mut told) = (client(service), client(cold), Told::default());
    let told = &mut told;
    for (what, model) in [("", MODEL), (" of an imported model", IMPORTED)] {
        let system = || sdk::SystemContentBlock::Text("be brief".to_owned());
        let asked = client
            .converse()
            .model_id(model)
            .system(system())
            .set_messages(Some(turns()));
        converse(
            told,
            &format!("converse{what}"),
            asked.inference_config(limit(16)),
        )
        .await;
        let asked = client
            .converse_stream()
            .model_id(model)
            .system(system())
            .set_messages(Some(turns()));
        stream(
            told,
            &format!("stream{what}"),
            asked.inference_config(limit(16)),
        )
        .await;
    }
    tool_turns(told, &client).await;
    for (what, model, body) in [
        ("claude", MODEL, claude(16, "hello", &json!({}))),
        ("llama", IMPORTED, llama(16)),
    ] {
        invoke(
            told,
            &format!("invoke {what}"),
            &client,
            (model, body.clone()),
            Guarded(false),
        )
        .await;
        invoke_stream(
            told,
            &format!("invoke stream {what}"),
            &client,
            (model, body),
            Guarded(false),
        )
        .await;
    }
    guarded(told, &client).await;
    refused(told, "throttled", &client, BEYOND_THE_QUOTA).await;
    refused(told, "not ready", &cold, 16).await;
    for (what, fault) in [
        ("exception", "error-event=3"),
        ("damaged", "malformed-chunk=2"),
        ("without metadata", "no-done"),
    ] {
        let asked = client
            .converse_stream()
            .model_id(MODEL)
            .set_messages(Some(turns()))
            .inference_config(limit(8));
        stream(
            told,
            what,
            asked.additional_model_request_fields(spoiled(fault)),
        )
        .await;
    }
    let body = claude(16, "hello", &json!({"sim": {"fault": "error-event=3"}}));
    invoke_stream(
        told,
        "invoke exception",
        &client,
        (MODEL, body),
        Guarded(false),
    )
    .await;
    std::mem::take(told)
}
