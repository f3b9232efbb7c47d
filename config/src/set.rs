//! Several files that work together: what must hold between them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{ConfigError, Finding};
use crate::load::{Checked, load};
use crate::scalar::Listen;
use crate::{Calibration, Chain, ChainKind, Demo, Scenario, TapProcess};

/// A tap process and its chains, checked together.
#[derive(Clone, Debug)]
pub struct TapSet {
    /// The settings of the process.
    pub process: Checked<TapProcess>,
    /// Its chains, in the order of the file.
    pub chains: Vec<Checked<Chain>>,
}

/// A demonstration and everything it names, checked together.
#[derive(Clone, Debug)]
pub struct DemoSet {
    /// The demonstration's own file.
    pub demo: Checked<Demo>,
    /// The tap process and the chains with taps.
    pub tap: TapSet,
    /// The chains without taps.
    pub untapped: Vec<Checked<Chain>>,
    /// The scenario.
    pub scenario: Checked<Scenario>,
    /// The calibration.
    pub calibration: Checked<Calibration>,
}

impl DemoSet {
    /// All chains: those with taps, then those without.
    pub fn chains(&self) -> impl Iterator<Item = &Checked<Chain>> {
        self.tap.chains.iter().chain(&self.untapped)
    }
}

/// Reads the settings of a tap process and every chain they name, and checks that all listeners can
/// be bound together.
///
/// # Errors
/// Every finding in any of the files.
pub fn tap_process(path: impl AsRef<Path>) -> Result<TapSet, ConfigError> {
    let process = load::<TapProcess>(path)?;
    let paths: Vec<PathBuf> = process
        .chains
        .iter()
        .map(|chain| process.beside(chain))
        .collect();
    let chains = chains(&paths)?;
    let mut findings = Vec::new();
    let own = [("telemetry", process.telemetry), ("admin", process.admin)];
    let own = own.into_iter().filter_map(|(at, listen)| {
        Some(Listener {
            listen: listen?,
            what: format!("`{at}`"),
            finding: process.finding(at, ""),
        })
    });
    distinct(own.chain(chains.iter().flat_map(listeners)), &mut findings);
    fail(findings)?;
    Ok(TapSet { process, chains })
}

/// Reads several chains that are used together: their names differ, no two listeners take one port,
/// and every control finds the chain that it controls when that is among them.
///
/// # Errors
/// Every finding in any of the files.
pub fn chains<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<Checked<Chain>>, ConfigError> {
    let mut findings = Vec::new();
    let mut chains: Vec<Checked<Chain>> = Vec::new();
    for path in paths {
        match load::<Chain>(path) {
            Ok(chain) => chains.push(chain),
            Err(error) => findings.extend(error.into_findings()),
        }
    }
    let mut names: BTreeMap<&str, &Checked<Chain>> = BTreeMap::new();
    for chain in &chains {
        if let Some(other) = names.insert(&chain.name, chain) {
            let message = format!(
                "the name `{}` is taken at {}; choose another",
                chain.name,
                other.location("name")
            );
            findings.push(chain.finding("name", message));
        }
    }
    distinct(chains.iter().flat_map(listeners), &mut findings);
    fail(findings)?;
    Ok(chains)
}

/// Reads a demonstration and every file it names, and checks that they fit.
///
/// # Errors
/// Every finding in any of the files.
pub fn demo(path: impl AsRef<Path>) -> Result<DemoSet, ConfigError> {
    let demo = load::<Demo>(path)?;
    let tap = tap_process(demo.beside(&demo.tap))?;
    let paths: Vec<PathBuf> = demo
        .untapped
        .iter()
        .map(|chain| demo.beside(chain))
        .collect();
    let untapped = chains(&paths)?;
    let scenario = load::<Scenario>(demo.beside(&demo.scenario))?;
    let calibration = load::<Calibration>(demo.beside(&demo.calibration))?;
    let set = DemoSet {
        demo,
        tap,
        untapped,
        scenario,
        calibration,
    };
    let mut findings = Vec::new();
    let stand_ins = set
        .demo
        .listeners()
        .into_iter()
        .map(|(at, listen)| Listener {
            listen,
            what: format!("`{at}`"),
            finding: set.demo.finding(&at, ""),
        });
    distinct(
        set.tap.chains.iter().flat_map(listeners).chain(stand_ins),
        &mut findings,
    );
    check_chains(&set, &mut findings);
    check_wiring(&set, &mut findings);
    fail(findings)?;
    Ok(set)
}

