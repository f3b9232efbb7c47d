//! Bills computed by hand. Prices: `config/prices/`, whose files name their sources.

use crate::rig::{all, bill, line, measured, plan, prices, same, study, total};
use config::plan::{Agent, Commitment, Guardrail, Provisioned, Purchase, Runtime, Warm};
use cost::Configuration::{A1, A2, B1, B2, Baseline, BaselinePlus};

/// Claude Sonnet 4.5: 3.00 in, 15.00 out a million. A month of 1 call/s has 2,628,000 calls.
#[test]
fn tokens_are_billed_by_the_million() {
    let study = study(&plan(), &prices(), &all(&measured(2.0, 1)));
    // 500 × 3.00 + 1000 × 15.00 = 0.0165 $ a call.
    same(total(&study, Baseline, 1.0), 2_628_000.0 * 0.0165);
    // 0.0165 $ for 1500 tokens: 11 $ a million.
    same(
        bill(&study, Baseline, 1.0)
            .per_million_tokens
            .unwrap()
            .value,
        11.0,
    );
    same(total(&study, Baseline, 10.0), 26_280_000.0 * 0.0165);
}

/// Read 0.30, written 3.75.
#[test]
fn a_prompt_cache_has_prices_of_its_own() {
    let mut plan = plan();
    plan.traffic.prompt_cache_share = 0.5;
    plan.traffic.cache_write_share = 0.1;
    let study = study(&plan, &prices(), &all(&measured(2.0, 1)));
    // 200 fresh × 3.00 + 250 read × 0.30 + 50 written × 3.75 + 1000 × 15.00 = 15,862.5 $ a million calls.
    same(total(&study, Baseline, 1.0), 2.628 * 15_862.5);
}

#[test]
fn half_a_month_of_traffic_costs_half_the_tokens() {
    let mut plan = plan();
    plan.traffic.duty = 0.5;
    let study = study(&plan, &prices(), &all(&measured(2.0, 1)));
    same(total(&study, Baseline, 1.0), 1_314_000.0 * 0.0165);
    same(
        bill(&study, Baseline, 1.0)
            .per_million_tokens
            .unwrap()
            .value,
        11.0,
    );
}

/// 0.15 content, 0.15 topics, 0.10 personal data, a thousand units of up to 1000 characters, on both sides.
#[test]
fn guardrails_are_billed_by_units_of_prompt_and_answer() {
    let mut plan = plan();
    plan.guardrails = vec![Guardrail::Content, Guardrail::DeniedTopics, Guardrail::Pii];
    let own = study(&plan, &prices(), &all(&measured(2.0, 1)));
    // 2000 and 4000 characters: 6 units × 0.40 ÷ 1000.
    same(line(&own, Baseline, 1.0, "guardrail"), 2_628_000.0 * 0.0024);
    plan.traffic.input_tokens = 501.0;
    let own = study(&plan, &prices(), &all(&measured(2.0, 1)));
    // 2004 characters are three units.
    same(line(&own, Baseline, 1.0, "guardrail"), 2_628_000.0 * 0.0028);
    same(line(&own, A1, 1.0, "guardrail"), 0.0);
}

/// V2: 0.1276 a vCPU hour, 0.0169 a GB hour; Gateway 0.005 a thousand calls.
#[test]
fn an_agent_is_billed_by_the_session() {
    let mut plan = plan();
    plan.agent = Some(Agent {
        runtime: Runtime::V2,
        session_seconds: 600,
        vcpu_share: 0.35,
        memory_gb: 2.0,
        tool_calls: 3,
    });
    plan.traffic.calls_per_task = 5.0;
    let study = study(&plan, &prices(), &all(&measured(2.0, 1)));
    let tasks = 2_628_000.0 / 5.0;
    same(
        line(&study, BaselinePlus, 1.0, "agent-cpu"),
        tasks * 0.35 / 6.0 * 0.1276,
    );
    same(
        line(&study, BaselinePlus, 1.0, "agent-memory"),
        tasks * 2.0 / 6.0 * 0.0169,
    );
    same(
        line(&study, BaselinePlus, 1.0, "agent-tools"),
        tasks * 3.0 * 0.005 / 1000.0,
    );
}

/// 0.05718 a CMU minute, 1.95 a CMU month: eight CMUs.
#[test]
fn an_imported_model_is_billed_by_windows_with_a_call() {
    let mut plan = plan();
    plan.rates = vec![1.0 / 300.0, 1.0];
    let windows = study(&plan, &prices(), &all(&measured(2.0, 1)));
    // 8760 windows of 5 min × 8 × 0.05718 = 20,035.87; with a call in a mean window 1 − 1/e of them have one.
    let always = 8760.0 * 5.0 * 8.0 * 0.05718;
    same(always, 20_035.87);
    let share = 1.0 - (-1.0_f64).exp();
    same(
        total(&windows, BaselinePlus, 1.0 / 300.0),
        always * share + 15.60,
    );
    same(total(&windows, BaselinePlus, 1.0), always + 15.60);
    same(
        windows
            .idle
            .iter()
            .find(|i| i.0 == BaselinePlus)
            .unwrap()
            .1
            .value,
        15.60,
    );
    plan.import.warm = Warm::Always;
    let warm = study(&plan, &prices(), &all(&measured(2.0, 1)));
    same(
        warm.idle
            .iter()
            .find(|i| i.0 == BaselinePlus)
            .unwrap()
            .1
            .value,
        always + 15.60,
    );
}

