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
    /// Anything else: bytes are counted, not read.
    Opaque,
}

impl Dialect {
    /// The dialect of a request target: its last path segments decide, whatever the prefix
    /// (`/v1`, `/openai/deployments/x`), the query, a trailing slash or an absolute form.
    pub fn from_path(path: &str) -> Self {
        let path = without_tail(path);
        if path.ends_with("/chat/completions") {
            Self::OpenAiChat
        } else if path.ends_with("/completions") {
            Self::OpenAiCompletions
        } else if converse(path).is_some() {
            Self::Converse
        } else {
            Self::Opaque
        }
    }
}

/// A path without query, fragment and last slash.
fn without_tail(path: &str) -> &str {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    path.strip_suffix('/').unwrap_or(path)
}

/// The model that the path of a Converse request names, and whether the answer is to be streamed. The model
/// is still percent-encoded: a slash in it, as imported models have, is encoded always, a colon by some clients.
pub(crate) fn converse(path: &str) -> Option<(&str, bool)> {
    let (before, operation) = without_tail(path).rsplit_once('/')?;
    let (before, model) = before.rsplit_once('/')?;
    let stream = match operation {
        "converse" => false,
        "converse-stream" => true,
        _ => return None,
    };
    (!model.is_empty() && before.ends_with("/model")).then_some((model, stream))
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
            ("/model/m/invoke", Dialect::Opaque),
            ("/models/m/converse", Dialect::Opaque),
            ("", Dialect::Opaque),
        ] {
            assert_eq!(Dialect::from_path(path), dialect, "{path}");
        }
    }
}
