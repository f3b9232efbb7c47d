//! Progress for a program: a line of JSON on standard error for each update.

use super::{Progress, Update};
use std::io::Write;
use std::sync::Mutex;

/// Writes each [`Update`] as one line of JSON. Durations are nanoseconds, the time left seconds.
pub struct Json<W>(Mutex<W>);

impl Json<std::io::Stderr> {
    /// On standard error.
    #[must_use]
    pub fn stderr() -> Self {
        Self::to(std::io::stderr())
    }
}

impl<W: Write> Json<W> {
    /// On `out`.
    pub fn to(out: W) -> Self {
        Self(Mutex::new(out))
    }
}

impl<W: Write + Send> Progress for Json<W> {
    fn update(&self, update: &Update) {
        let Ok(mut out) = self.0.lock() else { return };
        // Whoever reads progress may have gone; the run goes on.
        if let Ok(line) = serde_json::to_string(update) {
            let _ = writeln!(out, "{line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Phase;
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_update_is_one_line_and_what_is_absent_is_null() {
        let update = Update {
            phase: Phase::Block { number: 2, of: 10 },
            chain: "a1".to_owned(),
            cell: "closed 50".to_owned(),
            asked: 0.0,
            achieved: 12.0,
            in_flight: 50,
            ttft_p50: Some(1_000_000),
            ttft_p99: None,
            errors: 0,
            lag_p99: None,
            done: 3,
            total: 20,
            left: Some(Duration::from_millis(1_500)),
            note: None,
        };
        let json = Json::to(Vec::new());
        json.update(&update);
        let text = String::from_utf8(json.0.into_inner().unwrap()).unwrap();
        assert_eq!(text.lines().count(), 1);
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["phase"]["block"]["number"], 2);
        assert_eq!(
            (line["left"].as_f64(), line["ttft_p99"].is_null()),
            (Some(1.5), true)
        );
    }
}
