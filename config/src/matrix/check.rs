//! What must hold between the parts of a matrix.

use super::Matrix;
use crate::load::{Form, Report};

impl Form for Matrix {
    const NAME: &'static str = "matrix";

    fn check(&self, report: &mut Report<'_>) {
        for (at, file) in [("tap", &self.tap), ("calibration", &self.calibration)] {
            if let Some(file) = file {
                report.needs_file(at, file);
            }
        }
        for (at, run) in self.runs.iter().enumerate() {
            report.needs_file(&format!("runs[{at}].scenario"), &run.scenario);
            for (number, chain) in run.chains.iter().enumerate() {
                report.needs_file(&format!("runs[{at}].chains[{number}]"), chain);
            }
        }
        self.check_processes(report);
    }
}

impl Matrix {
    fn check_processes(&self, report: &mut Report<'_>) {
        for (at, process) in self.start.iter().enumerate() {
            for (earlier, other) in self.start[..at].iter().enumerate() {
                if other.name == process.name {
                    let place = report.location(&format!("start[{earlier}].name"));
                    report.add(
                        &format!("start[{at}].name"),
                        format!(
                            "the name `{}` is taken at {place}; choose another",
                            process.name
                        ),
                    );
                }
                if other.ready.overlaps(process.ready) {
                    let place = report.location(&format!("start[{earlier}].ready"));
                    report.add(
                        &format!("start[{at}].ready"),
                        format!(
                            "`{}` is already taken at {place}; choose another port",
                            process.ready
                        ),
                    );
                }
            }
            if !process.run.starts_with("sim ") {
                report.add(
                    &format!("start[{at}].run"),
                    "only stand-ins are started; write `sim engine …`, `sim gateway …` or the like, and deploy the rest yourself"
                        .to_owned(),
                );
            }
            if !process.ready.is_loopback() {
                report.add(
                    &format!("start[{at}].ready"),
                    format!(
                        "`{}` is reachable from other hosts; a stand-in listens on loopback",
                        process.ready
                    ),
                );
            }
        }
    }
}
