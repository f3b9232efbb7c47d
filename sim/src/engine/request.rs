//! Understanding a generation request.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde::Deserialize;
use serde_json::Value;

use super::guardrail::Asked;
use super::invoke::{self, Native};
use super::options::Wishes;
use super::tool_call::{Wanted, offers};
use super::{bedrock, converse};
use crate::http::RequestHead;
use crate::prompt::{Blocks, Count, Part, Point, visit_parts, visit_texts};

/// Longest completion that can be asked for, tokens.
const MAX_TOKENS: u64 = 1_000_000;
/// Most words of system prompts that are kept.
const MAX_SYSTEM_WORDS: usize = 64;
/// Most letters of such a word.
const MAX_WORD: usize = 64;
/// Most choices of one request.
const MAX_CHOICES: u16 = 16;

/// Which of the generation endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    Chat,
    Completions,
    /// Bedrock's; whether the answer is streamed is in the path.
    Converse {
        stream: bool,
    },
    /// Bedrock's too. Whose form it has is known when the body is read.
    Invoke {
        stream: bool,
        native: Native,
    },
}

impl Dialect {
    /// The endpoint of a request, if it is one of them.
    pub(super) fn of(method: &str, path: &str) -> Option<Self> {
        match (method, path) {
            ("POST", "/v1/chat/completions") => Some(Self::Chat),
            ("POST", "/v1/completions") => Some(Self::Completions),
            ("POST", path) => bedrock::asked(path).map(|(_, dialect)| dialect),
            _ => None,
        }
    }

    /// Whether errors and answers have the form of AWS.
    pub(super) fn is_bedrock(self) -> bool {
        matches!(self, Self::Converse { .. } | Self::Invoke { .. })
    }

    /// Whether there is nothing but text: neither reasoning nor tools.
    pub(super) fn is_plain(self) -> bool {
        match self {
            Self::Completions => true,
            Self::Invoke { native, .. } => native == Native::Llama,
            Self::Chat | Self::Converse { .. } => false,
        }
    }
}

/// A checked request.
#[derive(Debug)]
pub(super) struct Generation {
    pub(super) dialect: Dialect,
    pub(super) model: Option<String>,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    /// Completion tokens asked for.
    pub(super) max_tokens: Option<u64>,
    pub(super) choices: u16,
    /// Tokens of the prompt.
    pub(super) prompt_tokens: u64,
    /// The first words of the system prompts.
    pub(super) system_words: Vec<String>,
    /// Blocks of the prompt, where they were asked for.
    pub(super) blocks: Option<Blocks>,
    /// Its cache points, likewise.
    pub(super) points: Vec<Point>,
    /// The guardrail that it names.
    pub(super) guardrail: Option<Asked>,
    /// Names the prompt and the request's seed.
    pub(super) prompt_hash: u64,
    pub(super) wishes: Wishes,
    /// The tool that the answer must or may call.
    pub(super) wanted: Wanted,
    /// What must not be said.
    pub(super) stop: Vec<String>,
}

#[derive(Deserialize)]
struct Form {
    model: Option<String>,
    messages: Option<Value>,
    prompt: Option<Value>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    n: Option<u16>,
    seed: Option<i64>,
    cache_salt: Option<String>,
    stop: Option<Value>,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
    #[serde(rename = "guardrailConfig")]
    guardrail: Option<Value>,
    sim: Option<Wishes>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

impl Generation {
    /// Checks a body, counts its prompt, and names the blocks of it if `blocks` is set; the error is a message
    /// for the client.
    pub(super) fn parse(
        dialect: Dialect,
        head: &RequestHead,
        body: &[u8],
        blocks: bool,
        count: Count,
    ) -> Result<Self, String> {
        let (dialect, form) = read(dialect, head.path(), body)?;
        let (name, prompt) = match dialect {
            Dialect::Completions => ("prompt", form.prompt),
            _ => ("messages", form.messages),
        };
        let prompt = prompt.ok_or_else(|| format!("field `{name}` is missing"))?;
        let max_tokens = form.max_completion_tokens.or(form.max_tokens);
        if max_tokens.is_some_and(|most| !(1..=MAX_TOKENS).contains(&most)) {
            return Err(format!("`max_tokens` must be from 1 to {MAX_TOKENS}"));
        }
        let choices = form.n.unwrap_or(1);
        if !(1..=MAX_CHOICES).contains(&choices) {
            return Err(format!("`n` must be from 1 to {MAX_CHOICES}"));
        }
        let tools = offers(form.tools.as_deref().unwrap_or_default());
        let wanted = Wanted::of(&tools, form.tool_choice.as_ref(), &prompt)?;
        let mut hasher = DefaultHasher::new();
        form.seed.hash(&mut hasher);
        let mut prompt_tokens = count.template;
        let mut blocks = blocks.then(|| Blocks::new(form.cache_salt.as_deref(), count));
        let mut points = Vec::new();
        visit_parts(&prompt, &mut |part| match part {
            Part::Text(text) => {
                text.hash(&mut hasher);
                prompt_tokens += count.text(text);
                if let Some(blocks) = &mut blocks {
                    blocks.add(text);
                }
            }
            Part::CachePoint => points.extend(blocks.as_ref().map(Blocks::point)),
        });
        Ok(Self {
            dialect,
            model: form.model,
            stream: match dialect {
                Dialect::Converse { stream } | Dialect::Invoke { stream, .. } => stream,
                _ => form.stream.unwrap_or(false),
            },
            include_usage: form
                .stream_options
                .and_then(|options| options.include_usage)
                .unwrap_or(false),
            max_tokens,
            choices,
            prompt_tokens,
            system_words: system_words(&prompt),
            blocks,
            points,
            guardrail: Asked::of(dialect, form.guardrail.as_ref(), &head.headers, &prompt),
            prompt_hash: hasher.finish(),
            wishes: form.sim.unwrap_or_default(),
            wanted,
            stop: stop(form.stop)?,
        })
    }
}

/// The stop sequences: one, or several.
fn stop(given: Option<Value>) -> Result<Vec<String>, String> {
    let all = match given {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(all)) => all,
        Some(one) => vec![one],
    };
    all.into_iter()
        .map(|one| match one {
            Value::String(text) if !text.is_empty() => Ok(text),
            _ => Err("`stop` must be a text or an array of texts".to_owned()),
        })
        .collect()
}

