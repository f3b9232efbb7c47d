//! A calendar day.

use std::fmt;
use std::str::FromStr;

use super::written_as_text;

/// A day as `2026-03-01`, in the Gregorian calendar. Years 1970 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    year: u16,
    month: u8,
    day: u8,
}

written_as_text!(Date, "Date", "hopscope-date", "2026-03-01");

impl Date {
    /// The day that is `days` after 1970-01-01; `None` beyond the year 9999.
    #[must_use]
    pub fn from_unix_days(mut days: u32) -> Option<Self> {
        for year in 1970..=9999_u16 {
            for month in 1..=12 {
                let length = u32::from(month_length(year, month));
                if days < length {
                    let day = u8::try_from(days + 1).ok()?;
                    return Some(Self { year, month, day });
                }
                days -= length;
            }
        }
        None
    }

    /// Whole months from `self` to `later`; negative if `later` is before `self`.
    #[must_use]
    pub fn months_until(self, later: Self) -> i32 {
        if later < self {
            return -later.months_until(self);
        }
        let months = (i32::from(later.year) - i32::from(self.year)) * 12 + i32::from(later.month)
            - i32::from(self.month);
        months - i32::from(later.day < self.day)
    }
}

impl FromStr for Date {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is no day; write it as 2026-03-01");
        let bytes = text.as_bytes();
        let shaped = bytes.len() == 10
            && bytes.iter().enumerate().all(|(at, byte)| match at {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        if !shaped {
            return Err(wrong());
        }
        let year: u16 = text[..4].parse().map_err(|_| wrong())?;
        let month: u8 = text[5..7].parse().map_err(|_| wrong())?;
        let day: u8 = text[8..].parse().map_err(|_| wrong())?;
        let real = year >= 1970
            && (1..=12).contains(&month)
            && (1..=month_length(year, month)).contains(&day);
        real.then_some(Self { year, month, day }).ok_or_else(wrong)
    }
}

impl fmt::Display for Date {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

fn month_length(year: u16, month: u8) -> u8 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn date(text: &str) -> Date {
        text.parse().unwrap()
    }

    #[test]
    fn days_that_do_not_exist_are_refused() {
        for text in [
            "2026-02-29",
            "2026-13-01",
            "2026-00-10",
            "2026-04-31",
            "1969-12-31",
            "26-03-01",
            "2026-3-1",
            "2026-03-00",
            "２026-3-01",
            "",
        ] {
            assert!(text.parse::<Date>().is_err(), "{text}");
        }
        assert_eq!(date("2028-02-29").to_string(), "2028-02-29");
        assert!("2100-02-29".parse::<Date>().is_err());
    }

    #[test]
    fn days_since_1970_are_calendar_days() {
        for (days, text) in [
            (0, "1970-01-01"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_513, "2026-03-01"),
        ] {
            assert_eq!(Date::from_unix_days(days).unwrap().to_string(), text);
        }
        assert_eq!(Date::from_unix_days(u32::MAX), None);
    }

    #[test]
    fn a_month_is_whole_when_its_day_is_reached() {
        assert_eq!(date("2026-01-31").months_until(date("2026-02-28")), 0);
        assert_eq!(date("2026-01-15").months_until(date("2026-02-15")), 1);
        assert_eq!(date("2025-12-15").months_until(date("2026-12-14")), 11);
        assert_eq!(date("2026-12-14").months_until(date("2025-12-15")), -11);
    }
}
