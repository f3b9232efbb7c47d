use super::*;
use crate::experiment::Raised;

const MS: Nanos = 1_000_000;
/// Ten calls a second.
const GAP: Nanos = 100 * MS;
const START: Nanos = 5_000 * MS;

fn setup(looks_for: Kind) -> Setup {
    Setup {
        looks_for,
        rate: 10.0,
        before: 2_000 * MS,
        raised: None,
        renamed: false,
        settle: 1_000 * MS,
        window: 500 * MS,
        ttft_within: 1.5,
        limit: 10_000 * MS,
    }
}

/// Calls for `seconds`, each as `fate` says of the instant at which it is due, in ms since the start: its
/// TTFT in ms, or none for a call that fails at once.
fn calls(seconds: u64, fate: impl Fn(u64) -> Option<u64>) -> Vec<Probe> {
    (0..seconds * 10)
        .map(|seq| {
            let due = seq * 100;
            let intended = START + due * MS;
            let ttft = fate(due).map(|ms| ms * MS);
            Probe {
                seq,
                intended,
                end: intended + ttft.map_or(MS, |ttft| ttft + 10 * MS),
                answered: ttft.is_some(),
                ttft,
            }
        })
        .collect()
}

/// The event is at 2 s.
fn watched<'a>(setup: &'a Setup, probes: &'a [Probe]) -> Watched<'a> {
    Watched {
        setup,
        start: START,
        event: START + setup.before,
        triggered: Some(START + setup.before + 50 * MS),
        over: true,
        probes,
    }
}

fn found(watched: &Watched<'_>, quantity: Quantity) -> Found {
    let all = measure(watched);
    let one = all.into_iter().find(|m| m.quantity == quantity);
    one.map(|m| m.found).unwrap()
}

fn value(found: &Found) -> (u64, u64, u64) {
    match found {
        Found::Value { value, low, high } => (value / MS, low / MS, high / MS),
        other => panic!("{other:?}"),
    }
}

/// Down from 2.35 s to 4.05 s, then slow until 5.05 s.
fn outage(due: u64) -> Option<u64> {
    match due {
        2_350..4_050 => None,
        4_050..5_050 => Some(90),
        _ => Some(30),
    }
}

#[test]
fn an_outage_is_told_in_its_parts_each_between_two_calls_of_the_probe() {
    let setup = setup(Kind::Recovery);
    let probes = calls(9, outage);
    let it = watched(&setup, &probes);
    // Calls are due at 2.4 … 4.0 s within it; 4.1 s is served.
    assert_eq!(
        value(&found(&it, Quantity::ErrorWindow)),
        (1_700, 1_600, 1_800)
    );
    assert_eq!(
        value(&found(&it, Quantity::DegradedWindow)),
        (1_000, 900, 1_100)
    );
    let steady = value(&found(&it, Quantity::TimeToSteady));
    assert_eq!(steady, (3_100, 3_000, 3_100));
    // The truth lies within: 1700, 1000 and 3050 ms.
    assert!((steady.1..=steady.2).contains(&3_050));
}

#[test]
fn what_is_not_over_is_a_lower_bound_and_never_a_number() {
    let setup = setup(Kind::Recovery);
    let probes = calls(14, |due| (due < 2_350).then_some(30));
    let it = watched(&setup, &probes);
    // The limit ends at 12 s; the first failed call was due at 2.4 s.
    assert_eq!(
        found(&it, Quantity::ErrorWindow),
        Found::LongerThan(9_600 * MS)
    );
    assert_eq!(
        found(&it, Quantity::TimeToSteady),
        Found::LongerThan(10_000 * MS)
    );
    assert!(matches!(
        found(&it, Quantity::DegradedWindow),
        Found::NotMeasured(_)
    ));
    // Served again, but for less than the settle time before what was seen ends.
    let probes = calls(5, outage);
    let it = Watched {
        over: false,
        ..watched(&setup, &probes)
    };
    let open = measure(&it);
    assert!(open.iter().all(|m| !matches!(m.found, Found::Value { .. })));
}

#[test]
fn an_outage_that_comes_back_for_less_than_the_settle_time_is_one_outage() {
    let setup = setup(Kind::Recovery);
    let probes = calls(12, |due| match due {
        2_350..3_050 | 3_850..4_450 => None,
        _ => Some(30),
    });
    let it = watched(&setup, &probes);
    assert_eq!(value(&found(&it, Quantity::ErrorWindow)).0, 4_500 - 2_400);
}

#[test]
fn where_nothing_was_seen_the_spacing_of_the_probe_bounds_it_and_only_at_the_end() {
    let setup = setup(Kind::Recovery);
    let probes = calls(14, |_| Some(30));
    let it = watched(&setup, &probes);
    for one in measure(&it) {
        assert_eq!(one.found, Found::ShorterThan(GAP), "{:?}", one.quantity);
    }
    // While it goes on, the effect may come yet.
    let open = Watched { over: false, ..it };
    let all = measure(&open);
    assert!(all.iter().all(|m| matches!(m.found, Found::LongerThan(_))));
}

#[test]
fn slow_calls_that_the_median_does_not_show_bound_what_may_have_hidden_in_them() {
    let setup = setup(Kind::Recovery);
    // Two of the five calls of a window are slow.
    let probes = calls(14, |due| match due {
        3_000..3_200 => Some(90),
        _ => Some(30),
    });
    let it = watched(&setup, &probes);
    assert_eq!(found(&it, Quantity::ErrorWindow), Found::ShorterThan(GAP));
    for quantity in [Quantity::DegradedWindow, Quantity::TimeToSteady] {
        assert_eq!(
            found(&it, quantity),
            Found::ShorterThan(3 * GAP),
            "{quantity:?}"
        );
    }
}

