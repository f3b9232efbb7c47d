//! What must hold between the parts of a scenario.

use super::{
    Capacity, CellLength, OpenLoop, Profile, ProfilePhase, Scenario, Tenants, Trace, UsageProbe,
    agent, experiment, probes,
};
use crate::load::{Form, Report};
use crate::names;
use crate::scalar::Period;

impl Form for Scenario {
    const NAME: &'static str = "scenario";

    fn check(&self, report: &mut Report<'_>) {
        names::check(report, "name", &self.name);
        check_cell("warmup", &self.warmup, report);
        let idle = self.open_loop.is_none()
            && self.closed_loop.is_none()
            && self.profile.is_none()
            && self.trace.is_none()
            && self.tenants.is_none()
            && self.agent.is_none()
            && self.experiment.is_none();
        if idle {
            report.add(
                "name",
                "the scenario puts no load on anything; add `open_loop`, `closed_loop`, `profile`, `trace`, `tenants`, `agent` or `experiment`"
                    .to_owned(),
            );
        }
        if let Some(capacity) = &self.capacity {
            check_capacity(capacity, report);
        }
        if let Some(open) = &self.open_loop {
            self.check_open(open, report);
        }
        if let Some(closed) = &self.closed_loop {
            check_cell("closed_loop.cell", &closed.cell, report);
            for (at, count) in closed.concurrency.iter().enumerate() {
                if closed.concurrency[..at].contains(count) {
                    report.add(
                        &format!("closed_loop.concurrency[{at}]"),
                        format!("{count} is listed twice; remove one"),
                    );
                }
            }
        }
        if let Some(profile) = &self.profile {
            check_profile(profile, report);
        }
        if let Some(tenants) = &self.tenants {
            check_tenants(tenants, report);
        }
        if let Some(agent) = &self.agent {
            agent::check(agent, report);
            let other = self.open_loop.is_some()
                || self.closed_loop.is_some()
                || self.profile.is_some()
                || self.trace.is_some()
                || self.tenants.is_some()
                || self.capacity.is_some();
            if agent.endpoint.is_some() && other {
                report.add(
                    "agent.endpoint",
                    "the entry is an agent and no model's API: other loads cannot be put on it; move them to a scenario of their own".to_owned(),
                );
            }
        }
        if let Some(trace) = &self.trace {
            self.check_trace(trace, report);
        }
        if let Some(probe) = &self.workload.usage_probe {
            self.check_usage_probe(probe, report);
        }
        if let Some(one) = &self.experiment {
            experiment::check(one, report);
            let other = self.open_loop.is_some()
                || self.closed_loop.is_some()
                || self.profile.is_some()
                || self.trace.is_some()
                || self.tenants.is_some()
                || self.agent.is_some()
                || self.capacity.is_some();
            if other {
                report.add(
                    "experiment",
                    "other loads would be measured on a chain that something happens to; move them to a scenario of their own".to_owned(),
                );
            }
        }
        self.check_controls(report);
    }
}

fn check_tenants(tenants: &Tenants, report: &mut Report<'_>) {
    check_cell("tenants.cell", &tenants.cell, report);
    let names = tenants.members.iter().enumerate();
    for (at, tenant) in names.clone() {
        names::check(report, &format!("tenants.members[{at}].name"), &tenant.name);
    }
    names::unique(
        report,
        names.map(|(at, tenant)| (format!("tenants.members[{at}].name"), tenant.name.as_str())),
    );
    let flood = tenants.flood.as_ref();
    if let Some(flood) =
        flood.filter(|f| tenants.members.iter().all(|tenant| tenant.name != f.tenant))
    {
        report.add(
            "tenants.flood.tenant",
            format!("no tenant is called `{}`; correct the name", flood.tenant),
        );
    }
    if let Some(probes) = &tenants.probes {
        probes::check(probes, &tenants.members, report);
    }
}

fn check_profile(profile: &Profile, report: &mut Report<'_>) {
    for (at, phase) in profile.phases.iter().enumerate() {
        let place = |key: &str| format!("profile.phases[{at}].{key}");
        names::check(report, &place("name"), &phase.name);
        let twice = |other: &ProfilePhase| other.name == phase.name;
        if profile.phases[..at].iter().any(twice) {
            report.add(
                &place("name"),
                format!("two phases are called `{}`; rename one", phase.name),
            );
        }
        if phase.duration.is_zero() {
            report.add(
                &place("duration"),
                "`duration` is 0; write a longer time, or leave the phase out".to_owned(),
            );
        }
    }
}

