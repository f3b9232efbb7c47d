//! A whole answer of Converse into a chat completion.

use crate::Naming;
use crate::finish;
use crate::usage::{Ours, Theirs};
use serde::Deserialize as _;
use serde_json::{Value, json};

/// The completion; `None` of a body that is no answer of Converse.
#[must_use]
pub fn answer(body: &[u8], naming: &Naming) -> Option<Vec<u8>> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let blocks = body["output"]["message"]["content"].as_array()?;
    let stop = body["stopReason"].as_str()?;
    let texts = |pick: fn(&Value) -> Option<&str>| -> Option<String> {
        let mut found = blocks.iter().filter_map(pick).peekable();
        found.peek()?;
        Some(found.collect())
    };
    let calls: Vec<Value> = blocks
        .iter()
        .filter_map(|block| block.get("toolUse"))
        .map(|tool| {
            json!({
                "id": tool["toolUseId"], "type": "function",
                "function": {"name": tool["name"], "arguments": tool["input"].to_string()},
            })
        })
        .collect();
    let mut message = json!({
        "role": "assistant",
        "content": texts(|block| block["text"].as_str()),
    });
    if let Some(reasoning) =
        texts(|block| block["reasoningContent"]["reasoningText"]["text"].as_str())
    {
        message["reasoning_content"] = json!(reasoning);
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let mut completion = json!({
        "id": naming.id, "object": "chat.completion", "created": naming.created, "model": naming.model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish::reason(stop), "stop_reason": stop}],
    });
    if let Ok(usage) = Theirs::deserialize(&body["usage"]) {
        completion["usage"] = json!(Ours::from(usage));
    }
    Some(completion.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &Value) -> Value {
        let naming = Naming {
            id: "chatcmpl-1".to_owned(),
            model: "m".to_owned(),
            created: 7,
        };
        let made = answer(body.to_string().as_bytes(), &naming).unwrap();
        serde_json::from_slice(&made).unwrap()
    }

    #[test]
    fn blocks_become_one_message() {
        let found = of(&json!({
            "output": {"message": {"role": "assistant", "content": [
                {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}},
                {"text": "a"}, {"text": "b"},
                {"toolUse": {"toolUseId": "t", "name": "f", "input": {"x": 1}}},
            ]}},
            "stopReason": "tool_use", "usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3},
            "metrics": {"latencyMs": 5},
        }));
        assert_eq!(
            found["choices"],
            json!([{"index": 0, "finish_reason": "tool_calls", "stop_reason": "tool_use", "message": {
                "role": "assistant", "content": "ab", "reasoning_content": "hm",
                "tool_calls": [{"id": "t", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}}],
            }}])
        );
        assert_eq!(found["usage"]["total_tokens"], 3);
        assert_eq!(
            (&found["id"], &found["object"]),
            (&json!("chatcmpl-1"), &json!("chat.completion"))
        );
    }

    #[test]
    fn what_was_not_said_is_null_and_what_was_not_counted_is_absent() {
        let found = of(&json!({"output": {"message": {"content": []}}, "stopReason": "end_turn"}));
        assert_eq!(found["choices"][0]["message"]["content"], Value::Null);
        assert_eq!(found.get("usage"), None);
        assert_eq!(found["choices"][0]["finish_reason"], "stop");
    }

    #[test]
    fn what_is_no_answer_is_none() {
        for body in [
            &b""[..],
            b"[]",
            b"{}",
            b"{\"output\":{\"message\":{\"content\":[]}}}",
        ] {
            assert_eq!(answer(body, &Naming::default()), None);
        }
    }
}