#[test]
fn a_call_that_the_event_catches_under_way_belongs_to_the_outage() {
    let setup = setup(Kind::Recovery);
    let mut probes = calls(9, outage);
    // Due at 1.9 s, and cut by the event.
    probes[19].answered = false;
    probes[19].ttft = None;
    probes[19].end = START + 2_010 * MS;
    let it = watched(&setup, &probes);
    assert_eq!(
        value(&found(&it, Quantity::ErrorWindow)).0,
        4_100 - 1_900,
        "calls due at 2.0 to 2.3 s are answered, and the next fails within the settle time"
    );
}

#[test]
fn a_cold_start_ends_with_the_first_answer_whoever_waited_for_it() {
    let setup = Setup {
        before: 0,
        ..setup(Kind::ColdStart)
    };
    // Refused until 3.25 s.
    let probes = calls(6, |due| (due >= 3_250).then_some(40));
    let it = watched(&setup, &probes);
    assert_eq!(
        value(&found(&it, Quantity::ColdStart)),
        (3_350, 3_250, 3_350)
    );
    // Everyone waits until 3.25 s.
    let probes = calls(6, |due| Some(3_250_u64.saturating_sub(due) + 40));
    let it = watched(&setup, &probes);
    assert_eq!(
        value(&found(&it, Quantity::ColdStart)),
        (3_300, 3_300, 3_300)
    );
    let probes = calls(14, |_| None);
    let it = watched(&setup, &probes);
    assert_eq!(
        found(&it, Quantity::ColdStart),
        Found::LongerThan(10_000 * MS)
    );
}

#[test]
fn an_update_is_over_with_the_answer_behind_its_command_or_by_its_new_name() {
    let named = Setup {
        renamed: true,
        before: 0,
        ..setup(Kind::ModelUpdate)
    };
    let probes = calls(6, |due| (due >= 2_050).then_some(40));
    let it = watched(&named, &probes);
    assert_eq!(
        value(&found(&it, Quantity::Turnaround)),
        (2_150, 2_050, 2_150)
    );
    assert_eq!(measure(&it).len(), 1);

    let same = setup(Kind::ModelUpdate);
    let probes = calls(9, |_| Some(40));
    // The command ends 1.23 s behind the event; the next call is due at 3.3 s.
    let it = Watched {
        triggered: Some(START + 3_230 * MS),
        ..watched(&same, &probes)
    };
    assert_eq!(
        value(&found(&it, Quantity::Turnaround)),
        (1_350, 1_280, 1_350)
    );
    assert_eq!(found(&it, Quantity::ErrorWindow), Found::ShorterThan(GAP));
    let running = Watched {
        triggered: None,
        over: false,
        ..it
    };
    assert!(matches!(
        found(&running, Quantity::Turnaround),
        Found::LongerThan(_)
    ));
}

#[test]
fn scale_out_ends_where_latency_is_back_under_the_greater_load() {
    let setup = Setup {
        raised: Some(Raised {
            rate: 10.0,
            lasts: None,
        }),
        ..setup(Kind::ScaleOut)
    };
    // The queue grows from 2 s on, and is gone at 6.05 s; a single slow call does not matter.
    let probes = calls(11, |due| match due {
        2_200..6_050 => Some(30 + (due - 2_000) / 10),
        8_200 => Some(500),
        _ => Some(30),
    });
    let it = watched(&setup, &probes);
    let (value, low, high) = value(&found(&it, Quantity::ScaleOutDelay));
    assert_eq!((value, low), (4_100, 4_000));
    assert!((4_100..=4_600).contains(&high), "{high}");
    assert_eq!(found(&it, Quantity::ErrorWindow), Found::ShorterThan(GAP));
    // Refused for good: the latency never comes back.
    let probes = calls(14, |due| (due < 2_050).then_some(30));
    let it = watched(&setup, &probes);
    assert!(matches!(
        found(&it, Quantity::ScaleOutDelay),
        Found::LongerThan(_)
    ));
}

#[test]
fn a_queue_drains_by_latency_and_by_calls_in_flight() {
    let setup = Setup {
        raised: Some(Raised {
            rate: 10.0,
            lasts: Some(2_000 * MS),
        }),
        ..setup(Kind::QueueDrain)
    };
    // The burst ends at 4 s; what is due then waits until 5.03 s.
    let probes = calls(9, |due| match due {
        2_000..5_000 => Some(5_030 - due),
        _ => Some(30),
    });
    let it = Watched {
        event: START + 4_000 * MS,
        ..watched(&setup, &probes)
    };
    assert_eq!(
        value(&found(&it, Quantity::QueueDrain)),
        (1_000, 900, 1_000)
    );
    // All thirty end 10 ms behind their text.
    assert_eq!(
        value(&found(&it, Quantity::InFlightDrain)),
        (1_040, 1_040, 1_040)
    );
    let quick = calls(9, |_| Some(30));
    let it = Watched {
        probes: &quick,
        ..it
    };
    assert_eq!(found(&it, Quantity::QueueDrain), Found::ShorterThan(GAP));
    assert_eq!(found(&it, Quantity::InFlightDrain), Found::ShorterThan(GAP));
}

#[test]
fn without_a_latency_of_before_there_is_none_to_come_back_to() {
    let setup = setup(Kind::Recovery);
    let probes = calls(9, |due| (due >= 3_000).then_some(30));
    let it = watched(&setup, &probes);
    assert!(matches!(
        found(&it, Quantity::TimeToSteady),
        Found::NotMeasured(_)
    ));
}
