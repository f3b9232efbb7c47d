//! Bedrock's InvokeModel: the model's native JSON, as a body or in frames of a stream. A frame's event is a
//! `chunk` whose payload `{"bytes":"<base64>","p":"<padding>"}` holds one native event
//! (<https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModelWithResponseStream.html>);
//! exceptions are framed as Converse's are. Text that only pads a frame (`p`) is no content.
//!
//! Which native form it is, the JSON itself tells, since the model's name need not: an imported model is an ARN.
//! `generation` is Llama's, `choices` is OpenAI's (imported models take and give it), `type` is Anthropic's. Of a
//! stream the first event that is one of the last two decides, so that later ones are parsed once. A body that
//! is none of these is read as Converse's, which Nova's is, and an error's `message` too. Native events of other
//! families are unknown; the service's own members are read from them all the same.
//!
//! A stream ends with the event that carries `amazon-bedrock-invocationMetrics`, which the service adds to the
//! model's last event; where a gateway took it away, with Anthropic's `message_stop` or with Llama's event whose
//! `stop_reason` is not null. One that has neither is incomplete.

#[cfg(test)]
mod tests;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::bedrock::Added;
use crate::converse::Converse;
use crate::decoder::{Counts, Framed};
use crate::event::{Field, FinishReason, StreamEvent, Usage};
use crate::eventstream::Frame;
use crate::messages::Messages;
use crate::openai::Interpreter;
use crate::payload::{Events, NOTHING, Place, text};
use crate::text::Text;
use crate::tokens::Tokens;

/// A buffer larger than this is given back after the event that needed it.
const RETAINED_BYTES: usize = 16 << 10;

const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Turns frames and bodies into events; knows what must be remembered from one to the next.
#[derive(Debug, Default)]
pub(crate) struct Invoke {
    counts: Counts,
    converse: Converse,
    messages: Messages,
    openai: Interpreter,
    /// What the stream's events are, once one told that has a reader of its own.
    family: Option<Family>,
    /// Counts of a family that has no reader of its own.
    tokens: Tokens,
    /// The model gave its own counts, in a form that has more than the service's.
    counted: bool,
    /// The native event of a frame, decoded.
    native: Vec<u8>,
}

/// The payload of a `chunk`.
#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    bytes: Option<Text<'a>>,
}

/// What tells the families apart, and all that Llama says.
#[derive(Deserialize)]
struct Native<'a> {
    #[serde(default, rename = "type")]
    kind: Option<IgnoredAny>,
    #[serde(default)]
    choices: Option<IgnoredAny>,
    #[serde(default)]
    error: Option<IgnoredAny>,
    #[serde(borrow, default)]
    generation: Option<Text<'a>>,
    #[serde(default)]
    prompt_token_count: Option<u64>,
    #[serde(default)]
    generation_token_count: Option<u64>,
    #[serde(borrow, default)]
    stop_reason: Option<Text<'a>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Llama,
    OpenAi,
    Anthropic,
    Other,
}

impl Native<'_> {
    fn family(&self) -> Family {
        if self.generation.is_some() || self.generation_token_count.is_some() {
            Family::Llama
        } else if self.choices.is_some() {
            Family::OpenAi
        } else if self.kind.is_some() {
            Family::Anthropic
        } else if self.error.is_some() {
            Family::OpenAi
        } else {
            Family::Other
        }
    }
}

impl Invoke {
    /// All that was passed over.
    pub(crate) fn counts(&self) -> Counts {
        let models = self.messages.counts.plus(self.openai.counts);
        self.counts.plus(self.converse.counts).plus(models)
    }

