//! The request: its model becomes a path, its parameters Converse's.

use crate::messages::messages;
use crate::refusal::Refusal;
use crate::tools;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};

/// What the path keeps as it is: RFC 3986's unreserved characters, as AWS' own SDKs have it.
const LABEL: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// Members of a chat request without an effect on its answer's content.
const HARMLESS: [&str; 8] = [
    "user",
    "store",
    "safety_identifier",
    "prompt_cache_key",
    "prompt_cache_retention",
    "stream_options",
    "parallel_tool_calls",
    "verbosity",
];

/// Members that are Converse's own and pass as they are, as an OpenAI client sends them by `extra_body`.
const OWN: [&str; 9] = [
    "additionalModelRequestFields",
    "additionalModelResponseFieldPaths",
    "guardrailConfig",
    "outputConfig",
    "performanceConfig",
    "promptVariables",
    "requestMetadata",
    "serviceTier",
    "projectIdentifier",
];

/// What becomes of a parameter that Converse does not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Unsupported {
    /// The request is refused, and the parameter named.
    #[default]
    Refuse,
    /// It is left out; [`Request::dropped`] names it.
    Drop,
}

/// How requests are translated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The model's id, inference profile or ARN in place of the one that the client names.
    pub model: Option<String>,
    /// A system prompt of at least so many characters ends in a cache point; `None`: only where the client sets one
    /// (`cache_control` on a part, as for Anthropic).
    pub cache_system_from: Option<usize>,
    /// What becomes of a parameter that Converse does not have.
    pub unsupported: Unsupported,
}

/// A request to Bedrock.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// `/model/{id}/converse` or `/converse-stream`, the id percent-encoded.
    pub path: String,
    /// JSON.
    pub body: Vec<u8>,
    /// The answer is to be streamed.
    pub stream: bool,
    /// The last chunk is to have the usage.
    pub include_usage: bool,
    /// The model as the client named it.
    pub model: String,
    /// Parameters that were left out, by name.
    pub dropped: Vec<String>,
}

/// Translates the body of a chat completion's request.
///
/// # Errors
/// The body is no such request, or asks for what Converse does not have.
pub fn request(body: &[u8], options: &Options) -> Result<Request, Refusal> {
    let body: Value = serde_json::from_slice(body)
        .map_err(|e| Refusal::whole(format!("the body is not JSON ({e})")))?;
    let Value::Object(mut body) = body else {
        return Err(Refusal::whole(
            "the body is no JSON object; send a chat completion's request",
        ));
    };
    body.retain(|_, value| !value.is_null());
    let model = match body.remove("model") {
        Some(Value::String(model)) if !model.is_empty() => model,
        _ => {
            return Err(Refusal::of(
                "model",
                "name a model id, an inference profile or an ARN",
            ));
        }
    };
    let stream = flag(&mut body, "stream")?;
    let include_usage = body
        .get("stream_options")
        .and_then(|o| o.get("include_usage"))
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let said = body.remove("messages").unwrap_or_default();
    let said = messages(&said, options.cache_system_from)?;
    let mut out = Map::new();
    out.insert("messages".to_owned(), said.turns);
    if !said.system.is_empty() {
        out.insert("system".to_owned(), Value::Array(said.system));
    }
    let inference = inference(&mut body)?;
    if !inference.is_empty() {
        out.insert("inferenceConfig".to_owned(), Value::Object(inference));
    }
    let offered = body.remove("tools");
    let choice = body.remove("tool_choice");
    if let Some(config) = tools::config(offered, choice, said.uses_tools)? {
        out.insert("toolConfig".to_owned(), config);
    }
    if let Some(metadata) = body.remove("metadata") {
        out.insert("requestMetadata".to_owned(), metadata);
    }
    for name in OWN {
        if let Some(value) = body.remove(name) {
            out.insert(name.to_owned(), value);
        }
    }
    let dropped = left_over(body, options.unsupported)?;
    let id = options.model.as_deref().unwrap_or(&model);
    let operation = if stream {
        "converse-stream"
    } else {
        "converse"
    };
    Ok(Request {
        path: format!("/model/{}/{operation}", utf8_percent_encode(id, LABEL)),
        body: Value::Object(out).to_string().into_bytes(),
        stream,
        include_usage,
        model,
        dropped,
    })
}

fn flag(body: &mut Map<String, Value>, name: &str) -> Result<bool, Refusal> {
    match body.remove(name) {
        None => Ok(false),
        Some(Value::Bool(value)) => Ok(value),
        Some(_) => Err(Refusal::of(name, "write true or false")),
    }
}

fn inference(body: &mut Map<String, Value>) -> Result<Map<String, Value>, Refusal> {
    let mut config = Map::new();
    let (newer, older) = (
        body.remove("max_completion_tokens"),
        body.remove("max_tokens"),
    );
    let limits = [
        ("max_completion_tokens", newer.or(older), "maxTokens"),
        ("temperature", body.remove("temperature"), "temperature"),
        ("top_p", body.remove("top_p"), "topP"),
    ];
    for (name, value, theirs) in limits {
        match value {
            Some(Value::Number(number)) => {
                config.insert(theirs.to_owned(), Value::Number(number));
            }
            Some(_) => return Err(Refusal::of(name, "write a number")),
            None => {}
        }
    }
    match body.remove("stop") {
        Some(Value::String(one)) => {
            config.insert("stopSequences".to_owned(), json!([one]));
        }
        Some(Value::Array(several)) if several.is_empty() => {}
        Some(Value::Array(several)) if several.iter().all(Value::is_string) => {
            config.insert("stopSequences".to_owned(), Value::Array(several));
        }
        Some(_) => return Err(Refusal::of("stop", "write a string or an array of strings")),
        None => {}
    }
    Ok(config)
}

