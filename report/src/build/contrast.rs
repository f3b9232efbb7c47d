//! How two chains of one run differ: figure by figure, paired over the blocks in which both were driven.

use super::arm::{Calls, by_block, of_calls, of_client};
use super::row::{Block, counted, values};
use super::work::other_work;
use super::{alike, label, percent};
use crate::bootstrap::over_blocks;
use crate::gather::Gathered;
use crate::model::{Arm, Contrast, Difference, Reading};
use crate::quantile::rests_on_few;
use record::client::{CallOutcome, ClientCall};
use record::leg::Legs;
use record::manifest::{Cell, Drive};
use record::span::Span;

/// From where a figure is.
#[derive(Clone, Copy)]
enum Of {
    /// What a client saw.
    Client(fn(&ClientCall) -> Option<f64>),
    /// What a component added, between its taps.
    Taps(fn(&Legs) -> Option<Span>),
}

const FIGURES: [(&str, f64, Of); 8] = [
    ("TTFT", 0.5, Of::Client(|c| c.ttft().map(|n| n as f64))),
    ("TTFT", 0.95, Of::Client(|c| c.ttft().map(|n| n as f64))),
    ("TTFT", 0.99, Of::Client(|c| c.ttft().map(|n| n as f64))),
    ("TPOT", 0.5, Of::Client(ClientCall::tpot)),
    ("E2E", 0.5, Of::Client(|c| c.e2e().map(|n| n as f64))),
    ("E2E", 0.95, Of::Client(|c| c.e2e().map(|n| n as f64))),
    ("added TTFT", 0.5, Of::Taps(|l| l.added_ttft)),
    ("added TTFT", 0.95, Of::Taps(|l| l.added_ttft)),
];

/// The calls of one block, and how many were due and not sent.
type Side<'a> = (Calls<'a>, u64);

/// One block of both chains.
struct Both<'a> {
    a: Side<'a>,
    b: Side<'a>,
}

/// Of every two chains that are no controls and were driven in one way.
pub(super) fn all(run: &Gathered, groups: &[Vec<&Cell>], arms: &[Arm]) -> Vec<Contrast> {
    let stacks: Vec<(&Vec<&Cell>, &Arm)> = groups
        .iter()
        .zip(arms)
        .filter(|(_, arm)| matches!(arm.kind.as_str(), "gateway" | "service"))
        .collect();
    let mut found = Vec::new();
    for (at, a) in stacks.iter().enumerate() {
        for b in stacks.iter().skip(at + 1) {
            if a.1.chain != b.1.chain && alike(&a.1.drive, &b.1.drive) {
                found.push(one(run, *a, *b));
            }
        }
    }
    found
}

fn one<'a>(run: &'a Gathered, a: (&Vec<&Cell>, &Arm), b: (&Vec<&Cell>, &Arm)) -> Contrast {
    let blocks = both(run, a.0, b.0);
    let refused = match blocks.as_deref() {
        None => Some("calls were due and not sent; how many is not known".to_owned()),
        Some([]) => Some("no block has calls of both".to_owned()),
        Some(blocks) => {
            let of = |pick: for<'r> fn(&'r Both<'a>) -> &'r Side<'a>| -> Vec<&ClientCall> {
                let calls = blocks.iter().flat_map(|both| pick(both).0.iter());
                let all = calls.map(|joined| &joined.client);
                all.filter(|call| call.outcome == CallOutcome::Complete)
                    .collect()
            };
            other_work(&of(|both| &both.a), &of(|both| &both.b))
        }
    };
    let blocks = blocks.filter(|_| refused.is_none()).unwrap_or_default();
    let tapped = |arm: &Arm| arm.legs.iter().any(|leg| leg.leg == "added TTFT");
    let both_tapped = tapped(a.1) && tapped(b.1);
    let differences = FIGURES
        .iter()
        .filter(|(_, _, of)| both_tapped || matches!(of, Of::Client(_)))
        .filter(|_| !blocks.is_empty())
        .map(|(figure, q, of)| difference(run, &blocks, figure, *q, *of))
        .collect();
    Contrast {
        run: run.name.clone(),
        a: a.1.chain.clone(),
        b: b.1.chain.clone(),
        simulated: a.1.simulated || b.1.simulated,
        saturated: a.1.saturated || b.1.saturated,
        drive: a.1.drive.clone(),
        label: shared_label(&a.1.drive),
        blocks: blocks.len(),
        differences,
        refused,
    }
}

/// A share of capacity is another rate for each of the two.
fn shared_label(drive: &Drive) -> String {
    match drive {
        Drive::Open {
            share: Some(share), ..
        } => format!("{} % of the capacity of each", percent(*share)),
        other => label(other),
    }
}

/// Blocks that have calls of both; `None` where it is not known how many calls were not sent.
fn both<'a>(run: &'a Gathered, a: &[&Cell], b: &[&Cell]) -> Option<Vec<Both<'a>>> {
    let (one, mut other) = (by_block(run, a, None), by_block(run, b, None));
    let shared = one.into_iter().filter_map(|(block, a)| {
        let b = other.remove(&block)?;
        (!a.0.is_empty() && !b.0.is_empty()).then_some((a, b))
    });
    shared
        .map(|(a, b)| {
            Some(Both {
                a: (a.0, a.1?),
                b: (b.0, b.1?),
            })
        })
        .collect()
}

fn difference<'a>(
    run: &Gathered,
    blocks: &[Both<'a>],
    figure: &'static str,
    q: f64,
    of: Of,
) -> Difference {
    let of_block = |(calls, unsent): &Side<'a>| match of {
        Of::Client(pick) => of_client(calls, *unsent, pick),
        Of::Taps(pick) => of_calls(calls, pick),
    };
    let of_all = |pick: for<'r> fn(&'r Both<'a>) -> &'r Side<'a>| -> Vec<Block> {
        blocks.iter().map(|both| of_block(pick(both))).collect()
    };
    let (a, b) = (of_all(|both| &both.a), of_all(|both| &both.b));
    let mut found = Difference {
        figure,
        quantile: q,
        a: None,
        b: None,
        difference: None,
        interval: None,
        ratio: None,
        ratio_interval: None,
        calls: (0, 0),
        few: false,
        refused: None,
    };
    for (blocks, calls) in [(&a, &mut found.calls.0), (&b, &mut found.calls.1)] {
        let (all, lost) = counted(&blocks.iter().collect::<Vec<_>>());
        *calls = all;
        match rests_on_few(all, lost, q, &run.rules) {
            Ok(few) => found.few |= few,
            Err(why) => {
                found.refused = Some(match why {
                    Reading::Refused(why) => why,
                    _ => "nothing was there to measure".to_owned(),
                });
            }
        }
    }
    if found.refused.is_some() {
        return found;
    }
    let (a, b) = (values(&a), values(&b));
    let once = vec![1; blocks.len()];
    (found.a, found.b) = (a.at(q, &once), b.at(q, &once));
    let Some((one, other)) = found.a.zip(found.b) else {
        found.refused = Some("it falls on a call whose end was not seen".to_owned());
        return found;
    };
    let both = |times: &[u32]| a.at(q, times).zip(b.at(q, times));
    found.difference = Some(other - one);
    found.interval = over_blocks(blocks.len(), |times| both(times).map(|(a, b)| b - a));
    found.ratio = ratio((one, other));
    found.ratio_interval = over_blocks(blocks.len(), |times| both(times).and_then(ratio));
    found
}

/// The other ÷ the one.
fn ratio((one, other): (f64, f64)) -> Option<f64> {
    (one > 0.0).then(|| other / one)
}
