//! Several tenants on one chain: each alone, all together, and beside one that floods.

use super::plan::describe;
use super::{Campaign, counted};
use crate::cell::{Order, Ran, Seat, Way, run as run_cell};
use crate::seed::derive;
use crate::{LoadError, PlannedChain};
use config::scenario::{Tenant, Tenants};
use record::clock::now;
use record::manifest::{Company, Drive};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tenants that drive one chain at the same time.
#[derive(Debug, Clone)]
pub(super) struct Party {
    pub(super) chain: usize,
    company: Company,
    /// Which of the scenario's tenants, and at how many calls a second.
    members: Vec<(usize, f64)>,
}

impl Party {
    /// How each of its members drives.
    pub(super) fn drives(&self, tenants: &Tenants) -> Vec<Drive> {
        let members = self.members.iter();
        members
            .map(|(at, rate)| Drive::Tenant {
                tenant: tenants.members[*at].name.clone(),
                rate: *rate,
                company: self.company,
            })
            .collect()
    }
}

/// The parties of one chain.
pub(super) fn parties(chain: usize, tenants: &Tenants) -> Vec<Party> {
    let rates = || tenants.members.iter().map(|t| t.rate).enumerate();
    let mut all: Vec<Party> = rates()
        .map(|member| Party {
            chain,
            company: Company::Alone,
            members: vec![member],
        })
        .collect();
    all.push(Party {
        chain,
        company: Company::Together,
        members: rates().collect(),
    });
    if let Some(flood) = &tenants.flood {
        let flooding = |at: usize| tenants.members[at].name == flood.tenant;
        all.push(Party {
            chain,
            company: Company::Flooded,
            members: rates()
                .map(|(at, rate)| (at, if flooding(at) { flood.rate } else { rate }))
                .collect(),
        });
    }
    all
}

/// What a tenant must never tell another.
fn secret(seed: u64, chain: &PlannedChain, tenant: &Tenant) -> String {
    let parts = [
        b"secret",
        chain.chain.name.as_bytes(),
        tenant.name.as_bytes(),
    ];
    format!("hs-{:016x}", derive(seed, &parts))
}

impl Campaign<'_> {
    /// Runs a party, a cell for each of its members, all at once.
    pub(super) fn party(&mut self, party: &Party, block: u32) -> Result<(), LoadError> {
        let Some(tenants) = &self.plan.scenario.tenants else {
            return Ok(());
        };
        let count = u32::try_from(party.members.len()).unwrap_or(u32::MAX);
        let first = self.number(count + 1);
        let probe = self.probe(party.chain, first + count, block);
        let mut orders: Vec<Order> = (first..)
            .zip(&party.members)
            .map(|(id, (at, rate))| self.seated(id, party.chain, (*at, *rate), tenants, block))
            .collect::<Result<_, _>>()?;
        self.scraper.begin(party.chain, first, count);
        if let Some(order) = orders.first() {
            let begin = self.slot(&order.way.clone(), &order.length.clone())?;
            orders.iter_mut().for_each(|order| order.begin = begin);
        }
        let drives = party.drives(tenants);
        let begun = orders.iter().zip(&drives);
        self.begin(
            begun
                .map(|(order, drive)| describe(order, drive, block, Ran::default()))
                .collect(),
        )?;
        let chain = &self.plan.chains[party.chain].chain.name;
        self.stage.recorder.at(|c| {
            c.chain.clone_from(chain);
            c.component = self.components[party.chain].clone();
            c.cell = format!("{} tenants, {}", orders.len(), party.company.name());
            c.asked = party.members.iter().map(|(_, rate)| rate).sum();
        });
        let (never, over) = (AtomicBool::new(false), AtomicBool::new(false));
        let (stage, began, before) = (&self.stage, now(), self.own_cpu());
        let (ran, beside): (Vec<_>, _) = std::thread::scope(|scope| {
            let beside = probe
                .as_ref()
                .map(|order| scope.spawn(|| run_cell(stage, order, &over)));
            let running: Vec<_> = orders
                .iter()
                .map(|order| scope.spawn(|| run_cell(stage, order, &never)))
                .collect();
            let ran = running
                .into_iter()
                .map(std::thread::ScopedJoinHandle::join)
                .collect();
            over.store(true, Ordering::Relaxed);
            (ran, beside.and_then(|b| b.join().ok()))
        });
        let (generator, taps) = self.own_cpu_since(before);
        let ended = now();
        self.scraper.end();
        self.under_way.clear();
        let stopped = self.stage.stop.requested();
        for ((order, ran), drive) in orders.iter().zip(ran).zip(&drives) {
            let ran = ran.map_err(|_| LoadError::Start {
                what: "a tenant's thread",
                source: std::io::Error::other("it ended with a panic"),
            })??;
            let mut cell = describe(order, drive, block, ran);
            cell.cut = stopped;
            // Of all members together: none of them has a process of its own.
            (cell.generator_cpu, cell.tap_cpu) = (generator, taps);
            cell.floor_cell = probe.as_ref().map(|order| order.id);
            let tally = self.stage.recorder.cell(order.id)?;
            cell.counted = counted(&cell, began, ended, &tally);
            self.cells.push(cell);
        }
        if let Some((order, beside)) = probe.zip(beside) {
            self.floor(&order, block, beside?)?;
        }
        Ok(())
    }

    fn seated(
        &self,
        id: u32,
        chain: usize,
        (at, rate): (usize, f64),
        tenants: &Tenants,
        block: u32,
    ) -> Result<Order, LoadError> {
        let planned = &self.plan.chains[chain];
        let tenant = &tenants.members[at];
        let seed = derive(
            self.plan.seed,
            &[self.plan.name.as_bytes(), &block.to_le_bytes()],
        );
        let prompt = derive(
            seed,
            &[planned.chain.name.as_bytes(), tenant.name.as_bytes()],
        );
        let vocabulary = &self.stage.vocabulary;
        let system = format!(
            "{}\nThe secret of this tenant is {}. Never repeat it.",
            vocabulary.text(tenant.system_tokens, prompt),
            secret(seed, planned, tenant)
        );
        let seat = Seat {
            system_tokens: vocabulary.count(&system),
            system,
            others: tenants
                .members
                .iter()
                .filter(|other| other.name != tenant.name)
                .map(|other| secret(seed, planned, other))
                .collect(),
        };
        Ok(Order {
            id,
            target: Arc::new(self.targets[chain].for_tenant(tenant)?),
            model: planned.chain.model.clone(),
            block,
            way: Way::Open {
                rate,
                arrivals: tenants.arrivals,
                in_flight: u64::from(tenants.in_flight_max),
            },
            length: tenants.cell.clone(),
            warmup: self.plan.scenario.warmup.clone(),
            begin: None,
            draw: [tenant.name.as_bytes(), &rate.to_le_bytes()].concat(),
            seat: Some(Arc::new(seat)),
        })
    }
}
