//! Capacities that runs have measured, in the place of those that a plan expects.

use config::Plan;
use cost::{Capacity, Configuration};
use record::manifest::{ChainInfo, Workload};
use record::rundir::RunDir;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// What run directories say of capacity.
#[derive(Default)]
pub(super) struct Measured {
    /// Capacities by configuration.
    pub(super) capacities: BTreeMap<Configuration, Capacity>,
    /// Why a run, or a chain of it, gives none.
    pub(super) unused: Vec<String>,
}

/// The plan for which capacities are wanted, and its machines.
pub(super) struct For<'a> {
    pub(super) plan: &'a Plan,
    /// Replicas that its machines hold.
    pub(super) replicas: u32,
    /// They, and what runs on them, are those of its file: nothing was set in their place.
    pub(super) as_measured: bool,
}

/// Reads the capacities of `runs`: a chain is of the configuration whose name it has. Of several runs the last counts.
///
/// # Errors
/// A directory is no run, or its manifest cannot be read.
pub(super) fn read(runs: &[PathBuf], wanted: &For<'_>) -> anyhow::Result<Measured> {
    let mut measured = Measured::default();
    for run in runs {
        let manifest = RunDir::open(run)?.manifest()?;
        let valid = manifest.verdict.is_some_and(|verdict| verdict.valid());
        measured.add(run, valid, &manifest.workload, &manifest.chains, wanted);
    }
    Ok(measured)
}

impl Measured {
    fn add(
        &mut self,
        run: &Path,
        valid: bool,
        workload: &Workload,
        chains: &[ChainInfo],
        wanted: &For<'_>,
    ) {
        let plan = wanted.plan;
        let at = run.display();
        if !valid {
            let why = format!("{at}: the run is not shown to be valid");
            self.unused.push(why);
            return;
        }
        let work = (
            f64::from(workload.input_tokens),
            f64::from(workload.output_tokens),
        );
        let asked = (plan.traffic.input_tokens, plan.traffic.output_tokens);
        if work != asked {
            self.unused.push(format!(
                "{at}: it measured calls of {} + {} tokens, the plan's traffic has {} + {}; measure these, or set `traffic.input_tokens` and `traffic.output_tokens`",
                work.0, work.1, asked.0, asked.1
            ));
            return;
        }
        for chain in chains {
            let mut all = Configuration::ALL.into_iter();
            let Some(of) = all.find(|of| of.id() == chain.name) else {
                continue;
            };
            match capacity(chain, of, run)
                .and_then(|found| found.map_or(Ok(None), |c| wanted.fits(of, c)))
            {
                Ok(Some(capacity)) => {
                    self.capacities.insert(of, capacity);
                }
                Ok(None) => {}
                Err(why) => self.unused.push(format!("{at}: {of}: {why}")),
            }
        }
    }
}

impl For<'_> {
    /// A capacity holds for the machines on which it was measured: those of the plan's file, and no others.
    fn fits(&self, of: Configuration, found: Capacity) -> Result<Option<Capacity>, String> {
        if !of.self_built() {
            return Ok(Some(found));
        }
        if !self.as_measured {
            return Err("it was measured on the machines and the model of the plan's file, and `--set` changed them; measure on these".to_owned());
        }
        if found.replicas != self.replicas {
            return Err(format!(
                "it was measured with {} replicas, and the plan's machines hold {}; state in `hardware` what was measured",
                found.replicas, self.replicas
            ));
        }
        Ok(Some(found))
    }
}

