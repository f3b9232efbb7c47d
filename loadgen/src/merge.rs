//! One run of the parts that several generators drove.
//!
//! Nothing is averaged: the calls of all parts become the calls of one run, counts are summed, and the
//! verdict is found anew from all of it. Instants of other hosts are moved onto the first part's clock by
//! their wall clocks. Differences inside a call do not change by that; what is compared between parts (which
//! phase a call fell into) is as exact as those clocks agree.

use crate::judge::{Evidence, verdict};
use crate::taps::Known;
use crate::{LoadError, tables};
use config::{Chain, ChainKind, Scenario};
use record::client::ClientCall;
use record::clock::Nanos;
use record::manifest::{Cell, Manifest, Shard, TapHealth};
use record::rundir::{
    EXCHANGES, RunDir, SCRAPES, SEGMENT, SegmentWriter, read_health, write_health,
};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

/// A part, read.
struct Part {
    path: PathBuf,
    run: RunDir,
    manifest: Manifest,
    shard: Shard,
}

/// Makes the run directory `out` of all parts of one run.
///
/// # Errors
/// They are not the parts of one run, one is missing or did not come to its end, or a file cannot be read
/// or written.
pub fn merge(parts: &[PathBuf], out: &Path) -> Result<RunDir, LoadError> {
    let mut read: Vec<Part> = parts
        .iter()
        .map(|path| open(path))
        .collect::<Result<_, _>>()?;
    read.sort_by_key(|part| part.shard.index);
    let Some(first) = read.first() else {
        return Err(LoadError::Plan(
            "name the run directories of the parts".to_owned(),
        ));
    };
    for (index, part) in (0..).zip(&read) {
        fits(first, part, index)?;
    }
    if read.len() != first.shard.of as usize {
        return wrong(format!(
            "{} of {} parts are there; name the directories of all",
            read.len(),
            first.shard.of
        ));
    }
    let (scenario, chains) = forms(&first.manifest)?;
    read.iter().try_for_each(whole)?;
    let (cells, healths) = (cells(&read), healths(&read));
    let run = RunDir::create(out)?;
    calls(&read, &run)?;
    exchanges(&read, &run)?;
    looks(first, &run)?;
    tables::write(&run, &cells.iter().map(|cell| cell.id).collect())?;
    let legged = |pick: &dyn Fn(ChainKind) -> bool| -> HashSet<String> {
        let at = |c: &Chain, position| c.taps_at(position).next().is_some();
        let both = |c: &&Chain| at(c, config::Position::Outer) && at(c, config::Position::Inner);
        let those = chains.iter().filter(both).filter(|c| pick(c.kind));
        those.map(|c| c.name.clone()).collect()
    };
    let evidence = Evidence {
        limits: &scenario.limits,
        cells: &cells,
        taps: &healths,
        calibration: first.manifest.calibration.as_ref(),
        legged: &legged(&|_| true),
        gateways: &legged(&|kind| kind == ChainKind::Gateway),
        tapped: true,
        cpus: first.manifest.host.cpus,
        stopped: read.iter().any(|part| early(&part.manifest)),
        late: read.iter().map(|part| part.shard.late).max(),
    };
    let found = verdict(&evidence, run.stream_calls()?, run.pair()?);
    run.write_manifest(&Manifest {
        cells,
        verdict: Some(found),
        taps: healths,
        shard: None,
        shared_cpu: read.iter().any(|part| part.manifest.shared_cpu),
        ..first.manifest.clone()
    })?;
    Ok(run)
}

fn wrong<T>(what: String) -> Result<T, LoadError> {
    Err(LoadError::Plan(what))
}

fn open(path: &Path) -> Result<Part, LoadError> {
    let run = RunDir::open(path)?;
    let manifest = run.manifest()?;
    let Some(shard) = manifest.shard else {
        return wrong(format!(
            "{}: is a whole run and no part of one; `hopscope report` takes several runs",
            path.display()
        ));
    };
    if manifest.verdict.is_none() {
        return wrong(format!(
            "{}: did not come to its end; run all parts anew",
            path.display()
        ));
    }
    Ok(Part {
        path: path.to_owned(),
        run,
        manifest,
        shard,
    })
}

fn early(manifest: &Manifest) -> bool {
    let verdict = manifest.verdict.as_ref();
    verdict.is_none_or(|v| v.broken().any(|check| check.name == "stopped-early"))
}

