//! The languages of a decision, and its words.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use config::facts::Text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::key::Key;

/// A language that a decision can be written in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// English.
    #[default]
    En,
    /// Korean.
    Ko,
    /// Chinese, simplified.
    Zh,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::En, Self::Ko, Self::Zh];

    /// Its code (BCP 47), as a page's `lang` has it.
    #[must_use]
    pub fn code(self) -> &'static str {
        match self {
            Self::En => "en",
            Self::Ko => "ko",
            Self::Zh => "zh",
        }
    }

    /// What a text says in it.
    #[must_use]
    pub fn of(self, text: &Text) -> &str {
        match self {
            Self::En => &text.en,
            Self::Ko => &text.ko,
            Self::Zh => &text.zh,
        }
    }
}

impl FromStr for Language {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|one| one.code() == text);
        known.ok_or_else(|| "a decision is written in en, ko or zh".to_owned())
    }
}

impl fmt::Display for Language {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.code())
    }
}

/// The words of one language.
#[derive(Debug)]
pub(crate) struct Words {
    language: Language,
    /// By key. A test sees to it that none is missing.
    texts: BTreeMap<String, Text>,
}

const TEXTS: &str = include_str!("words.json");

impl Words {
    /// Those of `language`.
    pub(crate) fn of(language: Language) -> Self {
        Self {
            language,
            // A test reads the file: it is a part of the program.
            texts: serde_json::from_str(TEXTS).unwrap_or_default(),
        }
    }

    /// The language.
    pub(crate) fn language(&self) -> Language {
        self.language
    }

    /// What `key` says.
    pub(crate) fn get(&self, key: Key) -> &str {
        let text = self.texts.get(key.name());
        text.map_or(key.name(), |text| self.language.of(text))
    }

    /// The same with `{name}` filled.
    pub(crate) fn say(&self, key: Key, values: &[(&str, String)]) -> String {
        let mut said = self.get(key).to_owned();
        for (name, value) in values {
            said = said.replace(&format!("{{{name}}}"), value);
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The names in braces.
    fn places(text: &str) -> BTreeSet<&str> {
        let parts = text.split('{').skip(1);
        parts.filter_map(|part| part.split('}').next()).collect()
    }

    #[test]
    fn every_key_is_said_in_every_language_with_the_same_places() {
        let texts: BTreeMap<String, Text> = serde_json::from_str(TEXTS).unwrap();
        let keys: BTreeSet<&str> = Key::ALL.iter().map(|key| key.name()).collect();
        let said: BTreeSet<&str> = texts.keys().map(String::as_str).collect();
        assert_eq!(keys, said);
        for (key, text) in &texts {
            for language in Language::ALL {
                let said = language.of(text);
                assert!(!said.trim().is_empty(), "{key} in {language}");
                assert_eq!(places(said), places(&text.en), "{key} in {language}");
            }
            let hangul = |c: char| ('\u{ac00}'..='\u{d7a3}').contains(&c);
            assert!(
                !text.zh.chars().any(hangul),
                "{key}: Korean in the Chinese text"
            );
            assert!(
                !text
                    .en
                    .chars()
                    .any(|c| hangul(c) || ('\u{4e00}'..='\u{9fff}').contains(&c)),
                "{key}: English?"
            );
        }
    }

    #[test]
    fn places_are_filled() {
        let words = Words::of(Language::En);
        let said = words.say(Key::DriveClosed, &[("callers", "8".to_owned())]);
        assert_eq!(said, "8 at once");
    }
}
