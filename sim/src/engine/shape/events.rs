//! The JSON of one exchange, in vLLM's shape: what never changes is formatted once.

use serde_json::{Value, json};

use super::request::Dialect;
use super::text::Addition;
use super::tool_call::Call;
use crate::clock::unix_seconds;
use crate::truth::Field;

/// Token counts of one answer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    pub(super) prompt: u64,
    pub(super) completion: u64,
    pub(super) cached: u64,
}

impl Counts {
    pub(super) fn json(self) -> Value {
        json!({
            "prompt_tokens": self.prompt,
            "total_tokens": self.prompt + self.completion,
            "completion_tokens": self.completion,
            "prompt_tokens_details": {"cached_tokens": self.cached}
        })
    }
}

/// Builds the events of a stream into a buffer of its own.
pub(super) struct Shape {
    dialect: Dialect,
    id: String,
    model: String,
    created: u64,
    /// `data: {"id":…,"model":…,"choices":[`
    opening: String,
    line_end: &'static str,
    event: String,
    /// The tool that is called by its name; the others have made-up ones.
    call: Option<Call>,
}

impl Shape {
    pub(super) fn new(dialect: Dialect, id: &str, model: &str, crlf: bool) -> Self {
        let created = unix_seconds();
        let object = match dialect {
            Dialect::Chat => "chat.completion.chunk",
            Dialect::Completions => "text_completion",
        };
        let opening = format!(
            r#"data: {{"id":{},"object":"{object}","created":{created},"model":{},"choices":["#,
            Value::from(id),
            Value::from(model)
        );
        Self {
            dialect,
            id: id.to_owned(),
            model: model.to_owned(),
            created,
            opening,
            line_end: if crlf { "\r\n" } else { "\n" },
            event: String::with_capacity(512),
            call: None,
        }
    }

    /// The same, for an answer that calls a tool.
    pub(super) fn calling(mut self, call: Option<&Call>) -> Self {
        self.call = call.cloned();
        self
    }

    /// The chunk that names the role.
    pub(super) fn role(&mut self, choice: u16) -> &[u8] {
        let delta = r#"{"role":"assistant","content":""}"#;
        self.begin();
        self.chat_choice(choice, delta, None);
        self.finish("]}")
    }

    /// A chunk with text, with the finish reason if it rides along, padded by a field of `padding` bytes.
    pub(super) fn text(
        &mut self,
        choice: u16,
        added: &Addition,
        finish: Option<&str>,
        padding: u64,
    ) -> &[u8] {
        self.begin();
        match self.dialect {
            Dialect::Chat => {
                let delta = self.delta(added);
                self.chat_choice(choice, &delta, finish);
            }
            Dialect::Completions => self.completions_choice(choice, &added.text, finish),
        }
        if padding == 0 {
            return self.finish("]}");
        }
        self.event.push_str(r#"],"padding":""#);
        self.event.extend(std::iter::repeat_n(
            'x',
            usize::try_from(padding).unwrap_or(0),
        ));
        self.finish("\"}")
    }

    /// The chunk with nothing but the finish reason.
    pub(super) fn finish_apart(&mut self, choice: u16, reason: &str) -> &[u8] {
        self.begin();
        match self.dialect {
            Dialect::Chat => self.chat_choice(choice, r#"{"content":""}"#, Some(reason)),
            Dialect::Completions => self.completions_choice(choice, "", Some(reason)),
        }
        self.finish("]}")
    }

    /// The chunk with the usage.
    pub(super) fn usage(&mut self, counts: Counts) -> &[u8] {
        self.begin();
        self.event.push_str(r#"],"usage":"#);
        self.event.push_str(&counts.json().to_string());
        self.finish("}")
    }

    /// An event with other data.
    pub(super) fn data(&mut self, data: &str) -> &[u8] {
        self.event.clear();
        self.event.push_str("data: ");
        self.finish(data)
    }

    /// A comment.
    pub(super) fn comment(&mut self, text: &str) -> &[u8] {
        self.event.clear();
        self.event.push_str(": ");
        self.finish(text)
    }

    /// The body of an answer that is not streamed.
    pub(super) fn answer(&self, choices: &[Value], counts: Counts) -> String {
        let object = match self.dialect {
            Dialect::Chat => "chat.completion",
            Dialect::Completions => "text_completion",
        };
        json!({
            "id": self.id,
            "object": object,
            "created": self.created,
            "model": self.model,
            "choices": choices,
            "usage": counts.json()
        })
        .to_string()
    }

    /// Whether this dialect has role chunks.
    pub(super) fn has_role(&self) -> bool {
        self.dialect == Dialect::Chat
    }

    fn begin(&mut self) {
        self.event.clear();
        self.event.push_str(&self.opening);
    }

    fn finish(&mut self, tail: &str) -> &[u8] {
        for part in [tail, self.line_end, self.line_end] {
            self.event.push_str(part);
        }
        self.event.as_bytes()
    }

    fn delta(&self, added: &Addition) -> String {
        let text = quoted(&added.text);
        match added.field {
            Field::Content => format!(r#"{{"content":{text}}}"#),
            Field::Reasoning => format!(r#"{{"reasoning_content":{text}}}"#),
            Field::ToolArguments => {
                let tool = added.tool;
                let (opening, name) = match added.opens {
                    true => {
                        let (id, name) = self.named(tool);
                        let opening = format!(r#""id":{},"type":"function","#, Value::from(id));
                        (opening, format!(r#""name":{},"#, Value::from(name)))
                    }
                    false => Default::default(),
                };
                format!(
                    r#"{{"tool_calls":[{{"index":{tool},{opening}"function":{{{name}"arguments":{text}}}}}]}}"#
                )
            }
        }
    }

    /// Id and name of a tool call.
    pub(super) fn named(&self, tool: u16) -> (String, String) {
        match &self.call {
            Some(call) => (call.id.clone(), call.name.clone()),
            None => (format!("call_{tool}"), format!("tool_{tool}")),
        }
    }

    fn chat_choice(&mut self, choice: u16, delta: &str, finish: Option<&str>) {
        let reason = reason_json(finish);
        let choice = format!(
            r#"{{"index":{choice},"delta":{delta},"logprobs":null,"finish_reason":{reason}}}"#
        );
        self.event.push_str(&choice);
    }

    fn completions_choice(&mut self, choice: u16, text: &str, finish: Option<&str>) {
        let (text, reason) = (quoted(text), reason_json(finish));
        let choice = format!(
            r#"{{"index":{choice},"text":{text},"logprobs":null,"finish_reason":{reason}}}"#
        );
        self.event.push_str(&choice);
    }
}

fn reason_json(finish: Option<&str>) -> String {
    finish.map_or_else(|| "null".to_owned(), |reason| format!("\"{reason}\""))
}

/// A JSON string. Only tool arguments hold characters that need escaping.
fn quoted(text: &str) -> String {
    if text.contains(['"', '\\']) {
        return Value::from(text).to_string();
    }
    format!("\"{text}\"")
}