#[test]
fn copies_follow_what_one_was_measured_to_serve() {
    let mut plan = plan();
    plan.import.warm = Warm::Always;
    let mut capacities = all(&measured(2.0, 1));
    capacities.insert(BaselinePlus, measured(4.0, 2));
    plan.rates = vec![2.0, 2.1, 4.1];
    let study = study(&plan, &prices(), &capacities);
    let copy = 8760.0 * 5.0 * 8.0 * 0.05718;
    for (rate, copies) in [(2.0, 1.0), (2.1, 2.0), (4.1, 3.0)] {
        same(total(&study, BaselinePlus, rate), copies * copy + 15.60);
    }
}

/// g5.2xlarge 1.212 an hour: 4 × 730 × 1.212 = 3,539.04. The plan's EKS 73, gateway 50, Langfuse 100, llm-d 50.
#[test]
fn machines_come_in_whole_replicas() {
    let mut plan = plan();
    plan.rates = vec![0.1, 2.0, 2.1, 4.0, 4.000_1];
    let study = study(&plan, &prices(), &all(&measured(2.0, 1)));
    same(4.0 * 730.0 * 1.212, 3539.04);
    for (rate, replicas) in [
        (0.1, 1.0),
        (2.0, 1.0),
        (2.1, 2.0),
        (4.0, 2.0),
        (4.000_1, 3.0),
    ] {
        same(total(&study, A1, rate), replicas * 3539.04 + 223.0);
        same(total(&study, B1, rate), replicas * 3539.04 + 273.0);
    }
    // They bill while nobody calls.
    same(
        study.idle.iter().find(|i| i.0 == A1).unwrap().1.value,
        3762.04,
    );
}

#[test]
fn four_replicas_on_four_machines_are_added_one_by_one() {
    let mut plan = plan();
    plan.rates = vec![3.0];
    // 8 calls/s over four replicas: two each.
    let study = study(&plan, &prices(), &all(&measured(8.0, 4)));
    same(line(&study, A1, 3.0, "gpu"), 2.0 * 730.0 * 1.212);
}

#[test]
fn peaks_need_machines_and_a_semantic_cache_spares_them() {
    let mut plan = plan();
    plan.rates = vec![2.0];
    plan.traffic.burst_ratio = 3.0;
    plan.traffic.semantic_hit_share = 0.5;
    let study = study(&plan, &prices(), &all(&measured(2.0, 1)));
    same(line(&study, A1, 2.0, "gpu"), 3.0 * 3539.04);
    same(line(&study, A2, 2.0, "gpu"), 2.0 * 3539.04);
    same(line(&study, B1, 2.0, "gpu"), 3.0 * 3539.04);
    same(line(&study, B2, 2.0, "gpu"), 2.0 * 3539.04);
}

#[test]
fn spot_is_another_price_with_an_interval() {
    let mut plan = plan();
    plan.hardware.purchase = Purchase::Spot;
    plan.rates = vec![1.0];
    let study = study(&plan, &prices(), &all(&measured(2.0, 1)));
    let total = bill(&study, A1, 1.0).total.unwrap();
    same(total.value, 4.0 * 730.0 * 0.455 + 223.0);
    same(total.low, 4.0 * 730.0 * 0.45 + 223.0);
    same(total.high.unwrap(), 4.0 * 730.0 * 0.90 + 223.0);
    let bar = study.tornado.iter().find(|bar| bar.of == A1).unwrap();
    assert_eq!(bar.input, "ec2.g5.2xlarge.spot");
}

#[test]
fn what_is_missing_is_named_and_there_is_no_total() {
    let mut plan = plan();
    plan.provisioned = Some(Provisioned {
        model_units: 1,
        commitment: Commitment::OneMonth,
    });
    let study = study(&plan, &prices(), &crate::rig::Capacities::new());
    let baseline = bill(&study, Baseline, 1.0);
    assert!(baseline.total.is_none() && baseline.per_million_tokens.is_none());
    assert!(baseline.gaps[0].contains("bedrock.claude-sonnet-4-5.provisioned-one-month"));
    let own = bill(&study, A1, 1.0);
    assert!(own.total.is_none() && own.gaps[0].contains("not measured"));
    // What is known of it is there.
    same(line(&study, A1, 1.0, "eks"), 73.0);
    let pair = study
        .pairs
        .iter()
        .find(|p| (p.a, p.b) == (Baseline, A1))
        .unwrap();
    assert!(pair.crossings.is_empty());
    assert!(matches!(
        pair.no_crossing,
        Some(cost::NoCrossing::Missing(Baseline, _))
    ));
}

#[test]
fn a_stand_ins_capacity_marks_the_bills_that_use_it() {
    let mut capacity = measured(2.0, 1);
    capacity.simulated = true;
    let study = study(&plan(), &prices(), &all(&capacity));
    assert!(study.simulated && bill(&study, A1, 1.0).simulated);
    assert!(!bill(&study, Baseline, 1.0).simulated);
}

#[test]
fn lines_ends_add_up_to_the_totals() {
    let mut plan = plan();
    plan.hardware.purchase = Purchase::Spot;
    let capacity = cost::Capacity {
        low: Some(1.0),
        high: Some(3.0),
        ..measured(2.0, 1)
    };
    let study = study(&plan, &prices(), &all(&capacity));
    for bill in &study.bills {
        let total = bill.total.unwrap();
        same(bill.lines.iter().map(|l| l.amount.low).sum(), total.low);
        same(bill.lines.iter().map(|l| l.amount.value).sum(), total.value);
        let high = total.high.unwrap();
        same(
            bill.lines.iter().map(|l| l.amount.high.unwrap()).sum(),
            high,
        );
        assert!(total.low <= total.value && total.value <= high);
    }
}
