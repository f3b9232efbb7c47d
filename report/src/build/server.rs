//! What the components' own metrics say of an arm, beside what the taps and the calls' own usage say.

mod shares;

use super::arm::{calls, window};
use super::repetition::repetition;
use crate::bootstrap;
use crate::gather::{CacheUsage, Gathered};
use crate::model::{ComponentRow, Gauge, HitRate, ServerSide};
use config::chain::Figure;
use record::manifest::Cell;
use record::pairing::CallClass;
use record::scrape::{Gain, Look, Scraped, gain};
use shares::{CACHE_OF_ANSWERS, SHARES, Share};
use std::collections::BTreeMap;

/// One cell's looks at one endpoint.
type Looks<'a> = Vec<&'a Look>;

/// An endpoint and its looks, cell by cell.
struct Endpoint<'a> {
    told: &'a Scraped,
    cells: Vec<Looks<'a>>,
    /// The looks within the measured windows, for what changes from one to the next.
    within: Looks<'a>,
}

impl Endpoint<'_> {
    /// What a counter gained over one of the cells; with it, whether it is of the whole of it.
    fn gained_in(&self, cell: usize, figure: Figure) -> Option<(f64, bool)> {
        let looks = self.cells.get(cell)?;
        let edges = [looks.first(), looks.last()];
        let seen = |look: Option<&&Look>| look.is_some_and(|l| l.fault.is_none());
        let found = gain(looks, figure.as_str())?;
        let whole = edges.into_iter().all(seen) && found.resets == 0;
        Some((found.sum, whole))
    }

    /// What a counter gained over all of them; `None` where it is known of none.
    fn gained(&self, figure: Figure) -> Option<Gain> {
        let all = self.cells.iter();
        all.filter_map(|looks| gain(looks, figure.as_str()))
            .reduce(|a, b| Gain {
                sum: a.sum + b.sum,
                resets: a.resets + b.resets,
            })
    }

    fn gauge(&self, figure: Figure) -> Option<Gauge> {
        let values: Vec<f64> = self
            .within
            .iter()
            .filter_map(|l| l.value(figure.as_str()))
            .collect();
        (!values.is_empty()).then(|| Gauge {
            mean: values.iter().sum::<f64>() / values.len() as f64,
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            looks: values.len(),
        })
    }

    fn metric(&self, figure: Figure) -> Option<&str> {
        let sources = self.told.sources.iter();
        let mut found = sources.filter(|(name, _)| name == figure.as_str());
        found.next().map(|(_, metric)| metric.as_str())
    }

    fn row(&self) -> ComponentRow {
        let counted = |figure| self.gained(figure).map(|gain| gain.sum);
        let looks = || self.cells.iter().flatten();
        let resets = Figure::ALL.into_iter().filter(|f| f.is_counter());
        ComponentRow {
            component: self.told.component.clone(),
            kind: self.told.kind.clone(),
            requests: counted(Figure::Requests).or_else(|| counted(Figure::UpstreamRequests)),
            preemptions: counted(Figure::Preemptions),
            running: self.gauge(Figure::Running),
            waiting: self.gauge(Figure::Waiting),
            kv_usage: self.gauge(Figure::KvUsage),
            looks: looks().count(),
            gaps: looks().filter(|l| l.fault.is_some()).count(),
            restarts: resets
                .filter_map(|figure| Some(self.gained(figure)?.resets))
                .max(),
            longest_look: looks().map(|l| l.took as f64).reduce(f64::max),
        }
    }
}

/// What one block has of a rate.
#[derive(Clone, Copy, Default)]
struct Part {
    hits: f64,
    of: f64,
}

impl Part {
    fn of(usage: &CacheUsage) -> Self {
        Self {
            hits: usage.cached as f64,
            of: usage.prompt as f64,
        }
    }
}

/// What each block has, of what each cell has: the parts of a course that was taken up again are one block.
fn blocks<T: Default>(
    cells: &[&Cell],
    of_cells: impl IntoIterator<Item = T>,
    join: impl Fn(&mut T, T),
) -> Vec<T> {
    let mut blocks: BTreeMap<u32, T> = BTreeMap::new();
    for (cell, one) in cells.iter().zip(of_cells) {
        join(blocks.entry(cell.block).or_default(), one);
    }
    blocks.into_values().collect()
}

fn join(sum: &mut Part, part: Part) {
    sum.hits += part.hits;
    sum.of += part.of;
}

