//! The tools of an agent: sessions with an MCP server, what is offered to the model and when, what the
//! model's calls came to, and the check of the server's filter.
//!
//! Tool time is what an agent waits for: from the hand-over of a call to the MCP client (`rmcp`) until its
//! result is there, transport and client included. The sessions live on the threads that carry streams;
//! a session belongs to one worker and is opened before its first task.

mod filter;
mod kit;
mod session;
mod talk;

pub(crate) use filter::check as check_filter;
pub(crate) use kit::{Hands, Kit, Place, Step};
pub(crate) use talk::{Round, Talk};

use config::scenario::AgentEndpoint;

/// The body that gives a black box its task. Prompts are plain words: nothing in them needs escaping.
pub(crate) fn body_for(endpoint: &AgentEndpoint, prompt: &str) -> bytes::Bytes {
    endpoint.body.replace("{prompt}", prompt).into()
}
