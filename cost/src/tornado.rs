//! What moves the bills most: every inexact input at its ends, and parts of the traffic as what-ifs.

use config::plan::Traffic;

use crate::inputs::{End, Ends, Inputs, capacity_id};
use crate::model::{Configuration, TornadoBar};
use crate::tariff::Tariff;

/// What-ifs take a part of the traffic a quarter more, and by the same ratio less.
const WHAT_IF: f64 = 1.25;

/// What one input does to each total at the traffic's own rate, the furthest first.
pub(crate) fn tornado(given: Inputs<'_>) -> Vec<TornadoBar> {
    let mut bars = Vec::new();
    for of in Configuration::ALL {
        let plain = Tariff::of(of, given, &Ends::new());
        let rate = given.traffic.rate;
        let beyond = given.limit(of).is_some_and(|limit| rate > limit.rate);
        if !plain.gaps.is_empty() || beyond {
            continue;
        }
        let base = plain.at(rate);
        for input in &plain.inputs {
            let at = |end| Tariff::of(of, given, &Ends::from([(input.clone(), end)])).at(rate);
            bars.push(TornadoBar {
                input: input.clone(),
                of,
                input_values: values(input, of, given),
                what_if: false,
                at_low: bounded(at(End::Low)),
                at_high: bounded(at(End::High)),
                base,
            });
        }
        bars.extend(
            PARTS
                .iter()
                .filter_map(|part| what_if(part, of, given, base)),
        );
    }
    bars.sort_by(|a, b| b.span().total_cmp(&a.span()));
    bars
}

fn bounded(total: f64) -> Option<f64> {
    total.is_finite().then_some(total)
}

fn values(input: &str, of: Configuration, given: Inputs<'_>) -> (f64, f64, Option<f64>) {
    let capacity = given.capacities.get(&of);
    if let Some(capacity) = capacity.filter(|_| input == capacity_id(of)) {
        let (low, high) = capacity.bounds();
        return (low, capacity.rate, bounded(high));
    }
    let price = given.book.get(input);
    price.map_or((0.0, 0.0, None), |price| {
        let (low, high) = price.bounds();
        (low, price.value, Some(high))
    })
}

/// A part of the traffic.
struct Part {
    name: &'static str,
    /// The least and the most that it can be.
    bounds: (f64, f64),
    place: fn(&mut Traffic) -> &mut f64,
}

const PARTS: [Part; 7] = [
    Part {
        name: "traffic.rate",
        bounds: (0.0, f64::MAX),
        place: |traffic| &mut traffic.rate,
    },
    Part {
        name: "traffic.input_tokens",
        bounds: (1.0, f64::MAX),
        place: |traffic| &mut traffic.input_tokens,
    },
    Part {
        name: "traffic.output_tokens",
        bounds: (1.0, f64::MAX),
        place: |traffic| &mut traffic.output_tokens,
    },
    Part {
        name: "traffic.duty",
        bounds: (0.0, 1.0),
        place: |traffic| &mut traffic.duty,
    },
    Part {
        name: "traffic.burst_ratio",
        bounds: (1.0, f64::MAX),
        place: |traffic| &mut traffic.burst_ratio,
    },
    Part {
        name: "traffic.prompt_cache_share",
        bounds: (0.0, 1.0),
        place: |traffic| &mut traffic.prompt_cache_share,
    },
    Part {
        name: "traffic.semantic_hit_share",
        bounds: (0.0, 0.99),
        place: |traffic| &mut traffic.semantic_hit_share,
    },
];

/// `None` where the part moves nothing. The measured capacity is held, also where other lengths of calls would change it.
fn what_if(part: &Part, of: Configuration, given: Inputs<'_>, base: f64) -> Option<TornadoBar> {
    let mut traffic = given.traffic.clone();
    let value = *(part.place)(&mut traffic);
    let (least, most) = part.bounds;
    // The written and the read part of a prompt are not more than the prompt.
    let most = match part.name {
        "traffic.prompt_cache_share" => 1.0 - traffic.cache_write_share,
        _ => most,
    };
    let (low, high) = ((value / WHAT_IF).max(least), (value * WHAT_IF).min(most));
    let mut at = |is: f64| {
        *(part.place)(&mut traffic) = is;
        let rate = traffic.rate;
        let given = Inputs {
            traffic: &traffic,
            ..given
        };
        bounded(Tariff::of(of, given, &Ends::new()).at(rate))
    };
    let (at_low, at_high) = (at(low), at(high));
    let moves = [at_low, at_high].iter().any(|total| *total != Some(base));
    moves.then(|| TornadoBar {
        input: part.name.to_owned(),
        of,
        input_values: (low, value, Some(high)),
        what_if: true,
        at_low,
        at_high,
        base,
    })
}
