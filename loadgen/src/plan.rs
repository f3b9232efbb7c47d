//! What a run is to do.

use crate::{LoadError, Shard, shard};
use config::{Chain, ChainKind, Checked, Scenario};
use record::manifest::Calibration;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// One run: a scenario over chains, and where its results go.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Name of the run; it salts the prompts, so that a run under a new name warms no cache of
    /// an older one.
    pub name: String,
    /// The run directory to make.
    pub out: PathBuf,
    /// Go on with the run that is in `out`: what it finished is kept, what it was cut in is driven
    /// anew, and a course of load goes on where it was cut.
    pub resume: bool,
    /// The part of the load that this process drives; `None`: all of it.
    pub shard: Option<Shard>,
    /// What load is put on the chains.
    pub scenario: Scenario,
    /// The scenario file's text, for the manifest.
    pub scenario_text: String,
    /// The chains: what is measured, and its controls.
    pub chains: Vec<PlannedChain>,
    /// The tap processes of the chains. Empty: nothing is paired, and the verdict says so.
    pub taps: Vec<PlannedTap>,
    /// Processes of the engine, to tell whether it shares CPUs with what is measured.
    pub engine_pids: Vec<u32>,
    /// The calibration of this machine, to travel in the manifest.
    pub calibration: Option<Calibration>,
    /// Seeds arrivals, prompts and the order of cells.
    pub seed: u64,
    /// Threads that carry streams.
    pub lanes: NonZeroUsize,
    /// Ask for `ignore_eos`, so that every answer has its full length. All chains alike: bodies
    /// must agree across arms.
    pub ignore_eos: bool,
}

/// A chain of the run.
#[derive(Debug, Clone)]
pub struct PlannedChain {
    /// The chain.
    pub chain: Chain,
    /// Its file's text, for the manifest.
    pub text: String,
    /// The directory against which its relative paths are meant.
    pub base: PathBuf,
    /// Processes of the component, in place of those that the chain names.
    pub pids: Vec<u32>,
    /// What was injected into a stand-in, in words.
    pub injected: Option<String>,
}

/// A tap process that serves chains of the run.
#[derive(Debug, Clone)]
pub struct PlannedTap {
    /// Its record directory (`hopscope tap --record DIR`).
    pub records: PathBuf,
    /// Its process, for its CPU. `None`: its CPU is not measured, and the verdict says so.
    pub pid: Option<u32>,
}

impl Plan {
    /// A plan of `scenario` with nothing else set: no chains, no taps, one lane.
    #[must_use]
    pub fn new(name: &str, out: &Path, scenario: Scenario, scenario_text: String) -> Self {
        Self {
            name: name.to_owned(),
            out: out.to_owned(),
            resume: false,
            shard: None,
            seed: scenario.seed,
            scenario,
            scenario_text,
            chains: Vec::new(),
            taps: Vec::new(),
            engine_pids: Vec::new(),
            calibration: None,
            lanes: NonZeroUsize::MIN,
            ignore_eos: true,
        }
    }

    /// Checks what must hold before anything is started.
    ///
    /// # Errors
    /// The first contradiction, with its remedy.
    pub fn check(&self) -> Result<(), LoadError> {
        let wrong = |text: String| Err(LoadError::Plan(text));
        if self.chains.is_empty() {
            return wrong("the run has no chain; name at least one chain file".to_owned());
        }
        for (at, one) in self.chains.iter().enumerate() {
            let name = &one.chain.name;
            if self.chains[..at].iter().any(|c| c.chain.name == *name) {
                return wrong(format!("chain {name} is named twice; remove one"));
            }
            if one.chain.entry.tls() {
                return wrong(format!(
                    "chain {name}: the load generator speaks cleartext HTTP/1 only, and `entry` is https; \
                     put an outer tap with `upstream.tls` before it and name the tap as `entry`"
                ));
            }
            if let Some(of) = one
                .chain
                .control_of
                .as_ref()
                .filter(|of| self.find(of).is_none())
            {
                return wrong(format!(
                    "chain {name} is the control of {of}, which is not in the run; add its file, or remove {name}"
                ));
            }
        }
        if let Some(probe) = &self.scenario.floor_probe
            && self
                .find(&probe.chain)
                .is_none_or(|c| c.chain.kind != ChainKind::Relay)
        {
            return wrong(format!(
                "the floor probe wants a chain of kind relay called {}; add its file, or remove `floor_probe`",
                probe.chain
            ));
        }
        let probe = self.scenario.workload.usage_probe.as_ref();
        if let Some(name) = probe.and_then(|probe| probe.reference.as_ref())
            && self.find(name).is_none()
        {
            return wrong(format!(
                "the usage probe corrects prompts by the chain {name}, which is not in the run; add its file, or correct `workload.usage_probe.reference`"
            ));
        }
        if let Some(shard) = &self.shard {
            shard::check(self, shard)?;
        }
        let slo = self.scenario.capacity.as_ref().map(|c| &c.slo);
        if slo.is_some_and(|slo| slo.added_ttft_p95.is_some()) && self.taps.is_empty() {
            return wrong(
                "the capacity objective bounds added TTFT, which only the taps measure; \
                 name their record directories, or bound `ttft_p95` instead"
                    .to_owned(),
            );
        }
        let service = self
            .chains
            .iter()
            .find(|c| c.chain.kind == ChainKind::Service);
        if let Some(service) = service.filter(|_| slo.is_some_and(|s| s.added_ttft_p95.is_some())) {
            return wrong(format!(
                "the capacity objective bounds added TTFT, which chain {} cannot have: no tap stands inside a \
                 service; bound `ttft_p95` instead",
                service.chain.name
            ));
        }
        Ok(())
    }

    /// The files that the run is made by, as the manifest keeps them.
    pub(crate) fn texts(&self) -> BTreeMap<String, String> {
        let chains = self.chains.iter();
        let chains = chains.map(|c| (format!("chain {}", c.chain.name), c.text.clone()));
        let scenario = ("scenario".to_owned(), self.scenario_text.clone());
        chains.chain([scenario]).collect()
    }

    /// The chain called `name`.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&PlannedChain> {
        self.chains.iter().find(|c| c.chain.name == name)
    }
}

impl PlannedChain {
    /// A chain by its checked file.
    ///
    /// # Errors
    /// The file cannot be read again for its text.
    pub fn from_file(checked: &Checked<Chain>) -> Result<Self, LoadError> {
        let path = checked.path();
        let text = std::fs::read_to_string(path).map_err(|source| LoadError::File {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self {
            chain: Chain::clone(checked),
            text,
            base: path.parent().map(Path::to_owned).unwrap_or_default(),
            pids: Vec::new(),
            injected: None,
        })
    }

    /// Both an outer and an inner tap stand in the chain: its calls have legs.
    #[must_use]
    pub fn has_legs(&self) -> bool {
        let at = |position| self.chain.taps_at(position).next().is_some();
        at(config::Position::Outer) && at(config::Position::Inner)
    }
}
