//! The ten answers: by whom they may be given, and by which thresholds.

use decide::Verdict::{self, Depends, No, Unanswered, Yes};
use record::manifest::{Company, Drive, Phase};
use report::{Drift, Reading};

use crate::rig::{MS, Rig, arm, callers, contrast, row, run};

#[test]
fn without_runs_only_what_is_stated_is_answered() {
    let decision = Rig::new().decide();
    for answer in &decision.answers {
        let expected = if answer.number == 3 {
            Depends
        } else {
            Unanswered
        };
        assert_eq!(answer.verdict, expected, "{}", answer.number);
        assert_eq!(answer.were_stand_ins_real, None);
        assert!(!answer.said.is_empty(), "{} says nothing", answer.number);
        assert!(!answer.would_change.is_empty(), "{}", answer.number);
    }
    let numbers: Vec<u8> = decision.answers.iter().map(|one| one.number).collect();
    assert_eq!(numbers, (1..=10).collect::<Vec<u8>>());
    assert!(decision.summary.own.is_empty());
}

/// The objective of the shipped file: with 50 callers TTFT p95 at most 2 s.
fn first(change: impl FnOnce(&mut Rig)) -> (Verdict, Option<Verdict>) {
    let mut rig = Rig::new()
        .run("one", 1)
        .arm(arm("one", "baseline", callers(50)));
    change(&mut rig);
    let answer = rig.answer(1);
    (answer.verdict, answer.were_stand_ins_real)
}

#[test]
fn an_objective_is_met_missed_or_met_by_fewer() {
    assert_eq!(first(|_| ()), (Yes, None));
    let slow = |rig: &mut Rig| rig.report.arms[0].ttft = row("TTFT", 200.0, 2001.0);
    assert_eq!(first(slow), (No, None));
    let by_fewer = |rig: &mut Rig| {
        slow(rig);
        rig.report.arms.push(arm("one", "baseline", callers(10)));
    };
    assert_eq!(first(by_fewer), (Depends, None));
    // Driven by fewer callers than the objective has, it is not known.
    let fewer = |rig: &mut Rig| rig.report.arms[0].drive = callers(10);
    assert_eq!(first(fewer), (Unanswered, None));
    let failing = |rig: &mut Rig| rig.report.arms[0].strata.outcomes[0].1 = 980;
    assert_eq!(first(failing), (No, None), "2 % failed");
    let unknown = |rig: &mut Rig| rig.report.arms[0].strata.unsent = None;
    assert_eq!(
        first(unknown),
        (Unanswered, None),
        "nobody knows how many were due"
    );
    let bound = |rig: &mut Rig| rig.report.arms[0].ttft.p95 = Reading::AtLeast(2.5e9);
    assert_eq!(first(bound), (No, None), "at least 2.5 s is more than 2 s");
    let bound = |rig: &mut Rig| rig.report.arms[0].ttft.p95 = Reading::AtLeast(1.5e9);
    assert_eq!(
        first(bound),
        (Unanswered, None),
        "at least 1.5 s may be more"
    );
}

#[test]
fn stand_ins_and_runs_that_are_not_valid_answer_nothing() {
    let stand_in = |rig: &mut Rig| rig.report.arms[0].simulated = true;
    assert_eq!(first(stand_in), (Unanswered, Some(Yes)));
    let beside = |rig: &mut Rig| {
        rig.report.arms[0].simulated = true;
        rig.report.arms[0].ttft = row("TTFT", 200.0, 9000.0);
        rig.report.arms.push(arm("one", "baseline", callers(50)));
    };
    assert_eq!(first(beside), (Yes, None), "the real thing counts alone");
    let invalid = |rig: &mut Rig| rig.report.runs[0] = run("one", 1, false);
    assert_eq!(first(invalid), (Unanswered, None));
    let unjudged = |rig: &mut Rig| rig.report.runs[0].verdict = None;
    assert_eq!(first(unjudged), (Unanswered, None));
}

/// 5 ms and one part in a hundred matter, by the shipped file.
fn gateways(difference: f64, interval: (f64, f64)) -> Verdict {
    let pair = ("a1", "a2");
    let one = contrast(
        "four",
        pair,
        "added TTFT",
        difference * MS,
        (interval.0 * MS, interval.1 * MS),
    );
    Rig::new().run("four", 4).contrast(one).answer(9).verdict
}

#[test]
fn gateways_differ_where_the_whole_interval_matters() {
    assert_eq!(gateways(-8.0, (-9.0, -6.0)), Yes);
    assert_eq!(gateways(8.0, (6.0, 9.0)), Yes);
    assert_eq!(
        gateways(-0.2, (-0.3, -0.1)),
        No,
        "clear, and too small to matter"
    );
    assert_eq!(gateways(-4.0, (-8.0, 0.0)), Unanswered, "it may matter");
}

