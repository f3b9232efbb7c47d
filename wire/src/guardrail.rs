//! What a guardrail's trace says: `trace` of Converse and `amazon-bedrock-trace` of InvokeModel, whose assessments of
//! input and output are objects by the guardrail's id, one or a list each. The shapes are those of
//! `GuardrailTraceAssessment` in the service model `bedrock-runtime` 2023-09-30; the names around them differ.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::event::{Guardrail, GuardrailUnits};

/// The trace's facts; `None` where it cannot be read.
pub(crate) fn read(trace: &RawValue) -> Option<Guardrail> {
    trace.get().starts_with('{').then_some(())?;
    let found: Found = serde_json::from_str(trace.get()).ok()?;
    Some(found.guardrail)
}

/// What was found in a value and all below it, wherever the policies put it.
#[derive(Default)]
struct Found {
    guardrail: Guardrail,
    /// The value itself is the name of an action that a guardrail took.
    acts: bool,
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum Key {
    Action,
    InvocationMetrics,
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metrics {
    #[serde(default)]
    guardrail_processing_latency: Option<u64>,
    #[serde(default)]
    usage: Option<GuardrailUnits>,
}

impl<'de> Deserialize<'de> for Found {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FoundVisitor)
    }
}

struct FoundVisitor;

impl<'de> Visitor<'de> for FoundVisitor {
    type Value = Found;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_str<E>(self, text: &str) -> Result<Found, E> {
        Ok(Found {
            acts: matches!(text, "BLOCKED" | "ANONYMIZED"),
            ..Found::default()
        })
    }

    fn visit_bool<E>(self, _: bool) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_unit<E>(self) -> Result<Found, E> {
        Ok(Found::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Found, A::Error> {
        let mut sum = Found::default();
        while let Some(found) = seq.next_element::<Found>()? {
            sum.guardrail.add(found.guardrail);
        }
        Ok(sum)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Found, A::Error> {
        let mut sum = Found::default();
        while let Some(key) = map.next_key()? {
            match key {
                Key::InvocationMetrics => {
                    let metrics: Option<Metrics> = map.next_value()?;
                    let Some(metrics) = metrics else { continue };
                    sum.guardrail.add(Guardrail {
                        intervened: false,
                        latency_ms: metrics.guardrail_processing_latency,
                        units: metrics.usage.unwrap_or_default(),
                    });
                }
                Key::Action => {
                    let found: Found = map.next_value()?;
                    sum.guardrail.intervened |= found.acts;
                }
                Key::Other => sum.guardrail.add(map.next_value::<Found>()?.guardrail),
            }
        }
        Ok(sum)
    }
}

impl Guardrail {
    /// Takes what another part of the same answer says of the guardrail.
    pub fn add(&mut self, other: Self) {
        let (mine, others) = (&mut self.units, other.units);
        for (mine, other) in [
            (&mut mine.topic, others.topic),
            (&mut mine.content, others.content),
            (&mut mine.content_image, others.content_image),
            (&mut mine.word, others.word),
            (&mut mine.sensitive, others.sensitive),
            (&mut mine.sensitive_free, others.sensitive_free),
            (&mut mine.grounding, others.grounding),
            (&mut mine.reasoning, others.reasoning),
        ] {
            if let Some(more) = other {
                *mine = Some(mine.unwrap_or(0).saturating_add(more));
            }
        }
        if let Some(more) = other.latency_ms {
            self.latency_ms = Some(self.latency_ms.unwrap_or(0).saturating_add(more));
        }
        self.intervened |= other.intervened;
    }
}
