//! What components' metrics said during a run: segments while it goes on, a Parquet table at its end.

use super::parquet::{Table, write_rows};
use super::{Records, RunDir, RunDirError};
use crate::scrape::Look;

/// The kind of the segments, and the name of their directory.
pub const SCRAPES: &str = "scrapes";

impl RunDir {
    /// Every look, in the order of time, with what could not be read; none where the run looked at nothing.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn read_looks(&self) -> Result<(Vec<Look>, Vec<String>), RunDirError> {
        let mut records = self.stream_looks()?;
        let mut looks: Vec<Look> = records.by_ref().collect();
        looks.sort_by_key(|look| look.at);
        Ok((looks, records.into_losses()))
    }

    /// Every look, one at a time, as they were written down.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn stream_looks(&self) -> Result<Records<Look>, RunDirError> {
        let dir = self.root().join(SCRAPES);
        match dir.exists() {
            true => Records::open(&dir, SCRAPES),
            false => Ok(Records::none()),
        }
    }
}

fn int(value: u64) -> Option<i64> {
    i64::try_from(value).ok()
}

/// Writes `scrapes.parquet`: a row a look, a column for each of `figures`. Instants are `CLOCK_MONOTONIC`
/// nanoseconds; a figure that a page had not is null.
///
/// # Errors
/// The file cannot be written.
pub fn write_looks(
    run: &RunDir,
    looks: impl Iterator<Item = Look>,
    figures: &[&'static str],
) -> Result<(), RunDirError> {
    let path = run.root().join("scrapes.parquet");
    write_rows(&path, looks, |looks| table(looks, figures))
}

fn table(looks: &[Look], figures: &[&'static str]) -> Table {
    let mut t = Table::default();
    t.int("at_ns", looks.iter().map(|l| int(l.at)));
    t.int("took_ns", looks.iter().map(|l| int(l.took)));
    t.int("cell", looks.iter().map(|l| Some(i64::from(l.cell))));
    t.int("cells", looks.iter().map(|l| Some(i64::from(l.cells))));
    t.text("chain", looks.iter().map(|l| Some(l.chain.clone())));
    t.text("component", looks.iter().map(|l| Some(l.component.clone())));
    t.text("fault", looks.iter().map(|l| l.fault.clone()));
    for figure in figures {
        t.float(figure, looks.iter().map(|l| l.value(figure)));
    }
    t
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rundir::SegmentWriter;

    #[test]
    fn looks_are_read_back_and_a_run_without_any_has_none() {
        let dir = tempfile::tempdir().unwrap();
        let run = RunDir::create(dir.path()).unwrap();
        assert_eq!(run.read_looks().unwrap(), (Vec::new(), Vec::new()));
        let good = Look {
            cell: 1,
            cells: 1,
            chain: "c".to_owned(),
            component: "vllm".to_owned(),
            at: 20,
            took: 3,
            values: vec![("prefix_hits".to_owned(), 64.0)],
            fault: None,
        };
        let gap = Look {
            at: 10,
            values: Vec::new(),
            fault: Some("refused".to_owned()),
            ..good.clone()
        };
        let path = dir.path().join(SCRAPES);
        let mut writer = SegmentWriter::create(&path, SCRAPES, 1 << 20).unwrap();
        for look in [&good, &gap] {
            writer.append(look).unwrap();
        }
        writer.sync().unwrap();
        let (found, lost) = run.read_looks().unwrap();
        assert_eq!((found.as_slice(), lost.len()), ([gap, good].as_slice(), 0));
        write_looks(&run, found.into_iter(), &["prefix_hits", "running"]).unwrap();
        assert!(dir.path().join("scrapes.parquet").is_file());
    }
}
