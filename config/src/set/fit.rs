//! Whether the files of a demonstration fit each other.

use super::DemoSet;
use crate::error::Finding;
use crate::load::Checked;
use crate::scalar::Listen;
use crate::{Chain, ChainKind};

const LEADS_NOWHERE: &str = "nothing of the demonstration listens there; correct the address";

/// Adds what does not fit to `findings`.
pub(super) fn check(set: &DemoSet, findings: &mut Vec<Finding>) {
    for chain in set.chains() {
        check_chain(set, chain, findings);
    }
    for chain in set
        .untapped
        .iter()
        .filter(|chain| chain.kind != ChainKind::Untapped)
    {
        let message = "this chain has taps; name it in the settings of the tap process and not under `untapped`";
        findings.push(chain.finding("kind", message));
    }
    check_scenario(set, findings);
    check_gateways(set, findings);
    check_upstreams(set, findings);
}

fn check_chain(set: &DemoSet, chain: &Checked<Chain>, findings: &mut Vec<Finding>) {
    if !chain.simulated {
        findings.push(chain.finding(
            "simulated",
            "a chain of the demonstration is simulated; add `simulated: true`",
        ));
    }
    if let Some(of) = chain
        .control_of
        .as_ref()
        .filter(|of| find(set, of).is_none())
    {
        let message = format!("no chain of the demonstration is called `{of}`; correct the name");
        findings.push(chain.finding("control_of", message));
    }
}

/// The scenario finds its controls and its probe.
fn check_scenario(set: &DemoSet, findings: &mut Vec<Finding>) {
    let scenario = &set.scenario;
    for (at, control) in scenario.controls.iter().enumerate() {
        if !set.chains().any(|chain| chain.kind == *control) {
            let kind = control.as_str();
            let message = format!(
                "the demonstration has no chain of kind `{kind}`; add one, or remove the control"
            );
            findings.push(scenario.finding(&format!("controls[{at}]"), message));
        }
    }
    if let Some(probe) = &scenario.floor_probe
        && find(set, &probe.chain).is_none_or(|chain| chain.kind != ChainKind::Relay)
    {
        let message = format!(
            "no chain of kind `relay` is called `{}`; correct the name",
            probe.chain
        );
        findings.push(scenario.finding("floor_probe.chain", message));
    }
}

/// Each gateway stand-in stands in the chain that it names.
fn check_gateways(set: &DemoSet, findings: &mut Vec<Finding>) {
    for (at, gateway) in set.demo.gateways.iter().enumerate() {
        let name = &gateway.chain;
        match find(set, name) {
            None => {
                let message =
                    format!("no chain of the demonstration is called `{name}`; correct the name");
                findings.push(set.demo.finding(&format!("gateways[{at}].chain"), message));
            }
            Some(chain) if !calls(chain, gateway.listen) => {
                let message = format!(
                    "the chain `{name}` does not lead to `{}`; correct one of them",
                    gateway.listen
                );
                findings.push(set.demo.finding(&format!("gateways[{at}].listen"), message));
            }
            Some(_) => {}
        }
    }
}

/// Everything leads to a listener that exists.
fn check_upstreams(set: &DemoSet, findings: &mut Vec<Finding>) {
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
    let mut check = |reached: bool, finding: Finding| {
        if !reached {
            findings.push(finding);
        }
    };
    for (at, gateway) in set.demo.gateways.iter().enumerate() {
        let reached = all.iter().any(|listen| gateway.upstream.reaches(*listen));
        check(
            reached,
            set.demo
                .finding(&format!("gateways[{at}].upstream"), LEADS_NOWHERE),
        );
    }
    let reached = all
        .iter()
        .any(|listen| set.demo.relay.upstream.reaches(*listen));
    check(reached, set.demo.finding("relay.upstream", LEADS_NOWHERE));
    for chain in &set.tap.chains {
        for (at, tap) in chain.taps.iter().enumerate() {
            for (index, address) in tap.upstream.addresses.iter().enumerate() {
                let reached = all.iter().any(|listen| address.reaches(*listen));
                let place = format!("taps[{at}].upstream.addresses[{index}]");
                check(reached, chain.finding(&place, LEADS_NOWHERE));
            }
        }
    }
}

fn find<'s>(set: &'s DemoSet, name: &str) -> Option<&'s Checked<Chain>> {
    set.chains().find(|chain| chain.name == name)
}

/// Whether the chain's client or one of its taps sends to `listen`.
fn calls(chain: &Chain, listen: Listen) -> bool {
    let mut upstreams = chain.taps.iter().flat_map(|tap| &tap.upstream.addresses);
    chain.entry.authority().reaches(listen) || upstreams.any(|address| address.reaches(listen))
}
