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
    /// Anything else: bytes are counted, not read.
    Opaque,
}

impl Dialect {
    /// The dialect of a request target: its last path segments decide, whatever the prefix
    /// (`/v1`, `/openai/deployments/x`), the query, a trailing slash or an absolute form.
    pub fn from_path(path: &str) -> Self {
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let path = path.strip_suffix('/').unwrap_or(path);
        if path.ends_with("/chat/completions") {
            Self::OpenAiChat
        } else if path.ends_with("/completions") {
            Self::OpenAiCompletions
        } else {
            Self::Opaque
        }
    }
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
            ("", Dialect::Opaque),
        ] {
            assert_eq!(Dialect::from_path(path), dialect, "{path}");
        }
    }
}
