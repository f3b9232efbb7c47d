//! Parts of requests.

use aws_sdk_bedrockruntime::types as sdk;
use aws_smithy_types::Document;
use serde_json::{Value, json};

pub(super) fn text(role: sdk::ConversationRole, said: &str) -> sdk::Message {
    let content = sdk::ContentBlock::Text(said.to_owned());
    sdk::Message::builder()
        .role(role)
        .content(content)
        .build()
        .unwrap()
}

pub(super) fn turns() -> Vec<sdk::Message> {
    let (user, assistant) = (
        sdk::ConversationRole::User,
        sdk::ConversationRole::Assistant,
    );
    vec![
        text(user.clone(), "hello there"),
        text(assistant, "hello"),
        text(user, "how are you"),
    ]
}

pub(super) fn limit(tokens: i32) -> sdk::InferenceConfiguration {
    sdk::InferenceConfiguration::builder()
        .max_tokens(tokens)
        .build()
}

fn object(members: Vec<(&str, Document)>) -> Document {
    Document::Object(
        members
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
    )
}

fn word(text: &str) -> Document {
    Document::String(text.to_owned())
}

/// A tool that must be called, or may be.
pub(super) fn tools(must: bool) -> sdk::ToolConfiguration {
    let schema = object(vec![
        ("type", word("object")),
        ("required", Document::Array(vec![word("x")])),
        (
            "properties",
            object(vec![("x", object(vec![("type", word("integer"))]))]),
        ),
    ]);
    let spec = sdk::ToolSpecification::builder()
        .name("double")
        .input_schema(sdk::ToolInputSchema::Json(schema))
        .build()
        .unwrap();
    let choice = sdk::SpecificToolChoice::builder()
        .name("double")
        .build()
        .unwrap();
    sdk::ToolConfiguration::builder()
        .tools(sdk::Tool::ToolSpec(spec))
        .set_tool_choice(must.then_some(sdk::ToolChoice::Tool(choice)))
        .build()
        .unwrap()
}

/// Has the stand-in spoil an answer.
pub(super) fn spoiled(fault: &str) -> Document {
    object(vec![("sim", object(vec![("fault", word(fault))]))])
}

pub(super) fn claude(tokens: i32, said: &str, more: &Value) -> String {
    let mut body = json!({
        "anthropic_version": "bedrock-2023-05-31", "max_tokens": tokens, "system": "be brief",
        "messages": [{"role": "user", "content": said}]
    });
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    body.to_string()
}

pub(super) fn llama(tokens: i32) -> String {
    json!({"prompt": "hello there", "max_gen_len": tokens}).to_string()
}
