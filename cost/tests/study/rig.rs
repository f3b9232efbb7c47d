//! A plan for tests: the shipped one with simpler parts.

use config::{Plan, PriceBook};
use cost::{Bill, Capacity, Configuration, Study};
use std::collections::BTreeMap;
use std::path::Path;

pub(crate) type Capacities = BTreeMap<Configuration, Capacity>;

/// 500 tokens in, 1000 out; nothing but tokens, copies and machines.
pub(crate) fn plan() -> Plan {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/plan.yaml");
    let mut plan = config::load::<Plan>(path).unwrap().into_inner();
    plan.models.default = "claude-sonnet-4-5".to_owned();
    plan.guardrails.clear();
    plan.agent = None;
    plan
}

pub(crate) fn prices() -> PriceBook {
    PriceBook::shipped().unwrap()
}

pub(crate) fn measured(rate: f64, replicas: u32) -> Capacity {
    Capacity {
        rate,
        low: None,
        high: None,
        replicas,
        simulated: false,
        measured: true,
        or_more: false,
        run: "run".to_owned(),
    }
}

/// All self-built configurations serve the same.
pub(crate) fn all(capacity: &Capacity) -> Capacities {
    let own = Configuration::ALL.into_iter().filter(|c| c.self_built());
    own.map(|c| (c, capacity.clone())).collect()
}

pub(crate) fn study(plan: &Plan, prices: &PriceBook, capacities: &Capacities) -> Study {
    cost::study(prices, plan, capacities, &plan.traffic, None)
}

pub(crate) fn bill(study: &Study, of: Configuration, rate: f64) -> &Bill {
    let mut bills = study.bills.iter();
    bills
        .find(|bill| bill.configuration == of && bill.rate == rate)
        .unwrap()
}

pub(crate) fn total(study: &Study, of: Configuration, rate: f64) -> f64 {
    let bill = bill(study, of, rate);
    bill.total.unwrap().value
}

pub(crate) fn line(study: &Study, of: Configuration, rate: f64, id: &str) -> f64 {
    let lines = &bill(study, of, rate).lines;
    let found = lines.iter().filter(|line| line.id == id);
    found.map(|line| line.amount.value).sum()
}

/// Equal to a cent.
pub(crate) fn same(a: f64, b: f64) {
    assert!((a - b).abs() < 0.01, "{a} is not {b}");
}
