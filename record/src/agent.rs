//! What an agent's driver did beside calling the model: rows of `tools.parquet`, and the filter check.

use crate::clock::Nanos;
use serde::{Deserialize, Serialize};

/// How a tool call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolOutcome {
    /// The tool ran and gave a result.
    Answered,
    /// The tool ran and says that it failed (`isError`): its latency is one all the same.
    ToolError,
    /// The server refused the call: no such tool, or not for this key.
    Refused,
    /// No answer: no session, or the connection failed.
    Transport,
    /// The call's time ran out: its latency is a lower bound.
    TimedOut,
    /// Still running when the cell ended: its latency is a lower bound.
    CutOff,
    /// The model's arguments are no JSON object, or it called a tool that was not asked for. Nothing was sent.
    Unusable,
    /// The model was told to call the tool and did not. Nothing was sent.
    NotCalled,
}

impl ToolOutcome {
    /// The word used in every output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::ToolError => "tool-error",
            Self::Refused => "refused",
            Self::Transport => "transport",
            Self::TimedOut => "timed-out",
            Self::CutOff => "cut-off",
            Self::Unusable => "unusable",
            Self::NotCalled => "not-called",
        }
    }

    /// A tool ran to its end: the latency is a value and no lower bound.
    #[must_use]
    pub fn ran(self) -> bool {
        matches!(self, Self::Answered | Self::ToolError)
    }
}

/// One tool call of an agent's turn. It lies between the end of the turn's model call (the row of
/// `calls.parquet` with the same `cell` and `seq`) and the begin of the next turn's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolUse {
    /// Index of the cell in the manifest.
    pub cell: u32,
    /// Number of the model call that asked for it, within the cell.
    pub seq: u64,
    /// The task, from 0.
    pub task: u32,
    /// The turn, from 0.
    pub turn: u16,
    /// Which tool call of the turn, from 0.
    pub index: u16,
    /// The tool, as it was to be called.
    pub tool: String,
    /// The call was handed to the MCP client.
    pub begin: Nanos,
    /// Its result was there, or it was given up. Equal to `begin` where nothing was sent.
    pub end: Nanos,
    /// How it ended.
    pub outcome: ToolOutcome,
    /// What went wrong, in a few words, without content.
    pub fault: Option<String>,
    /// Bytes of the arguments, as the model wrote them; `None` where it called nothing.
    pub argument_bytes: Option<u64>,
    /// Bytes of the result's text; `None` without a result.
    pub result_bytes: Option<u64>,
}

impl ToolUse {
    /// Tool time, nanoseconds: from the hand-over to the MCP client to the result, its transport included.
    #[must_use]
    pub fn latency(&self) -> u64 {
        self.end.saturating_sub(self.begin)
    }
}

/// What the check of a tool filter found: what a key that may not use some tools could do with them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFilter {
    /// The server.
    pub server: String,
    /// Tools that the run's own key sees.
    pub offered: u32,
    /// Tools that the restricted key sees; `None` where the server gave it no session at all.
    pub seen: Option<u32>,
    /// What it may not use.
    pub may_not: Vec<String>,
    /// Of these, what it saw in the list.
    pub listed: Vec<String>,
    /// Of these, what ran when it was called by name, with the examples of its schema as arguments.
    pub ran: Vec<String>,
    /// Of these, what was not tried by name: such a call fails with the run's own key as well, so that a
    /// refusal would show nothing.
    pub untried: Vec<String>,
}

impl ToolFilter {
    /// The restricted key neither saw nor ran anything that it may not use.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.listed.is_empty() && self.ran.is_empty()
    }
}
