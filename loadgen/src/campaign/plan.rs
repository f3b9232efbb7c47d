//! Which cells a block has, and what each is to do.

use super::Campaign;
use super::tenants::{Party, parties};
use crate::cell::{Order, Ran, Way};
use config::ChainKind;
use config::scenario::{Arrivals, CellLength};
use record::manifest::{Cell, Counted, Drive, Phase};

/// One cell of a block before it runs.
#[derive(Clone)]
pub(super) struct Planned {
    pub(super) chain: usize,
    pub(super) drive: Drive,
    pub(super) way: Way,
    pub(super) length: CellLength,
}

/// What a block does one after the other, in random order.
#[derive(Clone)]
pub(super) enum Job {
    Cell(Planned),
    Party(Party),
    /// An experiment of operation on a chain.
    Trial(usize),
}

impl Campaign<'_> {
    /// All that a block does.
    pub(super) fn jobs(&self) -> Vec<Job> {
        let mut jobs: Vec<Job> = self.planned().into_iter().map(Job::Cell).collect();
        if let Some(tenants) = &self.plan.scenario.tenants {
            for (at, planned) in self.plan.chains.iter().enumerate() {
                if !planned.chain.kind.is_control() {
                    jobs.extend(parties(at, tenants).into_iter().map(Job::Party));
                }
            }
        }
        if self.plan.scenario.experiment.is_some() {
            let chains = self.plan.chains.iter().enumerate();
            let served =
                chains.filter(|(_, c)| !matches!(c.chain.kind, ChainKind::Loop | ChainKind::Relay));
            jobs.extend(served.map(|(at, _)| Job::Trial(at)));
        }
        jobs
    }

    /// The cells of a block, each chain with its ways. An untapped control is driven as its gateway
    /// is; the other controls by the common rate and the sweep.
    fn planned(&self) -> Vec<Planned> {
        let scenario = &self.plan.scenario;
        let mut all = Vec::new();
        for (chain, planned) in self.plan.chains.iter().enumerate() {
            let kind = planned.chain.kind;
            if kind.is_control() && !scenario.controls.contains(&kind) {
                continue;
            }
            let measured = planned
                .chain
                .control_of
                .as_ref()
                .unwrap_or(&planned.chain.name);
            let capacity = self.capacities.get(measured).and_then(|found| found.rate);
            if let Some(open) = &scenario.open_loop {
                let shares = open
                    .shares
                    .iter()
                    .filter_map(|s| Some((capacity? * s, Some(*s))));
                let fixed = open.common_rate.iter().chain(&open.rates);
                let rates = shares.chain(fixed.map(|r| (*r, None)));
                all.extend(rates.map(|(rate, share)| Planned {
                    chain,
                    drive: Drive::Open { rate, share },
                    way: self.open(rate),
                    length: open.cell.clone(),
                }));
            }
            if let Some(closed) = &scenario.closed_loop {
                let levels = closed.concurrency.iter();
                all.extend(levels.map(|&concurrency| Planned {
                    chain,
                    drive: Drive::Closed { concurrency },
                    way: Way::Closed {
                        concurrency,
                        think: closed.think.get(),
                    },
                    length: closed.cell.clone(),
                }));
            }
            if let Some(profile) = &scenario.profile {
                let phases = profile.phases.iter().map(|phase| Phase {
                    name: phase.name.clone(),
                    rate: phase.rate,
                    to: phase.to.unwrap_or(phase.rate),
                    lasts: phase.duration.nanos(),
                });
                all.push(Planned {
                    chain,
                    drive: Drive::Profile {
                        phases: phases.collect(),
                    },
                    way: Way::Profile {
                        profile: profile.clone(),
                        skipped: 0,
                    },
                    length: CellLength {
                        duration: Some(config::Period::sum(
                            profile.phases.iter().map(|p| p.duration),
                        )),
                        calls: None,
                    },
                });
            }
            if let (Some(settings), Some(trace)) = (&scenario.trace, &self.trace) {
                all.push(Planned {
                    chain,
                    drive: Drive::Trace {
                        file: trace.info.file.clone(),
                        speed: trace.speed(),
                        calls: trace.info.calls,
                    },
                    way: Way::Trace {
                        trace: trace.clone(),
                        in_flight: u64::from(settings.in_flight_max),
                    },
                    // The last call is still within it.
                    length: CellLength {
                        duration: Some(config::Period::from_nanos(trace.lasts + 1)),
                        calls: None,
                    },
                });
            }
            if let Some(agent) = &scenario.agent
                && (!kind.is_control() || kind == ChainKind::Untapped)
            {
                let turns = u16::try_from(agent.turns).unwrap_or(u16::MAX);
                let drive = Drive::Agent {
                    turns,
                    concurrency: agent.concurrency,
                    whole: agent.endpoint.is_some(),
                };
                all.push(Planned {
                    chain,
                    drive,
                    way: Way::Agent(agent.clone()),
                    length: CellLength::default(),
                });
            }
        }
        all
    }

    /// Calls at `rate`, spaced as the scenario says.
    pub(super) fn open(&self, rate: f64) -> Way {
        let open = self.plan.scenario.open_loop.as_ref();
        Way::Open {
            rate,
            arrivals: open.map_or(Arrivals::Poisson, |o| o.arrivals),
            in_flight: u64::from(open.map_or(10_000, |o| o.in_flight_max)),
        }
    }

    /// The relay at a low rate, on the same tap threads, for as long as the cell lasts.
    pub(super) fn probe(&self, beside: usize, id: u32, block: u32) -> Option<Order> {
        let probe = self.plan.scenario.floor_probe.as_ref()?;
        if !self.stage.share.leads() {
            return None;
        }
        let chain = self
            .plan
            .chains
            .iter()
            .position(|c| c.chain.name == probe.chain)?;
        if chain == beside || self.plan.chains[beside].chain.taps.is_empty() {
            return None;
        }
        Some(Order {
            id,
            target: self.targets[chain].clone(),
            model: self.plan.chains[chain].chain.model.clone(),
            block,
            way: Way::Open {
                rate: probe.rate,
                arrivals: Arrivals::Poisson,
                in_flight: 64,
            },
            length: CellLength {
                duration: Some(config::Period::secs(86_400)),
                calls: None,
            },
            warmup: CellLength::default(),
            begin: None,
            draw: b"floor".to_vec(),
            seat: None,
        })
    }

    pub(super) fn order(&self, id: u32, one: &Planned, block: u32) -> Order {
        Order {
            id,
            target: self.targets[one.chain].clone(),
            model: self.plan.chains[one.chain].chain.model.clone(),
            block,
            way: one.way.clone(),
            length: one.length.clone(),
            warmup: if matches!(one.drive, Drive::Profile { .. } | Drive::Trace { .. }) {
                CellLength::default()
            } else {
                self.plan.scenario.warmup.clone()
            },
            begin: None,
            draw: draw(&one.drive, id),
            seat: None,
        }
    }
}

