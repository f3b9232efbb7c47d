//! From run directories to calls with their legs, cell by cell.

use crate::ReportError;
use crate::model::SampledCall;
use crate::quantile::Rules;
use crate::sample::{middle_calls, sampled};
use config::Scenario;
use config::scenario::Slo;
use record::agent::ToolUse;
use record::client::ClientCall;
use record::leg::{Legs, TextAgreement, identity_error};
use record::manifest::{Cell, Manifest};
use record::pairing::{Call, CallClass};
use record::probe::Probes;
use record::rundir::{RunDir, RunDirError, Second};
use record::scrape::{Look, Scraped};
use std::collections::{HashMap, HashSet};
use std::path::Path;

/// A call as the client saw it, with what the taps saw of it.
pub(crate) struct Joined {
    pub(crate) client: ClientCall,
    pub(crate) taps: Option<Tapped>,
}

/// What the taps saw of a call.
pub(crate) struct Tapped {
    pub(crate) class: CallClass,
    pub(crate) pairable: bool,
    pub(crate) paired: bool,
    pub(crate) resent: bool,
    pub(crate) legs: Option<Legs>,
    pub(crate) identity_broken: bool,
    /// Sum of both taps' own delays on the request and on the last text.
    pub(crate) own_delay: Option<f64>,
    pub(crate) events: u32,
    pub(crate) joined: u32,
    pub(crate) claimed: Option<u64>,
    /// What the requests at the inner tap were told of a cache.
    pub(crate) inner: CacheUsage,
}

/// How many prompt tokens were served from a cache, by the usage of calls or requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CacheUsage {
    /// All of them.
    pub(crate) calls: u64,
    /// Those whose usage states both numbers.
    pub(crate) stated: u64,
    /// Cached tokens of these.
    pub(crate) cached: u64,
    /// Prompt tokens of these.
    pub(crate) prompt: u64,
}

impl CacheUsage {
    fn add(&mut self, cached: Option<u64>, prompt: Option<u64>) {
        self.calls += 1;
        if let Some((cached, prompt)) = cached.zip(prompt) {
            self.stated += 1;
            self.cached += cached;
            self.prompt += prompt;
        }
    }

    /// A call, by the usage of its answer.
    pub(crate) fn add_call(&mut self, call: &ClientCall) {
        self.add(
            call.usage_cached.map(u64::from),
            call.usage_prompt.map(u64::from),
        );
    }

    /// Cached ÷ all prompt tokens of those that state both; `None` of none.
    pub(crate) fn share(&self) -> Option<f64> {
        (self.prompt > 0).then(|| self.cached as f64 / self.prompt as f64)
    }

    pub(crate) fn join(&mut self, other: Self) {
        self.calls += other.calls;
        self.stated += other.stated;
        self.cached += other.cached;
        self.prompt += other.prompt;
    }

    fn of_attempts(call: &Call) -> Self {
        let mut sum = Self::default();
        for exchange in &call.attempts {
            let usage = exchange.stream.usage.as_ref();
            sum.add(
                usage.and_then(|u| u.cached_tokens),
                usage.and_then(|u| u.prompt_tokens),
            );
        }
        sum
    }
}

impl Tapped {
    fn of(call: &Call) -> Self {
        let legs = call.legs();
        let inner = call.served_by();
        let broken = legs.as_ref().zip(inner).and_then(|(l, i)| {
            let single = call.attempts.len() == 1;
            single.then(|| identity_error(&call.outer, i, l)).flatten()
        });
        Self {
            class: call.class,
            pairable: call.pairable(),
            paired: call.paired(),
            resent: call.resent(),
            identity_broken: broken.is_some_and(|error| error != 0),
            own_delay: own_delay(call),
            events: call.outer.stream.counts.text_events,
            joined: call.outer.pressure.joined_events,
            claimed: call.outer.claims.overhead,
            inner: CacheUsage::of_attempts(call),
            legs,
        }
    }

    pub(crate) fn text_differs(&self) -> bool {
        self.legs
            .as_ref()
            .is_some_and(|l| l.text == TextAgreement::Differs)
    }
}

fn own_delay(call: &Call) -> Option<f64> {
    let mut sum = 0_u64;
    for exchange in [&call.outer, call.served_by()?] {
        for passage in [exchange.marks.request?, exchange.stream.marks.last_text?] {
            sum += passage
                .departure?
                .end
                .saturating_sub(passage.arrival.latest());
        }
    }
    Some(sum as f64)
}

/// One run, read.
pub(crate) struct Gathered {
    pub(crate) name: String,
    pub(crate) manifest: Manifest,
    /// When its quantiles are printed.
    pub(crate) rules: Rules,
    /// The scenario that it was made by; `None` where this version does not understand it.
    pub(crate) scenario: Option<Scenario>,
    /// Calls by cell id, warm-up left out.
    pub(crate) calls: HashMap<u32, Vec<Joined>>,
    /// Tool calls by cell id.
    pub(crate) tools: HashMap<u32, Vec<ToolUse>>,
    /// What the calls of each cell were told of a cache, warm-up included.
    pub(crate) usage: HashMap<u32, CacheUsage>,
    /// What components' metrics said, in the order of time.
    pub(crate) looks: Vec<Look>,
    /// The component under load, second by second.
    pub(crate) seconds: Vec<Second>,
    /// What probes of tenants saw.
    pub(crate) probes: Probes,
    /// Cells that are the floor probe of another.
    pub(crate) floors: HashSet<u32>,
    /// One call of each cell that taps saw, in full.
    pub(crate) samples: HashMap<u32, SampledCall>,
}

