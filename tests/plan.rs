//! `hopscope plan` as a process: what it finds, its exit code, and what it says of files that are wrong.

#![expect(clippy::unwrap_used, reason = "a test fails loudly")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn config(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("config")
        .join(file)
}

fn plan(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hopscope"))
        .args(["plan", "--today", "2026-12-04"])
        .args(args)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap()
}

fn json(args: &[&str]) -> (Option<i32>, Value) {
    let output = plan(&[args, &["--json"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    let value = serde_json::from_slice(&output.stdout);
    (
        output.status.code(),
        value.unwrap_or_else(|error| unreachable!("{error}: {errors}")),
    )
}

fn ids(judged: &Value, severity: &str) -> Vec<String> {
    let found = judged["findings"].as_array().unwrap().iter();
    let of = found.filter(|one| one["severity"] == severity);
    of.map(|one| one["id"].as_str().unwrap().to_owned())
        .collect()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn the_shipped_defaults_come_out_with_their_four_problems() {
    let output = plan(&[]);
    assert_eq!(output.status.code(), Some(2));
    let text = said(&output);
    for told in [
        "error [fit] config/plan.yaml:13:16: llama-3.1-70b in awq-int4 does not fit 1 GPU",
        "error [replicas] config/plan.yaml:11:10: 4 × g5.2xlarge hold one replica",
        "a router has nothing to choose",
        "error [offered] config/plan.yaml:6:12: the default model `claude-3-5-sonnet` is no longer offered",
        "warning [stated]",
        "the plan states $4,800 a month for 4 × g5.2xlarge on-demand, and the price table gives $3,539: 36 % more",
    ] {
        assert!(text.contains(told), "{text}\nexpected: {told}");
    }
    // Errors before warnings before notes.
    let at = |word: &str| text.find(&format!("\n{word} [")).unwrap();
    assert!(
        at("error") < at("warning") && at("warning") < at("note"),
        "{text}"
    );
}

#[test]
fn a_sound_plan_has_nothing_to_be_found_and_a_prediction() {
    let sound = config("plan-sound.yaml");
    let output = plan(&["--plan", sound.to_str().unwrap()]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("nothing found"), "{text}");
    assert!(
        text.contains("expected by the plan, not measured"),
        "{text}"
    );
    assert!(text.contains("baseline-plus: at least"), "{text}");
    let (_, judged) = json(&["--plan", sound.to_str().unwrap()]);
    assert_eq!(judged["findings"], Value::Array(Vec::new()));
    let bills = judged["study"]["bills"].as_array().unwrap();
    assert_eq!(bills.len(), 6 * 6);
    assert!(
        bills
            .iter()
            .all(|bill| bill["total"]["value"].as_f64().unwrap() > 0.0)
    );
    assert!(judged["campaign"]["days"].as_f64().unwrap() > 1.0);
}

/// What does not fit has no bill, nor has what a quota does not let through; nothing stands in its place.
#[test]
fn bills_without_a_capacity_are_not_told() {
    let (code, judged) = json(&[]);
    assert_eq!(code, Some(2));
    for bill in judged["study"]["bills"].as_array().unwrap() {
        let of = bill["configuration"].as_str().unwrap();
        assert_eq!(bill["total"].is_null(), of != "baseline-plus", "{bill}");
        let gaps = bill["gaps"].to_string();
        // 50 calls a minute are fewer than any of the rates.
        assert_eq!(gaps.contains("throttled"), of == "baseline", "{bill}");
    }
    let sound = config("plan-sound.yaml");
    let (_, judged) = json(&[
        "--plan",
        sound.to_str().unwrap(),
        "--set",
        "models.self_hosted.geometry=llama-3.1-70b",
    ]);
    assert_eq!(judged["capacities"], serde_json::json!({}));
    assert!(
        judged["expected_gap"]
            .as_str()
            .unwrap()
            .contains("does not fit")
    );
}

/// What four machines were expected to serve is not what eight serve, nor what they serve of longer calls.
#[test]
fn an_expectation_holds_only_for_what_it_was_stated_for() {
    let sound = config("plan-sound.yaml");
    let with = |set: &str| json(&["--plan", sound.to_str().unwrap(), "--set", set]).1;
    for set in [
        "hardware.count=8",
        "traffic.output_tokens=200",
        "models.self_hosted.kv_cache=fp8",
    ] {
        let judged = with(set);
        assert_eq!(judged["capacities"], serde_json::json!({}), "{set}");
        assert!(
            judged["expected_gap"].as_str().unwrap().contains("--set"),
            "{set}"
        );
    }
    let judged = with("hardware.purchase=spot");
    assert_eq!(judged["capacities"].as_object().unwrap().len(), 4);
    assert!(judged["expected_gap"].is_null());
}

/// One copy at every rate is a lower bound: nobody may read from it where it is cheaper.
#[test]
fn an_import_of_unknown_capacity_is_never_called_cheaper() {
    let sound = config("plan-sound.yaml");
    let plus = |text: &str| {
        text.lines()
            .filter(|line| line.contains("cheaper") && line.contains("baseline-plus"))
            .count()
    };
    let open = said(&plan(&["--plan", sound.to_str().unwrap()]));
    assert_eq!(plus(&open), 0, "{open}");
    assert!(open.contains("a1 is cheaper than baseline"), "{open}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("known.yaml");
    let text = std::fs::read_to_string(&sound).unwrap();
    let known = text.replace(
        "expected:\n",
        "expected:\n  baseline-plus: {rate: 1, low: 0.5, high: 2, source: a test}\n",
    );
    std::fs::write(&path, known).unwrap();
    let told = said(&plan(&["--plan", path.to_str().unwrap()]));
    assert!(plus(&told) > 0 && !told.contains("≥"), "{told}");
}

#[test]
fn what_if_answers_for_one_run() {
    let (_, judged) = json(&[
        "--set",
        "hardware.parallelism.pipeline=4",
        "--set",
        "models.default=claude-sonnet-4-5",
    ]);
    let errors = ids(&judged, "error");
    assert!(errors.contains(&"replicas".to_owned()), "{errors:?}");
    assert!(
        !errors.contains(&"fit".to_owned()) && !errors.contains(&"offered".to_owned()),
        "{errors:?}"
    );
    // 4 × 1.6438 × 730 = 4,800: the plan's figure holds at this price.
    let (_, judged) = json(&["--set", "ec2.g5.2xlarge.on-demand=1.6438"]);
    assert!(!ids(&judged, "warning").contains(&"stated".to_owned()));
    assert!(ids(&judged, "note").contains(&"price-assumed".to_owned()));
    let output = plan(&["--set", "hardware.parallelism.pipelines=4"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        errors.contains("--set hardware.parallelism.pipelines=4")
            && errors.contains("hardware.parallelism.pipeline"),
        "{errors}"
    );
}

#[test]
fn warnings_alone_are_exit_code_one() {
    let sound = config("plan-sound.yaml");
    let (code, judged) = json(&[
        "--plan",
        sound.to_str().unwrap(),
        "--set",
        "stated.gpu_month_usd=9999",
    ]);
    assert_eq!(code, Some(1), "{:#}", judged["findings"]);
    assert_eq!(ids(&judged, "warning"), ["stated"]);
}

#[test]
fn a_file_that_is_wrong_is_refused_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.yaml");
    let good = std::fs::read_to_string(config("plan-sound.yaml")).unwrap();
    std::fs::write(&path, good.replace("count: 4", "count: none")).unwrap();
    let output = plan(&["--plan", path.to_str().unwrap()]);
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        errors.contains("mine.yaml:11:10: `hardware.count` is a text"),
        "{errors}"
    );
    let output = Command::new(env!("CARGO_BIN_EXE_hopscope"))
        .args(["plan", "--today", "2026-02-30"])
        .output()
        .unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("`2026-02-30` is no day"), "{errors}");
}

/// Away from the repository the program's own tables answer, and what needs its files is named.
#[test]
fn the_program_answers_away_from_its_repository() {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_hopscope"))
        .args(["plan", "--today", "2026-12-04"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let text = said(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(
        text.contains("[replicas]") && text.contains("not estimated: config/matrix.yaml"),
        "{text}"
    );
}
