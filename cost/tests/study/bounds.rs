//! What is not known exactly, or not at all: it opens an interval, and is never left out of one.

use crate::rig::{Capacities, all, bill, measured, plan, prices, same, study, total};
use config::plan::{Purchase, Tier};
use cost::Configuration::{self, A1, A2, Baseline, BaselinePlus};
use cost::{Capacity, Limit, NoCrossing, Study};
use proptest::prelude::{ProptestConfig, prop_assert, proptest};

const REPLICA: f64 = 3539.04;

fn between(low: f64, rate: f64, high: f64) -> Capacity {
    Capacity {
        low: Some(low),
        high: Some(high),
        ..measured(rate, 1)
    }
}

#[test]
fn a_capacity_that_may_be_nothing_leaves_a_bill_without_a_most() {
    let study = study(&plan(), &prices(), &all(&between(0.0, 2.0, 4.0)));
    let bill = bill(&study, A1, 1.0);
    let range = bill.total.unwrap();
    same(range.value, REPLICA + 223.0);
    assert_eq!(range.high, None);
    let gpu = bill.lines.iter().find(|line| line.id == "gpu").unwrap();
    assert_eq!(gpu.amount.high, None);
    assert_eq!(bill.per_million_tokens.unwrap().high, None);
    // Without traffic one replica stays, whatever it serves.
    let idle = study.idle.iter().find(|(of, _)| *of == A1).unwrap().1;
    assert_eq!(idle.high, Some(idle.value));
    let mut pairs = study.pairs.iter();
    let pair = pairs.find(|p| (p.a, p.b) == (Baseline, A1)).unwrap();
    let first = &pair.crossings[0];
    assert_eq!(first.cheaper_above, A1);
    assert_eq!(first.high, None, "it may never pay");
}

#[test]
fn a_capacity_of_which_only_the_least_is_known_lowers_the_least_of_a_bill() {
    let more = Capacity {
        or_more: true,
        ..measured(2.0, 1)
    };
    let study = study(&plan(), &prices(), &all(&more));
    let range = bill(&study, A1, 100.0).total.unwrap();
    same(range.value, 50.0 * REPLICA + 223.0);
    same(range.low, REPLICA + 223.0);
    same(range.high.unwrap(), range.value);
}

#[test]
fn a_capacity_of_nothing_is_as_one_not_measured() {
    let mut none = all(&measured(0.0, 1));
    none.insert(BaselinePlus, measured(0.0, 1));
    let study = study(&plan(), &prices(), &none);
    assert!(bill(&study, A1, 1.0).total.is_none());
    assert!(bill(&study, BaselinePlus, 1.0).at_least);
}

#[test]
fn a_low_end_of_next_to_nothing_does_not_take_forever() {
    let study = study(&plan(), &prices(), &all(&between(1e-9, 2.0, 4.0)));
    assert!(study.pairs.iter().any(|pair| !pair.crossings.is_empty()));
}

#[test]
fn above_a_quota_there_is_no_bill_and_no_crossing() {
    let mut plan = plan();
    plan.models.default = "llama-3-1-70b".to_owned();
    plan.rates = vec![1.0, 1.5];
    let limit = Limit {
        rate: 1.2,
        why: "the quota".to_owned(),
    };
    let capacities = all(&measured(2.0, 1));
    let study = cost::study(&prices(), &plan, &capacities, &plan.traffic, Some(&limit));
    assert!(bill(&study, Baseline, 1.0).total.is_some());
    let beyond = bill(&study, Baseline, 1.5);
    assert!(beyond.total.is_none() && beyond.gaps[0].contains("throttled"));
    assert!(bill(&study, A1, 1.5).total.is_some());
    let mut pairs = study.pairs.iter();
    // They would meet at 1.33 calls/s.
    let pair = pairs.find(|p| (p.a, p.b) == (Baseline, A1)).unwrap();
    assert_eq!(pair.no_crossing, Some(NoCrossing::Cheaper(Baseline, 1.2)));
}

