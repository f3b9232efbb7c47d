//! The rows of which an exchange has many, written compactly.

use serde::{Deserialize, Serialize};

use super::Field;

type TokenRow = (u16, Field, u16, u64, Option<u64>, u64, u64);
type SegmentRow = (Direction, u64, u64, u64, u64, u64);

/// The end of a piece of text. On disk a row in the order of the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "TokenRow", into = "TokenRow")]
pub struct TokenTruth {
    /// `choices[].index`.
    pub choice: u16,
    /// Which text of the choice.
    pub field: Field,
    /// `tool_calls[].index` for [`Field::ToolArguments`], otherwise 0.
    pub tool: u16,
    /// Cumulative decoded UTF-8 bytes of this (choice, field, tool) after this piece.
    pub end_text_offset: u64,
    /// When the read that completed its event returned, ns; `None` where the text was not read from an
    /// upstream (an engine, a cache hit).
    pub read_at: Option<u64>,
    /// Immediately before the first call of the write that carried the last byte of its event, ns.
    pub write_begin: u64,
    /// Right after the last call of that write, ns.
    pub write_end: u64,
}

impl From<TokenRow> for TokenTruth {
    fn from(row: TokenRow) -> Self {
        let (choice, field, tool, end_text_offset, read_at, write_begin, write_end) = row;
        Self {
            choice,
            field,
            tool,
            end_text_offset,
            read_at,
            write_begin,
            write_end,
        }
    }
}

impl From<TokenTruth> for TokenRow {
    fn from(token: TokenTruth) -> Self {
        (
            token.choice,
            token.field,
            token.tool,
            token.end_text_offset,
            token.read_at,
            token.write_begin,
            token.write_end,
        )
    }
}

/// Which way bytes went through a relay.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the client to the upstream.
    Up,
    /// From the upstream to the client.
    Down,
}

/// One read of a relay and the write that passed it on. On disk a row in the order of the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "SegmentRow", into = "SegmentRow")]
pub struct SegmentTruth {
    /// Which way.
    pub direction: Direction,
    /// Bytes of the connection in this direction before this read.
    pub begin_offset: u64,
    /// Bytes of the connection in this direction after this read.
    pub end_offset: u64,
    /// When the read returned, ns.
    pub read_at: u64,
    /// Immediately before the first write call, ns.
    pub write_begin: u64,
    /// Right after the last write call, ns.
    pub write_end: u64,
}

impl From<SegmentRow> for SegmentTruth {
    fn from(row: SegmentRow) -> Self {
        let (direction, begin_offset, end_offset, read_at, write_begin, write_end) = row;
        Self {
            direction,
            begin_offset,
            end_offset,
            read_at,
            write_begin,
            write_end,
        }
    }
}

impl From<SegmentTruth> for SegmentRow {
    fn from(segment: SegmentTruth) -> Self {
        (
            segment.direction,
            segment.begin_offset,
            segment.end_offset,
            segment.read_at,
            segment.write_begin,
            segment.write_end,
        )
    }
}