    /// One frame of a stream.
    pub(crate) fn frame(&mut self, frame: &Frame<'_>, sink: &mut impl FnMut(Framed<'_>)) {
        let chunk = frame.header(":event-type") == Some("chunk")
            && frame.header(":message-type") == Some("event");
        if !chunk {
            return self.converse.frame(frame, sink);
        }
        let place = Place::of_frame(frame.end);
        let chunk = self.counts.read::<Chunk<'_>>(frame.payload, place, sink);
        let Some((chunk, _)) = chunk else { return };
        let Some(bytes) = chunk.bytes else {
            return self.counts.unknown(place, sink);
        };
        let mut native = std::mem::take(&mut self.native);
        match BASE64.decode_vec(bytes.as_str(), &mut native) {
            Ok(()) => self.event(&native, place, sink),
            Err(_) => self.counts.malformed += 1,
        }
        native.clear();
        native.shrink_to(RETAINED_BYTES);
        self.native = native;
    }

    /// A native event of a stream.
    pub(crate) fn event(
        &mut self,
        payload: &[u8],
        place: Place,
        sink: &mut impl FnMut(Framed<'_>),
    ) {
        self.native(payload, place, true, sink);
    }

    /// A whole JSON body.
    pub(crate) fn body(&mut self, payload: &[u8], place: Place, sink: &mut impl FnMut(Framed<'_>)) {
        self.native(payload, place, false, sink);
    }

    fn native(
        &mut self,
        payload: &[u8],
        place: Place,
        stream: bool,
        sink: &mut impl FnMut(Framed<'_>),
    ) {
        let Some(json) = self.counts.utf8(payload, place) else {
            return;
        };
        let added = Added::of(json);
        self.counts.unknown += u64::from(added.odd);
        let family = if let Some(family) = self.family {
            family
        } else {
            let native = self.counts.read::<Native<'_>>(payload, place, sink);
            let Some((native, _)) = native else { return };
            let family = native.family();
            if family == Family::Llama {
                return self.llama(&native, added, (place, stream), sink);
            }
            self.family = Some(family).filter(|family| *family != Family::Other);
            family
        };
        let mut counted = self.counted;
        let usage = self.usage(family, added);
        let mut sink = |framed: Framed<'_>| {
            counted |= family == Family::OpenAi && has_usage(framed.events);
            let usage = usage.filter(|_| !counted);
            with(added, usage, stream, framed, sink);
        };
        match (family, stream) {
            (Family::OpenAi, _) => self.openai.payload(payload, place, &mut sink),
            (Family::Anthropic, true) => self.messages.event(payload, place, &mut sink),
            (Family::Anthropic, false) => self.messages.body(payload, place, &mut sink),
            (_, true) => self.counts.unknown(place, &mut sink),
            (_, false) => self.converse.body(payload, place, &mut sink),
        }
        self.counted = counted;
    }

    /// All counts there are once the service's own came; `None` before.
    fn usage(&mut self, family: Family, added: Added) -> Option<Usage> {
        let tokens = match family {
            Family::Anthropic => &mut self.messages.tokens,
            _ => &mut self.tokens,
        };
        tokens.update(added.metrics?.0);
        tokens.usage()
    }

    fn llama(
        &mut self,
        native: &Native<'_>,
        added: Added,
        (place, stream): (Place, bool),
        sink: &mut impl FnMut(Framed<'_>),
    ) {
        let mut events = Events::new();
        let generation = native.generation.as_ref().map_or("", |text| text.as_str());
        events.extend(text(Field::Content, 0, generation));
        let reason = native.stop_reason.as_ref().map(|raw| raw.as_str());
        events.extend(reason.map(|raw| StreamEvent::Finish {
            choice: 0,
            reason: FinishReason::from_raw(raw),
            raw,
        }));
        let before = self.tokens;
        self.tokens.update(Tokens {
            input: native.prompt_token_count,
            output: native.generation_token_count,
            ..Tokens::default()
        });
        if let Some((more, _)) = added.metrics {
            self.tokens.update(more);
        }
        let usage = self.tokens.usage().filter(|_| self.tokens != before);
        push(added, usage, &mut events);
        if stream && (reason.is_some() || added.metrics.is_some()) {
            events.push(StreamEvent::Done);
        }
        if events.is_empty() {
            events.push(NOTHING);
        }
        place.give(&events, true, sink);
    }
}

fn has_usage(events: &[StreamEvent<'_>]) -> bool {
    let usage = |event: &StreamEvent<'_>| matches!(event, StreamEvent::Usage(_));
    events.iter().any(usage)
}

/// Gives a model's event together with what the service added to it, which goes before the end.
fn with(
    added: Added,
    usage: Option<Usage>,
    stream: bool,
    framed: Framed<'_>,
    sink: &mut impl FnMut(Framed<'_>),
) {
    if added == Added::default() {
        return sink(framed);
    }
    let done = |event: &StreamEvent<'_>| matches!(event, StreamEvent::Done);
    let said = framed.events.iter().filter(|event| !done(event));
    let mut events: Events<'_> = said.copied().collect();
    push(added, usage, &mut events);
    if framed.events.iter().any(done) || (stream && added.metrics.is_some()) {
        events.push(StreamEvent::Done);
    }
    sink(Framed {
        events: &events,
        ..framed
    });
}

/// What the service added, as events.
fn push(added: Added, usage: Option<Usage>, events: &mut Events<'_>) {
    events.extend(usage.map(StreamEvent::Usage));
    events.extend(added.metrics.map(|(_, server)| StreamEvent::Server(server)));
    events.extend(added.guardrail.map(StreamEvent::Guardrail));
}
