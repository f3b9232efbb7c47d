//! What must hold between the settings of a tap process.

use super::{Record, TapProcess};
use crate::load::{Form, Report};

impl Form for TapProcess {
    const NAME: &'static str = "tap";

    fn check(&self, report: &mut Report<'_>) {
        for (at, chain) in self.chains.iter().enumerate() {
            report.needs_file(&format!("chains[{at}]"), chain);
            if self.chains[..at].contains(chain) {
                report.add(
                    &format!("chains[{at}]"),
                    format!("`{}` is listed twice; remove one", chain.display()),
                );
            }
        }
        if let Some(admin) = self
            .admin
            .filter(|admin| !admin.is_loopback() && !self.allow_remote)
        {
            report.add("admin", format!("`{admin}` is reachable from other hosts and shows the calls of everybody; write `127.0.0.1:{}`, or set `allow_remote: true`", admin.get().port()));
        }
        if let (Some(telemetry), Some(admin)) = (self.telemetry, self.admin)
            && telemetry.overlaps(admin)
        {
            let place = report.location("telemetry");
            report.add(
                "admin",
                format!(
                    "`{admin}` is already taken by `telemetry` at {place}; choose another port"
                ),
            );
        }
        if let Some(record) = &self.record {
            check_record(record, report);
        }
        if self.pairing.wait.is_zero() {
            report.add(
                "pairing.wait",
                "`wait` is 0 and nothing would be paired; write a longer time".to_owned(),
            );
        }
    }
}

fn check_record(record: &Record, report: &mut Report<'_>) {
    if record.segment_bytes.get() < 4096 {
        let message = format!(
            "`segment_bytes` is {}; write at least `4KiB`",
            record.segment_bytes
        );
        report.add("record.segment_bytes", message);
    }
}
