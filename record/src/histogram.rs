//! HDR histograms of durations, and their log on disk.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogHistogram, IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2Serializer};
use std::collections::BTreeMap;
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

/// The value at `q`, to three digits; `None` of an empty histogram.
#[must_use]
pub fn quantile(histogram: &Histogram<u64>, q: f64) -> Option<u64> {
    (!histogram.is_empty()).then(|| histogram.value_at_quantile(q))
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

/// Reads such a log: the histograms by name, entries of one name added up (a run that was cut writes some
/// of a cell before and some after).
///
/// # Errors
/// Where it is damaged, in a few words. A line that a kill cut short is the log's end and no damage.
pub fn read_log(log: &[u8]) -> Result<BTreeMap<String, Histogram<u64>>, String> {
    let whole = log.iter().rposition(|byte| *byte == b'\n');
    let log = whole.map_or(&[][..], |end| &log[..=end]);
    let mut all: BTreeMap<String, Histogram<u64>> = BTreeMap::new();
    for entry in IntervalLogIterator::new(log) {
        let entry = entry.map_err(|error| format!("not a histogram log: {error:?}"))?;
        let LogEntry::Interval(interval) = entry else {
            continue;
        };
        let name = interval.tag().map_or("", |tag| tag.as_str()).to_owned();
        let read = decode(&interval).map_err(|what| format!("histogram {name}: {what}"))?;
        all.entry(name.clone())
            .or_insert_with(durations)
            .add(read)
            .map_err(|error| format!("histogram {name}: {error:?}"))?;
    }
    Ok(all)
}

fn decode(interval: &IntervalLogHistogram<'_>) -> Result<Histogram<u64>, String> {
    let bytes = STANDARD
        .decode(interval.encoded_histogram())
        .map_err(|error| error.to_string())?;
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| format!("{error:?}"))
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

    #[test]
    fn what_was_logged_is_read_again_and_added_up() {
        let mut out = Vec::new();
        for values in [[5_000_000, 7_000_000], [9_000_000, 11_000_000]] {
            let mut histogram = durations();
            values.into_iter().for_each(|v| add(&mut histogram, v));
            let entries = [("cell3.ttft", Duration::ZERO, Duration::ZERO, &histogram)];
            write_log(&mut out, entries.into_iter()).unwrap();
        }
        let read = read_log(&out).unwrap();
        let histogram = &read["cell3.ttft"];
        assert_eq!((read.len(), histogram.len()), (1, 4));
        assert!(histogram.max().abs_diff(11_000_000) <= 11_000);
        // A kill in the middle of a line costs that line.
        let cut = read_log(&out[..out.len() - 5]).unwrap();
        assert_eq!(cut["cell3.ttft"].len(), 2);
        assert!(read_log(b"Tag=a,0.0,0.0,1.0,nonsense\n").is_err());
        assert!(read_log(b"neither\n").is_err());
        assert!(read_log(b"").unwrap().is_empty());
    }
}
