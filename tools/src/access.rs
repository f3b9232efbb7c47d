//! Who may use which tool.

use std::collections::BTreeSet;
use std::str::FromStr;

use crate::TOOLS;

/// What the tool server does. Keys on a command line are seen by every process of the machine: these are
/// for stand-ins and tests, and open nothing else.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct ToolsOptions {
    /// Which tools a bearer key may use, as `KEY=tool,tool`; `KEY=` for none. May be repeated. Without
    /// any, everybody may use everything; with one, a key that is not named may use nothing.
    #[arg(long, value_name = "KEY=TOOLS")]
    pub allow: Vec<Allow>,
    /// Lists and runs every tool for every key although `--allow` says otherwise: a filter that does not
    /// work, for checks of the check.
    #[arg(long)]
    pub ignore_allow: bool,
    /// Added to every tool call before the tool runs, milliseconds.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=60_000))]
    pub latency_ms: u64,
}

/// The tools of one key.
#[derive(Clone, PartialEq, Eq)]
pub struct Allow {
    key: String,
    tools: BTreeSet<String>,
}

/// Without the key: an option may end up in a log.
impl std::fmt::Debug for Allow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Allow({:?})", self.tools)
    }
}

impl FromStr for Allow {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, names) = text
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or("a key is missing; write KEY=tool,tool")?;
        let names: BTreeSet<String> = names
            .split(',')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect();
        match names.iter().find(|name| !TOOLS.contains(&name.as_str())) {
            Some(name) => Err(format!(
                "no tool is called `{name}`; there are {}",
                TOOLS.join(", ")
            )),
            None => Ok(Self {
                key: key.to_owned(),
                tools: names,
            }),
        }
    }
}

impl ToolsOptions {
    /// Whether a caller with this bearer key may use `tool`.
    pub(crate) fn may(&self, key: Option<&str>, tool: &str) -> bool {
        if self.allow.is_empty() || self.ignore_allow {
            return true;
        }
        self.allow
            .iter()
            .filter(|allow| Some(allow.key.as_str()) == key)
            .any(|allow| allow.tools.contains(tool))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_may_use_what_is_named_for_it_and_nothing_else() {
        let mut options = ToolsOptions {
            allow: vec![
                "a=calculate,web_search".parse().unwrap(),
                "b=".parse().unwrap(),
            ],
            ..ToolsOptions::default()
        };
        assert!(options.may(Some("a"), "calculate") && options.may(Some("a"), "web_search"));
        for (key, tool) in [
            (Some("a"), "database_query"),
            (Some("b"), "calculate"),
            (Some("c"), "calculate"),
            (None, "calculate"),
        ] {
            assert!(!options.may(key, tool), "{key:?} {tool}");
        }
        options.ignore_allow = true;
        assert!(options.may(None, "database_query"));
        assert!(ToolsOptions::default().may(None, "calculate"));
    }

    #[test]
    fn wrong_lines_are_refused_and_keys_are_not_shown() {
        for (text, why) in [
            ("calculate", "KEY="),
            ("=calculate", "KEY="),
            ("k=shell", "`shell`"),
        ] {
            assert!(text.parse::<Allow>().unwrap_err().contains(why), "{text}");
        }
        let shown = format!("{:?}", "sesame=calculate".parse::<Allow>().unwrap());
        assert!(!shown.contains("sesame"), "{shown}");
    }
}
