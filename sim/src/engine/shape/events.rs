//! The JSON of one exchange, in vLLM's shape: what never changes is formatted once.

use serde_json::{Value, json};

use super::{Counts, Said, named};
use crate::clock::unix_seconds;
use crate::engine::plan::Plan;
use crate::engine::request::Dialect;
use crate::engine::text::Addition;
use crate::engine::tool_call::Call;
use crate::truth::Field;

/// Builds the events of a stream into a buffer of its own.
pub(in crate::engine) struct Events {
    dialect: Dialect,
    id: String,
    model: String,
    created: u64,
    /// `data: {"id":…,"model":…,"choices":[`
    opening: String,
    line_end: &'static str,
    event: String,
    /// The tool that is called by its name; the others have made-up ones.
    pub(super) call: Option<Call>,
}

impl Events {
    pub(super) fn new(dialect: Dialect, id: &str, model: &str, crlf: bool) -> Self {
        let created = unix_seconds();
        let object = match dialect {
            Dialect::Completions => "text_completion",
            _ => "chat.completion.chunk",
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
            Dialect::Completions => self.completions_choice(choice, &added.text, finish),
            _ => {
                let delta = self.delta(added);
                self.chat_choice(choice, &delta, finish);
            }
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
            Dialect::Completions => self.completions_choice(choice, "", Some(reason)),
            _ => self.chat_choice(choice, r#"{"content":""}"#, Some(reason)),
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
            Dialect::Completions => "text_completion",
            _ => "chat.completion",
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
                        let (id, name) = named(self.call.as_ref(), tool);
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

/// One choice of a body.
pub(super) fn choice(plan: &Plan, index: u16, said: &Said) -> Value {
    let reason = plan.finish_reason;
    if plan.dialect == Dialect::Completions {
        return json!({"index": index, "text": said.content, "logprobs": null, "finish_reason": reason});
    }
    let text = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    json!({
        "index": index,
        "message": {
            "role": "assistant",
            "content": text(&said.content),
            "reasoning_content": text(&said.reasoning),
            "tool_calls": said.calls
        },
        "logprobs": null,
        "finish_reason": reason
    })
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
