//! What load measures: performance, gateways, caches.

use cost::Configuration;
use report::{Arm, LegRow, Reading};

use super::choice::{best, by_callers, by_load};
use super::row;
use crate::drive::driven;
use crate::key::Key;
use crate::model::{Cell, Figure, Row, Unit};
use crate::view::View;

/// A scenario that would measure it where nothing has: its number.
type Scenario = u8;

pub(super) fn performance(view: &View<'_>) -> Vec<Row> {
    let near = |arm: &Arm| by_callers(view, arm);
    let leg = |id, key, pick: fn(&Arm) -> &LegRow, q: Quantile| {
        row(
            view,
            id,
            (Key::CategoryPerformance, metric(view, key, q)),
            |of| {
                let arm = best(view, view.arms(of), near);
                cell(view, of, main_scenario(of), arm, |arm| {
                    reading(view, arm, pick(arm), q)
                })
            },
        )
    };
    let value = |id, key, unit: Unit, pick: fn(&Arm) -> Option<f64>| {
        row(view, id, (Key::CategoryPerformance, view.get(key)), |of| {
            let arm = best(view, view.arms(of), near);
            cell(view, of, main_scenario(of), arm, |arm| {
                let value = pick(arm).ok_or_else(|| view.get(Key::NotInRun))?;
                Ok(plain(view, arm, value, unit))
            })
        })
    };
    vec![
        leg("ttft-p50", Key::MetricTtft, |arm| &arm.ttft, Quantile::P50),
        leg("ttft-p95", Key::MetricTtft, |arm| &arm.ttft, Quantile::P95),
        leg("ttft-p99", Key::MetricTtft, |arm| &arm.ttft, Quantile::P99),
        value("tps", Key::MetricTps, Unit::PerSecond, |arm| {
            arm.tokens_rate
        }),
        leg("e2e-p50", Key::MetricE2e, |arm| &arm.e2e, Quantile::P50),
        leg("e2e-p95", Key::MetricE2e, |arm| &arm.e2e, Quantile::P95),
        value(
            "throughput",
            Key::MetricThroughput,
            Unit::PerSecond,
            |arm| arm.rate,
        ),
        cold_start(view),
    ]
}

/// The plan's scenario for a configuration's own speed.
fn main_scenario(of: Configuration) -> Scenario {
    match of {
        Configuration::Baseline => 1,
        _ => 2,
    }
}

/// By an experiment; of the managed ones else by the first call of an agent's session.
fn cold_start(view: &View<'_>) -> Row {
    let metric = (Key::CategoryPerformance, view.get(Key::MetricColdStart));
    row(view, "cold-start", metric, |of| {
        let command = format!(
            "hopscope load --scenario config/experiments/cold-start.yaml --chain {of} --out runs/cold-start-{of}"
        );
        if let Some(found) = super::stated::experiment(view, of, "cold start") {
            return found;
        }
        let sessions = view.arms(of).filter(|arm| arm.agent.is_some());
        let cold = |arm: &Arm| {
            let agent = arm.agent.as_ref()?;
            let mut rows = agent.sessions.iter();
            rows.find(|row| row.leg == "TTFT, cold session").cloned()
        };
        let with = sessions.filter(|arm| cold(arm).is_some());
        match best(view, with, |_| 0.0) {
            Some(arm) => cell(view, of, 5, Some(arm), |arm| {
                let row = cold(arm).ok_or_else(|| view.get(Key::NotInRun))?;
                reading(view, arm, &row, Quantile::P50)
            }),
            None => Cell::NotMeasured { command },
        }
    })
}

pub(super) fn gateway(view: &View<'_>) -> Vec<Row> {
    let own = |id,
               metric: String,
               has: fn(&Arm) -> bool,
               pick: &dyn Fn(&Arm) -> Result<Figure, String>| {
        row(view, id, (Key::CategoryGateway, metric), |of| {
            if !of.self_built() {
                return Cell::NotApplicable;
            }
            cell(view, of, 4, gateway_arm(view, of, has), pick)
        })
    };
    let added = |id, q| {
        own(id, metric(view, Key::MetricAdded, q), tells_added, &|arm| {
            let leg = added_ttft(arm).ok_or_else(|| view.get(Key::NotInRun))?;
            reading(view, arm, leg, q)
        })
    };
    let number = |arm: &Arm, value: Option<f64>, unit| {
        let value = value.ok_or_else(|| view.get(Key::NotInRun))?;
        Ok(plain(view, arm, value, unit))
    };
    vec![
        added("added-p50", Quantile::P50),
        added("added-p95", Quantile::P95),
        added("added-p99", Quantile::P99),
        own(
            "gateway-memory",
            view.get(Key::MetricGatewayMemory),
            |arm| arm.gateway_memory.is_some(),
            &|arm| {
                number(
                    arm,
                    arm.gateway_memory.map(|bytes| bytes as f64),
                    Unit::Bytes,
                )
            },
        ),
        own(
            "gateway-cpu",
            view.get(Key::MetricGatewayCpu),
            |arm| arm.gateway_cpu.is_some(),
            &|arm| {
                number(
                    arm,
                    arm.gateway_cpu.map(|seconds| seconds * 1e9),
                    Unit::Nanoseconds,
                )
            },
        ),
    ]
}

fn added_ttft(arm: &Arm) -> Option<&LegRow> {
    arm.legs.iter().find(|leg| leg.leg == "added TTFT")
}

fn tells_added(arm: &Arm) -> bool {
    added_ttft(arm).is_some()
}

