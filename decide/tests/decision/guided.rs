//! The guide: from a workload to a configuration.

use decide::{Guide, Turn};

use crate::rig::{MS, Rig, contrast};

fn guide(rig: &Rig) -> Guide {
    rig.decide().guide
}

fn reached(rig: &Rig) -> Option<String> {
    guide(rig).reached
}

#[test]
fn without_a_workload_no_path_is_walked() {
    let guide = guide(&Rig::new());
    assert_eq!((guide.workload, guide.reached), (None, None));
    assert!(guide.steps.iter().all(|step| step.turn.is_none()));
}

#[test]
fn a_path_ends_at_the_first_thing_that_nobody_knows() {
    let rig = Rig::new().workload(|workload| workload.data_sovereignty = true);
    let guide = guide(&rig);
    assert_eq!(guide.reached, None);
    let last = guide
        .steps
        .iter()
        .rfind(|step| step.turn.is_some())
        .unwrap();
    assert_eq!((last.id, last.turn), ("gateway", Some(Turn::Unknown)));
    assert!(
        guide.said.contains("hopscope load --scenario 4"),
        "{}",
        guide.said
    );
}

#[test]
fn each_reason_to_build_leads_to_a_stack() {
    type Change = fn(&mut config::Workload);
    let reasons: [(Change, &str); 4] = [
        (|w| w.data_sovereignty = true, "a1"),
        (|w| w.engine_control = true, "a1"),
        (|w| w.newest_models = true, "a1"),
        (|w| (w.tenants, w.tenant_governance) = (5, true), "a2"),
    ];
    for (change, expected) in reasons {
        // The gateways are alike: LiteLLM does.
        let alike = contrast("four", ("a1", "a2"), "added TTFT", 0.0, (-MS, MS));
        let rig = Rig::new().run("four", 4).contrast(alike).workload(change);
        assert_eq!(reached(&rig).as_deref(), Some(expected));
    }
}

#[test]
fn repeated_prompts_lead_to_llm_d_where_it_was_measured_to_be_faster() {
    let rig = |difference: f64, share: f64| {
        let interval = ((difference - 1.0) * MS, (difference + 1.0) * MS);
        let routing = contrast("three", ("a2", "b2"), "TTFT", difference * MS, interval);
        let faster = contrast(
            "four",
            ("a1", "a2"),
            "added TTFT",
            -20.0 * MS,
            (-21.0 * MS, -19.0 * MS),
        );
        let rig = Rig::new().run("three", 3).run("four", 4);
        rig.contrast(routing).contrast(faster).workload(|workload| {
            workload.engine_control = true;
            workload.repeated_prompt_share = share;
        })
    };
    assert_eq!(reached(&rig(-80.0, 0.7)).as_deref(), Some("b2"));
    assert_eq!(reached(&rig(-80.0, 0.1)).as_deref(), Some("a2"));
    assert_eq!(
        reached(&rig(0.0, 0.7)).as_deref(),
        Some("a2"),
        "llm-d changes nothing"
    );
    let mut simulated = rig(-80.0, 0.7);
    simulated.report.contrasts[0].simulated = true;
    let guide = guide(&simulated);
    assert!(guide.provisional && guide.said.contains("Provisional"));
    let marked: Vec<&str> = guide
        .steps
        .iter()
        .filter(|step| step.provisional)
        .map(|step| step.id)
        .collect();
    assert_eq!(marked, ["routing"]);
    assert_eq!(guide.reached.as_deref(), Some("b2"));
}

#[test]
fn cost_decides_by_intervals() {
    let at = |rate: f64| {
        Rig::new()
            .serve(50.0, true)
            .workload(move |workload| workload.rate = rate)
    };
    // Far below the break-even point tokens are cheaper, far above machines are.
    let low = guide(&at(0.001));
    assert_eq!(low.reached.as_deref(), Some("baseline"), "{}", low.said);
    let high = guide(&at(20.0));
    let cost = high.steps.iter().find(|step| step.id == "cost").unwrap();
    assert_eq!(cost.turn, Some(Turn::Yes), "{:?}", cost.why);
    assert!(!high.provisional);
    let expected = guide(
        &Rig::new()
            .serve(50.0, false)
            .workload(|workload| workload.rate = 20.0),
    );
    assert!(expected.provisional, "the plan expects it");
}
