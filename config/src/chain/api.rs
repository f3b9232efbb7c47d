//! The API that a chain's entry speaks.

use super::{Chain, Position};
use crate::load::Report;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The API that the load generator speaks to a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// OpenAI's chat completions.
    #[default]
    OpenaiChat,
    /// Bedrock's Converse and ConverseStream. Requests go out unsigned: the tap before the service signs them, or adds a
    /// bearer key. Converse has no `seed` and no `ignore_eos`: answers may end before `output_tokens`.
    Converse,
}

impl Api {
    /// The name as it is written in a file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai-chat",
            Self::Converse => "converse",
        }
    }

    /// What precedes its own path where the chain does not say.
    #[must_use]
    pub(super) const fn prefix(self) -> &'static str {
        match self {
            Self::OpenaiChat => "/v1",
            Self::Converse => "",
        }
    }
}

pub(super) fn check(chain: &Chain, report: &mut Report<'_>) {
    if chain.api != Api::Converse {
        if chain.cache_system_from.is_some() {
            report.add(
                "cache_system_from",
                "cache points are Converse's; write `api: converse`, or remove `cache_system_from` (a tap that translates has one of its own)".to_owned(),
            );
        }
        return;
    }
    let model = &chain.model;
    if !super::translate::is_model(model) && !model.trim().is_empty() {
        report.add(
            "model",
            format!("`{model}` is no model of Bedrock; write a model id (amazon.nova-pro-v1:0), an inference profile (us.…) or an ARN"),
        );
    }
    for (at, tap) in chain.taps.iter().enumerate() {
        if tap.position == Position::Outer && tap.upstream.translate.is_some() {
            report.add(
                &format!("taps[{at}].upstream.translate"),
                "this tap takes chat completions, and `api` is converse; remove `translate`, or `api`".to_owned(),
            );
        }
    }
}
