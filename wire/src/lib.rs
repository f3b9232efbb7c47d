//! What is on the wire: dialects and incremental decoders to typed stream events. No I/O, no async, no clock.
//!
//! The way of a byte: [`Decoder::feed`] takes whatever one read returned, [`sse`] or [`eventstream`] frames it
//! into events, the dialect turns each event's JSON into [`StreamEvent`]s, and the caller's sink gets one
//! [`Framed`] per event with the body offset at which it ended. Any split of the same bytes gives
//! the same events: a caller dates an event by the read that carried its last byte.

mod agentcore;
mod bedrock;
mod converse;
mod decoder;
mod dialect;
mod event;
pub mod eventstream;
mod fault;
mod guardrail;
mod id;
mod invoke;
mod mcp;
mod messages;
mod openai;
mod payload;
pub mod request;
mod responses;
pub mod sse;
mod text;
mod tokens;
mod tools;
mod voice;

pub use bedrock::HeaderFigures;
pub use decoder::{Counts, Decoder, Framed, Framing, Limits};
pub use dialect::Dialect;
pub use event::{
    Field, FinishReason, Guardrail, GuardrailUnits, ServerFigures, StreamEvent, TextDelta, Usage,
};
pub use request::RequestFacts;
