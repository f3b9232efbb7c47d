//! The rules: what each configuration is billed for, as a function of the rate. `docs/cost.md` explains them.

mod managed;
mod own;

use std::collections::BTreeSet;

use crate::course::Course;
use crate::inputs::{Ends, Inputs, View};
use crate::model::Configuration;

/// What one configuration costs, by rate.
#[derive(Debug, Clone)]
pub(crate) struct Tariff {
    pub(crate) items: Vec<Item>,
    /// Inputs in it that are not exact.
    pub(crate) inputs: BTreeSet<String>,
    pub(crate) gaps: Vec<String>,
    /// It bills for the plan's copies at every rate, since what one serves is not measured.
    pub(crate) at_least: bool,
}

/// One line of the bill.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) id: &'static str,
    pub(crate) price_ids: Vec<String>,
    pub(crate) formula: String,
    pub(crate) cost: Cost,
}

/// How a line runs with the rate.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cost {
    /// Without steps.
    Smooth(Course),
    /// Machines by need.
    Steps(Steps),
}

/// Machines that are added one replica after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Steps {
    /// The rate that one replica serves, bursts and caches taken into account.
    pub(crate) serves: f64,
    /// Machines of one replica; below 1 where several share one.
    pub(crate) machines: f64,
    /// Replicas that stay when there is no traffic.
    pub(crate) idle: f64,
    /// What one machine costs.
    pub(crate) each: Course,
}

impl Steps {
    /// What is billed with so many replicas.
    fn course(&self, replicas: f64) -> Course {
        match replicas.is_finite() {
            true => self.each * whole(replicas * self.machines),
            false => Course::fixed(f64::INFINITY),
        }
    }

    /// Replicas that serve `rate`; without a rate those that stay, and no number does where one serves nothing.
    fn replicas(&self, rate: f64) -> f64 {
        match rate > 0.0 {
            true => whole(rate / self.serves).max(1.0),
            false => self.idle,
        }
    }
}

/// Rounds up, but for what is a whole number except for rounding.
fn whole(number: f64) -> f64 {
    let near = number.round();
    if near.is_infinite() {
        return near;
    }
    match (number - near).abs() <= 1e-9 * near.max(1.0) {
        true => near,
        false => number.ceil(),
    }
}

impl Cost {
    pub(crate) fn at(&self, rate: f64) -> f64 {
        self.course(rate).at(rate)
    }

    /// The course that holds at `rate`; at the very rate of a step the one below.
    fn course(&self, rate: f64) -> Course {
        match self {
            Self::Smooth(course) => *course,
            Self::Steps(steps) => steps.course(steps.replicas(rate)),
        }
    }
}

impl Tariff {
    /// What `of` is billed for.
    pub(crate) fn of(of: Configuration, given: Inputs<'_>, ends: &Ends) -> Self {
        let view = View::new(given, ends);
        let items = match of {
            Configuration::Baseline | Configuration::BaselinePlus => managed::items(of, &view),
            Configuration::A1 | Configuration::A2 | Configuration::B1 | Configuration::B2 => {
                own::items(of, &view)
            }
        };
        let unmeasured = view.capacity(of).is_none();
        let (inputs, gaps) = view.end();
        Self {
            items,
            inputs,
            gaps,
            at_least: of == Configuration::BaselinePlus && unmeasured,
        }
    }

    /// The sum of its lines: the total where there are no gaps.
    pub(crate) fn at(&self, rate: f64) -> f64 {
        self.items.iter().map(|item| item.cost.at(rate)).sum()
    }

    /// The course that holds around `rate`, which is not that of a step.
    pub(crate) fn course(&self, rate: f64) -> Course {
        let courses = self.items.iter().map(|item| item.cost.course(rate));
        courses.fold(Course::default(), |sum, course| sum + course)
    }

    /// It has no bound at any rate above 0: what a replica serves may be nothing.
    pub(crate) fn unbounded(&self) -> bool {
        self.narrowest() <= 0.0
    }

    /// The rates up to `max` above which a replica more is needed. Not of an unbounded one, which has no end of them.
    pub(crate) fn steps(&self, max: f64) -> Vec<f64> {
        let mut found = Vec::new();
        for steps in self.items.iter().filter_map(|item| item.cost.steps()) {
            let rates = (1_u32..).map(|n| f64::from(n) * steps.serves);
            found.extend(rates.take_while(|rate| *rate < max));
        }
        found
    }

    /// The least rate that one replica serves; infinite without replicas.
    pub(crate) fn narrowest(&self) -> f64 {
        let serves = self.items.iter().filter_map(|item| item.cost.steps());
        serves
            .map(|steps| steps.serves)
            .fold(f64::INFINITY, f64::min)
    }
}

impl Cost {
    fn steps(&self) -> Option<&Steps> {
        match self {
            Self::Smooth(_) => None,
            Self::Steps(steps) => Some(steps),
        }
    }
}
