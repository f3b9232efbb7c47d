//! Which protocol an exchange speaks.

use serde::{Deserialize, Serialize};

/// A wire protocol, chosen by the request's path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dialect {
    /// OpenAI chat completions, streamed or not.
    OpenAiChat,
    /// OpenAI (legacy) completions, streamed or not.
    OpenAiCompletions,
    /// Bedrock's Converse and ConverseStream.
    Converse,
    /// Bedrock's InvokeModel and InvokeModelWithResponseStream: the model's native JSON.
    Invoke,
    /// Anthropic's messages, streamed or not.
    AnthropicMessages,
    /// OpenAI's responses, streamed or not.
    OpenAiResponses,
    /// An agent behind Bedrock AgentCore's runtime: its own form.
    AgentCore,
    /// The Model Context Protocol over streamable HTTP, if the request is JSON-RPC: see [`Dialect::from_path`].
    Mcp,
    /// Anything else: bytes are counted, not read.
    Opaque,
}

impl Dialect {
    /// The dialect of a request target: its last path segments decide, whatever the prefix
    /// (`/v1`, `/openai/deployments/x`), the query, a trailing slash or an absolute form.
    ///
    /// `/v1/messages` is Anthropic's, but not `/messages` behind anything else, which is that of threads and of
    /// MCP's first transport. A path that ends in `/mcp` is a custom, not a rule: such a request is MCP only if
    /// its body has a `jsonrpc` member, without which [`request::facts`](crate::request::facts) refuses it and
    /// the answer's JSON is unknown; MCP under any other path is not seen.
    pub fn from_path(path: &str) -> Self {
        let path = without_tail(path);
        if path.ends_with("/chat/completions") {
            Self::OpenAiChat
        } else if path.ends_with("/completions") {
            Self::OpenAiCompletions
        } else if path.ends_with("/v1/messages") {
            Self::AnthropicMessages
        } else if path.ends_with("/responses") {
            Self::OpenAiResponses
        } else if path.ends_with("/mcp") {
            Self::Mcp
        } else if agent(path).is_some() {
            Self::AgentCore
        } else {
            model(path).map_or(Self::Opaque, |model| model.dialect)
        }
    }

    /// A model, or an agent with a model, answers: such an exchange has a prompt and a text.
    pub fn generates(self) -> bool {
        !matches!(self, Self::Mcp | Self::Opaque)
    }

    /// Its answers say why they ended, and its streams that they ended, so that one without is cut short. Of an
    /// agent's answer, and of what is not read, only the end of the body tells.
    pub fn marks_its_end(self) -> bool {
        !matches!(self, Self::AgentCore | Self::Opaque)
    }
}

/// A path without query, fragment and last slash.
fn without_tail(path: &str) -> &str {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    path.strip_suffix('/').unwrap_or(path)
}

/// What the path of a request to Bedrock's runtime says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Model<'a> {
    /// Still percent-encoded: a slash in it, as imported models have, is encoded always, a colon by some clients.
    pub(crate) id: &'a str,
    pub(crate) dialect: Dialect,
    /// The answer is to be streamed.
    pub(crate) stream: bool,
}

/// The model of a path `/model/{id}/{operation}`.
pub(crate) fn model(path: &str) -> Option<Model<'_>> {
    let (before, operation) = without_tail(path).rsplit_once('/')?;
    let (dialect, stream) = match operation {
        "converse" => (Dialect::Converse, false),
        "converse-stream" => (Dialect::Converse, true),
        "invoke" => (Dialect::Invoke, false),
        "invoke-with-response-stream" => (Dialect::Invoke, true),
        _ => return None,
    };
    let (before, id) = before.rsplit_once('/')?;
    let model = Model {
        id,
        dialect,
        stream,
    };
    (!id.is_empty() && before.ends_with("/model")).then_some(model)
}

/// The agent of a path `/runtimes/{arn}/invocations`, still percent-encoded as a model is.
pub(crate) fn agent(path: &str) -> Option<&str> {
    let before = without_tail(path).strip_suffix("/invocations")?;
    let (before, arn) = before.rsplit_once('/')?;
    (!arn.is_empty() && before.ends_with("/runtimes")).then_some(arn)
}

#[cfg(test)]
mod tests {
    use super::Dialect;

    #[test]
    fn the_end_of_the_path_decides() {
        for (path, dialect) in [
            ("/v1/chat/completions", Dialect::OpenAiChat),
            ("/chat/completions/", Dialect::OpenAiChat),
            (
                "/openai/deployments/g/chat/completions?api-version=1",
                Dialect::OpenAiChat,
            ),
            ("http://h:1/v1/chat/completions", Dialect::OpenAiChat),
            ("/v1/completions", Dialect::OpenAiCompletions),
            (
                "/v1/completions?a=/chat/completions",
                Dialect::OpenAiCompletions,
            ),
            ("/v1/models", Dialect::Opaque),
            ("/v1/chat/completions/extra", Dialect::Opaque),
            ("/v1/mycompletions", Dialect::Opaque),
            ("/model/anthropic.claude-v2%3A1/converse", Dialect::Converse),
            (
                "/aws/model/amazon.nova-pro-v1:0/converse-stream/",
                Dialect::Converse,
            ),
            ("/model//converse", Dialect::Opaque),
            ("/model/m/invoke", Dialect::Invoke),
            (
                "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aimported-model%2Fab/invoke-with-response-stream",
                Dialect::Invoke,
            ),
            ("/model//invoke", Dialect::Opaque),
            ("/model/m/invoke-with-bidirectional-stream", Dialect::Opaque),
            ("/v1/messages", Dialect::AnthropicMessages),
            (
                "/anthropic/v1/messages?beta=true",
                Dialect::AnthropicMessages,
            ),
            ("/v1/messages/count_tokens", Dialect::Opaque),
            ("/v1/threads/t/messages", Dialect::Opaque),
            ("/messages?session_id=1", Dialect::Opaque),
            ("/v1/responses", Dialect::OpenAiResponses),
            ("/v1/responses/r/cancel", Dialect::Opaque),
            (
                "/runtimes/arn%3Aaws%3Abedrock-agentcore%3Aus-east-1%3A1%3Aruntime%2Fa-b/invocations?qualifier=DEFAULT",
                Dialect::AgentCore,
            ),
            ("/runtimes//invocations", Dialect::Opaque),
            ("/invocations", Dialect::Opaque),
            ("/mcp", Dialect::Mcp),
            ("/401/mcp/", Dialect::Mcp),
            ("/v1/xmcp", Dialect::Opaque),
            ("/models/m/converse", Dialect::Opaque),
            ("", Dialect::Opaque),
        ] {
            assert_eq!(Dialect::from_path(path), dialect, "{path}");
        }
    }

    #[test]
    fn only_models_and_agents_generate_and_only_agents_end_without_a_mark() {
        assert!(Dialect::Invoke.generates() && Dialect::AgentCore.generates());
        assert!(!Dialect::Mcp.generates() && !Dialect::Opaque.generates());
        assert!(Dialect::Invoke.marks_its_end() && Dialect::Mcp.marks_its_end());
        assert!(!Dialect::AgentCore.marks_its_end());
    }
}
