//! Calling a tool that the request offers. A stand-in understands nothing: it takes each argument from the
//! example in the tool's schema, or makes up one of the right type.

use serde::Deserialize;
use serde_json::{Map, Value};

/// Bytes of one token of arguments: about what tokenizers make of JSON.
const TOKEN: usize = 4;

/// A tool of a request.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Offer {
    function: Function,
}

#[derive(Debug, Clone, Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    parameters: Map<String, Value>,
}

/// The functions among the tools of a request; the others are none that could be called.
pub(super) fn offers(tools: &[Value]) -> Vec<Offer> {
    tools
        .iter()
        .filter_map(|tool| Offer::deserialize(tool).ok())
        .collect()
}

/// Which tool the request wants called.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    tool: Option<Offer>,
    /// The request leaves the choice to the model.
    may: bool,
}

/// A call of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    arguments: String,
}

impl Wanted {
    /// Reads `tools` and `tool_choice` of a request whose messages are `messages`.
    pub(super) fn of(
        tools: &[Offer],
        choice: Option<&Value>,
        messages: &Value,
    ) -> Result<Self, String> {
        let may = match choice {
            None => true,
            Some(Value::String(word)) if word == "auto" => true,
            Some(Value::String(word)) if word == "required" => false,
            Some(Value::String(word)) if word == "none" => return Ok(Self::default()),
            Some(choice) => {
                let name = choice["function"]["name"].as_str();
                let name = name.ok_or("`tool_choice` names no function")?;
                let tool = tools.iter().find(|tool| tool.function.name == name);
                let tool = tool.ok_or_else(|| {
                    format!("`tool_choice` names {name}, which `tools` does not offer")
                })?;
                return Ok(Self {
                    tool: Some(tool.clone()),
                    may: false,
                });
            }
        };
        let done = results_since_the_user_spoke(messages);
        let tool = match may {
            true => tools.get(done),
            false => tools.get(done % tools.len().max(1)),
        };
        Ok(Self {
            tool: tool.cloned(),
            may,
        })
    }

    /// The call; `willing`: also where the request leaves it to the model.
    pub(super) fn call(&self, willing: bool, request_id: &str) -> Option<Call> {
        let tool = self.tool.as_ref().filter(|_| willing || !self.may)?;
        Some(Call {
            id: format!("call-{request_id}"),
            name: tool.function.name.clone(),
            arguments: arguments(&tool.function.parameters),
        })
    }
}

fn results_since_the_user_spoke(messages: &Value) -> usize {
    let all = messages.as_array().map_or(&[][..], Vec::as_slice);
    all.iter()
        .rev()
        .take_while(|message| message["role"] != "user")
        .filter(|message| message["role"] == "tool")
        .count()
}

/// Arguments that satisfy the schema as far as its examples do.
fn arguments(schema: &Map<String, Value>) -> String {
    let names = schema.get("required").and_then(Value::as_array);
    let mut all = Map::new();
    for name in names.into_iter().flatten().filter_map(Value::as_str) {
        let property = schema.get("properties").and_then(|all| all.get(name));
        all.insert(name.to_owned(), example(property.unwrap_or(&Value::Null)));
    }
    Value::Object(all).to_string()
}

fn example(property: &Value) -> Value {
    let given = [
        &property["examples"][0],
        &property["default"],
        &property["enum"][0],
    ];
    if let Some(given) = given.into_iter().find(|value| !value.is_null()) {
        return given.clone();
    }
    match property["type"].as_str() {
        Some("integer" | "number") => 1.into(),
        Some("boolean") => true.into(),
        Some("array") => Value::Array(Vec::new()),
        Some("object") => Value::Object(Map::new()),
        _ => "text".into(),
    }
}

impl Call {
    /// The arguments, token by token.
    pub(super) fn pieces(&self) -> impl Iterator<Item = String> + '_ {
        let mut rest = self.arguments.as_str();
        std::iter::from_fn(move || {
            let end = (TOKEN.min(rest.len())..=rest.len()).find(|at| rest.is_char_boundary(*at))?;
            let (piece, after) = rest.split_at(end);
            rest = after;
            (!piece.is_empty()).then(|| piece.to_owned())
        })
    }

    /// How many tokens they are, at least 1.
    pub(super) fn tokens(&self) -> u64 {
        self.pieces().count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn offers() -> Vec<Offer> {
        let offer = |name: &str, properties: Value, required: Value| {
            serde_json::from_value(json!({"type": "function", "function": {"name": name,
                "parameters": {"type": "object", "properties": properties, "required": required}}}))
            .unwrap()
        };
        vec![
            offer(
                "search",
                json!({"query": {"type": "string", "examples": ["größer \"als\""]}, "limit": {"type": "integer"}}),
                json!(["query"]),
            ),
            offer(
                "add",
                json!({"a": {"type": "number"}, "b": {"default": 7}}),
                json!(["a", "b"]),
            ),
        ]
    }

    fn call(choice: &Value, messages: &Value, willing: bool) -> Option<Call> {
        let choice = (!choice.is_null()).then_some(choice);
        Wanted::of(&offers(), choice, messages)
            .unwrap()
            .call(willing, "r")
    }

    #[test]
    fn a_named_function_is_called_with_the_schemas_examples() {
        let named = json!({"type": "function", "function": {"name": "search"}});
        let found = call(&named, &json!([]), false).unwrap();
        assert_eq!(
            (found.name.as_str(), found.id.as_str()),
            ("search", "call-r")
        );
        assert_eq!(found.arguments, r#"{"query":"größer \"als\""}"#);
        assert_eq!(found.pieces().collect::<String>(), found.arguments);
        assert_eq!(found.tokens(), found.pieces().count() as u64);
        let named = json!({"type": "function", "function": {"name": "add"}});
        let found = call(&named, &json!([]), false).unwrap();
        assert_eq!(found.arguments, r#"{"a":1,"b":7}"#);
        let unknown = json!({"type": "function", "function": {"name": "nothing"}});
        assert!(Wanted::of(&offers(), Some(&unknown), &json!([])).is_err());
        assert!(Wanted::of(&offers(), Some(&json!({})), &json!([])).is_err());
    }

    #[test]
    fn a_free_choice_calls_each_tool_once_and_then_answers() {
        let mut messages = vec![json!({"role": "user", "content": "do it"})];
        let mut names = Vec::new();
        while let Some(call) = call(&Value::Null, &messages.clone().into(), true) {
            names.push(call.name);
            messages.push(json!({"role": "assistant", "tool_calls": []}));
            messages.push(json!({"role": "tool", "content": "7"}));
        }
        assert_eq!(names, ["search", "add"]);
        let none = call(&json!("none"), &json!([]), true);
        assert!(none.is_none() && call(&json!("auto"), &json!([]), false).is_none());
        assert_eq!(
            call(&json!("required"), &messages.into(), false)
                .unwrap()
                .name,
            "search"
        );
    }
}
