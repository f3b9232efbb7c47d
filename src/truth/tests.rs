use super::*;
use crate::testbed::{call, gateway_truth};

#[test]
fn the_median_of_none_is_none() {
    assert_eq!(median(vec![]), None);
    assert_eq!(median(vec![3, 1, 2]), Some(2.0));
    assert_eq!(median(vec![1, 2, 3, 10]), Some(2.5));
}

#[test]
fn a_residual_is_its_two_hops() {
    let (call, truth) = (call("a", "0-0"), gateway_truth("a"));
    let legs = call.legs().unwrap();
    let found: HashMap<_, _> = legs_of(&truth, &call, &legs).into_iter().collect();
    // Outer wrote at 1 005, the stand-in read at 1 045 and wrote at 2 050, inner read at 2 080.
    let request = found["request"];
    assert_eq!((request.truth, request.measured), (1_005, 1_075));
    assert_eq!((request.inward, request.outward()), (40, 30));
    let tokens = tokens_of(&truth, &call, &legs).unwrap();
    assert_eq!(tokens.len(), 2);
    assert!(
        tokens
            .iter()
            .all(|t| t.truth == 1_000 && t.residual() == 75)
    );
}

#[test]
fn text_that_ends_elsewhere_is_not_joined() {
    let (call, mut truth) = (call("a", "0-0"), gateway_truth("a"));
    let legs = call.legs().unwrap();
    truth.tokens[1].end_text_offset += 1;
    assert_eq!(tokens_of(&truth, &call, &legs), None);
    let found = legs_of(&truth, &call, &legs);
    assert!(found.iter().all(|(leg, _)| !leg.contains("token")));
    assert!(found.iter().any(|(leg, _)| *leg == "request"));
}

#[test]
fn calls_are_compared_with_their_own_truth_only() {
    let calls = [call("a", "0-0"), call("b", "0-1")];
    let rows = compare(&calls, &[gateway_truth("a")]);
    assert!(!rows.is_empty() && rows.iter().all(|r| r.samples == 1));
}