#[test]
fn machines_that_end_between_the_hours_of_traffic_bill_for_those_alone() {
    let mut plan = plan();
    plan.traffic.duty = 0.25;
    plan.hardware.scale_to_zero = true;
    let study = study(&plan, &prices(), &all(&measured(2.0, 1)));
    same(total(&study, A1, 1.0), 0.25 * REPLICA + 223.0);
    let idle = study.idle.iter().find(|(of, _)| *of == A1).unwrap().1;
    same(idle.value, 223.0);
}

/// Llama 3.1 70B in batches: 0.36 a million both ways, half of 0.72.
#[test]
fn a_tier_has_prices_of_its_own_and_a_gap_without_them() {
    let mut plan = plan();
    plan.models.default = "llama-3-1-70b".to_owned();
    plan.models.tier = Tier::Batch;
    let batch = study(&plan, &prices(), &Capacities::new());
    same(
        total(&batch, Baseline, 1.0),
        2_628_000.0 * 1500.0 * 0.36 / 1e6,
    );
    plan.models.tier = Tier::Priority;
    let priority = study(&plan, &prices(), &Capacities::new());
    let gaps = &bill(&priority, Baseline, 1.0).gaps;
    assert!(gaps[0].contains("llama-3-1-70b.priority-input"), "{gaps:?}");
}

fn bar<'a>(study: &'a Study, of: Configuration, input: &str) -> &'a cost::TornadoBar {
    let mut bars = study.tornado.iter();
    bars.find(|bar| bar.of == of && bar.input == input).unwrap()
}

#[test]
fn a_tornado_moves_the_traffic_too_and_says_that_this_is_a_what_if() {
    let mut plan = plan();
    plan.traffic.rate = 10.0;
    plan.traffic.burst_ratio = 2.0;
    let study = study(&plan, &prices(), &all(&between(1.0, 2.0, 4.0)));
    let burst = bar(&study, A1, "traffic.burst_ratio");
    assert!(burst.what_if && burst.input_values == (1.6, 2.0, Some(2.5)));
    same(burst.base, 10.0 * REPLICA + 223.0);
    same(burst.at_low.unwrap(), 8.0 * REPLICA + 223.0);
    same(burst.at_high.unwrap(), 13.0 * REPLICA + 223.0);
    let capacity = bar(&study, A1, "capacity.a1");
    assert!(!capacity.what_if && capacity.input_values == (1.0, 2.0, Some(4.0)));
    same(capacity.at_low.unwrap(), 20.0 * REPLICA + 223.0);
    // A measured capacity holds for its calls: their length moves no bill by GPU.
    let tokens = |of| {
        study
            .tornado
            .iter()
            .any(|bar| bar.of == of && bar.input == "traffic.output_tokens")
    };
    assert!(tokens(Baseline) && !tokens(A1));
    let spans: Vec<f64> = study.tornado.iter().map(cost::TornadoBar::span).collect();
    assert!(spans.is_sorted_by(|a, b| a >= b));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Prices and capacities anywhere in their intervals, together: the total is within its own.
    #[test]
    fn a_total_holds_every_input_within_its_interval(rate in 0.05_f64..20.0, down in 1.0_f64..3.0, up in 1.0_f64..3.0,
        at in (0.0_f64..=1.0, 0.0_f64..=1.0), calls in 0.01_f64..100.0) {
        let mut plan = plan();
        plan.hardware.purchase = Purchase::Spot;
        plan.rates = vec![calls];
        let mut prices = prices();
        let id = format!("ec2.{}.spot", plan.hardware.instance);
        let (low, high) = prices.get(&id).unwrap().bounds();
        prop_assert!(low < high, "the test wants a price with an interval");
        let wide = between(rate / down, rate, rate * up);
        let range = bill(&study(&plan, &prices, &all(&wide)), A2, calls).total.unwrap();
        prices.set(&id, low + at.0 * (high - low)).unwrap();
        let inside = measured(rate / down + at.1 * (rate * up - rate / down), 1);
        let seen = total(&study(&plan, &prices, &all(&inside)), A2, calls);
        let near = 1e-9 * seen;
        prop_assert!(range.low <= seen + near && seen <= range.high.unwrap() + near, "{seen} in {range:?}");
    }
}
