//! The bundled tool server: what the agents of a run call over MCP (streamable HTTP).
//!
//! | tool | what it does | bounds |
//! |---|---|---|
//! | `web_search` | ranks the documents of a small corpus that is built in (BM25) | 10 hits |
//! | `database_query` | one `SELECT` on a small SQLite database in memory | 50 rows, 32 KiB, 250 ms |
//! | `calculate` | arithmetic | 64 levels, 1000 characters |
//!
//! Everything is built in and the same for everybody: a run needs no network and no index, and tool time
//! is a property of the chain and not of the day. What each bearer key may use can be restricted
//! ([`ToolsOptions::allow`]): a tool that a key may not use is neither listed nor called, which gives the
//! check of a tool filter its truth.

mod access;
mod calculate;
mod database;
mod search;
mod serve;
mod server;

pub use access::{Allow, ToolsOptions};
pub use calculate::evaluate;
pub use serve::serve;

/// Names of the tools, in the order in which they are listed.
pub const TOOLS: [&str; 3] = ["web_search", "database_query", "calculate"];

#[cfg(test)]
mod tests;