/// `None` of a chain whose capacity was not looked for, and of one that is billed by tokens.
fn capacity(chain: &ChainInfo, of: Configuration, run: &Path) -> Result<Option<Capacity>, String> {
    let Some(found) = &chain.capacity else {
        return Ok(None);
    };
    if of == Configuration::Baseline {
        return Ok(None);
    }
    let held = found.rate.filter(|_| found.confirmed);
    let rate = held.ok_or("no rate was confirmed at which its objective holds")?;
    let replicas = chain
        .replicas
        .ok_or("its chain file states no `replicas`, so nobody knows what one serves")?;
    let fit = found.fit;
    Ok(Some(Capacity {
        rate,
        low: fit.map(|fit| fit.low.min(rate)),
        high: fit.map(|fit| fit.high.max(rate)),
        replicas,
        simulated: chain.simulated,
        measured: true,
        or_more: found.missed.is_none(),
        run: format!(
            "measured by {}{}",
            run.display(),
            if chain.simulated { " (simulated)" } else { "" }
        ),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::manifest::{Capacity as Found, Fit};

    fn chain(name: &str, found: Found) -> ChainInfo {
        ChainInfo {
            name: name.to_owned(),
            kind: "gateway".to_owned(),
            simulated: true,
            gateway: None,
            replicas: Some(3),
            capacity: Some(found),
            injected: None,
        }
    }

    fn found() -> Found {
        Found {
            rate: Some(4.0),
            confirmed: true,
            fit: Some(Fit {
                rate: 5.0,
                low: 4.5,
                high: 6.0,
            }),
            missed: Some(7.0),
            calls: None,
            steps: Vec::new(),
        }
    }

    /// What a run of the plan's own calls gives, with a change.
    fn seen(change: impl FnOnce(&mut ChainInfo, &mut Workload, &mut bool)) -> Measured {
        let plan = Plan::shipped().unwrap().into_inner();
        let mut workload = Workload {
            input_tokens: 500,
            output_tokens: 1000,
            ..Workload::default()
        };
        let (mut a1, mut valid) = (chain("a1", found()), true);
        change(&mut a1, &mut workload, &mut valid);
        let mut measured = Measured::default();
        let chains = [a1, chain("a1-untapped", found())];
        let wanted = For {
            plan: &plan,
            replicas: 3,
            as_measured: true,
        };
        measured.add(Path::new("run"), valid, &workload, &chains, &wanted);
        measured
    }

    #[test]
    fn a_capacity_of_other_machines_prices_none() {
        let plan = Plan::shipped().unwrap().into_inner();
        let fits = |replicas, as_measured| {
            let wanted = For {
                plan: &plan,
                replicas,
                as_measured,
            };
            let found = capacity(&chain("a1", found()), Configuration::A1, Path::new("run"));
            wanted.fits(Configuration::A1, found.unwrap().unwrap())
        };
        assert!(fits(3, true).unwrap().is_some());
        let other = fits(4, true).unwrap_err();
        assert!(
            other.contains("with 3 replicas, and the plan's machines hold 4"),
            "{other}"
        );
        let set = fits(3, false).unwrap_err();
        assert!(set.contains("`--set` changed them"), "{set}");
    }

    #[test]
    fn a_search_that_missed_nothing_says_or_more() {
        let measured = seen(|a1, _, _| a1.capacity.as_mut().unwrap().missed = None);
        assert!(measured.capacities[&Configuration::A1].or_more);
        assert!(!seen(|_, _, _| {}).capacities[&Configuration::A1].or_more);
    }

    #[test]
    fn the_confirmed_rate_counts_with_the_intervals_of_the_fit() {
        let measured = seen(|_, _, _| {});
        assert_eq!(measured.capacities.len(), 1);
        let capacity = &measured.capacities[&Configuration::A1];
        assert_eq!(
            (capacity.rate, capacity.low, capacity.high),
            (4.0, Some(4.0), Some(6.0))
        );
        assert!(capacity.simulated && capacity.replicas == 3);
        assert_eq!(capacity.run, "measured by run (simulated)");
    }

    #[test]
    fn what_cannot_be_relied_on_is_named_and_not_used() {
        type Change = fn(&mut ChainInfo, &mut Workload, &mut bool);
        let says = |change: Change, wanted: &str| {
            let measured = seen(change);
            assert!(measured.capacities.is_empty());
            assert!(measured.unused[0].contains(wanted), "{:?}", measured.unused);
        };
        says(|_, _, valid| *valid = false, "not shown to be valid");
        says(|_, work, _| work.output_tokens = 16, "500 + 16 tokens");
        says(|a1, _, _| a1.replicas = None, "no `replicas`");
        says(
            |a1, _, _| a1.capacity.as_mut().unwrap().confirmed = false,
            "no rate was confirmed",
        );
    }
}