/// The rate of `parts`, each a block.
fn rate(
    name: &'static str,
    unit: &'static str,
    source: String,
    parts: &[Part],
    whole: bool,
) -> HitRate {
    let share = |parts: &[&Part]| {
        let of: f64 = parts.iter().map(|part| part.of).sum();
        let hits: f64 = parts.iter().map(|part| part.hits).sum();
        (of > 0.0).then(|| hits / of)
    };
    HitRate {
        name,
        hits: parts.iter().map(|part| part.hits).sum(),
        of: parts.iter().map(|part| part.of).sum(),
        unit,
        source,
        whole,
        stated: None,
        interval: bootstrap::interval(parts, share),
    }
}

/// Of one phase of a course: the looks from the last before it to the last in it.
fn cut<'a>(looks: &[&'a Look], (from, to): (u64, u64)) -> Looks<'a> {
    let end = looks.partition_point(|l| l.at <= to);
    let begin = looks.partition_point(|l| l.at <= from).saturating_sub(1);
    looks[begin.min(end)..end].to_vec()
}

/// What is known of an arm from outside of the load generator.
pub(super) fn server(run: &Gathered, cells: &[&Cell], phase: Option<usize>) -> ServerSide {
    let chain = cells.first().map_or("", |c| c.chain.as_str());
    let endpoints: Vec<Endpoint<'_>> = run
        .manifest
        .scraped
        .iter()
        .filter(|told| told.chain == chain)
        .map(|told| {
            let of = |cell: &Cell| -> Looks<'_> {
                let looks = run.looks.iter();
                looks
                    .filter(|l| l.of(cell.id) && l.chain == chain && l.component == told.component)
                    .collect()
            };
            let within = |cell: &&&Cell| {
                let (from, to) = window(cell, phase);
                let inside = |l: &&Look| (from..=to).contains(&l.at);
                of(cell).into_iter().filter(inside).collect::<Looks<'_>>()
            };
            let whole = |cell: &&Cell| match phase {
                Some(_) => cut(&of(cell), window(cell, phase)),
                None => of(cell),
            };
            Endpoint {
                told,
                cells: cells.iter().map(whole).collect(),
                within: cells.iter().flat_map(|c| within(&c)).collect(),
            }
        })
        .collect();
    let mut rates = by_counters(cells, &endpoints);
    rates.extend(by_inner_usage(run, cells, phase));
    let counted = rates.iter().any(|r| r.name == CACHE_OF_ANSWERS);
    rates.extend(by_evidence(run, cells, phase).filter(|r| counted || r.hits > 0.0));
    let mut side = ServerSide {
        rates,
        components: endpoints.iter().map(Endpoint::row).collect(),
        calls: None,
        probes: None,
        repetition: phase.is_none().then(|| repetition(run, cells)).flatten(),
    };
    if phase.is_none() && !endpoints.is_empty() {
        let (own, probes) = company(run, &endpoints);
        side.calls = Some(own.iter().map(|id| run.usage_of(*id).calls).sum());
        side.probes = Some(probes.iter().map(|id| run.usage_of(*id).calls).sum());
        side.rates.extend(by_usage(run, &own));
    }
    side
}