/// Whether `part` is number `index` of the run that `first` is a part of.
fn fits(first: &Part, part: &Part, index: u32) -> Result<(), LoadError> {
    let told = |what: &str| wrong(format!("{}: {what}", part.path.display()));
    let (a, b) = (&first.manifest, &part.manifest);
    if (&a.run, a.seed, &a.config, &a.version) != (&b.run, b.seed, &b.config, &b.version)
        || fingerprint(a) != fingerprint(b)
    {
        return told(&format!(
            "is not of the same run as {}: name, seed, files or version differ",
            first.path.display()
        ));
    }
    if part.shard.of != first.shard.of || part.shard.index != index {
        return told(&format!(
            "is part {} of {}, where part {index} of {} was looked for; name each part once",
            part.shard.index, part.shard.of, first.shard.of
        ));
    }
    let lengths = |manifest: &Manifest| -> Vec<(u32, u32)> {
        let probes = manifest.token_probes.iter();
        probes.map(|probe| (probe.system, probe.user)).collect()
    };
    if lengths(a) != lengths(b) {
        return told(
            "its usage probe found other lengths than that of the first part, so their prompts differ; run all parts anew, or without `usage_probe`",
        );
    }
    let same = |(x, y): (&Cell, &Cell)| {
        (x.chain == y.chain && x.drive == y.drive && x.block == y.block)
            || floor(a, x)
            || floor(b, y)
    };
    let by_id: BTreeMap<u32, &Cell> = a.cells.iter().map(|c| (c.id, c)).collect();
    match b
        .cells
        .iter()
        .all(|c| by_id.get(&c.id).is_some_and(|other| same((other, c))))
    {
        true => Ok(()),
        false => told("its cells are not those of the first part: was one of them stopped?"),
    }
}

/// Of the trace, which each part read by itself.
fn fingerprint(manifest: &Manifest) -> Option<u64> {
    manifest
        .workload
        .trace
        .as_ref()
        .map(|trace| trace.fingerprint)
}

fn floor(manifest: &Manifest, cell: &Cell) -> bool {
    manifest.cells.iter().any(|c| c.floor_cell == Some(cell.id))
}

/// The scenario and the chains, from the files that the run was made by.
fn forms(manifest: &Manifest) -> Result<(Scenario, Vec<Chain>), LoadError> {
    let told = |error: config::ConfigError| LoadError::Plan(error.to_string());
    let text = |key: &str| manifest.config.get(key).map_or("", String::as_str);
    let scenario = config::from_text::<Scenario>(Path::new("scenario"), text("scenario"));
    let chains = manifest
        .config
        .iter()
        .filter(|(key, _)| key.starts_with("chain "));
    let chains = chains.map(|(key, text)| config::from_text::<Chain>(Path::new(key), text));
    let chains: Result<Vec<_>, _> = chains.map(|c| c.map(config::Checked::into_inner)).collect();
    Ok((scenario.map_err(told)?.into_inner(), chains.map_err(told)?))
}

/// What to add to a part's instants, nanoseconds: 0 for one of the first part's host.
fn shift(first: &Part, part: &Part) -> i64 {
    match first.manifest.boot == part.manifest.boot {
        true => 0,
        false => part.shard.wall_offset - first.shard.wall_offset,
    }
}

/// What components' metrics said: the first part looked, for all.
fn looks(first: &Part, run: &RunDir) -> Result<(), LoadError> {
    let mut looks = first.run.stream_looks()?.peekable();
    if looks.peek().is_none() {
        return Ok(());
    }
    let mut writer = SegmentWriter::create(&run.root().join(SCRAPES), SCRAPES, SEGMENT)?;
    for look in looks {
        writer.append(&look)?;
    }
    Ok(writer.sync()?)
}

/// Every call of a part can be read: seen to before anything is written.
fn whole(part: &Part) -> Result<(), LoadError> {
    let mut calls = part.run.stream_calls()?;
    calls.by_ref().for_each(drop);
    match calls.losses().first() {
        Some(loss) => wrong(format!("{loss}; the merged run would lack calls")),
        None => Ok(()),
    }
}

/// The calls of all parts, on the first part's clock.
fn calls(parts: &[Part], run: &RunDir) -> Result<(), LoadError> {
    let mut writer = SegmentWriter::create(&run.calls(), "calls", SEGMENT)?;
    for part in parts {
        let by = shift(&parts[0], part);
        for call in part.run.stream_calls()? {
            writer.append(&moved(call, by))?;
        }
    }
    Ok(writer.sync()?)
}

