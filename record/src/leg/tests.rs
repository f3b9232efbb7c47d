use super::*;
use crate::exchange::Position;
use crate::sample::{exchange, passage};
use crate::stamp::Departure;

fn outer(tokens: &[(u64, &str)]) -> Exchange {
    exchange(1, Position::Outer, "a", 1_000, tokens)
}

fn inner(tokens: &[(u64, &str)]) -> Exchange {
    exchange(2, Position::Inner, "a", 1_100, tokens)
}

#[test]
fn each_leg_runs_from_write_begin_to_read() {
    let o = outer(&[(5_000, "He"), (6_000, "llo")]);
    let i = inner(&[(4_000, "He"), (5_500, "llo")]);
    let legs = legs(&o, &[&i], 0).unwrap();
    // Outer wrote from 1005, inner read at 1100.
    assert_eq!(legs.request.unwrap().value, 95);
    // Inner wrote "He" from 4005, outer read it at 5000.
    assert_eq!(legs.first_token.unwrap().value, 995);
    assert_eq!(
        legs.tokens
            .delays
            .iter()
            .map(|s| s.value)
            .collect::<Vec<_>>(),
        [495]
    );
    assert_eq!(legs.last_token.unwrap().value, 495);
    assert_eq!(legs.added_ttft.unwrap().value, 95 + 995);
    assert_eq!(legs.added_text.unwrap().value, 95 + 495);
    assert_eq!(legs.recovery, None);
    assert_eq!(legs.text, TextAgreement::Same);
    assert_eq!(identity_error(&o, &i, &legs), Some(0));
}

#[test]
fn a_position_counts_where_the_outer_text_reaches_it_however_it_was_cut() {
    // The gateway merges three events into one, and splits the last in two.
    let i = inner(&[(2_000, "ab"), (3_000, "cd"), (4_000, "ef"), (5_000, "gh")]);
    let o = outer(&[(4_100, "abcdef"), (5_100, "g"), (5_200, "h")]);
    let legs = legs(&o, &[&i], 0).unwrap();
    assert_eq!(legs.first_token.unwrap().value, 4_100 - 2_005);
    let delays: Vec<i64> = legs.tokens.delays.iter().map(|s| s.value).collect();
    assert_eq!(delays, [4_100 - 3_005, 4_100 - 4_005, 5_200 - 5_005]);
    assert_eq!(legs.merge_ratio, Some(4.0 / 3.0));
}

#[test]
fn a_delay_on_every_token_is_a_distribution_and_not_a_sum() {
    let texts: Vec<(u64, &str)> = (0..1_000)
        .map(|n| (10_000_000 + n * 20_000_000, "x"))
        .collect();
    let late: Vec<(u64, &str)> = texts.iter().map(|(at, t)| (at + 1_000_005, *t)).collect();
    let legs = legs(&outer(&late), &[&inner(&texts)], 0).unwrap();
    assert!(legs.tokens.delays.iter().all(|s| s.value == 1_000_000));
    assert_eq!(legs.tokens.delays.len(), 999);
    assert_eq!(
        legs.added_text.unwrap().value,
        95 + 1_000_000,
        "1 ms, not 1 s"
    );
}

#[test]
fn changed_text_has_no_token_legs() {
    let legs = legs(&outer(&[(5_000, "HE")]), &[&inner(&[(4_000, "He")])], 0).unwrap();
    assert_eq!(legs.text, TextAgreement::Differs);
    assert_eq!((legs.first_token, legs.added_ttft), (None, None));
    assert!(legs.request.is_some(), "the request leg needs no text");
}

#[test]
fn negative_legs_are_kept() {
    let legs = legs(&outer(&[(3_000, "He")]), &[&inner(&[(4_000, "He")])], 0).unwrap();
    assert_eq!(legs.first_token.unwrap().value, -1_005);
}

