//! OpenAI chat completions in, Bedrock's Converse out, and the answers back. No I/O, no async, no clock.
//!
//! [`request`] makes one request of the other; [`Stream`] takes the frames of a `ConverseStream` as they come and
//! writes chunks; [`answer`] and [`error`] do the same to whole bodies. What Converse cannot do is refused by name,
//! never left out in silence, unless [`Unsupported::Drop`] asks for it: a call that was asked for something else than
//! its neighbours is no measurement of the same thing.
//!
//! Sources: the [API reference of Converse](https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html)
//! and [OpenAI's of chat completions](https://platform.openai.com/docs/api-reference/chat).

mod answer;
mod error;
mod finish;
mod messages;
mod refusal;
mod request;
mod stream;
mod tools;
mod usage;

pub use answer::answer;
pub use error::error;
pub use refusal::Refusal;
pub use request::{Options, Request, Unsupported, request};
pub use stream::Stream;

/// What an answer says of itself and of the request it answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Naming {
    /// `id` of the completion: `chatcmpl-` and AWS' request id, where one is known.
    pub id: String,
    /// The model, as the client named it.
    pub model: String,
    /// Seconds since 1970.
    pub created: u64,
}
