//! Where configurations change places: by hand, and by the properties that every crossing has.

use crate::rig::{Capacities, all, measured, plan, prices, study, total};
use config::Plan;
use cost::Configuration::{self, A1, A2, B1, Baseline, BaselinePlus};
use cost::{Capacity, Crossing, NoCrossing, Pair, Study};
use proptest::prelude::{ProptestConfig, Strategy, prop_assert, proptest};

fn pair(study: &Study, a: Configuration, b: Configuration) -> &Pair {
    study.pairs.iter().find(|p| (p.a, p.b) == (a, b)).unwrap()
}

/// Llama 3.1 70B, 0.72 a million both ways: 0.00108 $ a call of 1500 tokens, 2,838.24 $ a month for a call a second.
fn cheap_tokens() -> Plan {
    let mut plan = plan();
    plan.models.default = "llama-3-1-70b".to_owned();
    plan
}

const EACH: f64 = 2838.24;
const REPLICA: f64 = 3539.04;

fn near(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-6 * b.abs(), "{a} is not {b}");
}

#[test]
fn a_step_gives_the_lead_back() {
    let study = study(&cheap_tokens(), &prices(), &all(&measured(2.0, 1)));
    let found = &pair(&study, Baseline, A1).crossings;
    let seen: Vec<_> = found.iter().map(|c| (c.on_step, c.cheaper_above)).collect();
    assert_eq!(seen, [(false, A1), (true, Baseline), (false, A1)]);
    near(found[0].rate, (223.0 + REPLICA) / EACH);
    near(found[1].rate, 2.0);
    near(found[2].rate, (223.0 + 2.0 * REPLICA) / EACH);
    // All inputs are exact.
    assert!(
        found
            .iter()
            .all(|c| c.low == c.rate && c.high == Some(c.rate))
    );
}

/// A copy is dear as soon as it is called now and then, and cheap beside many replicas.
#[test]
fn an_exponential_and_a_step_give_two() {
    let mut capacities = all(&measured(0.1, 1));
    capacities.insert(BaselinePlus, measured(1000.0, 1));
    let study = study(&cheap_tokens(), &prices(), &capacities);
    let found = &pair(&study, BaselinePlus, A1).crossings;
    assert_eq!(found.len(), 2, "{found:?}");
    let always = 8760.0 * 5.0 * 8.0 * 0.05718;
    let share = (223.0 + REPLICA - 15.60) / always;
    near(found[0].rate, -(1.0 - share).ln() / 300.0);
    assert_eq!(found[0].cheaper_above, A1);
    // Six replicas, above 0.5 calls/s, are the first to cost more than 20,051.47 $.
    near(found[1].rate, 0.5);
    assert!(found[1].on_step && found[1].cheaper_above == BaselinePlus);
}

#[test]
fn where_there_is_none_it_is_said_why() {
    let plan = cheap_tokens();
    let study = study(&plan, &prices(), &all(&measured(2.0, 1)));
    let none = |a, b| pair(&study, a, b).no_crossing.clone();
    assert_eq!(none(A1, B1), Some(NoCrossing::Cheaper(A1, 1000.0)));
    assert_eq!(none(A1, A2), Some(NoCrossing::Same(1000.0)));
    assert_eq!(none(Baseline, A1), None);
    // What a copy serves is not measured: more of them may be needed.
    assert_eq!(
        none(Baseline, BaselinePlus),
        Some(NoCrossing::AtLeast(BaselinePlus))
    );
    assert!(
        study
            .bills
            .iter()
            .all(|bill| bill.at_least == (bill.configuration == BaselinePlus))
    );
    let lacking = crate::rig::study(&plan, &prices(), &Capacities::new());
    let none = pair(&lacking, Baseline, A1).no_crossing.clone().unwrap();
    assert!(matches!(none, NoCrossing::Missing(A1, gaps) if gaps[0].contains("not measured")));
}

