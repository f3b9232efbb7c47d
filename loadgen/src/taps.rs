//! The taps' records: read while a run goes on, and gathered into the run directory at its end.

use crate::{LoadError, PlannedTap};
use record::clock::Nanos;
use record::exchange::{Exchange, Position};
use record::manifest::TapHealth;
use record::pairing::{Call, Pairer};
use record::rundir::{RunDir, SegmentReader, SegmentWriter, read_health, write_health};
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

/// A tap syncs its record each second; its meter hands an exchange on within a tenth more.
pub(crate) const SETTLE: Duration = Duration::from_millis(1_300);
const SEGMENT: u64 = 64 << 20;

/// Every exchange that a tap process recorded since `from`.
fn read(dir: &Path, from: Nanos) -> Result<Vec<Exchange>, LoadError> {
    let wrong = |what: String| LoadError::TapRecords {
        dir: dir.to_owned(),
        what,
    };
    let entries = std::fs::read_dir(dir).map_err(|e| {
        wrong(format!(
            "cannot be read ({e}); name the directory of `hopscope tap --record`"
        ))
    })?;
    let mut paths: Vec<_> = entries.filter_map(Result::ok).map(|e| e.path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "seg"));
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let mut reader = SegmentReader::<Exchange>::open(&path)?;
        // A torn last frame is a record that the tap is writing now.
        while let Ok(Some(exchange)) = reader.next_record() {
            if exchange.marks.begin.at >= from {
                found.push(exchange);
            }
        }
    }
    Ok(found)
}

/// The calls since `from`, paired.
pub(crate) fn calls(taps: &[PlannedTap], from: Nanos) -> Result<Vec<Call>, LoadError> {
    let mut pairer = Pairer::default();
    for tap in taps {
        read(&tap.records, from)?
            .into_iter()
            .for_each(|e| pairer.offer(e));
    }
    Ok(pairer.finish())
}

/// What makes an exchange this one: no tap begins and closes two in the same nanoseconds.
pub(crate) fn identity(exchange: &Exchange) -> (Nanos, Nanos, Position) {
    (
        exchange.marks.begin.at,
        exchange.marks.closed,
        exchange.position,
    )
}

/// Puts the exchanges of the run into its directory, tap process by tap process. Those that an earlier
/// end of the run has put there stay.
pub(crate) fn gather(
    run: &RunDir,
    taps: &[PlannedTap],
    from: Nanos,
) -> Result<(Vec<Exchange>, Vec<TapHealth>), LoadError> {
    let (mut all, _) = run.read_exchanges()?;
    let known: HashSet<_> = all.iter().map(identity).collect();
    let mut healths = Vec::new();
    for (number, tap) in taps.iter().enumerate() {
        let mut exchanges = read(&tap.records, from)?;
        exchanges.retain(|e| !known.contains(&identity(e)));
        let health = read_health(&tap.records)?.unwrap_or_default();
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
        let mut writer = SegmentWriter::create(&dir, "exchanges", SEGMENT)?;
        for exchange in &exchanges {
            writer.append(exchange)?;
        }
        writer.sync()?;
        write_health(&dir, &health)?;
        all.extend(exchanges);
        healths.push(health);
    }
    Ok((all, healths))
}