/// What nobody has taken: parameters at their default are nothing that was asked for.
fn left_over(body: Map<String, Value>, unsupported: Unsupported) -> Result<Vec<String>, Refusal> {
    let mut dropped = Vec::new();
    for (name, value) in body {
        let default = match name.as_str() {
            name if HARMLESS.contains(&name) => {
                name != "parallel_tool_calls" || value == json!(true)
            }
            "n" => value == json!(1),
            "frequency_penalty" | "presence_penalty" => value.as_f64() == Some(0.0),
            "logprobs" | "ignore_eos" => value == json!(false),
            "logit_bias" => value.as_object().is_some_and(Map::is_empty),
            "response_format" => value.get("type") == Some(&json!("text")),
            "modalities" => value == json!(["text"]),
            "service_tier" => value == json!("auto") || value == json!("default"),
            _ => false,
        };
        match (default, unsupported) {
            (true, _) => {}
            (false, Unsupported::Drop) => dropped.push(name),
            (false, Unsupported::Refuse) => {
                let message = "Converse has no such parameter; leave it out, or let the tap drop what it cannot translate (`unsupported: drop`)";
                return Err(Refusal::of(name, message));
            }
        }
    }
    Ok(dropped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(extra: &Value) -> Vec<u8> {
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]});
        if let (Some(body), Some(extra)) = (body.as_object_mut(), extra.as_object()) {
            body.extend(extra.clone());
        }
        body.to_string().into_bytes()
    }

    fn sent(extra: &Value) -> Value {
        let found = request(&chat(extra), &Options::default()).unwrap();
        serde_json::from_slice(&found.body).unwrap()
    }

    #[test]
    fn the_model_becomes_the_path_and_its_reserved_characters_are_encoded() {
        for (model, path) in [
            (
                "amazon.nova-pro-v1:0",
                "/model/amazon.nova-pro-v1%3A0/converse",
            ),
            (
                "arn:aws:bedrock:us-east-1:1:imported-model/abc",
                "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aimported-model%2Fabc/converse",
            ),
        ] {
            let body = chat(&json!({"model": model}));
            let found = request(&body, &Options::default()).unwrap();
            assert_eq!((found.path.as_str(), found.model.as_str()), (path, model));
            assert!(!found.stream && !found.include_usage);
        }
        let options = Options {
            model: Some("us.x:1".to_owned()),
            ..Options::default()
        };
        let body = chat(&json!({"stream": true, "stream_options": {"include_usage": true}}));
        let found = request(&body, &options).unwrap();
        assert_eq!(found.path, "/model/us.x%3A1/converse-stream");
        assert_eq!(found.model, "m");
        assert!(found.stream && found.include_usage);
    }

    #[test]
    fn limits_and_sampling_are_the_inference_config() {
        let found = sent(&json!({
            "max_tokens": 5, "max_completion_tokens": 7, "temperature": 0.5, "top_p": null, "stop": "END",
        }));
        assert_eq!(
            found["inferenceConfig"],
            json!({"maxTokens": 7, "temperature": 0.5, "stopSequences": ["END"]})
        );
        assert_eq!(sent(&json!({"stop": []})).get("inferenceConfig"), None);
    }

    #[test]
    fn what_converse_does_not_have_is_refused_by_name_or_named_where_it_is_dropped() {
        for extra in [
            json!({"n": 2}),
            json!({"seed": 1}),
            json!({"logprobs": true}),
            json!({"response_format": {"type": "json_object"}}),
            json!({"frequency_penalty": 0.1}),
            json!({"parallel_tool_calls": false}),
            json!({"ignore_eos": true}),
            json!({"unheard_of": 1}),
        ] {
            let name = extra.as_object().unwrap().keys().next().unwrap().clone();
            let refusal = request(&chat(&extra), &Options::default()).unwrap_err();
            assert_eq!(refusal.param.as_deref(), Some(name.as_str()));
            let options = Options {
                unsupported: Unsupported::Drop,
                ..Options::default()
            };
            assert_eq!(request(&chat(&extra), &options).unwrap().dropped, [name]);
        }
    }

    #[test]
    fn defaults_and_what_changes_nothing_pass() {
        let found = request(
            &chat(&json!({
                "n": 1, "seed": null, "logprobs": false, "presence_penalty": 0, "user": "u", "store": true,
                "response_format": {"type": "text"}, "logit_bias": {}, "parallel_tool_calls": true,
            })),
            &Options::default(),
        );
        assert_eq!(found.unwrap().dropped, Vec::<String>::new());
    }

    #[test]
    fn what_is_converses_own_passes_as_it_is() {
        let own = json!({
            "guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"},
            "additionalModelRequestFields": {"top_k": 5},
        });
        let found = sent(&own);
        assert_eq!(found["guardrailConfig"], own["guardrailConfig"]);
        assert_eq!(found["additionalModelRequestFields"], json!({"top_k": 5}));
        assert_eq!(
            sent(&json!({"metadata": {"a": "b"}}))["requestMetadata"],
            json!({"a": "b"})
        );
    }

    #[test]
    fn what_is_no_request_is_told() {
        for (body, word) in [
            (&b"[]"[..], "object"),
            (b"{", "JSON"),
            (b"{\"messages\": []}", "model"),
            (br#"{"model": "m", "messages": [{"role":"user","content":"a"}], "stream": "yes"}"#, "true or false"),
            (br#"{"model": "m", "messages": [{"role":"user","content":"a"}], "max_tokens": "9"}"#, "number"),
        ] {
            let told = request(body, &Options::default()).unwrap_err().to_string();
            assert!(told.contains(word), "{told}");
        }
    }
}
