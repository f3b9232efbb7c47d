//! Names that stand for something outside the file.

use std::fmt;
use std::str::FromStr;

use super::written_as_text;

/// The name of an environment variable that holds a secret. The secret itself never stands in a file.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct EnvName(String);

impl EnvName {
    /// The variable's name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for EnvName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let valid = |b: u8| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_';
        if !text.is_empty()
            && text.len() <= 128
            && text.bytes().all(valid)
            && !text.as_bytes()[0].is_ascii_digit()
        {
            return Ok(Self(text.to_owned()));
        }
        // The text is not repeated: a key written here by mistake must not reach a log.
        Err("not the name of an environment variable; write its name in capitals, for example `OPENAI_API_KEY`, and keep the secret in the environment".to_owned())
    }
}

impl fmt::Display for EnvName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

written_as_text!(EnvName, "EnvName", "hopscope-env-name", "OPENAI_API_KEY");

/// The name of an HTTP header, lower case.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HeaderName(String);

impl HeaderName {
    /// The name in lower case, as HTTP/2 writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HeaderName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if !text.is_empty() && text.len() <= 256 && text.bytes().all(token) {
            Ok(Self(text.to_ascii_lowercase()))
        } else {
            Err(format!(
                "`{text}` is not the name of an HTTP header; use letters, digits and hyphens"
            ))
        }
    }
}

impl fmt::Display for HeaderName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

written_as_text!(
    HeaderName,
    "HeaderName",
    "hopscope-header-name",
    "x-request-id"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_in_place_of_a_name_is_refused_and_not_repeated() {
        let error = "sk-abc123".parse::<EnvName>().unwrap_err();
        assert!(!error.contains("abc123"), "{error}");
        assert!("9KEY".parse::<EnvName>().is_err());
        assert_eq!(
            "LITELLM_KEY".parse::<EnvName>().unwrap().as_str(),
            "LITELLM_KEY"
        );
    }

    #[test]
    fn header_names_are_tokens_in_lower_case() {
        assert_eq!(
            "X-Cache-Hit".parse::<HeaderName>().unwrap().as_str(),
            "x-cache-hit"
        );
        assert!("x cache".parse::<HeaderName>().is_err());
        assert!("x-cache:".parse::<HeaderName>().is_err());
    }
}
