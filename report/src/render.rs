//! The report as a page, as Markdown, as JSON.

mod capacity;
mod contrasts;
mod html;
mod markdown;
mod probes;
mod server;
mod words;

pub use html::html;
pub use markdown::markdown;
#[cfg(test)]
pub(crate) use words::{cached, sent};

use crate::Report;

/// The report as JSON.
///
/// # Errors
/// None in practice: every value of the model has a JSON form.
pub fn json(report: &Report) -> serde_json::Result<String> {
    serde_json::to_string_pretty(report)
}
