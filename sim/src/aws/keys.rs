//! Whose requests are answered.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::time;

/// Asking for signatures, as AWS does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, default)]
pub struct KeyOptions {
    /// Refuses requests that are not signed (SigV4) by a key of this file, or do not bear one of it: JSON,
    /// `{"keys": {"AKID": {"secret": "…", "session_token": "…", "expires": "2026-01-01T00:00:00Z"}}, "bearer": ["…"]}`.
    /// It is read again when an unknown key comes. Without a file nothing is asked for.
    #[arg(long, value_name = "FILE")]
    pub aws_keys: Option<PathBuf>,
    /// The region that signatures must be for.
    #[arg(long, value_name = "REGION", default_value_t = Self::default().aws_region)]
    pub aws_region: String,
    /// How far the clock that signatures are checked by is ahead, seconds; negative: behind. AWS accepts five
    /// minutes either way.
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, default_value_t = Self::default().aws_clock_offset_s)]
    pub aws_clock_offset_s: i64,
}

impl Default for KeyOptions {
    fn default() -> Self {
        Self {
            aws_keys: None,
            aws_region: "us-east-1".to_owned(),
            aws_clock_offset_s: 0,
        }
    }
}

/// A key that requests are signed with.
#[derive(Clone)]
pub(super) struct Key {
    pub(super) secret: String,
    pub(super) session_token: Option<String>,
    /// Seconds since 1970.
    pub(super) expires: Option<i64>,
}

/// All keys.
#[derive(Clone, Default)]
pub(super) struct Keys {
    pub(super) signing: HashMap<String, Key>,
    pub(super) bearer: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    keys: HashMap<String, Entry>,
    #[serde(default)]
    bearer: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    secret: String,
    session_token: Option<String>,
    expires: Option<String>,
}

impl Keys {
    /// Reads a file. Neither keys nor parts of them are in an error.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let said = |what: String| {
            let path = path.display();
            io::Error::other(format!("the AWS keys of {path} cannot be used: {what}"))
        };
        let text = std::fs::read_to_string(path).map_err(|error| said(error.to_string()))?;
        let file: File = serde_json::from_str(&text).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            said(format!(
                "line {line}, column {column}: expected {{\"keys\": {{ID: {{\"secret\": …}}}}, \"bearer\": [KEY]}}"
            ))
        })?;
        let mut signing = HashMap::new();
        for (id, entry) in file.keys {
            let expires = match entry.expires {
                None => None,
                Some(text) => Some(time::parse(&text).ok_or_else(|| {
                    said(format!(
                        "`expires` of {id} is no instant like 2026-01-01T00:00:00Z"
                    ))
                })?),
            };
            let key = Key {
                secret: entry.secret,
                session_token: entry.session_token,
                expires,
            };
            signing.insert(id, key);
        }
        Ok(Self {
            signing,
            bearer: file.bearer,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Keys;

    fn read(text: &str) -> Result<Keys, String> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.json");
        std::fs::write(&path, text).unwrap();
        Keys::read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn files_are_read_and_wrong_ones_told_without_their_secrets() {
        let keys = read(
            r#"{"keys": {"AKID": {"secret": "s", "expires": "2026-01-01T00:00:00Z"}}, "bearer": ["b"]}"#,
        )
        .unwrap();
        assert_eq!(keys.signing["AKID"].expires, Some(1_767_225_600));
        assert!(keys.signing["AKID"].session_token.is_none());
        assert_eq!(keys.bearer, ["b"]);
        for wrong in [
            r#"{"keys": {"AKID": {"secret": 1, "x": "hush"}}}"#,
            r#"{"keys": {"AKID": {"secret": "hush", "expires": "soon"}}}"#,
            r#"{"bearers": ["hush"]}"#,
            "hush",
        ] {
            let told = read(wrong).err().unwrap();
            assert!(
                told.contains("keys.json") && !told.contains("hush"),
                "{told}"
            );
        }
        let missing = Keys::read(std::path::Path::new("/nowhere/keys.json"));
        assert!(missing.err().unwrap().to_string().contains("/nowhere"));
    }
}