#[test]
fn what_a_slow_client_held_back_is_counted_and_left_out() {
    let i = inner(&[(2_000, "a"), (3_000, "b"), (9_000_000, "c")]);
    let mut o = outer(&[]);
    for (at, text, blocked) in [
        (2_100, "a", false),
        (3_100, "b", true),
        (9_000_100, "c", false),
    ] {
        let mut p = passage(at);
        let end = if blocked { at + 5_000_000 } else { at + 9 };
        p.departure = Some(Departure {
            begin: at + 5,
            end,
            blocked,
        });
        o.stream.timeline.read(&p);
        o.stream.timeline.text(0, wire::Field::Content, 0, text);
    }
    let legs = legs(&o, &[&i], 0).unwrap();
    assert_eq!(
        legs.tokens.pressured, 1,
        "what came behind the blocked write"
    );
    assert_eq!(legs.tokens.delays.len(), 1);
    assert_eq!(
        legs.last_token, None,
        "no headline from a position under pressure"
    );
    assert_eq!(legs.added_text, None);
}

#[test]
fn a_write_that_was_long_without_being_blocked_is_no_pressure() {
    let slow = Departure {
        begin: 0,
        end: 9_000_000,
        blocked: false,
    };
    assert_eq!(slow.blocked_for(), 0);
}

#[test]
fn with_two_attempts_the_wait_between_them_is_recovery() {
    let o = outer(&[(9_000, "x")]);
    let first = exchange(2, Position::Inner, "a", 1_100, &[]);
    let second = exchange(3, Position::Inner, "a", 5_000, &[(8_000, "x")]);
    let legs = legs(&o, &[&first, &second], 1).unwrap();
    assert_eq!(legs.request.unwrap().value, 95, "to the first attempt");
    assert_eq!(legs.recovery.unwrap().value, 3_900);
    assert_eq!(legs.added_ttft.unwrap().value, 95 + 3_900 + (9_000 - 8_005));
    // Outer 1005 … 9010; attempts 1100 … 1115 and 5000 … 8015.
    assert_eq!(legs.outside_attempts, Some((9_010 - 1_005) - 15 - 3_015));
}

#[test]
fn text_that_never_came_out_is_counted() {
    let legs = legs(
        &outer(&[(5_000, "a")]),
        &[&inner(&[(4_000, "a"), (4_500, "b")])],
        0,
    )
    .unwrap();
    assert_eq!(legs.tokens.unmatched, 1);
    assert_eq!(legs.last_token, None);
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However a gateway cuts the text anew, each inner position finds the first outer event
        /// that reaches it, and the identity of the method holds.
        #[test]
        fn any_recut_pairs_every_position(
            pieces in prop::collection::vec("[a-zé]{1,4}", 1..40),
            cuts in prop::collection::vec(1_usize..5, 1..40),
        ) {
            let inner_texts: Vec<(u64, &str)> =
                pieces.iter().enumerate().map(|(n, p)| (2_000 + 1_000 * n as u64, p.as_str())).collect();
            let all: Vec<char> = pieces.concat().chars().collect();
            let mut outer_texts: Vec<(u64, String)> = Vec::new();
            let mut rest = all.as_slice();
            for (n, cut) in cuts.iter().cycle().enumerate() {
                if rest.is_empty() { break; }
                let take = (*cut).min(rest.len());
                outer_texts.push((200_000 + 1_000 * n as u64, rest[..take].iter().collect()));
                rest = &rest[take..];
            }
            let outer_refs: Vec<(u64, &str)> = outer_texts.iter().map(|(at, t)| (*at, t.as_str())).collect();
            let (o, i) = (outer(&outer_refs), inner(&inner_texts));
            let found = legs(&o, &[&i], 0).unwrap();
            prop_assert_eq!(found.text, TextAgreement::Same);
            prop_assert_eq!(found.tokens.unmatched, 0);
            prop_assert_eq!(found.tokens.delays.len(), pieces.len() - 1);
            prop_assert_eq!(identity_error(&o, &i, &found), Some(0));
            let mut end = 0;
            for (n, (left, piece)) in inner_texts.iter().enumerate() {
                end += piece.len();
                let mut reach = 0;
                let came = outer_refs.iter().find(|(_, t)| { reach += t.len(); reach >= end }).unwrap().0;
                let span = if n == 0 { found.first_token.unwrap() } else { found.tokens.delays[n - 1] };
                prop_assert_eq!(span.value, came as i64 - (*left as i64 + 5));
            }
        }
    }
}
