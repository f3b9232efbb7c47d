//! The charts as data: what is drawn, by which arms.

use cost::Configuration;
use report::{Arm, LegRow, Passing};

use crate::drive::driven;
use crate::key::Key;
use crate::model::{At, Axis, Chart, Kind, Series};
use crate::show::bill_marks;
use crate::table::{best, by_callers, by_load};
use crate::view::{View, concurrency, phase};

const MS: f64 = 1e6;
const MINUTE: f64 = 60e9;

pub(crate) fn charts(view: &View<'_>) -> Vec<Chart> {
    let ttft = |arm: &Arm| point(&arm.ttft);
    let tps = |arm: &Arm| Some((arm.tokens_rate?, None));
    vec![
        by_callers_at_once(view, "ttft", (Key::ChartTtft, Key::AxisTtft), &[1, 2], ttft),
        by_callers_at_once(view, "tps", (Key::ChartTps, Key::AxisTps), &[1, 2], tps),
        legs(view),
        spread(view),
        tokens(view),
        by_callers_at_once(view, "cache", (Key::ChartCache, Key::AxisTtft), &[3], ttft),
        course(view, "burst", Key::ChartBurst, 9, |arm| &arm.ttft_intended),
        course(view, "soak", Key::ChartSoak, 8, |arm| &arm.ttft),
        costs(view),
    ]
}

type Value = (f64, Option<(f64, f64)>);

/// A median in milliseconds with its interval.
fn point(row: &LegRow) -> Option<Value> {
    let ms = |(low, high): (f64, f64)| (low / MS, high / MS);
    Some((row.p50.value()? / MS, row.interval.map(ms)))
}

fn at(x: f64, (y, interval): Value) -> At {
    At {
        x,
        y: Some(y),
        low: interval.map(|(low, _)| low),
        high: interval
            .map(|(_, high)| high)
            .filter(|high| high.is_finite()),
    }
}

/// A place without a figure.
fn gap(x: f64) -> At {
    At {
        x,
        y: None,
        low: None,
        high: None,
    }
}

fn axis(view: &View<'_>, label: Key, log: bool) -> Axis {
    Axis {
        label: view.get(label),
        log,
        names: Vec::new(),
    }
}

/// The name of a series says how far it can be trusted.
fn series(view: &View<'_>, of: Configuration, arms: &[&Arm], points: Vec<At>) -> Option<Series> {
    let simulated = arms.iter().any(|arm| arm.simulated);
    let mut marks = Vec::new();
    if simulated {
        marks.push(view.get(Key::Simulated));
    }
    if arms.iter().any(|arm| !view.valid(&arm.run)) {
        marks.push(view.get(Key::NotValid));
    }
    let name = match marks.is_empty() {
        true => of.id().to_owned(),
        false => format!("{of} ({})", marks.join(", ")),
    };
    points.iter().any(|p| p.y.is_some()).then(|| Series {
        name,
        of: Some(of.id().to_owned()),
        second: false,
        simulated,
        points,
    })
}

impl Series {
    /// Of one arm: with how it was driven, since others were driven in other ways.
    fn driven(self, view: &View<'_>, arm: &Arm) -> Self {
        Self {
            name: format!("{}: {}", self.name, driven(view, &arm.drive)),
            ..self
        }
    }
}

/// One figure over the number of callers, in the runs of some scenarios: others have other prompts.
fn by_callers_at_once(
    view: &View<'_>,
    id: &'static str,
    (title, y): (Key, Key),
    scenarios: &[u8],
    value: impl Fn(&Arm) -> Option<Value>,
) -> Chart {
    let own = |arm: &&Arm| {
        view.scenario(&arm.run)
            .is_some_and(|number| scenarios.contains(&number))
    };
    let of = |of: Configuration| {
        let mut callers: Vec<u32> = view.arms(of).filter(own).filter_map(concurrency).collect();
        callers.sort_unstable();
        callers.dedup();
        let (mut arms, mut points) = (Vec::new(), Vec::new());
        for n in callers {
            let alike = view
                .arms(of)
                .filter(own)
                .filter(|arm| concurrency(arm) == Some(n));
            let Some(arm) = best(view, alike, |_| 0.0) else {
                continue;
            };
            arms.push(arm);
            let x = f64::from(n);
            points.push(value(arm).map_or_else(|| gap(x), |value| at(x, value)));
        }
        series(view, of, &arms, points)
    };
    Chart {
        id,
        title: view.get(title),
        kind: Kind::Lines,
        x: axis(view, Key::AxisCallers, true),
        y: axis(view, y, true),
        marks: Vec::new(),
        series: Configuration::ALL.into_iter().filter_map(of).collect(),
    }
}

