//! Tool calls of an answer, put together again from the pieces in which a stream brings them.

use wire::{Field, StreamEvent};

/// Tool calls of one answer that are kept; a model that asks for more is not followed.
const MOST: usize = 16;
/// Longest arguments of one call, bytes; beyond it they are cut and then no JSON any more.
const ARGUMENTS: usize = 256 << 10;

/// A tool call as the model made it, and as the next request repeats it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CalledTool {
    pub(crate) id: String,
    pub(crate) name: String,
    /// JSON, as text: exactly what the model wrote.
    pub(crate) arguments: String,
}

/// The calls of an answer under way, by their index in it.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<(u16, CalledTool)>);

impl Calls {
    /// Takes what an event says of the first choice's tool calls.
    pub(super) fn observe(&mut self, event: &StreamEvent<'_>) {
        match event {
            StreamEvent::ToolCall {
                choice: 0,
                tool,
                id,
                name,
            } => {
                let Some(call) = self.at(*tool) else { return };
                // Some servers repeat both with every piece.
                if let Some(id) = id.filter(|id| !id.is_empty()) {
                    id.clone_into(&mut call.id);
                }
                if let Some(name) = name.filter(|name| !name.is_empty()) {
                    name.clone_into(&mut call.name);
                }
            }
            StreamEvent::Text(delta)
                if delta.field == Field::ToolArguments && delta.choice == 0 =>
            {
                let Some(call) = self.at(delta.tool) else {
                    return;
                };
                let arguments = &mut call.arguments;
                if arguments.len() + delta.text.len() <= ARGUMENTS {
                    arguments.push_str(delta.text);
                }
            }
            _ => {}
        }
    }

    /// The call with this index, which may be the first sign of it.
    fn at(&mut self, tool: u16) -> Option<&mut CalledTool> {
        let known = self.0.iter().position(|(index, _)| *index == tool);
        let place = match known {
            Some(place) => place,
            None if self.0.len() >= MOST => return None,
            None => {
                let call = CalledTool {
                    id: format!("call_{tool}"),
                    name: String::new(),
                    arguments: String::new(),
                };
                self.0.push((tool, call));
                self.0.len() - 1
            }
        };
        self.0.get_mut(place).map(|(_, call)| call)
    }

    /// The calls, in the order of their indices.
    pub(super) fn into_calls(mut self) -> Vec<CalledTool> {
        self.0.sort_by_key(|(index, _)| *index);
        self.0.into_iter().map(|(_, call)| call).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::{Decoder, Dialect, Limits};

    fn calls(body: &str, step: usize) -> Vec<CalledTool> {
        let mut decoder = Decoder::new(
            Dialect::OpenAiChat,
            Some("text/event-stream"),
            Limits::default(),
        );
        let mut found = Calls::default();
        for piece in body.as_bytes().chunks(step) {
            decoder.feed(piece, &mut |framed| {
                framed.events.iter().for_each(|event| found.observe(event));
            });
        }
        found.into_calls()
    }

    fn delta(tool_calls: &str) -> String {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"tool_calls\":[{tool_calls}]}}}}]}}\n\n"
        )
    }

    #[test]
    fn pieces_of_two_calls_are_put_together_wherever_the_bytes_are_split() {
        let body = [
            r#"{"index":0,"id":"a","type":"function","function":{"name":"look","arguments":""}}"#,
            r#"{"index":0,"function":{"arguments":"{\"at\":"}}"#,
            r#"{"index":1,"id":"b","function":{"name":"add","arguments":"{"}},{"index":0,"function":{"arguments":"\"größer\"}"}}"#,
            r#"{"index":1,"function":{"arguments":"}"}}"#,
        ]
        .map(delta)
        .concat();
        for step in [1, 7, 64, body.len()] {
            let found = calls(&body, step);
            let shown: Vec<(&str, &str, &str)> = found
                .iter()
                .map(|c| (c.id.as_str(), c.name.as_str(), c.arguments.as_str()))
                .collect();
            assert_eq!(
                shown,
                [("a", "look", r#"{"at":"größer"}"#), ("b", "add", "{}")]
            );
        }
    }

    #[test]
    fn a_flood_of_calls_and_arguments_is_bounded() {
        let many: String = (0..40)
            .map(|n| {
                delta(&format!(
                    r#"{{"index":{n},"function":{{"name":"f","arguments":"{{}}"}}}}"#
                ))
            })
            .collect();
        let found = calls(&many, many.len());
        assert_eq!(found.len(), MOST);
        assert_eq!(found[3].id, "call_3", "an id where the server sent none");
        let long = delta(&format!(
            r#"{{"index":0,"function":{{"arguments":"{}"}}}}"#,
            "x".repeat(100_000)
        ))
        .repeat(5);
        assert!(calls(&long, long.len())[0].arguments.len() <= ARGUMENTS);
    }
}
