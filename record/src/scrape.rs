//! What a component's own metrics said, look by look.

use crate::clock::Nanos;
use serde::{Deserialize, Serialize};

/// One look at one endpoint while a chain was driven.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// The first cell that was being driven.
    pub cell: u32,
    /// How many cells with numbers from it on were driven at once: 1, or the tenants of a party.
    pub cells: u32,
    /// The chain.
    pub chain: String,
    /// Whose metrics.
    pub component: String,
    /// When the page was asked for.
    pub at: Nanos,
    /// Until it was there, or given up, nanoseconds.
    pub took: Nanos,
    /// The figures that the page had, by name.
    pub values: Vec<(String, f64)>,
    /// Why there is nothing: then the look is a gap.
    pub fault: Option<String>,
}

impl Look {
    /// The figure called `name`; `None` where the page has none.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<f64> {
        let found = self.values.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| *value)
    }

    /// Whether cell `id` was being driven.
    #[must_use]
    pub fn of(&self, id: u32) -> bool {
        (self.cell..self.cell.saturating_add(self.cells)).contains(&id)
    }
}

/// An endpoint that was looked at during a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scraped {
    /// The chain.
    pub chain: String,
    /// Whose metrics.
    pub component: String,
    /// The product.
    pub kind: String,
    /// The address.
    pub url: String,
    /// The metrics that were read, by figure: of several names that a product used over time, the one
    /// that its page had.
    pub sources: Vec<(String, String)>,
}

/// What a counter gained over a stretch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// How much. After a restart what was counted between the last look before it and the restart is
    /// missing.
    pub sum: f64,
    /// Restarts seen.
    pub resets: u32,
}

/// What the counter `name` gained over `looks` of one endpoint, in the order of time; `None` with fewer than
/// two that succeeded, or where no page has it.
///
/// A counter that falls, or a process that says that it started at another time, is a restart: what it has
/// now it gained since. A counter that an earlier page had not and a later one has began at 0: clients
/// of Prometheus show a labelled counter from its first increment on.
#[must_use]
pub fn gain(looks: &[&Look], name: &str) -> Option<Gain> {
    let seen: Vec<&&Look> = looks.iter().filter(|l| l.fault.is_none()).collect();
    if seen.len() < 2 || seen.iter().all(|l| l.value(name).is_none()) {
        return None;
    }
    let mut gain = Gain {
        sum: 0.0,
        resets: 0,
    };
    let mut before = seen[0].value(name).unwrap_or(0.0);
    for pair in seen.windows(2) {
        let now = pair[1].value(name);
        let reset = restarted(pair[0], pair[1]) || now.is_some_and(|now| now < before);
        gain.resets += u32::from(reset);
        if reset {
            before = 0.0;
        }
        if let Some(now) = now {
            gain.sum += now - before;
            before = now;
        }
    }
    Some(gain)
}

/// The process that was looked at is another one.
fn restarted(earlier: &Look, later: &Look) -> bool {
    // Seconds since the epoch, to the hundredth at best.
    let pair = earlier.value(STARTED).zip(later.value(STARTED));
    pair.is_some_and(|(a, b)| (a - b).abs() > 0.5)
}

/// The figure that tells when a process started.
const STARTED: &str = "started";

#[cfg(test)]
mod tests {
    use super::*;

    fn look(values: &[(&str, f64)]) -> Look {
        Look {
            cell: 3,
            cells: 2,
            chain: "c".to_owned(),
            component: "engine".to_owned(),
            at: 0,
            took: 1,
            values: values.iter().map(|(n, v)| ((*n).to_owned(), *v)).collect(),
            fault: None,
        }
    }

    fn gained(looks: &[Look], name: &str) -> Option<(f64, u32)> {
        let looks: Vec<&Look> = looks.iter().collect();
        gain(&looks, name).map(|g| (g.sum, g.resets))
    }

    #[test]
    fn a_counter_gains_over_gaps_and_across_a_restart() {
        let gap = Look {
            fault: Some("refused".to_owned()),
            values: Vec::new(),
            ..look(&[])
        };
        let at = |value| look(&[("hits", value)]);
        assert_eq!(
            gained(&[at(10.0), gap.clone(), at(25.0)], "hits"),
            Some((15.0, 0))
        );
        assert_eq!(
            gained(&[at(10.0), at(25.0), at(4.0), at(9.0)], "hits"),
            Some((24.0, 1))
        );
        assert_eq!(gained(&[at(10.0), gap], "hits"), None);
        assert_eq!(gained(&[at(10.0), at(12.0)], "queries"), None);
    }

    #[test]
    fn another_start_is_a_restart_though_the_counter_grew() {
        let at = |value, started| look(&[("hits", value), ("started", started)]);
        assert_eq!(
            gained(&[at(10.0, 100.0), at(12.0, 100.01)], "hits"),
            Some((2.0, 0))
        );
        assert_eq!(
            gained(&[at(10.0, 100.0), at(12.0, 160.0)], "hits"),
            Some((12.0, 1))
        );
    }

    #[test]
    fn a_counter_that_comes_with_its_first_increment_began_at_0() {
        let (none, some) = (look(&[("running", 1.0)]), look(&[("hits", 3.0)]));
        assert_eq!(
            gained(&[none.clone(), some.clone(), some], "hits"),
            Some((3.0, 0))
        );
        assert_eq!(gained(&[none.clone(), none], "hits"), None);
    }

    #[test]
    fn a_look_is_of_every_cell_of_its_party() {
        let look = look(&[]);
        assert!(look.of(3) && look.of(4) && !look.of(5) && !look.of(2));
    }
}