/// Means of the legs that make up what a chain adds to a stream of text: only means may be stacked.
fn legs(view: &View<'_>) -> Chart {
    let mean = |arm: &Arm, name: &str| {
        let leg = arm.legs.iter().find(|leg| leg.leg == name);
        leg.and_then(|leg| leg.mean).map(|ns| ns / MS)
    };
    let own = Configuration::ALL.into_iter().filter(|of| of.self_built());
    let arms: Vec<(Configuration, &Arm)> = own
        .filter_map(|of| {
            let both = |arm: &&Arm| mean(arm, "request").and(mean(arm, "last token")).is_some();
            let arms = view
                .arms(of)
                .filter(|arm| arm.kind == "gateway")
                .filter(both);
            Some((of, best(view, arms, by_load)?))
        })
        .collect();
    let all: Vec<&Arm> = arms.iter().map(|(_, arm)| *arm).collect();
    let part = |key: Key, leg: &str| {
        let points = arms.iter().enumerate();
        let points = points.filter_map(|(x, (_, arm))| Some(at(x as f64, (mean(arm, leg)?, None))));
        Series {
            name: view.get(key),
            of: None,
            second: false,
            simulated: all.iter().any(|arm| arm.simulated),
            points: points.collect(),
        }
    };
    let names = arms.iter().map(|(of, arm)| {
        let named = series(view, *of, &[arm], vec![at(0.0, (0.0, None))]);
        named.map_or_else(String::new, |named| named.driven(view, arm).name)
    });
    Chart {
        id: "legs",
        title: view.get(Key::ChartLegs),
        kind: Kind::Bars,
        x: Axis {
            names: names.collect(),
            ..axis(view, Key::HeadConfiguration, false)
        },
        y: axis(view, Key::AxisAdded, false),
        marks: Vec::new(),
        series: match arms.is_empty() {
            true => Vec::new(),
            false => vec![
                part(Key::LegRequest, "request"),
                part(Key::LegAnswer, "last token"),
            ],
        },
    }
}

/// The arm that stands for a configuration's own speed: as in the metrics table.
fn speed<'a>(view: &View<'a>, of: Configuration, has: fn(&Arm) -> bool) -> Option<&'a Arm> {
    let arms = view.arms(of).filter(|arm| has(arm));
    best(view, arms, |arm| by_callers(view, arm))
}

fn spread(view: &View<'_>) -> Chart {
    let of = |of: Configuration| {
        let arm = speed(view, of, |arm| !arm.ttft_spread.is_empty())?;
        let points = arm.ttft_spread.iter();
        let points = points.map(|(share, ns)| at(ns / MS, (*share, None)));
        Some(series(view, of, &[arm], points.collect())?.driven(view, arm))
    };
    Chart {
        id: "spread",
        title: view.get(Key::ChartSpread),
        kind: Kind::Lines,
        x: axis(view, Key::AxisTtft, true),
        y: axis(view, Key::AxisShare, false),
        marks: Vec::new(),
        series: Configuration::ALL.into_iter().filter_map(of).collect(),
    }
}

