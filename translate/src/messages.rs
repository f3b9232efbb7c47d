//! The messages: Converse has users' and assistants' turns that alternate, a system prompt apart, and the results of
//! tools inside a user's turn.

use crate::refusal::Refusal;
use serde_json::{Value, json};

/// What was said.
pub(crate) struct Said {
    /// Content blocks of the system prompt.
    pub(crate) system: Vec<Value>,
    /// The turns, an array.
    pub(crate) turns: Value,
    /// A tool was called, or its result told.
    pub(crate) uses_tools: bool,
}

/// Translates `messages`; a system prompt of `cache_from` characters or more ends in a cache point.
pub(crate) fn messages(all: &Value, cache_from: Option<usize>) -> Result<Said, Refusal> {
    let Some(all) = all.as_array().filter(|all| !all.is_empty()) else {
        return Err(Refusal::of("messages", "write at least one message"));
    };
    let mut system = Vec::new();
    let mut turns: Vec<(&'static str, Vec<Value>)> = Vec::new();
    let mut uses_tools = false;
    for (at, message) in all.iter().enumerate() {
        let at = format!("messages[{at}]");
        let role = message.get("role").and_then(Value::as_str);
        let (role, blocks) = match role {
            Some("system" | "developer") => {
                system.extend(content(&at, message)?);
                continue;
            }
            Some("user") => ("user", content(&at, message)?),
            Some("assistant") => {
                let mut blocks = content(&at, message)?;
                let calls = tool_calls(&at, message)?;
                uses_tools |= !calls.is_empty();
                blocks.extend(calls);
                ("assistant", blocks)
            }
            Some("tool") => {
                uses_tools = true;
                ("user", vec![tool_result(&at, message)?])
            }
            _ => {
                let message = "write one of system, developer, user, assistant, tool";
                return Err(Refusal::of(format!("{at}.role"), message));
            }
        };
        if blocks.is_empty() {
            let message =
                "nothing is said in it, and Converse takes no empty text; leave the message out";
            return Err(Refusal::of(format!("{at}.content"), message));
        }
        match turns.last_mut() {
            Some((before, all)) if *before == role => all.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    if turns.is_empty() {
        return Err(Refusal::of(
            "messages",
            "write at least one message of a user",
        ));
    }
    let long = cache_from.is_some_and(|from| characters(&system) >= from);
    if long && !system.iter().any(|block| block.get("cachePoint").is_some()) {
        system.push(cache_point());
    }
    let turns = turns
        .into_iter()
        .map(|(role, content)| json!({"role": role, "content": content}));
    Ok(Said {
        system,
        turns: turns.collect(),
        uses_tools,
    })
}

fn cache_point() -> Value {
    json!({"cachePoint": {"type": "default"}})
}

fn characters(blocks: &[Value]) -> usize {
    let texts = blocks.iter().filter_map(|block| block["text"].as_str());
    texts.map(|text| text.chars().count()).sum()
}

/// A message's content, empty texts left out.
fn content(at: &str, message: &Value) -> Result<Vec<Value>, Refusal> {
    let mut blocks = Vec::new();
    match message.get("content") {
        None | Some(Value::Null) => {}
        Some(Value::String(said)) => blocks.extend(text(said)),
        Some(Value::Array(parts)) => {
            for (number, part) in parts.iter().enumerate() {
                blocks.extend(one(&format!("{at}.content[{number}]"), part)?);
            }
        }
        Some(_) => {
            let message = "write a string or an array of parts";
            return Err(Refusal::of(format!("{at}.content"), message));
        }
    }
    if let Some(refusal) = message.get("refusal").and_then(Value::as_str) {
        blocks.extend(text(refusal));
    }
    Ok(blocks)
}

fn text(said: &str) -> Option<Value> {
    (!said.is_empty()).then(|| json!({"text": said}))
}

/// One part: a block, and the cache point that it asks for.
fn one(at: &str, part: &Value) -> Result<Vec<Value>, Refusal> {
    let mut blocks = Vec::new();
    match part.get("type").and_then(Value::as_str) {
        Some("text") => blocks.extend(part["text"].as_str().and_then(text)),
        Some("refusal") => blocks.extend(part["refusal"].as_str().and_then(text)),
        Some("image_url") => blocks.push(image(at, part)?),
        Some(other) => {
            return Err(Refusal::of(
                format!("{at}.type"),
                format!("`{other}` is not translated; parts of type text and image_url are"),
            ));
        }
        None => return Err(Refusal::of(format!("{at}.type"), "write text or image_url")),
    }
    if !blocks.is_empty() && part.get("cache_control").is_some_and(|c| !c.is_null()) {
        blocks.push(cache_point());
    }
    Ok(blocks)
}

/// An image that came with the request. One that is only linked to is not fetched: the time would be the tap's.
fn image(at: &str, part: &Value) -> Result<Value, Refusal> {
    let url = part["image_url"]["url"].as_str().unwrap_or_default();
    let data = url
        .strip_prefix("data:image/")
        .and_then(|rest| rest.split_once(";base64,"));
    let Some((format, bytes)) = data else {
        let message = "only images in a data: URL (data:image/png;base64,…) are translated";
        return Err(Refusal::of(format!("{at}.image_url.url"), message));
    };
    let format = match format {
        "jpg" => "jpeg",
        "png" | "jpeg" | "gif" | "webp" => format,
        other => {
            return Err(Refusal::of(
                format!("{at}.image_url.url"),
                format!("Converse takes png, jpeg, gif and webp, not {other}"),
            ));
        }
    };
    Ok(json!({"image": {"format": format, "source": {"bytes": bytes}}}))
}

fn tool_calls(at: &str, message: &Value) -> Result<Vec<Value>, Refusal> {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    let calls = calls.into_iter().flatten().enumerate();
    calls
        .map(|(number, call)| {
            let at = format!("{at}.tool_calls[{number}]");
            let function = &call["function"];
            let (Some(id), Some(name)) = (call["id"].as_str(), function["name"].as_str()) else {
                return Err(Refusal::of(at, "write its `id` and `function.name`"));
            };
            let arguments = match function["arguments"].as_str() {
                None | Some("") => json!({}),
                Some(text) => serde_json::from_str(text).map_err(|e| {
                    Refusal::of(format!("{at}.function.arguments"), format!("no JSON ({e})"))
                })?,
            };
            Ok(json!({"toolUse": {"toolUseId": id, "name": name, "input": arguments}}))
        })
        .collect()
}

fn tool_result(at: &str, message: &Value) -> Result<Value, Refusal> {
    let Some(id) = message.get("tool_call_id").and_then(Value::as_str) else {
        return Err(Refusal::of(
            format!("{at}.tool_call_id"),
            "name the call that it answers",
        ));
    };
    let mut said = content(at, message)?;
    if said.is_empty() {
        // A tool may have nothing to say, and its result must be told all the same.
        said.push(json!({"json": {}}));
    }
    Ok(json!({"toolResult": {"toolUseId": id, "content": said}}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(all: &Value) -> Said {
        messages(all, None).unwrap()
    }

    fn told(all: &Value) -> String {
        messages(all, None).err().unwrap().to_string()
    }

    #[test]
    fn turns_of_one_role_are_one_and_the_system_prompt_is_apart() {
        let said = of(&json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "a"},
            {"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "text", "text": ""}]},
            {"role": "assistant", "content": "c"},
            {"role": "developer", "content": "Be kind."},
            {"role": "user", "content": "d"},
        ]));
        assert_eq!(
            said.system,
            [json!({"text": "Be brief."}), json!({"text": "Be kind."})]
        );
        assert_eq!(
            said.turns,
            json!([
                {"role": "user", "content": [{"text": "a"}, {"text": "b"}]},
                {"role": "assistant", "content": [{"text": "c"}]},
                {"role": "user", "content": [{"text": "d"}]},
            ])
        );
        assert!(!said.uses_tools);
    }

    #[test]
    fn results_of_several_tools_are_one_turn_of_the_user() {
        let said = of(&json!([
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{\"x\": 1}"}},
                {"id": "2", "type": "function", "function": {"name": "g", "arguments": ""}},
            ]},
            {"role": "tool", "tool_call_id": "1", "content": "one"},
            {"role": "tool", "tool_call_id": "2", "content": ""},
            {"role": "user", "content": "and?"},
        ]));
        assert!(said.uses_tools);
        assert_eq!(
            said.turns[1]["content"],
            json!([
                {"toolUse": {"toolUseId": "1", "name": "f", "input": {"x": 1}}},
                {"toolUse": {"toolUseId": "2", "name": "g", "input": {}}},
            ])
        );
        assert_eq!(
            said.turns[2]["content"],
            json!([
                {"toolResult": {"toolUseId": "1", "content": [{"text": "one"}]}},
                {"toolResult": {"toolUseId": "2", "content": [{"json": {}}]}},
                {"text": "and?"},
            ])
        );
    }

    #[test]
    fn cache_points_stand_where_they_are_asked_for_and_behind_long_system_prompts() {
        let all = json!([
            {"role": "system", "content": "12345"},
            {"role": "user", "content": [
                {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": "b", "cache_control": null},
            ]},
        ]);
        assert_eq!(of(&all).system.len(), 1);
        let said = messages(&all, Some(5)).unwrap();
        assert_eq!(said.system[1], cache_point());
        assert_eq!(messages(&all, Some(6)).unwrap().system.len(), 1);
        assert_eq!(
            said.turns[0]["content"],
            json!([{"text": "a"}, cache_point(), {"text": "b"}])
        );
    }

    #[test]
    fn images_come_with_the_request_or_not_at_all() {
        let with = |url: &str| json!([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}]);
        let said = of(&with("data:image/png;base64,AAAA"));
        assert_eq!(
            said.turns[0]["content"],
            json!([{"image": {"format": "png", "source": {"bytes": "AAAA"}}}])
        );
        assert!(told(&with("https://example.com/a.png")).contains("data:"));
        assert!(told(&with("data:image/tiff;base64,AAAA")).contains("tiff"));
    }

    #[test]
    fn what_cannot_be_said_is_named() {
        for (all, word) in [
            (json!([]), "at least one"),
            (json!([{"role": "system", "content": "x"}]), "of a user"),
            (
                json!([{"role": "function", "content": "x"}]),
                "messages[0].role",
            ),
            (
                json!([{"role": "user", "content": ""}]),
                "messages[0].content",
            ),
            (
                json!([{"role": "user", "content": 3}]),
                "a string or an array",
            ),
            (
                json!([{"role": "user", "content": [{"type": "input_audio"}]}]),
                "input_audio",
            ),
            (json!([{"role": "tool", "content": "x"}]), "tool_call_id"),
            (
                json!([{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{"}}]}]),
                "function.arguments",
            ),
            (
                json!([{"role": "assistant", "tool_calls": [{"id": "1"}]}]),
                "function.name",
            ),
        ] {
            let told = told(&all);
            assert!(told.contains(word), "{told}");
        }
    }
}