#[test]
fn an_uncertain_capacity_gives_an_interval() {
    let capacity = Capacity {
        low: Some(0.5),
        high: Some(2.0),
        ..measured(1.5, 1)
    };
    let study = study(&cheap_tokens(), &prices(), &all(&capacity));
    let first = &pair(&study, Baseline, A1).crossings[0];
    near(first.rate, (223.0 + REPLICA) / EACH);
    // With 2 calls/s a replica nothing changes below; with 0.5 it takes so many replicas that it never pays.
    near(first.low, first.rate);
    assert_eq!(first.high, None);
}

fn capacities() -> impl Strategy<Value = Capacities> {
    let one = (0.05_f64..20.0, 1.0_f64..2.0, 1.0_f64..2.0, 1_u32..5);
    proptest::collection::vec(one, 5).prop_map(|values| {
        let of = Configuration::ALL.into_iter().skip(1);
        of.zip(values)
            .map(|(of, (rate, down, up, replicas))| {
                let capacity = Capacity {
                    low: Some(rate / down),
                    high: Some(rate * up),
                    ..measured(rate, replicas)
                };
                (of, capacity)
            })
            .collect()
    })
}

/// The sign that `a − b` has just above the crossing.
fn above(crossing: &Crossing) -> f64 {
    match crossing.cheaper_above == crossing.a {
        true => -1.0,
        false => 1.0,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_bill_never_falls_with_load(capacities in capacities(), mut rates in proptest::collection::vec(0.001_f64..100.0, 2..12)) {
        let mut plan = cheap_tokens();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        plan.rates.clone_from(&rates);
        let study = study(&plan, &prices(), &capacities);
        for of in Configuration::ALL {
            for two in rates.windows(2) {
                let (less, more) = (total(&study, of, two[0]), total(&study, of, two[1]));
                prop_assert!(less <= more * (1.0 + 1e-12), "{of}: {less} at {}, {more} at {}", two[0], two[1]);
            }
        }
        for bill in &study.bills {
            let total = bill.total.unwrap();
            prop_assert!(total.low <= total.value && total.high.is_some_and(|high| total.value <= high), "{bill:?}");
        }
    }

    #[test]
    fn crossings_are_where_the_curves_meet_and_nowhere_else(capacities in capacities(), mut looks in proptest::collection::vec(0.0001_f64..40.0, 40)) {
        let mut plan = cheap_tokens();
        plan.rates = vec![4.0];
        let crossed = study(&plan, &prices(), &capacities);
        for crossing in crossed.pairs.iter().flat_map(|pair| &pair.crossings) {
            prop_assert!(crossing.low <= crossing.rate, "{crossing:?}");
            prop_assert!(crossing.high.is_none_or(|high| crossing.rate <= high), "{crossing:?}");
            looks.extend([crossing.rate * (1.0 - 1e-7), crossing.rate * (1.0 + 1e-7)]);
        }
        looks.retain(|rate| *rate <= 40.0);
        looks.sort_by(f64::total_cmp);
        looks.dedup();
        plan.rates.clone_from(&looks);
        let looked = study(&plan, &prices(), &capacities);
        for pair in &crossed.pairs {
            for rate in &looks {
                let (a, b) = (total(&looked, pair.a, *rate), total(&looked, pair.b, *rate));
                let before = pair.crossings.iter().rfind(|c| c.rate < *rate);
                let expected = match (before, pair.crossings.first(), &pair.no_crossing) {
                    (Some(before), _, _) => above(before),
                    (None, Some(first), _) => -above(first),
                    (None, None, Some(NoCrossing::Cheaper(which, _))) => if *which == pair.a { -1.0 } else { 1.0 },
                    (None, None, _) => 0.0,
                };
                let difference = a - b;
                let small = difference.abs() <= 1e-9 * a.abs();
                prop_assert!(small || difference * expected > 0.0,
                    "{} − {} at {rate} is {difference}; {:?}", pair.a, pair.b, pair.crossings);
            }
        }
    }
}