fn moved(mut call: ClientCall, by: i64) -> ClientCall {
    let at = |instant: &mut Nanos| *instant = instant.saturating_add_signed(by);
    at(&mut call.intended);
    at(&mut call.started);
    at(&mut call.end);
    for instant in [
        &mut call.sent,
        &mut call.head,
        &mut call.first_choice,
        &mut call.first_text,
        &mut call.last_text,
        &mut call.finish,
        &mut call.done,
    ] {
        instant.iter_mut().for_each(at);
    }
    call
}

/// The exchanges that each part brings, once each: parts that ran beside the same tap all have them. Their
/// instants are the taps' own and stay: calls and exchanges are joined by name. Each tap keeps its account
/// of itself, for it tells whose clock its instants are of.
fn exchanges(parts: &[Part], run: &RunDir) -> Result<(), LoadError> {
    let mut known = Known::default();
    for (number, part) in parts.iter().enumerate() {
        for tap in part.run.taps()? {
            let dir = run.tap(&format!("part-{number}-{tap}"));
            let mut writer = SegmentWriter::create(&dir, EXCHANGES, SEGMENT)?;
            for exchange in part.run.stream_exchanges(&tap)? {
                if known.is_new(&exchange) {
                    writer.append(&exchange)?;
                }
            }
            writer.sync()?;
            if let Some(health) = read_health(&part.run.tap(&tap))? {
                write_health(&dir, &health)?;
            }
        }
    }
    Ok(())
}

/// What the tap processes said of themselves, each once.
fn healths(parts: &[Part]) -> Vec<TapHealth> {
    let mut all: Vec<TapHealth> = Vec::new();
    for health in parts.iter().flat_map(|part| &part.manifest.taps) {
        match all.iter_mut().find(|h| h.instance == health.instance) {
            Some(one) => worse(one, health),
            None => all.push(health.clone()),
        }
    }
    all
}

/// A tap's account of itself, told to several parts: the latest has the largest counts.
fn worse(one: &mut TapHealth, other: &TapHealth) {
    one.lost = one.lost.max(other.lost);
    one.clock_steps = one.clock_steps.max(other.clock_steps);
    let later = other
        .lateness
        .filter(|b| one.lateness.is_none_or(|a| b.1 > a.1));
    one.lateness = later.or(one.lateness);
}

/// Each cell with what all parts counted of it.
fn cells(parts: &[Part]) -> Vec<Cell> {
    let mut merged: BTreeMap<u32, Cell> = BTreeMap::new();
    for part in parts {
        let by = shift(&parts[0], part);
        let one_host = by == 0;
        for cell in &part.manifest.cells {
            let (from, to) = (
                cell.from.saturating_add_signed(by),
                cell.to.saturating_add_signed(by),
            );
            let Some(whole) = merged.get_mut(&cell.id) else {
                merged.insert(
                    cell.id,
                    Cell {
                        from,
                        to,
                        ..cell.clone()
                    },
                );
                continue;
            };
            whole.from = whole.from.min(from);
            whole.to = whole.to.max(to);
            whole.scheduled = whole.scheduled.zip(cell.scheduled).map(|(a, b)| a + b);
            whole.sent += cell.sent;
            whole.counted.answered += cell.counted.answered;
            whole.counted.seconds = whole.counted.seconds.max(cell.counted.seconds);
            whole.counted.driven = both(whole.counted.driven, cell.counted.driven, f64::max);
            // A median of medians is none.
            whole.counted.e2e_p50 = None;
            whole.generator_cpu = both(whole.generator_cpu, cell.generator_cpu, |a, b| {
                // Generators of one host share its CPUs; of several, the busiest tells.
                if one_host { a + b } else { a.max(b) }
            });
            whole.tap_cpu = most(whole.tap_cpu, cell.tap_cpu);
            whole.gateway_cpu = most(whole.gateway_cpu, cell.gateway_cpu);
            whole.gateway_memory = whole.gateway_memory.max(cell.gateway_memory);
            whole.leaked = whole.leaked.zip(cell.leaked).map(|(a, b)| a + b);
            whole.cut |= cell.cut;
            whole.floor_cell = whole.floor_cell.or(cell.floor_cell);
        }
    }
    merged.into_values().collect()
}

/// `None` where one part did not count: a sum of some would be too low.
fn both(a: Option<f64>, b: Option<f64>, sum: impl Fn(f64, f64) -> f64) -> Option<f64> {
    a.zip(b).map(|(a, b)| sum(a, b))
}

/// The same processes, seen by several parts: the largest count, of whoever saw them.
fn most(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    }
}