/// The text of one call of each chain at both taps.
fn tokens(view: &View<'_>) -> Chart {
    let mut all = Vec::new();
    for of in Configuration::ALL {
        let arm = speed(view, of, |arm| arm.sample.is_some());
        let Some((arm, sample)) = arm.and_then(|arm| Some((arm, arm.sample.as_ref()?))) else {
            continue;
        };
        let hops = [
            (Key::Outer, &sample.outer, false),
            (Key::Inner, &sample.inner, true),
        ];
        for (key, passings, second) in hops {
            let point = |one: &Passing| at(one.since / MS, (f64::from(one.bytes), None));
            let found = series(view, of, &[arm], passings.iter().map(point).collect());
            all.extend(
                found
                    .map(|found| found.driven(view, arm))
                    .map(|found| Series {
                        name: format!("{}, {}", found.name, view.get(key)),
                        second,
                        ..found
                    }),
            );
        }
    }
    Chart {
        id: "tokens",
        title: view.get(Key::ChartTokens),
        kind: Kind::Lines,
        x: axis(view, Key::AxisSince, false),
        y: axis(view, Key::AxisTokens, false),
        marks: Vec::new(),
        series: all,
    }
}

/// A median over the phases of a course, at the middle of each, of the best run that drove one.
fn course(
    view: &View<'_>,
    id: &'static str,
    title: Key,
    scenario: u8,
    pick: fn(&Arm) -> &LegRow,
) -> Chart {
    let of = |of: Configuration| {
        let own = |arm: &&Arm| view.scenario(&arm.run) == Some(scenario) && phase(arm).is_some();
        let run = &best(view, view.arms(of).filter(own), |_| 0.0)?.run;
        let arms: Vec<&Arm> = view
            .arms(of)
            .filter(own)
            .filter(|arm| arm.run == *run)
            .collect();
        let mut begin = 0.0;
        let mut points = Vec::new();
        for arm in &arms {
            let lasts = phase(arm).map_or(0.0, |phase| phase.lasts as f64);
            let x = (begin + lasts / 2.0) / MINUTE;
            points.push(point(pick(arm)).map_or_else(|| gap(x), |value| at(x, value)));
            begin += lasts;
        }
        series(view, of, &arms, points)
    };
    Chart {
        id,
        title: view.get(title),
        kind: Kind::Lines,
        x: axis(view, Key::AxisMinutes, false),
        y: axis(view, Key::AxisTtft, true),
        marks: Vec::new(),
        series: Configuration::ALL.into_iter().filter_map(of).collect(),
    }
}

/// Bills by rate. Those that are the least that they can be are no curve.
fn costs(view: &View<'_>) -> Chart {
    let of = |of: Configuration| {
        let own = view.given.curves.bills.iter();
        let own = own.filter(|bill| bill.configuration == of && bill.rate > 0.0 && !bill.at_least);
        let points: Vec<At> = own
            .map(|bill| match bill.total {
                None => gap(bill.rate),
                Some(total) => At {
                    x: bill.rate,
                    y: Some(total.value),
                    low: Some(total.low),
                    high: total.high,
                },
            })
            .collect();
        let (simulated, guessed) = (view.on_stand_ins(&[of]), view.on_guesses(&[of]));
        let name = match bill_marks(&view.words, simulated, guessed) {
            marks if marks.is_empty() => of.id().to_owned(),
            marks => format!("{of} ({})", marks.join(", ")),
        };
        let drawn = points.iter().any(|p| p.y.is_some());
        drawn.then(|| Series {
            name,
            of: Some(of.id().to_owned()),
            second: false,
            simulated,
            points,
        })
    };
    Chart {
        id: "cost",
        title: view.get(Key::ChartCost),
        kind: Kind::Lines,
        x: axis(view, Key::AxisRate, true),
        y: axis(view, Key::AxisDollars, true),
        marks: crossings(view),
        series: Configuration::ALL.into_iter().filter_map(of).collect(),
    }
}

/// The rates at which a stack and the managed service change places: those of stacks among themselves are too many to
/// be told apart.
fn crossings(view: &View<'_>) -> Vec<f64> {
    let managed = Configuration::Baseline.id();
    let places = crate::places(view).into_iter();
    places
        .filter(|place| place.a == managed)
        .map(|place| place.rate)
        .collect()
}
