//! A tap that lets clients of one protocol speak to an upstream of another.

use super::TapPoint;
use crate::load::Report;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Take OpenAI's chat completions from clients, and ask Bedrock's Converse. So any OpenAI client, and every load
/// generator, drives a managed chain. The translation's own time is in the tap's delay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Translate {
    /// What clients speak.
    pub from: TranslateFrom,
    /// What the upstream speaks.
    pub to: TranslateTo,
    /// The model's id, inference profile or ARN that is asked, whatever the client names. Absent: the client's.
    #[serde(default)]
    pub model: Option<String>,
    /// A system prompt of at least so many characters ends in a cache point. Absent: only where a client sets
    /// `cache_control` on a part.
    #[serde(default)]
    pub cache_system_from: Option<u64>,
    /// What becomes of a parameter that Converse does not have.
    #[serde(default)]
    pub unsupported: Unsupported,
}

/// What clients of a translating tap speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TranslateFrom {
    /// OpenAI's chat completions.
    OpenaiChat,
}

/// What its upstream speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TranslateTo {
    /// Bedrock's Converse and ConverseStream.
    Converse,
}

/// What becomes of a parameter that the upstream's protocol does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unsupported {
    /// The request is refused with 400, and the parameter named.
    #[default]
    Refuse,
    /// It is left out, and named in the answer's `x-hopscope-dropped`.
    Drop,
}

pub(super) fn check(at: &str, tap: &TapPoint, report: &mut Report<'_>) {
    let Some(translate) = &tap.upstream.translate else {
        return;
    };
    let at = format!("{at}.upstream.translate");
    if tap.http2 || tap.upstream.http2 {
        report.add(
            &at,
            "a tap that translates speaks HTTP/1.1 on both sides; remove `http2` of the tap and of its upstream".to_owned(),
        );
    }
    if let Some(model) = translate.model.as_deref().filter(|model| !is_model(model)) {
        report.add(
            &format!("{at}.model"),
            format!("`{model}` is no model of Bedrock; write a model id (amazon.nova-pro-v1:0), an inference profile (us.…) or an ARN"),
        );
    }
}

/// The form of a model's name: `modelId` of Converse, at most 2048 characters: an id or profile with a dot after its
/// provider, or an ARN of Bedrock or SageMaker.
pub(super) fn is_model(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/".contains(c);
    let form = if name.starts_with("arn:") {
        let service = name.split(':').nth(2);
        matches!(service, Some("bedrock" | "sagemaker")) && name.split(':').count() >= 6
    } else {
        name.contains('.') && !name.contains('/')
    };
    form && name.len() <= 2048 && name.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::is_model;

    #[test]
    fn ids_profiles_and_arns_are_models_and_other_names_are_none() {
        for name in [
            "amazon.nova-pro-v1:0",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "arn:aws:bedrock:us-east-1:123456789012:imported-model/abcdef123456",
            "arn:aws:sagemaker:us-east-1:123456789012:endpoint/e",
        ] {
            assert!(is_model(name), "{name}");
        }
        for name in [
            "",
            "gpt-4o",
            "arn:aws:s3:::bucket",
            "arn:aws:bedrock",
            "a.b c",
            "a.b/c",
        ] {
            assert!(!is_model(name), "{name}");
        }
    }
}
