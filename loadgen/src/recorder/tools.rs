//! Tool calls of agents, on disk.

use record::agent::ToolUse;
use record::rundir::{RunDir, RunDirError, SEGMENT, SegmentWriter, TOOLS};
use std::path::PathBuf;

/// See the module. The directory is made with the first call.
pub(super) struct ToolLog {
    dir: PathBuf,
    segments: Option<SegmentWriter<ToolUse>>,
}

impl ToolLog {
    pub(super) fn of(run: &RunDir) -> Self {
        Self {
            dir: run.root().join(TOOLS),
            segments: None,
        }
    }

    pub(super) fn take(&mut self, one: &ToolUse) -> Result<(), RunDirError> {
        let segments = match &mut self.segments {
            Some(segments) => segments,
            none => none.insert(SegmentWriter::create(&self.dir, TOOLS, SEGMENT)?),
        };
        segments.append(one)
    }

    pub(super) fn sync(&mut self) -> Result<(), RunDirError> {
        self.segments.as_mut().map_or(Ok(()), SegmentWriter::sync)
    }
}
