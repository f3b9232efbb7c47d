//! The tool calls of a run: segments while it goes on, a Parquet table at its end.

use super::parquet::{Table, write_rows};
use super::{Records, RunDir, RunDirError};
use crate::agent::ToolUse;

/// The kind of the segments, and the name of their directory.
pub const TOOLS: &str = "tools";

impl RunDir {
    /// Every tool call, with what could not be read; none where the run has no agent with tools.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn read_tools(&self) -> Result<(Vec<ToolUse>, Vec<String>), RunDirError> {
        let mut records = self.stream_tools()?;
        let all = records.by_ref().collect();
        Ok((all, records.into_losses()))
    }

    /// Every tool call, one at a time.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn stream_tools(&self) -> Result<Records<ToolUse>, RunDirError> {
        let dir = self.root().join(TOOLS);
        match dir.exists() {
            true => Records::open(&dir, TOOLS),
            false => Ok(Records::none()),
        }
    }
}

fn int(value: u64) -> Option<i64> {
    i64::try_from(value).ok()
}

/// Writes `tools.parquet`. Instants are `CLOCK_MONOTONIC` nanoseconds; `cell` and `seq` name the model call
/// in `calls.parquet`.
///
/// # Errors
/// The file cannot be written.
pub fn write_tools(run: &RunDir, uses: impl Iterator<Item = ToolUse>) -> Result<(), RunDirError> {
    write_rows(&run.root().join("tools.parquet"), uses, table)
}

fn table(uses: &[ToolUse]) -> Table {
    let mut t = Table::default();
    t.int("cell", uses.iter().map(|u| Some(i64::from(u.cell))));
    t.int("seq", uses.iter().map(|u| int(u.seq)));
    t.int("task", uses.iter().map(|u| Some(i64::from(u.task))));
    t.int("turn", uses.iter().map(|u| Some(i64::from(u.turn))));
    t.int("index", uses.iter().map(|u| Some(i64::from(u.index))));
    t.text("tool", uses.iter().map(|u| Some(u.tool.clone())));
    t.int("begin_ns", uses.iter().map(|u| int(u.begin)));
    t.int("end_ns", uses.iter().map(|u| int(u.end)));
    t.int("latency_ns", uses.iter().map(|u| int(u.latency())));
    t.text(
        "outcome",
        uses.iter().map(|u| Some(u.outcome.name().to_owned())),
    );
    t.text("fault", uses.iter().map(|u| u.fault.clone()));
    t.int(
        "argument_bytes",
        uses.iter().map(|u| u.argument_bytes.and_then(int)),
    );
    t.int(
        "result_bytes",
        uses.iter().map(|u| u.result_bytes.and_then(int)),
    );
    t
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::ToolOutcome;
    use crate::rundir::SegmentWriter;

    #[test]
    fn tool_calls_are_read_back_and_a_run_without_any_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::create(dir.path()).unwrap();
        assert_eq!(run.read_tools().unwrap(), (Vec::new(), Vec::new()));
        let one = ToolUse {
            cell: 3,
            seq: 7,
            task: 1,
            turn: 2,
            index: 0,
            tool: "calculate".to_owned(),
            begin: 10,
            end: 35,
            outcome: ToolOutcome::ToolError,
            fault: None,
            argument_bytes: Some(4),
            result_bytes: None,
        };
        let mut writer = SegmentWriter::create(&dir.path().join(TOOLS), TOOLS, 1 << 20).unwrap();
        writer.append(&one).unwrap();
        writer.sync().unwrap();
        let (found, lost) = run.read_tools().unwrap();
        assert_eq!(
            (found.as_slice(), lost.len()),
            ([one.clone()].as_slice(), 0)
        );
        assert_eq!(one.latency(), 25);
        write_tools(&run, found.into_iter()).unwrap();
        assert!(dir.path().join("tools.parquet").is_file());
    }
}
