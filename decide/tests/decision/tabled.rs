//! The metrics table.

use cost::Configuration::{self, A1, A2, B1, B2, Baseline, BaselinePlus};
use decide::Cell;

use crate::rig::{MS, Rig, arm, callers, cell, row, run};

#[test]
fn what_is_not_applicable_is_what_the_plan_says_is_not() {
    let decision = Rig::new().decide();
    let own: &[Configuration] = &[A1, A2, B1, B2];
    for row in &decision.table {
        let applies: &[Configuration] = match row.id.as_str() {
            "added-p50" | "added-p95" | "added-p99" | "gateway-memory" | "gateway-cpu" | "idle" => {
                own
            }
            "prompt-cache" => &[Baseline, BaselinePlus],
            "semantic-cache" => &[A2, B2],
            "kv-cache" => &[B1, B2],
            _ => &Configuration::ALL,
        };
        for of in Configuration::ALL {
            let not = matches!(cell(&decision, &row.id, of), Cell::NotApplicable);
            assert_eq!(not, !applies.contains(&of), "{} of {of}", row.id);
        }
    }
    let mut categories: Vec<&str> = decision
        .table
        .iter()
        .map(|row| row.category.as_str())
        .collect();
    categories.dedup();
    assert_eq!(
        categories,
        [
            "Performance",
            "Gateway",
            "Cache",
            "Cost",
            "Governance",
            "Operations"
        ]
    );
}

#[test]
fn what_was_not_measured_names_the_command_that_would() {
    let decision = Rig::new().decide();
    let mut commands = 0;
    for row in &decision.table {
        for cell in &row.cells {
            match cell {
                Cell::NotMeasured { command } => {
                    assert!(
                        command.starts_with("hopscope load --scenario "),
                        "{command}"
                    );
                    commands += 1;
                }
                Cell::Value(figure) => assert_eq!(row.category, "Cost", "{figure:?}"),
                Cell::NotApplicable | Cell::Withheld { .. } | Cell::Stated { .. } => {}
            }
        }
    }
    assert!(commands > 60, "{commands}");
}

#[test]
fn a_cell_shows_the_arm_that_can_be_trusted_most() {
    let slow = |run: &str, simulated| {
        let mut one = arm(run, "a1", callers(50));
        (one.ttft, one.simulated) = (row("TTFT", 900.0, 900.0), simulated);
        one
    };
    let mut rig = Rig::new().run("valid", 2);
    rig.report.runs.push(run("broken", 2, false));
    let rig = rig
        .arm(slow("broken", false))
        .arm(slow("valid", true))
        .arm(arm("valid", "a1", callers(50)));
    let decision = rig.decide();
    let Cell::Value(figure) = cell(&decision, "ttft-p50", A1) else {
        unreachable!("no value");
    };
    assert_eq!(figure.value, 200.0 * MS);
    assert_eq!(
        (figure.simulated, figure.valid, figure.samples),
        (false, true, Some(1000))
    );
    let near = |end: Option<f64>, ms: f64| (end.unwrap() - ms * MS).abs() < 1.0;
    assert!(near(figure.low, 180.0) && near(figure.high, 220.0));
    assert_eq!(figure.run.as_deref(), Some("valid"));
}

#[test]
fn an_arm_without_a_call_is_no_figure_of_zero() {
    let mut none = arm("two", "a1", callers(50));
    (none.strata.sent, none.rate) = (0, Some(0.0));
    let decision = Rig::new().run("two", 2).arm(none).decide();
    let found = cell(&decision, "throughput", A1);
    assert!(matches!(found, Cell::NotMeasured { .. }), "{found:?}");
}

#[test]
fn a_cache_is_judged_where_prompts_repeat() {
    let cached = |run: &str, share| {
        let mut one = arm(run, "baseline", callers(50));
        (one.cached_share, one.cached_stated) = (Some(share), 1000);
        one
    };
    let rig = Rig::new().run("one", 1).arm(cached("one", 0.0));
    let found = rig.decide();
    assert!(matches!(
        cell(&found, "prompt-cache", Baseline),
        Cell::NotMeasured { .. }
    ));
    let decision = rig.run("three", 3).arm(cached("three", 0.8)).decide();
    let Cell::Value(figure) = cell(&decision, "prompt-cache", Baseline) else {
        unreachable!("no value");
    };
    assert_eq!(figure.value, 0.8);
}

#[test]
fn a_figure_that_was_refused_says_why_and_is_no_number() {
    let mut one = arm("two", "a1", callers(50));
    one.ttft.p99 = report::Reading::Refused("too few".to_owned());
    let decision = Rig::new().run("two", 2).arm(one).decide();
    let found = cell(&decision, "ttft-p99", A1);
    assert!(
        matches!(found, Cell::Withheld { why, .. } if why == "too few"),
        "{found:?}"
    );
}
