//! What the bills are made of: prices and capacities, each at its value or at an end of its interval.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use config::plan::{Plan, Traffic};
use config::prices::PriceBook;

use crate::model::{Capacity, Configuration};

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

    /// What a deployment serves, calls a second; `None` where nobody has measured it.
    pub(crate) fn capacity(&self, of: Configuration) -> Option<(f64, &'a Capacity)> {
        let capacity = self.given.capacities.get(&of)?;
        let bounds = (
            capacity.low.unwrap_or(capacity.rate),
            capacity.high.unwrap_or(capacity.rate),
        );
        let rate = self.pick(&format!("capacity.{of}"), capacity.rate, bounds);
        (rate > 0.0).then_some((rate, capacity))
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
