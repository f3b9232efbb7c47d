use super::*;
use record::client::CallOutcome;

/// A cell of forty calls that were due, of which `sent` were sent, one CPU second in one.
fn cell(sent: u64, generator_cpu: f64) -> Cell {
    let mut cell = Cell {
        counted: record::manifest::Counted {
            seconds: 3.0,
            driven: Some(1.0),
            answered: sent,
            e2e_p50: None,
        },
        ..blank()
    };
    (cell.scheduled, cell.sent) = (Some(40), sent);
    cell.generator_cpu = Some(generator_cpu);
    cell
}

fn blank() -> Cell {
    let text = r#"{"id": 0, "chain": "c", "drive": {"kind": "open", "rate": 40.0, "share": null}, "block": 0, "from": 0, "to": 1000000000, "scheduled": null, "sent": 0}"#;
    serde_json::from_str(text).unwrap()
}

fn call(cell: u32, outcome: CallOutcome) -> ClientCall {
    ClientCall {
        outcome,
        ..ClientCall::unanswered(cell, 0, 0, 0)
    }
}

/// Names of the checks that fail.
fn broken(cell: Cell, calls: &[ClientCall]) -> Vec<String> {
    let none = HashSet::new();
    let evidence = Evidence {
        limits: &VerdictLimits::default(),
        cells: &[cell],
        taps: &[],
        tapped: false,
        calibration: None,
        legged: &none,
        gateways: &none,
        cpus: 1,
        stopped: false,
        late: None,
    };
    let found = verdict(&evidence, calls.iter().cloned(), std::iter::empty());
    found.broken().map(|check| check.name.clone()).collect()
}

#[test]
fn calls_that_were_due_and_not_sent_make_a_run_invalid() {
    let answered = [call(0, CallOutcome::Complete)];
    let has = |sent| broken(cell(sent, 0.1), &answered).contains(&"sent-share".to_owned());
    assert!(!has(40) && has(39));
}

#[test]
fn a_generator_at_its_limit_makes_a_run_invalid() {
    let answered = [call(0, CallOutcome::Complete)];
    let has = |cpu| broken(cell(40, cpu), &answered).contains(&"generator-cpu".to_owned());
    assert!(!has(0.79) && has(0.81));
}

#[test]
fn a_late_generator_makes_a_run_invalid_whatever_the_answers_were() {
    let late = ClientCall {
        started: 1_500_000,
        ..call(0, CallOutcome::Complete)
    };
    let has = |calls: &[ClientCall]| {
        broken(cell(40, 0.1), calls).contains(&"schedule-lag-p99".to_owned())
    };
    assert!(has(&[late]) && !has(&[call(0, CallOutcome::Complete)]));
}

#[test]
fn one_late_cell_is_not_made_good_by_many_punctual_ones() {
    let cell_of = |id: u32, lag: u64| ClientCall {
        started: lag,
        ..call(id, CallOutcome::Complete)
    };
    let punctual = (1..20).flat_map(|id| (0..100).map(move |_| cell_of(id, 0)));
    let late = (0..100).map(|_| cell_of(0, 1_500_000));
    let calls: Vec<ClientCall> = late.chain(punctual).collect();
    assert!(broken(cell(40, 0.1), &calls).contains(&"schedule-lag-p99".to_owned()));
}

#[test]
fn a_cell_without_one_full_answer_makes_a_run_invalid() {
    let has = |calls: &[ClientCall]| {
        broken(cell(40, 0.1), calls).contains(&"cells-without-answer".to_owned())
    };
    let refused = call(0, CallOutcome::Status);
    assert!(has(std::slice::from_ref(&refused)));
    assert!(!has(&[refused, call(0, CallOutcome::Complete)]));
    assert!(has(&[call(1, CallOutcome::Complete)]));
}

#[test]
fn faces_of_another_class_than_the_calibrated_one_are_told() {
    let faces = |counts: &[(&'static str, u64)]| counts.iter().copied().collect();
    assert_eq!(uncalibrated(&faces(&[("socket", 2)]), "socket").0, 0.0);
    let all = faces(&[("h2", 2), ("socket", 1), ("tls", 1)]);
    let (share, detail) = uncalibrated(&all, "socket");
    assert!(
        (share - 0.75).abs() < 1e-9 && detail.contains("h2, tls"),
        "{detail}"
    );
}
