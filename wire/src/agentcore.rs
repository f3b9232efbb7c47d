//! Bedrock AgentCore's runtime: what an agent answers, which is the agent's own form
//! (<https://docs.aws.amazon.com/bedrock-agentcore/latest/devguide/runtime-invoke-agent.html>). The runtime
//! passes it on as it comes: SSE where the agent yields, otherwise one JSON body.
//!
//! Read are: `data` that is a JSON string or plain text, as it stands; Strands' events
//! (<https://strandsagents.com/latest/documentation/docs/user-guide/concepts/streaming/>), of which `event` is
//! a model's event in Converse's form and `data` a piece of text; in a body a string, or `result` or `response`
//! with text or with a message of text; `error` as the runtime's SDK and agents write it; and JSON-RPC, since
//! MCP servers are hosted at the same path. All else is unknown, even where it holds text.
//!
//! Strands says each piece of text twice, first as `event`, then as `data`, and the SDK sends the second as a
//! string of Python's `{'data': …}` where it cannot write it as JSON. Behind an `event` both are given as empty.
//!
//! Nothing marks the end of such an answer but the end of the body. An agent asks its model several times:
//! counts are the sum so far, and the reason is that of the answer, not one that called a tool on the way.

mod event;

#[cfg(test)]
mod tests;

use crate::converse::{Converse, usage};
use crate::decoder::{Counts, Framed};
use crate::event::{Field, FinishReason, StreamEvent};
use crate::fault::Fault;
use crate::mcp::Mcp;
use crate::payload::{Events, NOTHING, Place, text};
use crate::tokens::Tokens;
use event::{Answer, Model, Said};

/// Turns events and bodies into stream events; knows what must be remembered from one to the next.
#[derive(Debug, Default)]
pub(crate) struct AgentCore {
    counts: Counts,
    converse: Converse,
    mcp: Mcp,
    /// A model's event came: `data` repeats what such events say.
    raw: bool,
    /// The counts of all model calls that ended.
    tokens: Tokens,
}

impl AgentCore {
    /// All that was passed over.
    pub(crate) fn counts(&self) -> Counts {
        self.counts.plus(self.converse.counts).plus(self.mcp.counts)
    }

    /// The data of one event of a stream, its spaces included.
    pub(crate) fn event(
        &mut self,
        payload: &[u8],
        place: Place,
        sink: &mut impl FnMut(Framed<'_>),
    ) {
        match payload.trim_ascii_start().first() {
            Some(b'{') => self.object(payload, place, sink),
            Some(b'"') => match serde_json::from_slice::<crate::text::Text<'_>>(payload) {
                Ok(string) => self.string(string.as_str(), place, sink),
                Err(error) => self.counts.unreadable(&error, place, sink),
            },
            _ => self.plain(payload, place, sink),
        }
    }

    /// A whole JSON body.
    pub(crate) fn body(&mut self, payload: &[u8], place: Place, sink: &mut impl FnMut(Framed<'_>)) {
        if payload.trim_ascii_start().starts_with(b"\"") {
            return self.event(payload, place, sink);
        }
        let Some((answer, _)) = self.counts.read::<Answer<'_>>(payload, place, sink) else {
            return;
        };
        if answer.jsonrpc.is_some() {
            return self.mcp.payload(payload, place, sink);
        }
        let fault = answer.error.map(|error| Fault::of_json(error.get()));
        if let Some(fault) = fault {
            let kind = answer.error_type.as_ref().map(|kind| kind.as_str());
            return place.give(&[fault.named(kind)], false, sink);
        }
        let mut events = Events::new();
        for said in [&answer.result, &answer.response].into_iter().flatten() {
            for piece in said.pieces() {
                events.extend(text(Field::Content, 0, piece));
            }
        }
        if events.is_empty() {
            events.extend(
                answer
                    .message
                    .as_ref()
                    .map(|message| Fault::coded(message.as_str(), None)),
            );
        }
        if events.is_empty() {
            return self.counts.unknown(place, sink);
        }
        place.give(&events, true, sink);
    }

    fn string(&mut self, string: &str, place: Place, sink: &mut impl FnMut(Framed<'_>)) {
        let python = string.starts_with("{'");
        match text(Field::Content, 0, string) {
            Some(_) if python && self.raw => place.give(&[NOTHING], false, sink),
            Some(_) if python => self.counts.unknown(place, sink),
            Some(text) => place.give(&[text], true, sink),
            None => place.give(&[NOTHING], true, sink),
        }
    }

    /// What is neither an object nor a string: text as it stands.
    fn plain(&mut self, payload: &[u8], place: Place, sink: &mut impl FnMut(Framed<'_>)) {
        let Some(plain) = self.counts.utf8(payload, place) else {
            return;
        };
        let said = text(Field::Content, 0, plain).filter(|_| plain.trim() != "null");
        place.give(&[said.unwrap_or(NOTHING)], said.is_some(), sink);
    }

    fn object(&mut self, payload: &[u8], place: Place, sink: &mut impl FnMut(Framed<'_>)) {
        let Some((said, _)) = self.counts.read::<Said<'_>>(payload, place, sink) else {
            return;
        };
        if said.jsonrpc.is_some() {
            return self.mcp.payload(payload, place, sink);
        }
        if let Some(model) = &said.event {
            self.raw = true;
            return self.model(model, place, sink);
        }
        if let Some(error) = said.error {
            let fault = Fault::of_json(error.get());
            let kind = said.error_type.as_ref().map(|kind| kind.as_str());
            return place.give(&[fault.named(kind)], false, sink);
        }
        let piece = said.data.as_ref().map(|data| data.as_str());
        match piece.and_then(|piece| text(Field::Content, 0, piece)) {
            Some(_) if self.raw => place.give(&[NOTHING], true, sink),
            Some(text) => place.give(&[text], true, sink),
            None if piece.is_some() || said.structures() || self.raw => {
                place.give(&[NOTHING], false, sink);
            }
            None => self.counts.unknown(place, sink),
        }
    }

    /// An event of the agent's model.
    fn model(&mut self, model: &Model<'_>, place: Place, sink: &mut impl FnMut(Framed<'_>)) {
        let mut events = Events::new();
        if let Some((kind, event)) = model.of_message() {
            self.converse.of_message(kind, event, &mut events);
            let called = |event: &StreamEvent<'_>| {
                matches!(
                    event,
                    StreamEvent::Finish {
                        reason: FinishReason::ToolCalls,
                        ..
                    }
                )
            };
            if events.iter().any(called) {
                events.clear();
                events.push(NOTHING);
            }
            return place.give(&events, true, sink);
        }
        let Some(metadata) = &model.metadata else {
            return self.counts.unknown(place, sink);
        };
        let tokens = metadata.usage.map(usage::read);
        self.counts.unknown += u64::from(tokens == Some(None));
        if let Some(tokens) = tokens.flatten() {
            self.tokens.add(tokens);
            events.extend(self.tokens.usage().map(StreamEvent::Usage));
        }
        if events.is_empty() {
            events.push(NOTHING);
        }
        place.give(&events, false, sink);
    }
}
