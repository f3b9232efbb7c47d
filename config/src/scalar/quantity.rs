//! Durations and sizes: a number with its unit.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::written_as_text;

/// A length of time, written as a number and its unit: `250us`, `1.5ms`, `30s`, `5m`, `2h`, or `0`.
/// Whole nanoseconds, at most 365 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Period(Duration);

const DAY: u128 = 86_400_000_000_000;
const PERIOD_UNITS: [(&str, u128); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl Period {
    /// A period of whole milliseconds.
    #[must_use]
    pub const fn millis(count: u64) -> Self {
        Self(Duration::from_millis(count))
    }

    /// A period of whole seconds.
    #[must_use]
    pub const fn secs(count: u64) -> Self {
        Self(Duration::from_secs(count))
    }

    /// A period of whole nanoseconds, at most 365 days.
    #[must_use]
    pub fn from_nanos(count: u64) -> Self {
        Self::sum(std::iter::once(Self(Duration::from_nanos(count))))
    }

    /// The sum of several, at most 365 days.
    #[must_use]
    pub fn sum(all: impl Iterator<Item = Self>) -> Self {
        let total: Duration = all.map(|period| period.0).sum();
        Self(total.min(Duration::from_secs(365 * 86_400)))
    }

    /// The same length as the standard library's type.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }

    /// Whole nanoseconds, the unit of every stamp. A period is at most 365 days, so they fit.
    #[must_use]
    pub fn nanos(self) -> u64 {
        u64::try_from(self.0.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whether the period is empty.
    #[must_use]
    pub const fn is_zero(self) -> bool {
        self.0.is_zero()
    }
}

impl From<Period> for Duration {
    fn from(period: Period) -> Self {
        period.0
    }
}

impl FromStr for Period {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.trim() == "0" {
            return Ok(Self::default());
        }
        let advice = "write a number and a unit (ns, us, ms, s, m, h), for example `250ms`";
        let nanos = scaled(text, &PERIOD_UNITS)
            .ok_or_else(|| format!("`{text}` is not a duration; {advice}"))?;
        if nanos > 365 * DAY {
            return Err(format!("`{text}` is longer than 365 days; {advice}"));
        }
        u64::try_from(nanos)
            .map(|nanos| Self(Duration::from_nanos(nanos)))
            .map_err(|_| format!("`{text}` is not a duration; {advice}"))
    }
}

impl fmt::Display for Period {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_scaled(out, self.0.as_nanos(), &PERIOD_UNITS, "0s")
    }
}

written_as_text!(Period, "Period", "hopscope-duration", "250ms");

/// A number of bytes: `65536B`, `64KiB`, `8MiB`, `1GiB` (binary), or `8MB` (decimal).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(u64);

const SIZE_UNITS: [(&str, u128); 8] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

impl ByteSize {
    /// A size of so many times 1024 × 1024 bytes.
    #[must_use]
    pub const fn mib(count: u64) -> Self {
        Self(count << 20)
    }

    /// The size in bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        scaled(text, &SIZE_UNITS)
            .and_then(|bytes| u64::try_from(bytes).ok())
            .map(Self)
            .ok_or_else(|| {
                format!("`{text}` is not a size; write a number and a unit (B, KiB, MiB, GiB, KB, MB, GB), for example `8MiB`")
            })
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_scaled(out, u128::from(self.0), &SIZE_UNITS, "0B")
    }
}

written_as_text!(ByteSize, "ByteSize", "hopscope-size", "8MiB");

/// `text` as a decimal number times its unit; exact, `None` when it is no whole number of the smallest unit.
fn scaled(text: &str, units: &[(&str, u128)]) -> Option<u128> {
    let text = text.trim();
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = (text[..split].trim_end(), &text[split..]);
    let factor = units.iter().find(|(name, _)| *name == unit)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || fraction.len() > 18 {
        return None;
    }
    let below = u32::try_from(fraction.len()).ok()?;
    let parts = fraction.parse::<u128>().ok()?.checked_mul(factor)?;
    let divisor = 10_u128.pow(below);
    if parts % divisor != 0 {
        return None;
    }
    whole
        .parse::<u128>()
        .ok()?
        .checked_mul(factor)?
        .checked_add(parts / divisor)
}

/// Prints `amount` in the largest unit that leaves a whole number, so that reading it back is exact.
fn print_scaled(
    out: &mut fmt::Formatter<'_>,
    amount: u128,
    units: &[(&str, u128)],
    zero: &str,
) -> fmt::Result {
    if amount == 0 {
        return out.write_str(zero);
    }
    let (unit, factor) = units
        .iter()
        .find(|(_, factor)| amount.is_multiple_of(*factor))
        .unwrap_or(&("", 1));
    write!(out, "{}{unit}", amount / factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_exact_and_print_what_they_read() {
        for (text, nanos, printed) in [
            ("250us", 250_000, "250us"),
            ("1.5ms", 1_500_000, "1500us"),
            ("0.3s", 300_000_000, "300ms"),
            ("90s", 90_000_000_000, "90s"),
            ("2 h", 7_200_000_000_000, "2h"),
            ("0", 0, "0s"),
        ] {
            let period: Period = text.parse().unwrap();
            assert_eq!(
                (period.nanos(), period.to_string().as_str()),
                (nanos, printed)
            );
            assert_eq!(period.to_string().parse::<Period>().unwrap(), period);
        }
    }

    #[test]
    fn what_is_no_period_is_refused_by_name() {
        for text in [
            "",
            "5",
            "ms",
            "-1s",
            "1 week",
            "1.2.3s",
            "0.5ns",
            "1e3s",
            "9000h",
            "99999999999999999999999999999999999999h",
        ] {
            let error = text.parse::<Period>().unwrap_err();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }

    #[test]
    fn sizes_know_binary_and_decimal_units() {
        assert_eq!("64KiB".parse::<ByteSize>().unwrap().get(), 65_536);
        assert_eq!("8MB".parse::<ByteSize>().unwrap().get(), 8_000_000);
        assert_eq!("1.5MiB".parse::<ByteSize>().unwrap().to_string(), "1536KiB");
        assert!("64k".parse::<ByteSize>().is_err());
        assert!("99999999TiB".parse::<ByteSize>().is_err());
    }
}
