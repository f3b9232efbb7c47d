//! What the bills are made of: prices and capacities, each at its value or at an end of its interval.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use config::plan::{Plan, Traffic};
use config::prices::PriceBook;

use crate::model::{Capacity, Configuration, Limit};

/// Which of the values of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum End {
    Low,
    High,
}

/// Inputs that are held at an end of their interval; all others have their value.
pub(crate) type Ends = BTreeMap<String, End>;

/// Everything given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inputs<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) book: &'a PriceBook,
    pub(crate) capacities: &'a BTreeMap<Configuration, Capacity>,
    pub(crate) traffic: &'a Traffic,
    pub(crate) limit: Option<&'a Limit>,
}

impl<'a> Inputs<'a> {
    /// The highest rate at which `of` is served, where a quota sets one. Model units bought have limits of their own.
    pub(crate) fn limit(self, of: Configuration) -> Option<&'a Limit> {
        let on_demand = of == Configuration::Baseline && self.plan.provisioned.is_none();
        self.limit.filter(|_| on_demand)
    }
}

/// The inputs at some of their ends. Remembers which were asked for, and which were not there.
pub(crate) struct View<'a> {
    pub(crate) given: Inputs<'a>,
    ends: &'a Ends,
    used: RefCell<BTreeSet<String>>,
    gaps: RefCell<Vec<String>>,
}

impl<'a> View<'a> {
    pub(crate) fn new(given: Inputs<'a>, ends: &'a Ends) -> Self {
        Self {
            given,
            ends,
            used: RefCell::default(),
            gaps: RefCell::default(),
        }
    }

    /// A price, US dollars a unit; a gap where there is none.
    pub(crate) fn price(&self, id: &str) -> Option<f64> {
        let Some(price) = self.given.book.get(id) else {
            self.gap(format!(
                "no price `{id}`: add it to the price table, with unit, day and source"
            ));
            return None;
        };
        Some(self.pick(id, price.value, price.bounds()))
    }

    /// What a deployment serves, calls a second; `None` where nobody has measured it. At an end it may be 0, which no
    /// number of replicas makes up for, or infinite, where the search for it ended first.
    pub(crate) fn capacity(&self, of: Configuration) -> Option<(f64, &'a Capacity)> {
        let capacity = self.given.capacities.get(&of)?;
        if capacity.rate.is_nan() || capacity.rate <= 0.0 {
            return None;
        }
        let rate = self.pick(&capacity_id(of), capacity.rate, capacity.bounds());
        Some((rate, capacity))
    }

    pub(crate) fn gap(&self, what: String) {
        let mut gaps = self.gaps.borrow_mut();
        if !gaps.contains(&what) {
            gaps.push(what);
        }
    }

    /// The inputs asked for that are not exact, and what was missing.
    pub(crate) fn end(self) -> (BTreeSet<String>, Vec<String>) {
        (self.used.into_inner(), self.gaps.into_inner())
    }

    fn pick(&self, name: &str, value: f64, (low, high): (f64, f64)) -> f64 {
        if low < high {
            self.used.borrow_mut().insert(name.to_owned());
        }
        match self.ends.get(name) {
            Some(End::Low) => low,
            Some(End::High) => high,
            None => value,
        }
    }
}

impl Capacity {
    /// The least and the most, calls a second: not below 0.
    pub(crate) fn bounds(&self) -> (f64, f64) {
        let low = self.low.unwrap_or(self.rate).max(0.0);
        let high = match self.or_more {
            true => f64::INFINITY,
            false => self.high.unwrap_or(self.rate),
        };
        (low, high)
    }
}

/// The name of an input.
pub(crate) fn capacity_id(of: Configuration) -> String {
    format!("capacity.{of}")
}

/// The ends of `inputs` at which `figure` is least, and those at which it is most, each input looked at by itself.
pub(crate) fn extremes(inputs: &BTreeSet<String>, figure: impl Fn(&Ends) -> f64) -> (Ends, Ends) {
    let (mut least, mut most) = (Ends::new(), Ends::new());
    for name in inputs {
        let at = |end| figure(&Ends::from([(name.clone(), end)]));
        let rises = at(End::Low) <= at(End::High);
        let (small, large) = match rises {
            true => (End::Low, End::High),
            false => (End::High, End::Low),
        };
        least.insert(name.clone(), small);
        most.insert(name.clone(), large);
    }
    (least, most)
}
