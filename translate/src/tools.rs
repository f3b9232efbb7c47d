//! Tools that the model may call, and whether it must.

use crate::refusal::Refusal;
use serde_json::{Value, json};

/// `toolConfig`; `None` of a request without tools. Where the conversation `uses_tools`, Converse wants them offered.
pub(crate) fn config(
    offered: Option<Value>,
    choice: Option<Value>,
    uses_tools: bool,
) -> Result<Option<Value>, Refusal> {
    let offered = match offered {
        None => Vec::new(),
        Some(Value::Array(tools)) => tools,
        Some(_) => return Err(Refusal::of("tools", "write an array")),
    };
    let tools = offered.iter().enumerate().map(|(at, tool)| one(at, tool));
    let tools = tools.collect::<Result<Vec<Value>, Refusal>>()?;
    let choice = match choice {
        None => None,
        Some(Value::String(word)) => match word.as_str() {
            "auto" => Some(json!({"auto": {}})),
            "required" => Some(json!({"any": {}})),
            "none" if uses_tools => {
                let message = "`none` cannot be said to Converse in a conversation that has used tools; use auto";
                return Err(Refusal::of("tool_choice", message));
            }
            "none" => return Ok(None),
            _ => return Err(unknown_choice()),
        },
        Some(Value::Object(one)) => match one.get("function").and_then(|f| f["name"].as_str()) {
            Some(name) => Some(json!({"tool": {"name": name}})),
            None => return Err(unknown_choice()),
        },
        Some(_) => return Err(unknown_choice()),
    };
    if tools.is_empty() {
        return match (choice, uses_tools) {
            (_, true) => Err(Refusal::of(
                "tools",
                "the conversation uses tools that are not offered; Converse wants them here",
            )),
            (Some(choice), false) if choice.get("auto").is_none() => {
                Err(Refusal::of("tool_choice", "no tool is offered in `tools`"))
            }
            _ => Ok(None),
        };
    }
    let mut config = json!({"tools": tools});
    if let Some(choice) = choice {
        config["toolChoice"] = choice;
    }
    Ok(Some(config))
}

fn unknown_choice() -> Refusal {
    let message =
        "write auto, required, none, or {\"type\": \"function\", \"function\": {\"name\": …}}";
    Refusal::of("tool_choice", message)
}

fn one(at: usize, tool: &Value) -> Result<Value, Refusal> {
    let function = &tool["function"];
    let Some(name) = function["name"].as_str() else {
        let message = "only tools of type function are translated; write `function.name`";
        return Err(Refusal::of(format!("tools[{at}]"), message));
    };
    let schema = match &function["parameters"] {
        Value::Null => json!({"type": "object", "properties": {}}),
        schema => schema.clone(),
    };
    let mut spec = json!({"name": name, "inputSchema": {"json": schema}});
    // An empty description is refused by Bedrock, none is not.
    if let Some(text) = function["description"]
        .as_str()
        .filter(|text| !text.is_empty())
    {
        spec["description"] = json!(text);
    }
    if function["strict"] == json!(true) {
        spec["strict"] = json!(true);
    }
    Ok(json!({"toolSpec": spec}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered() -> Value {
        json!([{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}},
               {"type": "function", "function": {"name": "g", "description": ""}}])
    }

    #[test]
    fn tools_keep_their_schema() {
        let found = config(Some(offered()), None, false).unwrap().unwrap();
        assert_eq!(
            found,
            json!({"tools": [
                {"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": {"type": "object"}}}},
                {"toolSpec": {"name": "g", "inputSchema": {"json": {"type": "object", "properties": {}}}}},
            ]})
        );
    }

    #[test]
    fn choices_have_other_names() {
        let chosen = |choice: Value| {
            let found = config(Some(offered()), Some(choice), false).unwrap();
            found.map(|found| found["toolChoice"].clone())
        };
        assert_eq!(chosen(json!("auto")), Some(json!({"auto": {}})));
        assert_eq!(chosen(json!("required")), Some(json!({"any": {}})));
        let one = json!({"type": "function", "function": {"name": "g"}});
        assert_eq!(chosen(one), Some(json!({"tool": {"name": "g"}})));
        assert_eq!(chosen(json!("none")), None);
        assert_eq!(config(None, Some(json!("auto")), false), Ok(None));
        assert_eq!(config(None, None, false), Ok(None));
    }

    #[test]
    fn what_converse_cannot_be_told_is_refused() {
        for (offered, choice, uses) in [
            (Some(offered()), Some(json!("none")), true),
            (None, None, true),
            (None, Some(json!("required")), false),
            (Some(offered()), Some(json!("perhaps")), false),
            (Some(json!([{"type": "custom"}])), None, false),
            (Some(json!({})), None, false),
        ] {
            assert!(
                config(offered.clone(), choice.clone(), uses).is_err(),
                "{offered:?} {choice:?}"
            );
        }
    }
}
