//! The API that a chain speaks: where a call goes, what it says, how its answer is read.
//!
//! | API | request | an answer is whole |
//! |---|---|---|
//! | chat completions | `chat` | with finish reason and `[DONE]` |
//! | Converse | `converse` | with `messageStop` and `metadata` |
//! | AgentCore's runtime | the scenario's body, a session | with its last byte, and no error in it |
//! | a black box | the scenario's body | with its last byte |

mod chat;
mod converse;
mod session;

pub(crate) use session::{InSession, SESSION, Session};

use crate::prompt::{Message, Tools};
use bytes::Bytes;
use config::Chain;
use config::scenario::AgentEndpoint;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rmcp::model::Tool;
use serde_json::Value;
use wire::Dialect;

/// All but the unreserved characters of RFC 3986: a label of a path, as AWS' SDKs encode it.
const LABEL: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// See the module.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    /// OpenAI's chat completions.
    Chat,
    /// Bedrock's Converse.
    Converse {
        /// A system prompt of at least so many characters ends in a cache point.
        cache_from: Option<u64>,
    },
    /// An agent in AgentCore's runtime.
    AgentCore,
    /// An agent of which nothing is known: its answer is its own affair.
    BlackBox,
}

/// What a request with messages says beside them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) model: &'a str,
    pub(crate) stream: bool,
    pub(crate) max_tokens: u32,
    /// Go on to `max_tokens`, where the API can say so.
    pub(crate) ignore_eos: bool,
    /// The sampling seed, where the API has one.
    pub(crate) seed: u64,
    pub(crate) tools: Option<Tools<'a>>,
}

impl Api {
    /// The API of a chain's entry.
    pub(crate) fn of(chain: &Chain) -> Self {
        match chain.api {
            config::Api::OpenaiChat => Self::Chat,
            config::Api::Converse => Self::Converse {
                cache_from: chain.cache_system_from,
            },
        }
    }

    /// The API of an agent.
    pub(crate) fn of_agent(endpoint: &AgentEndpoint) -> Self {
        match endpoint.agentcore {
            Some(_) => Self::AgentCore,
            None => Self::BlackBox,
        }
    }

    /// How its answers are read; `Content-Type` tells how they are framed.
    pub(crate) fn dialect(self) -> Dialect {
        match self {
            // A black box may happen to answer so.
            Self::Chat | Self::BlackBox => Dialect::OpenAiChat,
            Self::Converse { .. } => Dialect::Converse,
            Self::AgentCore => Dialect::AgentCore,
        }
    }

    /// The path behind the chain's prefix at which `model` is asked.
    pub(crate) fn path(self, model: &str, stream: bool) -> String {
        match self {
            Self::Converse { .. } => {
                let operation = if stream {
                    "converse-stream"
                } else {
                    "converse"
                };
                format!("/model/{}/{operation}", label(model))
            }
            _ => "/chat/completions".to_owned(),
        }
    }

    /// The body that asks `messages`.
    pub(crate) fn body(self, messages: &[Message<'_>], asked: &Asked<'_>) -> Bytes {
        match self {
            Self::Converse { cache_from } => converse::body(messages, asked, cache_from),
            _ => chat::body(messages, asked),
        }
    }

    /// The tools of a server, as requests offer them.
    pub(crate) fn offer(self, tools: &[Tool]) -> Value {
        let one = match self {
            Self::Converse { .. } => converse::offered,
            _ => chat::offered,
        };
        tools.iter().map(one).collect()
    }
}

/// The path at which an agent is asked, from the root of the chain's entry.
pub(crate) fn agent_path(endpoint: &AgentEndpoint) -> String {
    match (&endpoint.agentcore, &endpoint.path) {
        (Some(agent), _) => format!(
            "/runtimes/{}/invocations?qualifier={}",
            label(&agent.runtime),
            label(&agent.qualifier)
        ),
        (None, path) => path.clone().unwrap_or_default(),
    }
}

/// Encoded once: whoever signs encodes it once more for the signature, and for it alone.
fn label(text: &str) -> impl std::fmt::Display {
    utf8_percent_encode(text, LABEL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_models_id_is_encoded_once() {
        let api = Api::Converse { cache_from: None };
        let arn = "arn:aws:bedrock:us-east-1:123456789012:imported-model/abcdef123456";
        assert_eq!(
            api.path(arn, true),
            "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Aimported-model%2Fabcdef123456/converse-stream"
        );
        assert_eq!(api.path("us.m-v1:0", false), "/model/us.m-v1%3A0/converse");
        assert_eq!(Api::Chat.path(arn, true), "/chat/completions");
    }

    #[test]
    fn a_runtime_is_asked_at_its_endpoint() {
        let endpoint: AgentEndpoint = serde_json::from_value(serde_json::json!({
            "agentcore": {"runtime": "arn:aws:bedrock-agentcore:us-east-1:123456789012:runtime/my_agent-AbCdEf1234"},
            "body": "{\"prompt\": \"{prompt}\"}"
        }))
        .unwrap();
        assert_eq!(
            agent_path(&endpoint),
            "/runtimes/arn%3Aaws%3Abedrock-agentcore%3Aus-east-1%3A123456789012%3Aruntime%2Fmy_agent-AbCdEf1234/invocations?qualifier=DEFAULT"
        );
        assert_eq!(Api::of_agent(&endpoint), Api::AgentCore);
    }
}
