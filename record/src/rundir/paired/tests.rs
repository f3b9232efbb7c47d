use super::*;
use crate::exchange::{Outcome, Position};
use crate::manifest::TapHealth;
use crate::rundir::{SegmentWriter, write_health};
use crate::sample::exchange;
use proptest::prelude::*;
use tempfile::TempDir;

/// One call by hand: when it begins and how long it lasts, its inner exchanges (begin and end relative to
/// its own), and what it can be found by.
#[derive(Debug, Clone)]
struct Made {
    begin: Nanos,
    lasts: Nanos,
    inners: Vec<(Nanos, Nanos)>,
    by: u8,
    name: u8,
    /// How much later than it closed its taps write it down.
    late: [Nanos; 2],
    well: bool,
}

fn made() -> impl Strategy<Value = Made> {
    let inner = (0_u64..300, 1_u64..400);
    let late = [0_u64..60, 0_u64..60];
    (
        1_000_u64..9_000,
        50_u64..300,
        prop::collection::vec(inner, 0..3),
        0_u8..4,
        0_u8..6,
        late,
        any::<bool>(),
    )
        .prop_map(|(begin, lasts, inners, by, name, late, well)| Made {
            begin,
            lasts,
            inners: inners
                .into_iter()
                .map(|(after, lasts)| (after % lasts.max(50), lasts))
                .collect(),
            by,
            name,
            late,
            well,
        })
}

fn lasting(id: u64, position: Position, call: &str, begin: Nanos, lasts: Nanos) -> Exchange {
    let mut one = exchange(id, position, call, begin, &[]);
    one.marks.closed = begin + lasts;
    one
}

/// What the outer and the inner tap write down, each with the instant at which it does.
fn exchanges(all: &[Made]) -> Vec<(Nanos, Exchange)> {
    let mut written = Vec::new();
    let mut id = 0;
    let mut next = || {
        id += 1;
        id
    };
    for (number, made) in all.iter().enumerate() {
        let call = match made.by {
            0 | 1 => format!("call-{number}"),
            _ => String::new(),
        };
        let named = |mut one: Exchange| {
            // Names come again, so that a fallback match can be ambiguous and an answer old.
            one.stream.response_id = Some(format!("chatcmpl-{}", made.name));
            match made.by {
                2 => one.keys.trace = Some(format!("trace-{}", made.name)),
                3 => one.request.fingerprint = Some(u64::from(made.name)),
                _ => {}
            }
            one
        };
        let mut outer = named(lasting(
            next(),
            Position::Outer,
            &call,
            made.begin,
            made.lasts,
        ));
        if !made.well {
            outer.outcome = Outcome::Failed;
        }
        written.push((outer.marks.closed + made.late[0], outer));
        for (after, lasts) in &made.inners {
            // Within the call, and maybe beyond its end.
            let begin = made.begin + after % made.lasts;
            let inner = named(lasting(next(), Position::Inner, &call, begin, *lasts));
            written.push((inner.marks.closed + made.late[1], inner));
        }
    }
    written.sort_by_key(|(at, one)| (*at, one.id));
    written
}

/// The records of one tap process, or of one for each position.
fn records(
    written: &[(Nanos, Exchange)],
    apart: bool,
    boots: [&str; 2],
) -> (TempDir, [PathBuf; 2]) {
    let root = tempfile::tempdir().unwrap();
    let dirs = ["a", "b"].map(|name| root.path().join(name));
    let mut writers =
        [&dirs[0], &dirs[1]].map(|dir| SegmentWriter::create(dir, EXCHANGES, 4_096).unwrap());
    for (_, one) in written {
        let inner = one.position == Position::Inner;
        writers[usize::from(apart && inner)].append(one).unwrap();
    }
    for ((writer, dir), boot) in writers.iter_mut().zip(&dirs).zip(boots) {
        writer.sync().unwrap();
        let health = TapHealth {
            boot: Some(boot.to_owned()),
            ..TapHealth::default()
        };
        write_health(dir, &health).unwrap();
    }
    (root, dirs)
}

fn at_once(written: &[(Nanos, Exchange)]) -> (Vec<Call>, PairingCounts) {
    let mut pairer = Pairer::default();
    written
        .iter()
        .for_each(|(_, one)| pairer.offer(one.clone()));
    (pairer.finish(), pairer.counts())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn pairing_on_the_way_is_pairing_at_once(all in prop::collection::vec(made(), 0..60), apart: bool) {
        let written = exchanges(&all);
        let (_root, dirs) = records(&written, apart, ["x", "x"]);
        let mut paired = PairedCalls::of(dirs.into_iter(), 0).unwrap();
        paired.round = 3;
        let calls: Vec<Call> = paired.by_ref().collect();
        let (wanted, counts) = at_once(&written);
        prop_assert_eq!(calls, wanted);
        prop_assert_eq!(paired.counts(), counts);
        prop_assert_eq!(paired.losses().count(), 0);
    }
}

/// Ten thousand calls, one after the other.
fn row(inner_clock: Nanos) -> Vec<(Nanos, Exchange)> {
    let call = |n: u64| {
        let (begin, name) = (1_000 + n * 100, format!("call-{n}"));
        let outer = lasting(2 * n, Position::Outer, &name, begin, 90);
        let mut inner = lasting(2 * n + 1, Position::Inner, &name, begin + 10, 70);
        inner.marks.begin.at += inner_clock;
        inner.marks.closed += inner_clock;
        [(begin + 80, inner), (begin + 90, outer)]
    };
    (0..10_000).flat_map(call).collect()
}

#[test]
fn what_waits_does_not_grow_with_the_record() {
    let (_root, dirs) = records(&row(0), true, ["x", "x"]);
    let mut paired = PairedCalls::of(dirs.into_iter(), 0).unwrap();
    let (mut calls, mut most) = (0_u64, 0);
    while let Some(call) = paired.next() {
        assert!(call.paired());
        calls += 1;
        most = most.max(paired.pairer.waiting() + paired.ready.len());
    }
    assert_eq!(calls, 10_000);
    assert!(most < 3 * ROUND, "{most}");
}

#[test]
fn taps_of_several_clocks_are_paired_by_name_all_the_same() {
    let far = 1_000_000_000_000;
    for boots in [["x", "y"], ["x", "x"]] {
        let (_root, dirs) = records(&row(far), true, boots);
        let paired = PairedCalls::of(dirs.into_iter(), 0).unwrap();
        let found = paired.filter(Call::paired).count();
        // Told to count from one clock, they are believed: that is what the boot is written down for.
        assert_eq!(found == 10_000, boots[0] != boots[1], "{found}");
    }
}
