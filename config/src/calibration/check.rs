//! What must hold between the parts of a calibration.

use super::Calibration;
use crate::load::{Form, Report};

/// A slope needs this many points (method: at least five injected delays).
const DELAYS_MIN: usize = 5;

impl Form for Calibration {
    const NAME: &'static str = "calibration";

    fn check(&self, report: &mut Report<'_>) {
        let mut delays = self.delays.clone();
        delays.sort_unstable();
        delays.dedup();
        if delays.len() < DELAYS_MIN {
            report.add(
                "delays",
                format!(
                    "{} different delays give no slope; list at least {DELAYS_MIN}",
                    delays.len()
                ),
            );
        }
        repeated("streams", &self.streams, report);
        repeated("modes", &self.modes, report);
        if self.bounds.error_p50 > self.bounds.error_p99 {
            let place = report.location("bounds.error_p99");
            report.add(
                "bounds.error_p50",
                format!("`error_p50` is above `error_p99` at {place}; correct one of them"),
            );
        }
        if self.bounds.error_p50.is_zero() {
            report.add(
                "bounds.error_p50",
                "no instrument keeps an error of 0; write for example `20us`".to_owned(),
            );
        }
    }
}

fn repeated<T: PartialEq>(at: &str, items: &[T], report: &mut Report<'_>) {
    for (index, item) in items.iter().enumerate() {
        if items[..index].contains(item) {
            report.add(
                &format!("{at}[{index}]"),
                format!("this entry of `{at}` is listed twice; remove one"),
            );
        }
    }
}