impl Scenario {
    fn check_open(&self, open: &OpenLoop, report: &mut Report<'_>) {
        check_cell("open_loop.cell", &open.cell, report);
        if open.shares.is_empty() && open.common_rate.is_none() && open.rates.is_empty() {
            report.add(
                "open_loop",
                "`open_loop` has no rate; add `shares`, `common_rate` or `rates`".to_owned(),
            );
        }
        for (at, rate) in open.rates.iter().enumerate() {
            let place = format!("open_loop.rates[{at}]");
            if !is_rate(*rate) {
                report.add(&place, no_rate(*rate));
            }
            if open.rates[..at].contains(rate) || open.common_rate == Some(*rate) {
                report.add(&place, format!("{rate} is listed twice; remove one"));
            }
        }
        if !open.shares.is_empty() && self.capacity.is_none() {
            report.add(
                "open_loop.shares",
                "shares of a capacity that nobody measures; add `capacity`".to_owned(),
            );
        }
        for (at, share) in open.shares.iter().enumerate() {
            let place = format!("open_loop.shares[{at}]");
            if !(*share > 0.0 && *share < 1.0) {
                report.add(
                    &place,
                    format!("{share} is no share of the capacity; write a number between 0 and 1"),
                );
            }
            if open.shares[..at].contains(share) {
                report.add(&place, format!("{share} is listed twice; remove one"));
            }
        }
        if let Some(rate) = open.common_rate.filter(|rate| !is_rate(*rate)) {
            report.add("open_loop.common_rate", no_rate(rate));
        }
    }

    fn check_trace(&self, trace: &Trace, report: &mut Report<'_>) {
        if trace.duration.is_some_and(Period::is_zero) {
            report.add(
                "trace.duration",
                "`duration` is 0 and nothing would be replayed; write a longer time",
            );
        }
        if self.workload.system.is_some() {
            report.add(
                "workload.system",
                "a trace says how long whole prompts are, and this would come on top; remove it, or move `trace` to a scenario of its own",
            );
        }
        if self.workload.usage_probe.is_some() {
            report.add(
                "workload.usage_probe",
                "the lengths of a trace's prompts are not corrected; name the model's own tokenizer (`tokenizer: {file: …}`), or move `trace` to a scenario of its own",
            );
        }
    }

    fn check_usage_probe(&self, probe: &UsageProbe, report: &mut Report<'_>) {
        let place = "workload.usage_probe";
        if let Some(name) = &probe.reference {
            names::check(report, &format!("{place}.reference"), name);
        }
        if self.tenants.is_some() || self.agent.is_some() {
            report.add(
                place,
                "lengths of tenants' and agents' prompts are not corrected; name the model's own tokenizer (`tokenizer: {file: …}`), or move them to a scenario without `usage_probe`",
            );
        }
    }

    fn check_controls(&self, report: &mut Report<'_>) {
        for (at, control) in self.controls.iter().enumerate() {
            let place = format!("controls[{at}]");
            if !control.is_control() {
                let kind = control.as_str();
                report.add(
                    &place,
                    format!("`{kind}` is what is measured and no control; remove it"),
                );
            }
            if self.controls[..at].contains(control) {
                report.add(
                    &place,
                    format!("`{}` is listed twice; remove one", control.as_str()),
                );
            }
        }
        if let Some(probe) = &self.floor_probe {
            names::check(report, "floor_probe.chain", &probe.chain);
        }
        let times = &self.timeouts;
        if times.connect.is_zero()
            || times.first_byte.is_zero()
            || times.silence.is_zero()
            || times.total.is_zero()
        {
            report.add(
                "timeouts",
                "a time of 0 would give up every call; write longer times".to_owned(),
            );
        }
        if times.first_byte > times.total {
            report.add(
                "timeouts.first_byte",
                "`first_byte` is longer than `total` and could never be reached; shorten it"
                    .to_owned(),
            );
        }
    }
}

fn is_rate(rate: f64) -> bool {
    rate > 0.0 && rate <= 1_000_000.0
}

fn no_rate(rate: f64) -> String {
    format!("{rate} is no rate; write calls per second, above 0 and at most 1000000")
}

fn check_capacity(capacity: &Capacity, report: &mut Report<'_>) {
    if capacity.start_rate > capacity.max_rate {
        let place = report.location("capacity.max_rate");
        report.add(
            "capacity.start_rate",
            format!(
                "`start_rate` {} is above `max_rate` {} at {place}; lower it",
                capacity.start_rate, capacity.max_rate
            ),
        );
    }
    if capacity.hold.is_zero() {
        report.add(
            "capacity.hold",
            "`hold` is 0 and no queue could show; write for example `20s`".to_owned(),
        );
    }
    let slo = &capacity.slo;
    if slo.ttft_p95.is_none() && slo.added_ttft_p95.is_none() && slo.tpot_p95.is_none() {
        report.add("capacity.slo", "the objective bounds no latency, so a queue of any length would pass; add `ttft_p95`, `added_ttft_p95` or `tpot_p95`".to_owned());
    }
}

fn check_cell(at: &str, cell: &CellLength, report: &mut Report<'_>) {
    match (cell.duration, cell.calls) {
        (None, None) => report.add(
            at,
            format!("`{at}` would never end; add `duration` or `calls`"),
        ),
        (Some(duration), _) if duration.is_zero() => report.add(
            &format!("{at}.duration"),
            "`duration` is 0; write a longer time".to_owned(),
        ),
        (_, Some(0)) => report.add(
            &format!("{at}.calls"),
            "`calls` is 0; write at least 1".to_owned(),
        ),
        _ => {}
    }
}