/// Everything the demonstration runs is simulated, and its scenario finds its controls.
fn check_chains(set: &DemoSet, findings: &mut Vec<Finding>) {
    for chain in set.chains().filter(|chain| !chain.simulated) {
        findings.push(chain.finding(
            "name",
            "a chain of the demonstration is simulated; add `simulated: true`",
        ));
    }
    for chain in &set.untapped {
        if chain.kind != ChainKind::Untapped {
            findings.push(chain.finding("kind", "this chain has taps; name it in the settings of the tap process and not under `untapped`"));
        }
    }
    for chain in set.chains() {
        if let Some(of) = chain
            .control_of
            .as_ref()
            .filter(|of| !set.chains().any(|chain| chain.name == **of))
        {
            findings.push(chain.finding(
                "control_of",
                format!("no chain of the demonstration is called `{of}`; correct the name"),
            ));
        }
    }
    for (at, control) in set.scenario.controls.iter().enumerate() {
        if !set.chains().any(|chain| chain.kind == *control) {
            let message = format!(
                "the demonstration has no chain of kind `{}`; add one, or remove the control",
                control.as_str()
            );
            findings.push(set.scenario.finding(&format!("controls[{at}]"), message));
        }
    }
    let is_relay = |name: &str| {
        set.chains()
            .any(|chain| chain.name == name && chain.kind == ChainKind::Relay)
    };
    if let Some(probe) = set
        .scenario
        .floor_probe
        .as_ref()
        .filter(|probe| !is_relay(&probe.chain))
    {
        let message = format!(
            "no chain of kind `relay` is called `{}`; correct the name",
            probe.chain
        );
        findings.push(set.scenario.finding("floor_probe.chain", message));
    }
}

/// Each stand-in stands in the chain it names, and leads to a listener that exists.
fn check_wiring(set: &DemoSet, findings: &mut Vec<Finding>) {
    let mut all: Vec<Listen> = set
        .demo
        .listeners()
        .into_iter()
        .map(|(_, listen)| listen)
        .collect();
    all.extend(
        set.tap
            .chains
            .iter()
            .flat_map(|chain| chain.taps.iter().map(|tap| tap.listen)),
    );
    let leads_nowhere = "nothing of the demonstration listens there; correct the address";
    for (at, gateway) in set.demo.gateways.iter().enumerate() {
        let place = format!("gateways[{at}]");
        match set.chains().find(|chain| chain.name == gateway.chain) {
            None => findings.push(set.demo.finding(
                &format!("{place}.chain"),
                format!(
                    "no chain of the demonstration is called `{}`; correct the name",
                    gateway.chain
                ),
            )),
            Some(chain) if !calls(chain, gateway.listen) => {
                let message = format!(
                    "the chain `{}` does not lead to `{}`; correct one of them",
                    gateway.chain, gateway.listen
                );
                findings.push(set.demo.finding(&format!("{place}.listen"), message));
            }
            Some(_) => {}
        }
        if !all.iter().any(|listen| gateway.upstream.reaches(*listen)) {
            findings.push(
                set.demo
                    .finding(&format!("{place}.upstream"), leads_nowhere),
            );
        }
    }
    if !all
        .iter()
        .any(|listen| set.demo.relay.upstream.reaches(*listen))
    {
        findings.push(set.demo.finding("relay.upstream", leads_nowhere));
    }
    for chain in &set.tap.chains {
        for (at, tap) in chain.taps.iter().enumerate() {
            for (index, address) in tap.upstream.addresses.iter().enumerate() {
                if !all.iter().any(|listen| address.reaches(*listen)) {
                    findings.push(chain.finding(
                        &format!("taps[{at}].upstream.addresses[{index}]"),
                        leads_nowhere,
                    ));
                }
            }
        }
    }
}

/// Whether the chain's client or one of its taps sends to `listen`.
fn calls(chain: &Chain, listen: Listen) -> bool {
    chain.entry.authority().reaches(listen)
        || chain.taps.iter().any(|tap| {
            tap.upstream
                .addresses
                .iter()
                .any(|address| address.reaches(listen))
        })
}

/// A listener of some file, and a finding that points at it.
struct Listener {
    listen: Listen,
    what: String,
    finding: Finding,
}

fn listeners(chain: &Checked<Chain>) -> impl Iterator<Item = Listener> {
    chain.taps.iter().enumerate().map(|(at, tap)| Listener {
        listen: tap.listen,
        what: format!("the tap `{}`", tap.name),
        finding: chain.finding(&format!("taps[{at}].listen"), ""),
    })
}

/// Reports every listener whose port an earlier one takes, with the place of both.
fn distinct(listeners: impl Iterator<Item = Listener>, findings: &mut Vec<Finding>) {
    let mut seen: Vec<Listener> = Vec::new();
    for next in listeners {
        if let Some(first) = seen.iter().find(|first| first.listen.overlaps(next.listen)) {
            let place = first.finding.to_string();
            let place = place.trim_end_matches(": ");
            let message = format!(
                "`{}` is already taken by {} at {place}; choose another port",
                next.listen, first.what
            );
            findings.push(Finding {
                message,
                ..next.finding.clone()
            });
        }
        seen.push(next);
    }
}

fn fail(findings: Vec<Finding>) -> Result<(), ConfigError> {
    if findings.is_empty() {
        Ok(())
    } else {
        Err(ConfigError::new(findings))
    }
}
