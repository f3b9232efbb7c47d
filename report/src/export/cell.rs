//! One cell: its calls, and what every form says of it alike.

use super::sample::Sample;
use crate::build::unsent_of;
use crate::quantile::Rules;
use config::scenario::Arrivals;
use config::{Chain, Scenario};
use hdrhistogram::Histogram;
use record::client::{CallOutcome, ClientCall};
use record::manifest::{Cell, ChainInfo, Drive, Manifest};
use serde_json::{Value, json};

/// A cell with everything that a form needs.
pub(super) struct CellData<'a> {
    pub(super) manifest: &'a Manifest,
    /// `None` where this version does not understand its text.
    pub(super) scenario: Option<&'a Scenario>,
    /// Likewise.
    pub(super) chain: Option<&'a Chain>,
    pub(super) cell: &'a Cell,
    /// Warm-up left out.
    pub(super) calls: &'a [ClientCall],
    /// Between content events, nanoseconds; `None` where the run has no log of them.
    pub(super) gaps: Option<&'a Histogram<u64>>,
}

impl CellData<'_> {
    /// A name for files: chain, way of driving, block, number.
    pub(super) fn name(&self) -> String {
        let way = match &self.cell.drive {
            Drive::Closed { concurrency } => format!("closed-{concurrency}"),
            Drive::Open { rate, .. } => format!("open-{rate:.2}"),
            Drive::Capacity { rate } => format!("capacity-{rate:.2}"),
            Drive::Profile { .. } => "profile".to_owned(),
            Drive::Trace { speed, .. } => format!("trace-x{speed}"),
            Drive::Tenant {
                tenant, company, ..
            } => format!("tenant-{tenant}-{}", company.name()),
            Drive::Agent { concurrency, .. } => format!("agent-{concurrency}"),
            Drive::Experiment { .. } => "experiment".to_owned(),
        };
        let Cell {
            chain, block, id, ..
        } = self.cell;
        format!("{chain}-{way}-block{block}-cell{id}")
    }

    /// What our own report knows of the run, and other forms have no field for.
    pub(super) fn origin(&self) -> Value {
        let manifest = self.manifest;
        let verdict = manifest.verdict.as_ref();
        let broken = verdict.map(|v| v.broken().map(|c| c.name.clone()).collect::<Vec<_>>());
        json!({
            "version": manifest.version,
            "run": manifest.run,
            "started": manifest.started,
            "chain": self.cell.chain,
            "component": self.info().and_then(|info| info.gateway.clone()),
            "cell": self.cell.id,
            "block": self.cell.block,
            "simulated": manifest.simulated,
            "shared_cpu": manifest.shared_cpu,
            "valid": verdict.map(record::verdict::Verdict::valid),
            "not_shown_to_be_valid_by": broken,
            "cut_short": self.cell.cut,
            "saturated": self.cell.saturated,
        })
    }

    pub(super) fn info(&self) -> Option<&ChainInfo> {
        let chains = &self.manifest.chains;
        chains.iter().find(|chain| chain.name == self.cell.chain)
    }

    /// When a quantile is printed.
    pub(super) fn rules(&self) -> Rules {
        self.scenario
            .map_or_else(Rules::default, |scenario| Rules::from(&scenario.limits))
    }

    pub(super) fn complete(&self) -> impl Iterator<Item = &ClientCall> {
        let calls = self.calls.iter();
        calls.filter(|call| call.outcome == CallOutcome::Complete)
    }

    /// Calls that did not end well.
    pub(super) fn lost(&self) -> usize {
        self.calls.len() - self.complete().count()
    }

    /// A figure of every complete call that has it. What was due and not sent is lost, too.
    pub(super) fn sample(&self, of: impl Fn(&ClientCall) -> Option<f64>) -> Sample {
        let unsent = usize::try_from(unsent_of(self.cell)).unwrap_or(usize::MAX);
        Sample::of(self.complete().filter_map(of), self.lost() + unsent)
    }

    /// Tokens of all complete calls by `of`; `None` where one of them does not say, or there is none.
    pub(super) fn tokens(&self, of: impl Fn(&ClientCall) -> Option<u32>) -> Option<u64> {
        let counts: Option<Vec<u64>> = self.complete().map(|c| of(c).map(u64::from)).collect();
        counts
            .filter(|counts| !counts.is_empty())
            .map(|counts| counts.iter().sum())
    }

    /// Answers were streamed: there are instants of text. An agent that is a black box streams nothing we read.
    pub(super) fn streamed(&self) -> bool {
        self.manifest.workload.stream
            && !matches!(self.cell.drive, Drive::Agent { whole: true, .. })
    }

    /// Calls a second that the schedule asked for; `None` without one, or with one that changes.
    pub(super) fn rate(&self) -> Option<f64> {
        match self.cell.drive {
            Drive::Open { rate, .. } | Drive::Capacity { rate } | Drive::Tenant { rate, .. } => {
                Some(rate)
            }
            Drive::Closed { .. }
            | Drive::Profile { .. }
            | Drive::Trace { .. }
            | Drive::Agent { .. }
            | Drive::Experiment { .. } => None,
        }
    }

    /// Callers that each wait for their answer; `None` where calls come by a schedule.
    pub(super) fn concurrency(&self) -> Option<u32> {
        match self.cell.drive {
            Drive::Closed { concurrency } | Drive::Agent { concurrency, .. } => Some(concurrency),
            _ => None,
        }
    }

    /// How arrivals were spaced; `None` without a schedule, or where it is not known.
    pub(super) fn arrivals(&self) -> Option<Arrivals> {
        let scenario = self.scenario?;
        match self.cell.drive {
            Drive::Open { .. } | Drive::Capacity { .. } => Some(
                scenario
                    .open_loop
                    .as_ref()
                    .map_or(Arrivals::Poisson, |o| o.arrivals),
            ),
            Drive::Profile { .. } => scenario.profile.as_ref().map(|profile| profile.arrivals),
            Drive::Tenant { .. } => scenario.tenants.as_ref().map(|tenants| tenants.arrivals),
            Drive::Closed { .. }
            | Drive::Trace { .. }
            | Drive::Agent { .. }
            | Drive::Experiment { .. } => None,
        }
    }
}

/// Nanoseconds between two instants as milliseconds.
pub(super) fn millis(from: Option<u64>, to: Option<u64>) -> Option<f64> {
    Some(to?.saturating_sub(from?) as f64 / 1e6)
}

/// Prompt tokens of a call: the server's count, or the tokenizer's where it states none.
pub(super) fn input_tokens(call: &ClientCall) -> u32 {
    call.usage_prompt.unwrap_or(call.prompt_tokens)
}
