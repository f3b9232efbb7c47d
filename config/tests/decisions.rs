//! The files behind a decision: what is stated without a measurement, the thresholds, the workload.

use config::facts::FactRow;
use config::{Facts, Form, Objectives, Workload, from_text};

const CONFIGURATIONS: [&str; 6] = ["baseline", "baseline-plus", "a1", "a2", "b1", "b2"];

fn refusal<F: Form>(text: &str) -> String {
    match from_text::<F>("x.yaml", text) {
        Ok(_) => "accepted".to_owned(),
        Err(e) => e.to_string(),
    }
}

#[test]
fn each_stated_row_of_the_metrics_table_says_one_thing_of_each_configuration() {
    let facts = Facts::shipped().unwrap().into_inner();
    for row in [
        FactRow::TenantIsolation,
        FactRow::BuildTime,
        FactRow::Skills,
    ] {
        for one in CONFIGURATIONS {
            let said = facts.table.iter().filter(|fact| {
                fact.row == Some(row) && (fact.of.is_empty() || fact.of.iter().any(|of| of == one))
            });
            assert_eq!(said.count(), 1, "{row:?} of {one}");
        }
    }
    let claims = facts.table.iter();
    let claims = claims.filter(|fact| fact.row == Some(FactRow::ClaimedOverhead));
    let of: Vec<&String> = claims.flat_map(|fact| &fact.of).collect();
    assert_eq!(
        of,
        ["a1", "b1", "a2", "b2"],
        "both gateways claim something"
    );
    assert!(!facts.import_limits.is_empty() && !facts.migration.is_empty());
}

#[test]
fn a_statement_in_the_wrong_place_or_half_translated_is_refused_by_its_place() {
    let text = r#"
table: []
import_limits:
  - id: one
    row: skills
    of: [a3]
    topic: {en: t, ko: t, zh: t}
    text: {en: t, ko: "  ", zh: t}
    source: s
    date: 2026-01-01
    basis: assumed
gateways: []
agent_runtimes: []
observability: []
migration: []
"#;
    let said = refusal::<Facts>(text);
    for part in [
        "x.yaml:",
        "`a3` is no configuration",
        "`row` stands in `table`",
        "it is empty",
    ] {
        assert!(said.contains(part), "{part:?} is missing in:\n{said}");
    }
}

#[test]
fn thresholds_and_workloads_out_of_their_bounds_are_refused() {
    Objectives::shipped().unwrap();
    let shipped = include_str!("../objectives.yaml");
    let wrong = shipped.replace("share: 0.01}", "share: 1.5}");
    assert_ne!(wrong, shipped);
    let said = refusal::<Objectives>(&wrong);
    assert!(said.contains("share") && said.contains("1.5"), "{said}");
    let said = refusal::<Workload>("rate: 1\nrepeated_prompt_share: 0\ntenant_governance: true\n");
    assert!(said.contains("there is one tenant"), "{said}");
    let said = refusal::<Workload>("rate: 0\nrepeated_prompt_share: 0\n");
    assert!(said.contains("rate"), "{said}");
}