#[test]
fn a_difference_beyond_capacity_alone_is_one_of_waiting() {
    let mut one = contrast(
        "four",
        ("a1", "a2"),
        "added TTFT",
        -90.0 * MS,
        (-99.0 * MS, -80.0 * MS),
    );
    one.saturated = true;
    assert_eq!(
        Rig::new().run("four", 4).contrast(one).answer(9).verdict,
        Depends
    );
}

#[test]
fn import_is_compared_where_the_objective_has_its_callers() {
    let import = |difference: f64| {
        let interval = ((difference - 1.0) * MS, (difference + 1.0) * MS);
        let one = contrast(
            "two",
            ("baseline-plus", "a2"),
            "TTFT",
            difference * MS,
            interval,
        );
        Rig::new().run("two", 2).contrast(one).answer(2).verdict
    };
    assert_eq!(import(50.0), Yes, "vLLM is slower");
    assert_eq!(import(-50.0), No);
    assert_eq!(import(0.0), Yes, "alike");
    let refused = report::Contrast {
        differences: Vec::new(),
        refused: Some("other work".to_owned()),
        ..contrast("two", ("baseline-plus", "a2"), "TTFT", 0.0, (0.0, 0.0))
    };
    let answer = Rig::new().run("two", 2).contrast(refused).answer(2);
    assert_eq!(answer.verdict, Unanswered);
    assert!(
        answer.said.iter().any(|text| text.contains("other work")),
        "{:?}",
        answer.said
    );
}

#[test]
fn a_burst_is_judged_by_the_wait_from_the_intended_send() {
    let phase = |name: &str, rate: f64| Drive::Profile {
        phases: vec![Phase {
            name: name.to_owned(),
            rate,
            to: rate,
            lasts: 300_000_000_000,
        }],
    };
    let burst = |during: f64| {
        let mut second = arm("nine", "baseline", phase("burst", 100.0));
        second.ttft_intended = row("TTFT from intended send", during, during * 2.0);
        let rig = Rig::new()
            .run("nine", 9)
            .arm(arm("nine", "baseline", phase("before", 10.0)));
        rig.arm(second).answer(7).verdict
    };
    assert_eq!(
        (burst(390.0), burst(410.0)),
        (Yes, No),
        "twice 200 ms is the bound"
    );
}

#[test]
fn tenants_hold_where_every_probe_does() {
    let tenant = |company: Company, ttft: f64| {
        let drive = Drive::Tenant {
            tenant: "t1".to_owned(),
            rate: 1.0,
            company,
        };
        let mut one = arm("six", "baseline", drive);
        (one.leaked, one.ttft) = (Some(0), row("TTFT", ttft, ttft));
        one
    };
    let rig = |flooded: f64| {
        let rig = Rig::new().run("six", 6).arm(tenant(Company::Alone, 200.0));
        rig.arm(tenant(Company::Flooded, flooded))
    };
    assert_eq!(rig(300.0).answer(8).verdict, Yes);
    assert_eq!(rig(500.0).answer(8).verdict, No);
    let mut leaking = rig(300.0);
    leaking.report.arms[0].leaked = Some(1);
    assert_eq!(leaking.answer(8).verdict, No, "one secret is one too many");
}

#[test]
fn stable_is_what_a_long_run_shows() {
    let rig = || {
        Rig::new()
            .run("eight", 8)
            .arm(arm("eight", "b2", callers(10)))
    };
    assert_eq!(
        rig().answer(10).verdict,
        Depends,
        "a short run shows no drift"
    );
    let drift = |s, p| Drift {
        run: "eight".to_owned(),
        chain: "b2".to_owned(),
        simulated: false,
        figure: "TTFT p50",
        phases: 9,
        of: 9,
        slope_per_hour: 1.0,
        s,
        p,
    };
    let with = |drift| {
        let mut rig = rig();
        rig.report.drifts.push(drift);
        rig.answer(10).verdict
    };
    assert_eq!(with(drift(10, 0.4)), Yes);
    assert_eq!(with(drift(36, 0.001)), No);
    assert_eq!(with(drift(-36, 0.001)), Yes, "it becomes faster");
    // A call that was due and not sent is one without an answer, of all that were due.
    let mut unsent = rig();
    unsent.objectives.stability.error_share = 0.5;
    unsent.report.arms[0].strata.unsent = Some(1000);
    assert_eq!(unsent.answer(10).verdict, Depends, "a half, and no more");
    unsent.report.arms[0].strata.unsent = Some(1001);
    assert_eq!(unsent.answer(10).verdict, No);
    let mut few = rig();
    few.report.arms[0].strata.sent = 999;
    assert_eq!(few.answer(10).verdict, Unanswered);
}

#[test]
fn a_break_even_answers_by_measured_capacity_alone() {
    // One machine of the plan at 50 calls a second is cheap beside tokens: the curves cross.
    let measured = Rig::new().serve(50.0, true).answer(4);
    assert_eq!(measured.verdict, Depends, "{:?}", measured.said);
    assert!(measured.evidence.iter().any(|one| one.text.contains("a1")));
    let expected = Rig::new().serve(50.0, false).answer(4);
    assert_eq!(expected.verdict, Unanswered);
}
