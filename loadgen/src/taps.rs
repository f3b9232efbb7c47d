//! The taps' records: read while a run goes on, and gathered into the run directory at its end. One exchange
//! at a time: a run of days does not fit into memory.

use crate::{LoadError, PlannedTap};
use record::clock::Nanos;
use record::exchange::Exchange;
use record::manifest::TapHealth;
use record::pairing::Call;
use record::rundir::{
    EXCHANGES, PairedCalls, Records, RunDir, SEGMENT, SegmentWriter, read_health, write_health,
};
use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::path::Path;
use std::time::Duration;

/// A tap syncs its record each second; its meter hands an exchange on within a tenth more.
pub(crate) const SETTLE: Duration = Duration::from_millis(1_300);

/// The directory `dir` and its segments can be read; else the error that says what to name.
fn there(dir: &Path) -> Result<&Path, LoadError> {
    let told = |e: std::io::Error| LoadError::TapRecords {
        dir: dir.to_owned(),
        what: format!("cannot be read ({e}); name the directory of `hopscope tap --record`"),
    };
    for entry in std::fs::read_dir(dir).map_err(told)? {
        let path = entry.map_err(told)?.path();
        if path.extension().is_some_and(|kind| kind == "seg") {
            std::fs::File::open(path).map_err(told)?;
        }
    }
    Ok(dir)
}

/// The calls since `from`, paired. A torn last frame is a record that the tap is writing now.
pub(crate) fn calls(
    taps: &[PlannedTap],
    from: Nanos,
) -> Result<impl Iterator<Item = Call>, LoadError> {
    for tap in taps {
        there(&tap.records)?;
    }
    let dirs = taps.iter().map(|tap| tap.records.clone());
    Ok(PairedCalls::of(dirs, from)?)
}

/// Tells exchanges that were seen already: no tap begins and closes two in the same nanoseconds. Of each it
/// remembers 64 bits.
#[derive(Default)]
pub(crate) struct Known {
    seen: HashSet<u64>,
    hash: RandomState,
}

impl Known {
    /// Whether `exchange` comes for the first time.
    pub(crate) fn is_new(&mut self, exchange: &Exchange) -> bool {
        let marks = &exchange.marks;
        let identity = (marks.begin.at, marks.closed, exchange.position);
        self.seen.insert(self.hash.hash_one(identity))
    }
}

/// Puts the exchanges of the run into its directory, tap process by tap process. Those that an earlier
/// end of the run has put there stay.
pub(crate) fn gather(
    run: &RunDir,
    taps: &[PlannedTap],
    from: Nanos,
) -> Result<Vec<TapHealth>, LoadError> {
    let mut known = Known::default();
    for tap in run.taps()? {
        for exchange in run.stream_exchanges(&tap)? {
            known.is_new(&exchange);
        }
    }
    // Of a run that ends for the first time there is nothing to remember: its taps are all different.
    let mut again = (!known.seen.is_empty()).then_some(known);
    let mut healths = Vec::new();
    for (number, tap) in taps.iter().enumerate() {
        let health = read_health(there(&tap.records)?)?.unwrap_or_default();
        let named = if health.instance.is_empty() {
            "tap"
        } else {
            health.instance.as_str()
        };
        let dir = run.tap(&if number == 0 {
            named.to_owned()
        } else {
            format!("{named}-{number}")
        });
        let mut writer = SegmentWriter::create(&dir, EXCHANGES, SEGMENT)?;
        let of_run = |one: &Exchange| one.marks.begin.at >= from;
        let mut record = Records::open(&tap.records, EXCHANGES)?;
        for exchange in record.by_ref().filter(of_run) {
            if again.as_mut().is_none_or(|known| known.is_new(&exchange)) {
                writer.append(&exchange)?;
            }
        }
        writer.sync()?;
        for loss in record.losses() {
            tracing::warn!(%loss, "a part of a tap's record is left out");
        }
        write_health(&dir, &health)?;
        healths.push(health);
    }
    Ok(healths)
}
