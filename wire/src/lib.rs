//! What is on the wire: dialects and incremental decoders to typed stream events. No I/O, no async, no clock.
//!
//! The way of a byte: [`Decoder::feed`] takes whatever one read returned, [`sse`] or [`eventstream`] frames it
//! into events, the dialect turns each event's JSON into [`StreamEvent`]s, and the caller's sink gets one
//! [`Framed`] per event with the body offset at which it ended. Any split of the same bytes gives
//! the same events: a caller dates an event by the read that carried its last byte.

mod converse;
mod decoder;
mod dialect;
mod event;
pub mod eventstream;
mod openai;
pub mod request;
pub mod sse;
mod text;

pub use decoder::{Counts, Decoder, Framed, Framing, Limits};
pub use dialect::Dialect;
pub use event::{Field, FinishReason, StreamEvent, TextDelta, Usage};
pub use request::RequestFacts;
