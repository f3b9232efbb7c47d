use super::*;
use crate::sample::exchange;

const TEXT: &[(u64, &str)] = &[(5_000, "x")];

fn outer(call: &str) -> Exchange {
    exchange(1, Position::Outer, call, 1_000, TEXT)
}

fn inner(id: u64, call: &str) -> Exchange {
    exchange(id, Position::Inner, call, 1_100, &[(4_000, "x")])
}

fn pair(all: impl IntoIterator<Item = Exchange>) -> (Vec<Call>, PairingCounts) {
    let mut pairer = Pairer::default();
    for exchange in all {
        pairer.offer(exchange);
    }
    (pairer.finish(), pairer.counts())
}

#[test]
fn the_header_pairs_and_the_echo_confirms() {
    let mut o = outer("a");
    o.keys.echoed = Some(7);
    let (calls, counts) = pair([inner(7, "a"), o]);
    assert_eq!(
        (calls[0].class, calls[0].confirmed),
        (CallClass::Served, Confirmed::Echo)
    );
    assert_eq!(calls[0].matched, Some(MatchedBy::Header));
    assert_eq!(counts.rate(), Some(1.0));
    assert!(calls[0].legs().is_some());
}

#[test]
fn an_echo_of_another_exchange_drops_the_pair() {
    let mut o = outer("a");
    o.keys.echoed = Some(99);
    let (calls, counts) = pair([inner(7, "a"), o]);
    assert_eq!(calls[0].class, CallClass::Conflict);
    assert!(calls[0].legs().is_none());
    assert_eq!((counts.conflicts, counts.rate()), (1, Some(0.0)));
}

#[test]
fn attempts_are_in_order_and_the_one_that_served_is_known() {
    let mut first = inner(7, "a");
    first.outcome = Outcome::Failed;
    first.stream.response_id = None;
    let mut second = inner(8, "a");
    second.marks.begin.at = 2_000;
    let (calls, _) = pair([second, first, outer("a")]);
    assert_eq!(calls[0].class, CallClass::Recovered);
    assert_eq!(
        calls[0].attempts.iter().map(|e| e.id).collect::<Vec<_>>(),
        [7, 8]
    );
    assert_eq!(calls[0].serving, Some(1));
}

#[test]
fn a_cache_hit_needs_evidence() {
    let (calls, counts) = pair([outer("a")]);
    assert_eq!(calls[0].class, CallClass::Unexplained);
    assert_eq!(counts.rate(), Some(0.0));

    let mut claimed = outer("a");
    claimed.claims.cache_hit = true;
    let (calls, counts) = pair([claimed]);
    assert_eq!(calls[0].class, CallClass::CacheHit);
    assert_eq!(
        counts.rate(),
        None,
        "a cache hit has no counterpart to expect"
    );

    // The same response id once more, later, and without an inner exchange.
    let mut again = outer("b");
    again.stream.response_id = Some("chatcmpl-a".to_owned());
    again.marks.closed += 1_000;
    let (calls, _) = pair([inner(7, "a"), outer("a"), again]);
    assert_eq!(
        calls.iter().map(|c| c.class).collect::<Vec<_>>(),
        [CallClass::Served, CallClass::CacheHit]
    );
}

#[test]
fn what_was_not_answered_in_full_is_no_pairing_fault() {
    for (outcome, class) in [
        (Outcome::Refused, CallClass::Refused),
        (Outcome::Aborted, CallClass::Aborted),
        (Outcome::Failed, CallClass::Failed),
        (Outcome::Truncated, CallClass::Failed),
    ] {
        let mut o = outer("a");
        o.outcome = outcome;
        let (calls, counts) = pair([o]);
        assert_eq!((calls[0].class, counts.rate()), (class, None));
    }
}

#[test]
fn a_fingerprint_pairs_only_where_one_call_can_be_meant() {
    let with = |mut e: Exchange, print: u64| {
        e.request.fingerprint = Some(print);
        e
    };
    let loose = || with(inner(7, ""), 5);
    let (calls, _) = pair([with(outer("a"), 5), loose()]);
    assert_eq!(
        (calls[0].class, calls[0].matched),
        (CallClass::Served, Some(MatchedBy::Fingerprint))
    );

    let mut twin = with(outer("b"), 5);
    twin.id = 2;
    let (calls, _) = pair([with(outer("a"), 5), twin, loose()]);
    assert_eq!(
        calls[0].class,
        CallClass::Unexplained,
        "two calls could be meant: neither is taken"
    );

    let (calls, counts) = pair([with(outer("a"), 6), loose()]);
    assert_eq!(
        (calls[0].class, counts.inner_only),
        (CallClass::Unexplained, 1)
    );
}

#[test]
fn a_trace_pairs_where_the_header_was_dropped() {
    let with = |mut e: Exchange| {
        e.keys.trace = Some("4bf9".to_owned());
        e
    };
    let (calls, _) = pair([with(outer("a")), with(inner(7, ""))]);
    assert_eq!(calls[0].matched, Some(MatchedBy::Trace));
}

#[test]
fn settling_in_steps_gives_what_settling_at_once_gives() {
    let mut all = Vec::new();
    for n in 0..50_u64 {
        let call = format!("c{n}");
        let mut o = outer(&call);
        o.id = 100 + n;
        o.marks.closed += n * 100;
        all.push(inner(200 + n, &call));
        all.push(o);
    }
    let (at_once, _) = pair(all.clone());
    let mut pairer = Pairer::default();
    let mut stepwise = Vec::new();
    for (n, exchange) in all.into_iter().enumerate() {
        let now = exchange.marks.closed;
        pairer.offer(exchange);
        if n % 7 == 0 {
            stepwise.extend(pairer.settle(now.saturating_sub(500), 0));
        }
    }
    stepwise.extend(pairer.finish());
    assert_eq!(at_once, stepwise);
    assert_eq!(pairer.waiting(), 0);
}

#[test]
fn an_inner_exchange_that_no_call_explains_is_forgotten_and_counted() {
    let mut pairer = Pairer::default();
    pairer.offer(inner(7, "never"));
    assert!(pairer.settle(u64::MAX, 1).is_empty());
    assert_eq!(pairer.counts().inner_only, 0, "it may still find its call");
    pairer.settle(u64::MAX, u64::MAX);
    assert_eq!((pairer.counts().inner_only, pairer.waiting()), (1, 0));
}

/// `count` calls, each with its inner exchange.
fn many(count: usize) -> impl Iterator<Item = Exchange> {
    (0..count as u64).flat_map(|n| {
        let call = n.to_string();
        let mut o = outer(&call);
        (o.id, o.marks.closed) = (n, o.marks.closed + n);
        [inner(n, &call), o]
    })
}

#[test]
fn the_record_of_a_run_of_any_length_is_paired_whole() {
    let count = MAX_WAITING + 100;
    let (calls, counts) = pair(many(count));
    assert_eq!((calls.len(), counts.dropped), (count, 0));
    assert_eq!(counts.rate(), Some(1.0));
}

#[test]
fn a_process_that_never_ends_holds_so_many_and_counts_what_it_drops() {
    let mut pairer = Pairer::bounded(100);
    many(130).for_each(|e| pairer.offer(e));
    let calls = pairer.finish();
    assert_eq!((calls.len(), pairer.counts().dropped), (100, 30));
}
