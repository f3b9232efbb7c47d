//! What must hold between the parts of a demonstration.

use super::Demo;
use crate::load::{Form, Report};
use crate::names;
use crate::scalar::Listen;
use crate::standin::StreamMode;

impl Form for Demo {
    const NAME: &'static str = "demo";

    fn check(&self, report: &mut Report<'_>) {
        report.needs_file("tap", &self.tap);
        report.needs_file("scenario", &self.scenario);
        report.needs_file("calibration", &self.calibration);
        for (at, chain) in self.untapped.iter().enumerate() {
            report.needs_file(&format!("untapped[{at}]"), chain);
        }
        self.check_listeners(report);
        self.check_gateways(report);
    }
}

impl Demo {
    /// Where the stand-ins listen, with the place of each in the file.
    pub(crate) fn listeners(&self) -> Vec<(String, Listen)> {
        let gateways = self
            .gateways
            .iter()
            .enumerate()
            .map(|(at, gateway)| (format!("gateways[{at}].listen"), gateway.listen));
        let fixed = [
            ("engine.listen".to_owned(), self.engine.listen),
            ("relay.listen".to_owned(), self.relay.listen),
        ];
        fixed.into_iter().chain(gateways).collect()
    }

    fn check_listeners(&self, report: &mut Report<'_>) {
        let listeners = self.listeners();
        for (index, (at, listen)) in listeners.iter().enumerate() {
            if let Some((other, _)) = listeners[..index]
                .iter()
                .find(|(_, other)| other.overlaps(*listen))
            {
                let place = report.location(other);
                report.add(
                    at,
                    format!("`{listen}` is already taken at {place}; choose another port"),
                );
            }
            if !listen.is_loopback() {
                report.add(
                    at,
                    format!(
                        "`{listen}` is reachable from other hosts; a stand-in listens on loopback"
                    ),
                );
            }
        }
    }

    fn check_gateways(&self, report: &mut Report<'_>) {
        let names = self
            .gateways
            .iter()
            .enumerate()
            .map(|(at, gateway)| (format!("gateways[{at}].chain"), gateway.chain.as_str()));
        names::unique(report, names);
        for (at, gateway) in self.gateways.iter().enumerate() {
            let script = &gateway.script;
            if script.merge_every.is_some() && script.mode != StreamMode::Merge {
                report.add(
                    &format!("gateways[{at}].script.merge_every"),
                    "`merge_every` has no effect in this mode; remove it, or write `mode: merge`"
                        .to_owned(),
                );
            }
        }
    }
}
