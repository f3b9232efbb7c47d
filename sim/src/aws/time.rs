//! Instants as AWS writes them, in seconds since 1970.

const DAY: i64 = 86_400;

/// Reads `20260101T000000Z` or `2026-01-01T00:00:00Z`.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let digits: String = text.chars().filter(|c| !matches!(c, '-' | ':')).collect();
    let (date, time) = digits.strip_suffix('Z')?.split_once('T')?;
    let number = |text: &str| {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| text.parse::<i64>().ok()).flatten()
    };
    if date.len() != 8 || time.len() != 6 || !digits.is_ascii() {
        return None;
    }
    let (year, month, day) = (
        number(&date[..4])?,
        number(&date[4..6])?,
        number(&date[6..])?,
    );
    let (hour, minute, second) = (
        number(&time[..2])?,
        number(&time[2..4])?,
        number(&time[4..])?,
    );
    let fits = (1..=12).contains(&month) && hour < 24 && minute < 60 && second < 61;
    let days = days_before(year, month) + day - 1;
    // A day that the month does not have is one of the next month.
    let is_of_month = day >= 1 && days < days_before(year, month + 1);
    (fits && is_of_month).then(|| days * DAY + hour * 3_600 + minute * 60 + second)
}

/// Days from 1970 to the first of a month; month 13 is the next January.
fn days_before(year: i64, month: i64) -> i64 {
    const BEFORE: [i64; 13] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334, 365];
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let leaps = |years: i64| years / 4 - years / 100 + years / 400;
    let month_start = BEFORE[(month.clamp(1, 13) - 1) as usize];
    (year - 1970) * 365 + leaps(year - 1) - leaps(1969) + month_start + i64::from(leap && month > 2)
}

/// Writes `20260101T000000Z`.
pub(crate) fn basic(at: i64) -> String {
    extended(at).replace(['-', ':'], "")
}

/// Writes `2026-01-01T00:00:00Z`.
pub(crate) fn extended(at: i64) -> String {
    let (days, second) = (at.div_euclid(DAY), at.rem_euclid(DAY));
    let mut year = 1970 + days.div_euclid(366);
    while days_before(year + 1, 1) <= days {
        year += 1;
    }
    let mut month = 1;
    while days_before(year, month + 1) <= days {
        month += 1;
    }
    let day = days - days_before(year, month) + 1;
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::{basic, extended, parse};

    #[test]
    fn instants_are_read_and_written_back() {
        // Each of them known to `date -u -d @…`.
        for (at, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_767_225_600, "2026-01-01T00:00:00Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!((extended(at).as_str(), parse(text)), (text, Some(at)));
            assert_eq!(parse(&basic(at)), Some(at));
        }
        for at in (0..200_000_000_000).step_by(40_000_003) {
            assert_eq!(parse(&basic(at)), Some(at));
        }
    }

    #[test]
    fn what_is_no_instant_is_refused() {
        for wrong in [
            "",
            "20260101",
            "20261301T000000Z",
            "20260229T000000Z",
            "20260100T000000Z",
            "20260101T240000Z",
            "2026010+T000000Z",
            "20260101T000000",
            "ä0260101T00000Z",
        ] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