impl Gathered {
    /// The objective that a call can meet or miss.
    pub(crate) fn slo(&self) -> Option<&Slo> {
        let capacity = self.scenario.as_ref()?.capacity.as_ref();
        capacity.map(|capacity| &capacity.slo)
    }

    pub(crate) fn cell(&self, id: u32) -> Option<&Cell> {
        self.manifest.cells.iter().find(|c| c.id == id)
    }

    pub(crate) fn calls_of(&self, cell: u32) -> &[Joined] {
        self.calls.get(&cell).map_or(&[], Vec::as_slice)
    }

    pub(crate) fn usage_of(&self, cell: u32) -> CacheUsage {
        self.usage.get(&cell).copied().unwrap_or_default()
    }

    pub(crate) fn tools_of(&self, cell: u32) -> &[ToolUse] {
        self.tools.get(&cell).map_or(&[], Vec::as_slice)
    }
}

/// Reads a run; what cannot be used is added to `losses`.
pub(crate) fn gather(path: &Path, losses: &mut Vec<String>) -> Result<Gathered, ReportError> {
    let run = RunDir::open(path)?;
    let manifest = run.manifest()?;
    let (calls, lost) = run.read_calls()?;
    losses.extend(lost);
    // Without a file beside the calls its figures are absent, and the others are not.
    let (uses, lost) = kept(run.read_tools(), losses);
    losses.extend(lost);
    let mut tools: HashMap<u32, Vec<ToolUse>> = HashMap::new();
    for one in uses {
        tools.entry(one.cell).or_default().push(one);
    }
    let mut paired = kept(run.pair().map(Some), losses);
    let mut tapped: HashMap<(u32, u64), Tapped> = HashMap::new();
    let wanted = middle_calls(&calls);
    let mut samples = HashMap::new();
    for call in paired.iter_mut().flatten() {
        if let Some(key) = call
            .outer
            .keys
            .client
            .as_deref()
            .and_then(ClientCall::parse_key)
        {
            if wanted.contains(&key) {
                samples.extend(sampled(&call).map(|sample| (key.0, sample)));
            }
            tapped.insert(key, Tapped::of(&call));
        }
    }
    losses.extend(paired.iter().flat_map(|paired| paired.losses()).cloned());
    let mut by_cell: HashMap<u32, Vec<Joined>> = HashMap::new();
    let mut usage: HashMap<u32, CacheUsage> = HashMap::new();
    for client in calls {
        usage.entry(client.cell).or_default().add_call(&client);
        if !client.warmup {
            let taps = tapped.remove(&(client.cell, client.seq));
            by_cell
                .entry(client.cell)
                .or_default()
                .push(Joined { client, taps });
        }
    }
    let known: HashSet<u32> = manifest.cells.iter().map(|c| c.id).collect();
    let strays: usize = by_cell
        .iter()
        .filter(|(id, _)| !known.contains(id))
        .map(|(_, c)| c.len())
        .sum();
    if strays > 0 {
        losses.push(format!(
            "{}: {strays} calls of cells that the run was cut in are in no figure",
            path.display()
        ));
    }
    for at in &manifest.resumed {
        losses.push(format!(
            "{}: the run was cut, and taken up again at {at}",
            path.display()
        ));
    }
    let (looks, lost) = kept(run.read_looks(), losses);
    losses.extend(lost);
    losses.extend(gaps(path, &manifest, &looks));
    let floors = manifest.cells.iter().filter_map(|c| c.floor_cell).collect();
    let name = path.file_name().map_or_else(
        || path.display().to_string(),
        |n| n.to_string_lossy().into_owned(),
    );
    let scenario = scenario(path, &manifest, losses);
    let seconds = kept(run.read_seconds(), losses);
    let probes = kept(run.read_probes(), losses);
    Ok(Gathered {
        name,
        rules: scenario
            .as_ref()
            .map_or_else(Rules::default, |s| Rules::from(&s.limits)),
        scenario,
        manifest,
        calls: by_cell,
        usage,
        looks,
        seconds,
        tools,
        probes,
        floors,
        samples,
    })
}

/// What was read, or nothing and a loss.
fn kept<T: Default>(read: Result<T, RunDirError>, losses: &mut Vec<String>) -> T {
    read.unwrap_or_else(|error| {
        losses.push(format!("left out: {error}"));
        T::default()
    })
}

/// Endpoints that could not be read every time, with the last reason.
fn gaps(path: &Path, manifest: &Manifest, looks: &[Look]) -> Vec<String> {
    let of = |told: &Scraped| {
        let own = |l: &&Look| l.chain == told.chain && l.component == told.component;
        let all = looks.iter().filter(own).count();
        let mut failed = looks.iter().filter(own).filter_map(|l| l.fault.as_ref());
        let (count, last) = (failed.clone().count(), failed.next_back()?);
        Some(format!(
            "{}: metrics of {} of chain {} at {}: {count} of {all} looks failed ({last})",
            path.display(),
            told.component,
            told.chain,
            told.url
        ))
    };
    manifest.scraped.iter().filter_map(of).collect()
}

/// The scenario that the run was made by; `None` where its text is not there or is of another version.
pub(crate) fn scenario(
    path: &Path,
    manifest: &Manifest,
    losses: &mut Vec<String>,
) -> Option<Scenario> {
    let text = manifest.config.get("scenario").filter(|t| !t.is_empty())?;
    match config::from_text::<Scenario>(Path::new("scenario"), text) {
        Ok(scenario) => Some(scenario.into_inner()),
        Err(_) => {
            losses.push(format!(
                "{}: its scenario is not one that this version understands: quantiles are printed by the default limits, and no goodput",
                path.display()
            ));
            None
        }
    }
}