/// Reads a body; the dialect then says whose form it has.
fn read(dialect: Dialect, path: &str, body: &[u8]) -> Result<(Dialect, Form), String> {
    let model = bedrock::asked(path).map(|(model, _)| model);
    let model = model.as_deref().unwrap_or_default();
    let (dialect, form) = match dialect {
        Dialect::Converse { .. } => {
            let chat = converse::as_chat(model, body)?;
            (dialect, serde_json::from_value(chat))
        }
        Dialect::Invoke { stream, .. } => {
            let (native, chat) = invoke::as_chat(model, body)?;
            (
                Dialect::Invoke { stream, native },
                serde_json::from_value(chat),
            )
        }
        Dialect::Chat | Dialect::Completions => (dialect, serde_json::from_slice(body)),
    };
    let form =
        form.map_err(|error| format!("request body is not a generation request: {error}"))?;
    Ok((dialect, form))
}

/// The first words of the system prompts among `messages`, without what JSON would escape.
fn system_words(messages: &Value) -> Vec<String> {
    let messages = messages.as_array().map_or(&[][..], Vec::as_slice);
    let mut words = Vec::new();
    for message in messages {
        if matches!(message["role"].as_str(), Some("system" | "developer")) {
            visit_texts(message, &mut |text| {
                let left = MAX_SYSTEM_WORDS - words.len();
                words.extend(text.split_whitespace().map(plain).take(left));
            });
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn plain(word: &str) -> String {
    let stays = |letter: &char| letter.is_alphanumeric() || matches!(letter, '-' | '_');
    word.chars().filter(stays).take(MAX_WORD).collect()
}

#[cfg(test)]
mod tests {
    use super::{Count, Dialect, Generation, RequestHead};

    fn parse(body: &str) -> Result<Generation, String> {
        let head = b"POST /v1/chat/completions HTTP/1.1\r\n\r\n";
        let (head, _) = RequestHead::parse(head).unwrap().unwrap();
        Generation::parse(Dialect::Chat, &head, body.as_bytes(), false, Count::WORDS)
    }

    #[test]
    fn words_are_counted_in_every_form_of_content() {
        let asked = parse(
            r#"{"model":"m","messages":[{"role":"system","content":"a b"},
                {"role":"user","content":[{"type":"text","text":"c d  e"},{"type":"image_url"}]}],
                "max_tokens":5,"max_completion_tokens":7,"ignore_eos":true,"extra":{"x":1}}"#,
        )
        .unwrap();
        assert_eq!((asked.prompt_tokens, asked.max_tokens), (5, Some(7)));
        assert!(!asked.stream);
        let odd = parse(r#"{"messages":{"content":42}}"#).unwrap();
        assert_eq!(odd.prompt_tokens, 0);
    }

    #[test]
    fn the_hash_names_prompt_and_seed_but_not_the_rest() {
        let hash = |body| parse(body).unwrap().prompt_hash;
        let plain = hash(r#"{"messages":[{"content":"a"}]}"#);
        assert_eq!(
            plain,
            hash(r#"{"stream":true,"messages":[{"content":"a"}],"stream_options":{}}"#)
        );
        assert_ne!(plain, hash(r#"{"messages":[{"content":"b"}]}"#));
        assert_ne!(plain, hash(r#"{"messages":[{"content":"a"}],"seed":1}"#));
    }

    #[test]
    fn wrong_requests_are_told_why() {
        assert!(parse("{").unwrap_err().contains("not a generation request"));
        assert!(parse("{}").unwrap_err().contains("`messages`"));
        assert!(parse(r#"{"messages":[],"max_tokens":0}"#).is_err());
        assert!(parse(r#"{"messages":[],"n":99}"#).is_err());
        assert!(parse(r#"{"messages":[],"stop":[1]}"#).is_err());
        assert!(parse(r#"{"messages":[],"stop":""}"#).is_err());
        assert!(parse(r#"{"messages":[],"sim":{"typo":1}}"#).is_err());
    }
}
