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
    // Cannot fail: the histogram grows by itself, and the value is bounded. `saturating_record`
    // would not grow it, and so record every duration as the first bucket's end.
    let _ = histogram.record(nanoseconds.min(LONGEST));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_of_every_size_are_kept_to_three_digits() {
        let mut histogram = durations();
        for value in [1, 1_000, 25_000_000, 90_000_000_000, LONGEST, LONGEST * 2] {
            add(&mut histogram, value);
        }
        assert_eq!(histogram.len(), 6);
        let median = histogram.value_at_quantile(0.5);
        assert!(median.abs_diff(25_000_000) < 25_000, "{median}");
        assert!(histogram.max().abs_diff(LONGEST) <= LONGEST / 1_000);
    }

    #[test]
    fn the_log_is_a_v2_interval_log() {
        let mut histogram = durations();
        add(&mut histogram, 5_000_000);
        let mut out = Vec::new();
        let entries = [(
            "cell0.ttft",
            Duration::from_secs(1),
            Duration::from_secs(2),
            &histogram,
        )];
        write_log(&mut out, entries.into_iter()).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.contains("Tag=cell0.ttft,1.000,2.000,"), "{text}");
    }
}
