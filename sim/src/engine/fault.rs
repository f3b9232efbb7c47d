//! Faults that an engine injects, by option or by the request's `x-sim-fault` field.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A fault that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No such fault.
    #[error("unknown fault `{0}`; known are: {KNOWN}")]
    Unknown(String),
    /// The number is missing, wrong or out of its range.
    #[error(
        "fault `{name}` needs a number from {least} to {most}, as in `{name}={least}`, not `{given}`"
    )]
    Number {
        /// The fault.
        name: String,
        /// What was given.
        given: String,
        /// Smallest number that makes sense.
        least: u64,
        /// Largest.
        most: u64,
    },
    /// The fault takes no number.
    #[error("fault `{0}` takes no number")]
    NoNumber(String),
}

const KNOWN: &str = "close-after=n, reset-after=n, stall-after=n, status=code, truncate-length, \
    error-event=n, no-done, no-finish, fin-after-response, oversized-event=bytes, malformed-chunk=n, \
    crlf, slow-read=bytes_per_second, pair-events, split-event, informational, trailers, ping=n";

/// Faults of one exchange, written `close-after=5,ping=2`. `n` counts chunks with text, from 0.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Faults {
    /// Sends a FIN in the middle, after this many chunks. Not streamed: after half of the body.
    pub close_after: Option<u64>,
    /// Resets the connection there instead.
    pub reset_after: Option<u64>,
    /// Says nothing more after this many chunks until the client goes. Not streamed: never answers.
    pub stall_after: Option<u64>,
    /// Answers with this status (400 to 599) and an error in JSON before doing anything.
    pub status: Option<u16>,
    /// Announces a `Content-Length` beyond what it sends, then closes.
    pub truncate_length: bool,
    /// Sends an error object inside the 200 stream after this many chunks, then `[DONE]`.
    pub error_event: Option<u64>,
    /// Leaves `[DONE]` out.
    pub no_done: bool,
    /// Leaves the finish reason out.
    pub no_finish: bool,
    /// Closes after a complete response although keep-alive was announced.
    pub fin_after_response: bool,
    /// Pads the first chunk with text by this many bytes.
    pub oversized_event: Option<u64>,
    /// Sends a chunk of broken JSON after this many chunks.
    pub malformed_chunk: Option<u64>,
    /// Ends the lines of the stream with CR LF.
    pub crlf: bool,
    /// Reads the request body at this many bytes per second.
    pub slow_read: Option<u64>,
    /// Writes chunks with text in pairs: two events in one write.
    pub pair_events: bool,
    /// Writes each chunk with text in two writes, 2 ms apart.
    pub split_event: bool,
    /// Sends `103 Early Hints` before the response head.
    pub informational: bool,
    /// Sends a trailer field after the last chunk.
    pub trailers: bool,
    /// Sends the comment `: ping` before every this many chunks.
    pub ping: Option<u64>,
}

impl Faults {
    /// Whether nothing is wrong.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a client still gets a whole and correct answer, only in an unusual form.
    pub fn is_harmless(&self) -> bool {
        let harmless = Self {
            fin_after_response: self.fin_after_response,
            oversized_event: self.oversized_event,
            crlf: self.crlf,
            slow_read: self.slow_read,
            pair_events: self.pair_events,
            split_event: self.split_event,
            informational: self.informational,
            trailers: self.trailers,
            ping: self.ping,
            ..Self::default()
        };
        *self == harmless
    }

    fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), FaultError> {
        let flag = |target: &mut bool| match value {
            Some(_) => Err(FaultError::NoNumber(name.to_owned())),
            None => {
                *target = true;
                Ok(())
            }
        };
        match name {
            "truncate-length" => flag(&mut self.truncate_length),
            "no-done" => flag(&mut self.no_done),
            "no-finish" => flag(&mut self.no_finish),
            "fin-after-response" => flag(&mut self.fin_after_response),
            "crlf" => flag(&mut self.crlf),
            "pair-events" => flag(&mut self.pair_events),
            "split-event" => flag(&mut self.split_event),
            "informational" => flag(&mut self.informational),
            "trailers" => flag(&mut self.trailers),
            _ => self.set_number(name, value.unwrap_or("")),
        }
    }

    fn set_number(&mut self, name: &str, given: &str) -> Result<(), FaultError> {
        let (target, least, most) = match name {
            "close-after" => (&mut self.close_after, 0, u64::MAX),
            "reset-after" => (&mut self.reset_after, 0, u64::MAX),
            "stall-after" => (&mut self.stall_after, 0, u64::MAX),
            "error-event" => (&mut self.error_event, 0, u64::MAX),
            "malformed-chunk" => (&mut self.malformed_chunk, 0, u64::MAX),
            "oversized-event" => (&mut self.oversized_event, 1, 64 << 20),
            "slow-read" => (&mut self.slow_read, 1, 1 << 30),
            "ping" => (&mut self.ping, 1, u64::MAX),
            "status" => {
                let status = number(name, given, 400, 599)?;
                self.status = u16::try_from(status).ok();
                return Ok(());
            }
            _ => return Err(FaultError::Unknown(name.to_owned())),
        };
        *target = Some(number(name, given, least, most)?);
        Ok(())
    }
}

fn number(name: &str, given: &str, least: u64, most: u64) -> Result<u64, FaultError> {
    given
        .parse()
        .ok()
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| FaultError::Number {
            name: name.to_owned(),
            given: given.to_owned(),
            least,
            most,
        })
}

impl FromStr for Faults {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let mut faults = Self::default();
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            match part.split_once('=') {
                Some((name, value)) => faults.set(name, Some(value))?,
                None => faults.set(part, None)?,
            }
        }
        Ok(faults)
    }
}

impl TryFrom<String> for Faults {
    type Error = FaultError;

    fn try_from(text: String) -> Result<Self, FaultError> {
        text.parse()
    }
}

impl From<Faults> for String {
    fn from(faults: Faults) -> Self {
        faults.to_string()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers = [
            ("close-after", self.close_after),
            ("reset-after", self.reset_after),
            ("stall-after", self.stall_after),
            ("status", self.status.map(u64::from)),
            ("error-event", self.error_event),
            ("oversized-event", self.oversized_event),
            ("malformed-chunk", self.malformed_chunk),
            ("slow-read", self.slow_read),
            ("ping", self.ping),
        ];
        let flags = [
            ("truncate-length", self.truncate_length),
            ("no-done", self.no_done),
            ("no-finish", self.no_finish),
            ("fin-after-response", self.fin_after_response),
            ("crlf", self.crlf),
            ("pair-events", self.pair_events),
            ("split-event", self.split_event),
            ("informational", self.informational),
            ("trailers", self.trailers),
        ];
        let numbers = numbers
            .iter()
            .filter_map(|(name, value)| value.map(|value| format!("{name}={value}")));
        let flags = flags
            .iter()
            .filter(|(_, on)| *on)
            .map(|(name, _)| (*name).to_owned());
        f.write_str(&numbers.chain(flags).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::{FaultError, Faults, KNOWN};

    #[test]
    fn every_known_fault_is_read_and_written_back() {
        for known in KNOWN.split(", ") {
            let name = known.trim().split('=').next().unwrap();
            let text = match name {
                "status" => "status=503".to_owned(),
                _ if known.contains('=') => format!("{name}=7"),
                _ => name.to_owned(),
            };
            let faults: Faults = text.parse().unwrap();
            assert!(!faults.is_none(), "{text} sets nothing");
            assert_eq!(faults.to_string(), text);
        }
    }

    #[test]
    fn wrong_faults_name_themselves() {
        let error = |text: &str| text.parse::<Faults>().unwrap_err();
        assert!(matches!(error("explode"), FaultError::Unknown(_)));
        assert!(matches!(error("crlf=1"), FaultError::NoNumber(_)));
        assert!(error("status=200").to_string().contains("400 to 599"));
        assert!(matches!(error("ping=0"), FaultError::Number { .. }));
    }
}