/// The cells whose calls were counted, and the floor probes beside them.
fn company(run: &Gathered, endpoints: &[Endpoint<'_>]) -> (Vec<u32>, Vec<u32>) {
    let looks = || endpoints.iter().flat_map(|e| e.cells.iter().flatten());
    let ids = run.manifest.cells.iter().map(|c| c.id);
    let own: Vec<u32> = ids.filter(|id| looks().any(|l| l.of(*id))).collect();
    let mut probes: Vec<u32> = own
        .iter()
        .filter_map(|id| run.cell(*id)?.floor_cell)
        .collect();
    probes.sort_unstable();
    probes.dedup();
    (own, probes)
}

/// Shares by counters, for each product by itself: its pods are added up.
fn by_counters(cells: &[&Cell], endpoints: &[Endpoint<'_>]) -> Vec<HitRate> {
    let mut kinds: BTreeMap<&str, Vec<&Endpoint<'_>>> = BTreeMap::new();
    for endpoint in endpoints {
        let told = endpoint.told;
        // Two of kind `other` have nothing in common.
        let key = match told.kind.as_str() {
            "other" => told.component.as_str(),
            kind => kind,
        };
        kinds.entry(key).or_default().push(endpoint);
    }
    let of = |(share, group): (&Share, &Vec<&Endpoint<'_>>)| {
        let known = |figures: &[Figure]| {
            let has = |e: &&Endpoint<'_>| figures.iter().all(|f| e.metric(*f).is_some());
            group.iter().any(has)
        };
        let (wholes, unit) = share.wholes.iter().find(|(f, _)| known(f))?;
        let (mut parts, mut whole) = (vec![Part::default(); cells.len()], true);
        let mut named: Vec<&str> = Vec::new();
        for endpoint in group {
            let mut told = false;
            for (at, part) in parts.iter_mut().enumerate() {
                let hits = endpoint.gained_in(at, share.part);
                let of = wholes.iter().try_fold((0.0, true), |(sum, whole), figure| {
                    let (gain, all_of_it) = endpoint.gained_in(at, *figure)?;
                    Some((sum + gain, whole && all_of_it))
                });
                let Some((hits, of)) = hits.zip(of) else {
                    whole = false;
                    continue;
                };
                part.hits += hits.0;
                part.of += of.0;
                whole &= hits.1 && of.1;
                told = true;
            }
            if told {
                named.push(&endpoint.told.component);
            }
        }
        let first = group.iter().find(|e| e.metric(share.part).is_some())?;
        let metrics: Vec<&str> = wholes.iter().filter_map(|f| first.metric(*f)).collect();
        let source = format!(
            "{}: {} ÷ {}",
            named.join(", "),
            first.metric(share.part).unwrap_or_default(),
            match metrics.as_slice() {
                [one] => (*one).to_owned(),
                many => format!("({})", many.join(" + ")),
            }
        );
        let parts = blocks(cells, parts, join);
        (!named.is_empty()).then(|| rate(share.name, unit, source, &parts, whole))
    };
    let groups = || kinds.values();
    SHARES
        .iter()
        .flat_map(|share| groups().map(move |group| (share, group)))
        .filter_map(of)
        .collect()
}

/// What the calls themselves were told, over all of those that the counters counted.
fn by_usage(run: &Gathered, cells: &[u32]) -> Option<HitRate> {
    // Tenants that drive at the same time are one block.
    let mut blocks: BTreeMap<u32, CacheUsage> = BTreeMap::new();
    for id in cells {
        let block = run.cell(*id)?.block;
        blocks.entry(block).or_default().join(run.usage_of(*id));
    }
    of_usage(
        "prompt cache, as the client is told",
        "usage of the same calls, warm-up included",
        &blocks.into_values().collect::<Vec<_>>(),
    )
}

fn of_usage(name: &'static str, source: &str, blocks: &[CacheUsage]) -> Option<HitRate> {
    let parts: Vec<Part> = blocks.iter().map(Part::of).collect();
    let mut all = CacheUsage::default();
    blocks.iter().for_each(|usage| all.join(*usage));
    let whole = all.stated == all.calls;
    (all.stated > 0).then(|| HitRate {
        stated: Some((all.stated, all.calls)),
        ..rate(name, "prompt tokens", source.to_owned(), &parts, whole)
    })
}

/// Cached prompt tokens of each request that reached the engine's side: an answer from the gateway's cache
/// never came there.
fn by_inner_usage(run: &Gathered, cells: &[&Cell], phase: Option<usize>) -> Option<HitRate> {
    let of_cell = |cell: &&Cell| {
        let mut sum = CacheUsage::default();
        for tapped in calls(run, std::slice::from_ref(cell), phase).filter_map(|j| j.taps.as_ref())
        {
            sum.join(tapped.inner);
        }
        sum
    };
    of_usage(
        "KV cache, request by request",
        "usage of the exchanges at the inner tap, warm-up left out",
        &blocks(cells, cells.iter().map(of_cell), CacheUsage::join),
    )
}

/// Answers that never came to the engine and that something proves to be of a cache.
fn by_evidence(run: &Gathered, cells: &[&Cell], phase: Option<usize>) -> Option<HitRate> {
    let mut told = false;
    let of_cell = |cell: &&Cell| {
        let (mut hits, mut all) = (0_u64, 0_u64);
        for joined in calls(run, std::slice::from_ref(cell), phase) {
            let Some(tapped) = &joined.taps else { continue };
            let hit = tapped.class == CallClass::CacheHit;
            let passed_on = matches!(tapped.class, CallClass::Served | CallClass::Recovered);
            hits += u64::from(hit);
            all += u64::from(hit || passed_on || tapped.class == CallClass::Unexplained);
            told |= hit || passed_on;
        }
        Part {
            hits: hits as f64,
            of: all as f64,
        }
    };
    let parts = blocks(cells, cells.iter().map(of_cell), join);
    let source = "no exchange at the inner tap, and evidence; warm-up left out".to_owned();
    // Without an inner tap nothing can be told.
    told.then(|| {
        let name = "cache of answers, by the taps";
        rate(name, "calls answered in full", source, &parts, true)
    })
}
