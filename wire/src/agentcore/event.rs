//! The JSON of events and bodies: only the members acted on.

use crate::converse::event::Event;
use crate::text::Text;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use smallvec::SmallVec;

/// An object that an agent yields.
#[derive(Debug, Deserialize)]
pub(super) struct Said<'a> {
    #[serde(borrow, default)]
    pub(super) event: Option<Model<'a>>,
    #[serde(borrow, default)]
    pub(super) data: Option<Text<'a>>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    /// The class of a Python exception, as the SDK names it.
    #[serde(borrow, default)]
    pub(super) error_type: Option<Text<'a>>,
    #[serde(default)]
    pub(super) jsonrpc: Option<IgnoredAny>,
    #[serde(default)]
    init_event_loop: Option<IgnoredAny>,
    #[serde(default)]
    start: Option<IgnoredAny>,
    #[serde(default)]
    start_event_loop: Option<IgnoredAny>,
}

impl Said<'_> {
    /// One of the events with which Strands begins, before any of a model.
    pub(super) fn structures(&self) -> bool {
        self.init_event_loop.is_some() || self.start.is_some() || self.start_event_loop.is_some()
    }
}

/// A model's event under the name of its type, as Converse streams it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Model<'a> {
    #[serde(borrow, default)]
    message_start: Option<Event<'a>>,
    #[serde(borrow, default)]
    content_block_start: Option<Event<'a>>,
    #[serde(borrow, default)]
    content_block_delta: Option<Event<'a>>,
    #[serde(borrow, default)]
    content_block_stop: Option<Event<'a>>,
    #[serde(borrow, default)]
    message_stop: Option<Event<'a>>,
    #[serde(borrow, default)]
    pub(super) metadata: Option<Event<'a>>,
}

impl<'a> Model<'a> {
    /// The event and its type, unless it is `metadata` or none of these.
    pub(super) fn of_message(&self) -> Option<(&'static str, &Event<'a>)> {
        let events = [
            ("contentBlockDelta", &self.content_block_delta),
            ("messageStart", &self.message_start),
            ("contentBlockStart", &self.content_block_start),
            ("contentBlockStop", &self.content_block_stop),
            ("messageStop", &self.message_stop),
        ];
        events
            .into_iter()
            .find_map(|(kind, event)| Some((kind, event.as_ref()?)))
    }
}

/// A body.
#[derive(Debug, Deserialize)]
pub(super) struct Answer<'a> {
    #[serde(borrow, default)]
    pub(super) result: Option<Spoken<'a>>,
    #[serde(borrow, default)]
    pub(super) response: Option<Spoken<'a>>,
    #[serde(borrow, default)]
    pub(super) error: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) error_type: Option<Text<'a>>,
    /// The service's own refusal.
    #[serde(borrow, default, alias = "Message")]
    pub(super) message: Option<Text<'a>>,
    #[serde(default)]
    pub(super) jsonrpc: Option<IgnoredAny>,
}

/// Text, a message of text, or something else.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Spoken<'a> {
    Text(#[serde(borrow)] Text<'a>),
    Message {
        #[serde(borrow)]
        content: SmallVec<[Part<'a>; 1]>,
    },
    Other(IgnoredAny),
}

#[derive(Debug, Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow, default)]
    text: Option<Text<'a>>,
}

impl Spoken<'_> {
    pub(super) fn pieces(&self) -> impl Iterator<Item = &str> {
        let (whole, parts) = match self {
            Self::Text(text) => (Some(text.as_str()), None),
            Self::Message { content } => (None, Some(content)),
            Self::Other(_) => (None, None),
        };
        let parts = parts.into_iter().flatten();
        let texts = parts.filter_map(|part| Some(part.text.as_ref()?.as_str()));
        whole.into_iter().chain(texts)
    }
}