/// Cells of one rate have one schedule, so that one that is driven anew is the same; but a step that
/// confirms a capacity is no repetition of the one that found it.
fn draw(drive: &Drive, id: u32) -> Vec<u8> {
    let rate = rate_of(drive).unwrap_or(0.0).to_le_bytes();
    match drive {
        Drive::Capacity { .. } => [&rate[..], &id.to_le_bytes()].concat(),
        _ => rate.to_vec(),
    }
}

pub(super) fn rate_of(drive: &Drive) -> Option<f64> {
    match drive {
        Drive::Open { rate, .. } | Drive::Capacity { rate } => Some(*rate),
        _ => None,
    }
}

pub(super) fn rate_of_way(way: &Way) -> f64 {
    if let Way::Open { rate, .. } = way {
        *rate
    } else {
        0.0
    }
}

pub(super) fn words(drive: &Drive) -> String {
    match drive {
        Drive::Open { rate, .. } => format!("open {rate:.1}/s"),
        Drive::Capacity { rate } => format!("capacity {rate:.1}/s"),
        Drive::Closed { concurrency } => format!("closed {concurrency}"),
        Drive::Profile { phases } => {
            let names: Vec<&str> = phases.iter().map(|p| p.name.as_str()).collect();
            format!("profile {}", names.join(" → "))
        }
        Drive::Trace { speed, .. } => format!("trace ×{speed}"),
        Drive::Tenant {
            tenant, company, ..
        } => format!("tenant {tenant} {}", company.name()),
        Drive::Agent { whole: true, .. } => "agent as a black box".to_owned(),
        Drive::Agent { turns, .. } => format!("agent {turns} turns"),
        Drive::Experiment { setup } => setup.looks_for.name().to_owned(),
    }
}

pub(super) fn describe(order: &Order, drive: &Drive, block: u32, ran: Ran) -> Cell {
    Cell {
        id: order.id,
        chain: order.target.chain.clone(),
        drive: drive.clone(),
        block,
        from: ran.from,
        to: ran.to,
        scheduled: ran.scheduled,
        sent: ran.sent,
        counted: Counted::default(),
        generator_cpu: None,
        tap_cpu: None,
        gateway_cpu: None,
        gateway_memory: None,
        saturated: None,
        leaked: ran.leaked,
        cut: false,
        skipped: match &order.way {
            Way::Profile { skipped, .. } => *skipped,
            _ => 0,
        },
        floor_cell: None,
    }
}
