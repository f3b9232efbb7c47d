//! What one response was made of, seen by one reader: the marks, the counts, the timeline.
//!
//! The tap and the load generator both feed this, so their figures differ only by where the
//! clock was read.

use crate::clock::Nanos;
use crate::stamp::Passage;
use crate::timeline::Timeline;
use serde::{Deserialize, Serialize};
use wire::{Framed, Guardrail, ServerFigures, StreamEvent, Usage};

/// The named instants of a response body. Each is the passage of the read that completed the event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamMarks {
    /// First event with a choice in it, text or not (vLLM's benchmark takes TTFT here).
    pub first_choice: Option<Passage>,
    /// First event with non-empty text of any field (AIPerf's and GuideLLM's TTFT).
    pub first_text: Option<Passage>,
    /// Last event with non-empty text.
    pub last_text: Option<Passage>,
    /// First finish reason.
    pub finish: Option<Passage>,
    /// Last usage object.
    pub usage: Option<Passage>,
    /// Terminal marker: `data: [DONE]`, or the end of a JSON body that parsed.
    pub done: Option<Passage>,
}

/// How many events of which kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamCounts {
    /// Framed events (SSE events or one JSON body), comments apart.
    pub events: u32,
    /// Events with non-empty text.
    pub text_events: u32,
    /// Events with a choice but nothing in it.
    pub empty: u32,
    /// Comments and pings.
    pub keep_alive: u32,
    /// Error objects inside a 200 stream.
    pub errors: u32,
    /// Events of no known shape.
    pub unknown: u32,
    /// Events that did not parse.
    pub malformed: u32,
    /// A last event without its blank line.
    pub unterminated: u32,
}

/// See the module.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamRecord {
    /// Named instants.
    pub marks: StreamMarks,
    /// Event counts.
    pub counts: StreamCounts,
    /// Text positions.
    pub timeline: Timeline,
    /// The engine's own token counts, as last stated.
    pub usage: Option<Usage>,
    /// First finish reason, as on the wire.
    pub finish_reason: Option<String>,
    /// Response id, as first stated.
    pub response_id: Option<String>,
    /// Type or code of the first error inside a 200 stream (never its message).
    pub error: Option<String>,
    /// The service's own times, as it stated them: a claim to hold beside the marks, never a part of them.
    pub server: Option<ServerFigures>,
    /// What a guardrail did, as last stated.
    pub guardrail: Option<Guardrail>,
}

impl StreamRecord {
    /// An empty record whose timeline counts from `base`.
    #[must_use]
    pub fn starting(base: Nanos) -> Self {
        Self {
            timeline: Timeline::starting(base),
            ..Self::default()
        }
    }

    /// Takes in one framed event that the read of `passage` completed.
    pub fn observe(&mut self, framed: &Framed<'_>, passage: &Passage) {
        if framed.unterminated {
            self.counts.unterminated += 1;
        }
        if framed.has_choices {
            self.marks.first_choice.get_or_insert(*passage);
        }
        let mut text = false;
        let mut comment = false;
        for event in framed.events {
            text |= self.take(event, passage);
            comment |= matches!(event, StreamEvent::KeepAlive);
        }
        if text {
            self.counts.text_events += 1;
            self.marks.first_text.get_or_insert(*passage);
            self.marks.last_text = Some(*passage);
        }
        if !comment {
            self.counts.events += 1;
        }
    }

    /// Takes in the service's own times; what is stated again replaces what was.
    fn server(&mut self, figures: ServerFigures) {
        let known = self.server.get_or_insert_default();
        known.latency_ms = figures.latency_ms.or(known.latency_ms);
        known.first_byte_ms = figures.first_byte_ms.or(known.first_byte_ms);
    }

    /// Takes in what the response's head said of counts and times: the body, where it says something, is nearer to
    /// the model.
    pub fn head_says(&mut self, usage: Option<Usage>, server: Option<ServerFigures>) {
        self.usage = self.usage.or(usage);
        if let Some(server) = server {
            let stated = self.server.unwrap_or_default();
            self.server(ServerFigures {
                latency_ms: stated.latency_ms.or(server.latency_ms),
                first_byte_ms: stated.first_byte_ms.or(server.first_byte_ms),
            });
        }
    }

    /// Takes one event; true where it carried text.
    fn take(&mut self, event: &StreamEvent<'_>, passage: &Passage) -> bool {
        match event {
            StreamEvent::Text(delta) => {
                self.timeline.read(passage);
                self.timeline
                    .text(delta.choice, delta.field, delta.tool, delta.text);
                return true;
            }
            StreamEvent::Finish { raw, .. } => {
                if self.finish_reason.is_none() {
                    self.finish_reason = Some((*raw).to_owned());
                    self.marks.finish = Some(*passage);
                }
            }
            StreamEvent::Usage(usage) => {
                self.usage = Some(*usage);
                self.marks.usage = Some(*passage);
            }
            StreamEvent::Id(id) => {
                self.response_id.get_or_insert_with(|| (*id).to_owned());
            }
            StreamEvent::Done => {
                self.marks.done.get_or_insert(*passage);
            }
            StreamEvent::Error { code, kind, .. } => {
                self.counts.errors += 1;
                self.error
                    .get_or_insert_with(|| kind.or(*code).unwrap_or("error").to_owned());
            }
            StreamEvent::KeepAlive => self.counts.keep_alive += 1,
            StreamEvent::Empty { .. } => self.counts.empty += 1,
            StreamEvent::Unknown => self.counts.unknown += 1,
            StreamEvent::Server(figures) => self.server(*figures),
            StreamEvent::Guardrail(found) => {
                self.guardrail.get_or_insert_default().add(*found);
            }
            StreamEvent::Role { .. } | StreamEvent::ToolCall { .. } => {}
        }
        false
    }

    /// Tokens a content event, where the engine stated its completion tokens.
    #[must_use]
    pub fn tokens_per_event(&self) -> Option<f64> {
        let tokens = self.usage?.completion_tokens?;
        (self.counts.text_events > 0).then(|| tokens as f64 / f64::from(self.counts.text_events))
    }
}
