//! HDR histograms of durations, and their log on disk.

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2Serializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use std::io::{self, Write};
use std::time::Duration;

/// Longest duration kept apart; longer ones count as this. One hour, in nanoseconds.
pub const LONGEST: u64 = 3_600_000_000_000;

/// An empty histogram of nanoseconds up to [`LONGEST`], exact to three digits.
#[must_use]
pub fn durations() -> Histogram<u64> {
    let mut histogram = Histogram::new(3).unwrap_or_else(|_| unreachable!("3 digits is in range"));
    histogram.auto(true);
    histogram
}

/// Adds a duration; longer than [`LONGEST`] counts as that.
pub fn add(histogram: &mut Histogram<u64>, nanoseconds: u64) {
    histogram.saturating_record(nanoseconds.min(LONGEST));
}

/// Writes a V2 interval log: one entry a name, readable by every HdrHistogram tool.
///
/// # Errors
/// The writer fails.
pub fn write_log<'a>(
    out: &mut impl Write,
    entries: impl Iterator<Item = (&'a str, Duration, Duration, &'a Histogram<u64>)>,
) -> io::Result<()> {
    let mut serializer = V2Serializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("hopscope: durations in nanoseconds")
        .begin_log_with(out, &mut serializer)?;
    for (name, start, length, histogram) in entries {
        let tag = Tag::new(name);
        log.write_histogram(histogram, start, length, tag)
            .map_err(|e| io::Error::other(format!("{e:?}")))?;
    }
    Ok(())
}
