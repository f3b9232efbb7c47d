//! A guardrail of words in front of and behind the model, as Bedrock's: it takes its time, counts its units, blocks
//! what has one of the words, and says so in a trace.
//!
//! Modelled: requests that name one (`guardrailConfig`, `X-Amzn-Bedrock-GuardrailIdentifier`), whatever its id; all
//! messages but system prompts as input; a blocked input without a call of the model, a blocked output with one; an
//! answer that is held whole until it was looked at. Not modelled: other policies than words, masking, tags that
//! choose what is looked at, looking at a stream piece by piece or while it passes (`streamProcessingMode`).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::reply::{Reply, Stop};
use super::request::Dialect;
use crate::clock::now;
use crate::http::Headers;
use crate::prompt::visit_texts;

/// Characters of a text unit (Bedrock's pricing page).
const UNIT: u64 = 1_000;
/// What a blocked text is replaced by: what Bedrock's console suggests.
pub(super) const MESSAGE: &str = "Sorry, the model cannot answer this question.";

/// The reason for the end of an answer whose input or output is blocked.
pub(super) const INTERVENED: &str = "guardrail_intervened";

/// What guardrails look for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, default)]
pub struct GuardrailOptions {
    /// Words that a guardrail blocks wherever they stand, in any case, with commas between them. Only requests
    /// that name a guardrail are looked at.
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    pub guardrail_words: Vec<String>,
    /// How long a guardrail takes for the input, and again for the output, µs.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=60_000_000))]
    pub guardrail_latency_us: u64,
}

/// A guardrail that a request names.
#[derive(Debug)]
pub(super) struct Asked {
    id: String,
    trace: bool,
    /// What it has to look at.
    input: String,
}

impl Asked {
    /// The guardrail of a Bedrock request, if it names one.
    pub(super) fn of(
        dialect: Dialect,
        config: Option<&Value>,
        headers: &Headers,
        prompt: &Value,
    ) -> Option<Self> {
        let (id, trace) = match dialect {
            Dialect::Converse { .. } => {
                let config = config?;
                (
                    config["guardrailIdentifier"].as_str(),
                    config["trace"].as_str(),
                )
            }
            Dialect::Invoke { .. } => (
                headers.get("x-amzn-bedrock-guardrailidentifier"),
                headers.get("x-amzn-bedrock-trace"),
            ),
            Dialect::Chat | Dialect::Completions => return None,
        };
        let trace = trace.unwrap_or_default().to_ascii_lowercase();
        let mut input = String::new();
        let messages = prompt.as_array().map_or(&[][..], Vec::as_slice);
        for message in messages.iter().filter(|it| it["role"] != "system") {
            visit_texts(message, &mut |text| {
                input.push_str(text);
                input.push('\n');
            });
        }
        Some(Self {
            id: id?.to_owned(),
            trace: matches!(trace.as_str(), "enabled" | "enabled_full"),
            input,
        })
    }
}

/// A guardrail at work on one exchange.
pub(super) struct Guardrail {
    asked: Asked,
    words: Vec<String>,
    latency_us: u64,
    input: Option<Assessment>,
    output: Option<Assessment>,
}

/// What it found in a text.
struct Assessment {
    blocked: Vec<String>,
    characters: u64,
    /// How long that took, ns.
    took: u64,
}

/// What an answer says about its guardrail.
#[derive(Clone)]
pub(super) struct Verdict {
    pub(super) intervened: bool,
    /// Where the request wants to know.
    pub(super) trace: Option<Value>,
}

impl Guardrail {
    pub(super) fn new(asked: Asked, options: &GuardrailOptions) -> Self {
        let words = options.guardrail_words.iter();
        Self {
            asked,
            words: words
                .map(|word| word.trim().to_lowercase())
                .filter(|word| !word.is_empty())
                .collect(),
            latency_us: options.guardrail_latency_us,
            input: None,
            output: None,
        }
    }

    /// Looks at the input; tells whether it is blocked.
    pub(super) async fn look_at_input(&mut self, reply: &mut Reply<'_>) -> Result<bool, Stop> {
        let input = std::mem::take(&mut self.asked.input);
        let found = self.look(&input, reply).await?;
        Ok(!self.input.insert(found).blocked.is_empty())
    }

    /// Looks at the output; tells whether it is blocked.
    pub(super) async fn look_at_output(
        &mut self,
        text: &str,
        reply: &mut Reply<'_>,
    ) -> Result<bool, Stop> {
        let found = self.look(text, reply).await?;
        Ok(!self.output.insert(found).blocked.is_empty())
    }

    async fn look(&self, text: &str, reply: &mut Reply<'_>) -> Result<Assessment, Stop> {
        let began = now();
        let lower = text.to_lowercase();
        let blocked = self.words.iter().filter(|word| lower.contains(*word));
        let blocked = blocked.cloned().collect();
        reply.wait_until(began + self.latency_us * 1_000).await?;
        Ok(Assessment {
            blocked,
            characters: text.chars().count() as u64,
            took: now() - began,
        })
    }

    pub(super) fn verdict(&self) -> Verdict {
        let assessments = [&self.input, &self.output];
        let blocks = |found: &&Assessment| !found.blocked.is_empty();
        Verdict {
            intervened: assessments.into_iter().flatten().any(|it| blocks(&it)),
            trace: self.asked.trace.then(|| self.trace()),
        }
    }

    fn trace(&self) -> Value {
        let id = &self.asked.id;
        let mut trace = json!({});
        if let Some(input) = &self.input {
            trace["inputAssessment"] = json!({id: input.json()});
        }
        if let Some(output) = &self.output {
            trace["outputAssessments"] = json!({id: [output.json()]});
        }
        trace
    }
}

impl Assessment {
    fn json(&self) -> Value {
        let matches: Vec<Value> = self
            .blocked
            .iter()
            .map(|word| json!({"match": word, "action": "BLOCKED"}))
            .collect();
        let characters = json!({"guarded": self.characters, "total": self.characters});
        let mut assessment = json!({"invocationMetrics": {
            "guardrailProcessingLatency": self.took / 1_000_000,
            "usage": {
                "topicPolicyUnits": 0,
                "contentPolicyUnits": 0,
                "wordPolicyUnits": self.characters.div_ceil(UNIT),
                "sensitiveInformationPolicyUnits": 0,
                "sensitiveInformationPolicyFreeUnits": 0,
                "contextualGroundingPolicyUnits": 0
            },
            "guardrailCoverage": {"textCharacters": characters}
        }});
        if !matches.is_empty() {
            assessment["wordPolicy"] = json!({"customWords": matches, "managedWordLists": []});
        }
        assessment
    }
}
