//! Azure's traces of LLM inference: CSV with the columns `TIMESTAMP`, `ContextTokens` and `GeneratedTokens`
//! (github.com/Azure/AzurePublicDataset, `AzureLLMInferenceTrace_*.csv`). They name no shared blocks.

use super::Entry;
use time::{Date, Month, PrimitiveDateTime, Time};

/// Where the columns are.
#[derive(Debug)]
pub(super) struct Columns {
    time: usize,
    input: usize,
    output: usize,
}

impl Columns {
    /// Reads the line of their names.
    pub(super) fn of(head: &str) -> Result<Self, String> {
        let names: Vec<String> = head
            .trim_start_matches('\u{feff}')
            .split(',')
            .map(|name| name.trim().to_ascii_lowercase())
            .collect();
        let find = |name: &str| {
            let at = names.iter().position(|n| *n == name.to_ascii_lowercase());
            at.ok_or_else(|| {
                format!("no column `{name}`; a CSV trace has TIMESTAMP, ContextTokens and GeneratedTokens")
            })
        };
        Ok(Self {
            time: find("TIMESTAMP")?,
            input: find("ContextTokens")?,
            output: find("GeneratedTokens")?,
        })
    }

    /// What a line says.
    pub(super) fn entry(&self, text: &str) -> Result<Entry, String> {
        let fields: Vec<&str> = text.split(',').map(str::trim).collect();
        let field = |at: usize| fields.get(at).copied().unwrap_or_default();
        let tokens = |at: usize| {
            let text = field(at);
            text.parse()
                .map_err(|_| format!("`{text}` is no number of tokens"))
        };
        Ok(Entry {
            at: instant(field(self.time)).ok_or_else(|| {
                format!(
                    "`{}` is no time; write 2023-11-16 18:15:46.68",
                    field(self.time)
                )
            })?,
            input: tokens(self.input)?,
            output: tokens(self.output)?,
            blocks: Vec::new(),
        })
    }
}

/// Nanoseconds since the epoch of `2023-11-16 18:15:46.6805900`, with `+00:00`, `Z` or nothing behind it.
fn instant(text: &str) -> Option<i128> {
    let text = text.trim_end_matches("+00:00").trim_end_matches('Z');
    let (day, clock) = text.split_once([' ', 'T'])?;
    let (clock, part) = clock.split_once('.').unwrap_or((clock, "0"));
    if part.is_empty() || part.len() > 9 || !part.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let nanos: u32 = format!("{part:0<9}").parse().ok()?;
    let mut day = day.split('-');
    let (year, month, date) = (day.next()?, day.next()?, day.next()?);
    let mut clock = clock.split(':');
    let (hour, minute, second) = (clock.next()?, clock.next()?, clock.next()?);
    if day.next().is_some() || clock.next().is_some() {
        return None;
    }
    let month = Month::try_from(month.parse::<u8>().ok()?).ok()?;
    let day = Date::from_calendar_date(year.parse().ok()?, month, date.parse().ok()?).ok()?;
    let (hour, minute) = (hour.parse().ok()?, minute.parse().ok()?);
    let clock = Time::from_hms_nano(hour, minute, second.parse().ok()?, nanos).ok()?;
    Some(
        PrimitiveDateTime::new(day, clock)
            .assume_utc()
            .unix_timestamp_nanos(),
    )
}