/// The arm that shows a figure of a gateway's: of those that tell it, where any does.
fn gateway_arm<'a>(view: &View<'a>, of: Configuration, tells: fn(&Arm) -> bool) -> Option<&'a Arm> {
    let all = || view.arms(of).filter(|arm| arm.kind == "gateway");
    best(view, all().filter(|arm| tells(arm)), by_load).or_else(|| best(view, all(), by_load))
}

/// The arm that shows what a gateway adds.
pub(crate) fn added_by<'a>(view: &View<'a>, of: Configuration) -> Option<&'a Arm> {
    gateway_arm(view, of, tells_added)
}

pub(super) fn cache(view: &View<'_>) -> Vec<Row> {
    let rate = |id, key, applies: fn(Configuration) -> bool, names: &'static [&'static str]| {
        row(view, id, (Key::CategoryCache, view.get(key)), |of| {
            if !applies(of) {
                return Cell::NotApplicable;
            }
            // Where prompts repeat as the plan wants it, then as tenants repeat theirs. Elsewhere there is little for a
            // cache to serve, and a rate of 0 would say nothing of it.
            let repeats = |arm: &Arm| match view.scenario(&arm.run) {
                Some(3) => 0.0,
                Some(6) => 1.0,
                _ => f64::INFINITY,
            };
            let told = |arm: &&Arm| share(arm, names).is_some();
            let arm = best(view, view.arms(of).filter(told), repeats);
            cell(view, of, 3, arm, |arm| {
                let (value, interval, samples) =
                    share(arm, names).ok_or_else(|| view.get(Key::NotInRun))?;
                Ok(Figure {
                    low: interval.map(|(low, _)| low),
                    high: interval.map(|(_, high)| high),
                    samples,
                    ..plain(view, arm, value, Unit::Share)
                })
            })
        })
    };
    vec![
        rate(
            "prompt-cache",
            Key::MetricPromptCache,
            |of| !of.self_built(),
            &["prompt cache"],
        ),
        rate(
            "semantic-cache",
            Key::MetricSemanticCache,
            Configuration::semantic_cache,
            &["semantic cache", "cache of answers"],
        ),
        rate(
            "kv-cache",
            Key::MetricKvCache,
            Configuration::llm_d,
            &["KV cache"],
        ),
    ]
}

type Shared = (f64, Option<(f64, f64)>, Option<u64>);

/// A hit rate by one of its names; a prompt cache's is in the usage of the calls.
fn share(arm: &Arm, names: &[&str]) -> Option<Shared> {
    let rates = arm.server.rates.iter();
    let mut named = rates.filter(|rate| names.iter().any(|name| rate.name.starts_with(name)));
    if let Some(rate) = named.find(|rate| rate.share().is_some()) {
        let samples = rate.stated.map(|(stated, _)| stated);
        return Some((rate.share()?, rate.interval, samples));
    }
    if names.contains(&"prompt cache") {
        return Some((arm.cached_share?, None, Some(arm.cached_stated)));
    }
    None
}

/// Which quantile.
#[derive(Clone, Copy)]
pub(crate) enum Quantile {
    P50,
    P95,
    P99,
}

fn metric(view: &View<'_>, key: Key, q: Quantile) -> String {
    let name = match q {
        Quantile::P50 => "p50",
        Quantile::P95 => "p95",
        Quantile::P99 => "p99",
    };
    format!("{} {name}", view.get(key))
}

/// A figure of an arm without an interval.
fn plain(view: &View<'_>, arm: &Arm, value: f64, unit: Unit) -> Figure {
    Figure {
        value,
        unit,
        at_least: false,
        low: None,
        high: None,
        samples: Some(arm.strata.sent as u64),
        few: false,
        run: Some(arm.run.clone()),
        label: driven(view, &arm.drive),
        simulated: arm.simulated,
        valid: view.valid(&arm.run),
    }
}

/// A quantile of a leg as a figure.
///
/// # Errors
/// Why it is not given.
pub(crate) fn reading(
    view: &View<'_>,
    arm: &Arm,
    leg: &LegRow,
    q: Quantile,
) -> Result<Figure, String> {
    let (reading, interval) = match q {
        Quantile::P50 => (&leg.p50, leg.interval),
        Quantile::P95 => (&leg.p95, None),
        Quantile::P99 => (&leg.p99, None),
    };
    let (value, at_least, few) = match reading {
        Reading::Value { value, few } => (*value, false, *few),
        Reading::AtLeast(value) => (*value, true, false),
        Reading::Refused(why) => return Err(why.clone()),
        Reading::NotMeasured => return Err(view.get(Key::NotInRun)),
    };
    Ok(Figure {
        at_least,
        few,
        low: interval.map(|(low, _)| low),
        high: interval
            .map(|(_, high)| high)
            .filter(|high| high.is_finite()),
        samples: Some(leg.calls as u64),
        ..plain(view, arm, value, Unit::Nanoseconds)
    })
}

/// The cell of an arm; without one, the command that would make one.
fn cell(
    view: &View<'_>,
    of: Configuration,
    scenario: Scenario,
    arm: Option<&Arm>,
    figure: impl Fn(&Arm) -> Result<Figure, String>,
) -> Cell {
    let Some(arm) = arm else {
        return Cell::NotMeasured {
            command: view.command(scenario, &[of.id()]),
        };
    };
    match figure(arm) {
        Ok(figure) => Cell::Value(figure),
        Err(why) => Cell::Withheld {
            why,
            run: Some(arm.run.clone()),
        },
    }
}
