//! Who reads the payloads of a body: one reader a dialect, all asked alike.

use crate::agentcore::AgentCore;
use crate::converse::Converse;
use crate::decoder::{Counts, Framed, Framing};
use crate::dialect::Dialect;
use crate::event::StreamEvent;
use crate::eventstream::Frame;
use crate::invoke::Invoke;
use crate::mcp::Mcp;
use crate::messages::Messages;
use crate::openai::Interpreter;
use crate::payload::Place;
use crate::responses::Responses;
use crate::sse::SseEvent;

/// The reader of one body.
#[derive(Debug)]
pub(crate) enum Voice {
    OpenAi(Interpreter),
    Converse(Converse),
    Invoke(Box<Invoke>),
    Messages(Messages),
    Responses(Responses),
    AgentCore(AgentCore),
    Mcp(Mcp),
}

impl Voice {
    /// The reader of a body in this framing on a route of this dialect. The framing goes before the route where
    /// the two disagree: a gateway streams SSE of OpenAI's shape on a Converse route, and frames of Amazon's
    /// hold Converse's events on any other than InvokeModel's.
    pub(crate) fn of(dialect: Dialect, framing: Framing) -> Self {
        match (dialect, framing) {
            (Dialect::Invoke, _) => Self::Invoke(Box::default()),
            (_, Framing::EventStream) | (Dialect::Converse, Framing::Json) => {
                Self::Converse(Converse::default())
            }
            (Dialect::AnthropicMessages, _) => Self::Messages(Messages::default()),
            (Dialect::OpenAiResponses, _) => Self::Responses(Responses::default()),
            (Dialect::AgentCore, _) => Self::AgentCore(AgentCore::default()),
            (Dialect::Mcp, _) => Self::Mcp(Mcp::default()),
            _ => Self::OpenAi(Interpreter::default()),
        }
    }

    /// One event of an SSE stream.
    pub(crate) fn event(&mut self, event: &SseEvent<'_>, sink: &mut impl FnMut(Framed<'_>)) {
        let place = Place::of_event(event);
        let payload = match self {
            // A space may be all that an agent says.
            Self::AgentCore(_) => event.data,
            _ => event.data.trim_ascii(),
        };
        match (payload, self) {
            (b"", _) => place.give(&[StreamEvent::KeepAlive], false, sink),
            (b"[DONE]", _) => place.give(&[StreamEvent::Done], false, sink),
            (_, Self::OpenAi(voice)) => voice.payload(payload, place, sink),
            (_, Self::Converse(voice)) => voice.body(payload, place, sink),
            (_, Self::Invoke(voice)) => voice.event(payload, place, sink),
            (_, Self::Messages(voice)) => voice.event(payload, place, sink),
            (_, Self::Responses(voice)) => voice.event(payload, place, sink),
            (_, Self::AgentCore(voice)) => voice.event(payload, place, sink),
            (_, Self::Mcp(voice)) => voice.payload(payload, place, sink),
        }
    }

    /// A whole JSON body, which ends at `end`.
    pub(crate) fn body(&mut self, body: &[u8], end: u64, sink: &mut impl FnMut(Framed<'_>)) {
        let place = Place::of_body(end);
        match self {
            Self::OpenAi(voice) => voice.payload(body, place, sink),
            Self::Converse(voice) => voice.body(body, place, sink),
            Self::Invoke(voice) => voice.body(body, place, sink),
            Self::Messages(voice) => voice.body(body, place, sink),
            Self::Responses(voice) => voice.body(body, place, sink),
            Self::AgentCore(voice) => voice.body(body, place, sink),
            Self::Mcp(voice) => voice.payload(body, place, sink),
        }
    }

    /// One frame of an Amazon event stream.
    pub(crate) fn frame(&mut self, frame: &Frame<'_>, sink: &mut impl FnMut(Framed<'_>)) {
        match self {
            Self::Converse(voice) => voice.frame(frame, sink),
            Self::Invoke(voice) => voice.frame(frame, sink),
            // Frames choose one of these two.
            _ => {}
        }
    }

    /// All that was passed over.
    pub(crate) fn counts(&self) -> Counts {
        match self {
            Self::OpenAi(voice) => voice.counts,
            Self::Converse(voice) => voice.counts,
            Self::Invoke(voice) => voice.counts(),
            Self::Messages(voice) => voice.counts,
            Self::Responses(voice) => voice.counts,
            Self::AgentCore(voice) => voice.counts(),
            Self::Mcp(voice) => voice.counts,
        }
    }
}
