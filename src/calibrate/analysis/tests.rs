use super::*;
use crate::calibrate::samples::{Account, PROBE};
use crate::testbed::{call, gateway_truth};
use config::Period;
use record::client::ClientCall;
use record::pairing::{Call, PairingCounts};
use sim::truth::{ExchangeTruth, Mark, Role};
use std::collections::HashMap;
use std::path::Path;

fn settings() -> Settings {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/calibration-short.yaml");
    let mut settings = Settings::clone(&config::load::<Settings>(&path).unwrap());
    settings.streams = vec![1];
    settings.modes = vec![StreamMode::Pass];
    settings.blocks = 2;
    settings
}

fn cell(block: u32, kind: Kind) -> Cell {
    Cell {
        block,
        load: 0.0,
        streams: 1,
        kind,
    }
}

const GATEWAY: Kind = Kind::Gateway {
    mode: StreamMode::Pass,
    delay: 0,
};

/// Residual of the request leg: 30 ns. Of a token: 75 ns, as the gateway's.
fn relay_truth(id: &str) -> ExchangeTruth {
    let mut truth = gateway_truth(id);
    truth.role = Role::Relay;
    truth.attempts.clear();
    let body = truth.marks.iter_mut().find(|m| m.mark == Mark::RequestBody);
    body.unwrap().write_begin = Some(2_090);
    truth
}

#[derive(Default)]
struct Bed {
    calls: Vec<Call>,
    truths: HashMap<String, ExchangeTruth>,
}

impl Bed {
    fn add(&mut self, cell: u32, number: u64, truth: fn(&str) -> ExchangeTruth) -> &mut Call {
        let id = format!("{cell}.{number}");
        self.truths.insert(id.clone(), truth(&id));
        self.calls
            .push(call(&id, &ClientCall::key_of(cell, number)));
        self.calls.last_mut().unwrap()
    }

    /// Two blocks of one gateway cell and one cell of the floor, probes beside both.
    fn two_blocks() -> (Self, Vec<Cell>) {
        let mut bed = Self::default();
        let mut cells = Vec::new();
        for block in 0..2 {
            for (kind, truth) in [
                (GATEWAY, gateway_truth as fn(&str) -> ExchangeTruth),
                (Kind::Floor, relay_truth),
            ] {
                let id = u32::try_from(cells.len()).unwrap();
                bed.add(id, 0, truth);
                bed.add(id, PROBE + 1, relay_truth);
                cells.push(cell(block, kind));
            }
        }
        (bed, cells)
    }

    fn samples(&self, cells: &[Cell]) -> Samples {
        let account = Account {
            pairing: PairingCounts {
                calls: 2,
                pairable: 2,
                paired: 2,
                ..PairingCounts::default()
            },
            ..Account::default()
        };
        Samples::new(cells, &self.calls, &self.truths, account)
    }
}

const CHECKS: Checks = Checks {
    long: 99,
    slow: None,
};

#[test]
fn the_error_is_raw_less_the_floor_of_the_same_blocks() {
    let (bed, cells) = Bed::two_blocks();
    let found = outcome(&settings(), &bed.samples(&cells), CHECKS).calibration;
    let request = &found.lines[0];
    assert_eq!((request.leg.as_str(), request.samples), ("request", 2));
    assert_eq!((request.raw.0, request.floor.0), (70.0, 30.0));
    assert_eq!(request.error.0, 40.0);
    assert_eq!(request.interval, Some((40.0, 40.0)));
    let token = found.lines.iter().find(|l| l.leg == "token").unwrap();
    assert_eq!((token.samples, token.error.0), (4, 0.0));
    // The probe's measured request leg, 1 075 ns, and the stated margin.
    let (low, high) = found.floor_range.unwrap();
    assert!((low - 1_075.0 / FLOOR_MARGIN).abs() < 1e-6);
    assert!((high - 1_075.0 * FLOOR_MARGIN).abs() < 1e-6);
}

#[test]
fn a_block_without_its_floor_gives_no_error() {
    let (bed, mut cells) = Bed::two_blocks();
    cells[3].block = 7;
    let found = outcome(&settings(), &bed.samples(&cells), CHECKS).calibration;
    assert_eq!(found.lines[0].interval, None, "one block is left");
    cells[1].block = 7;
    let outcome = outcome(&settings(), &bed.samples(&cells), CHECKS);
    assert_eq!(outcome.calibration.lines, []);
    assert!(!outcome.calibration.passed);
    assert!(outcome.beyond.iter().any(|b| b.contains("its floor")));
}

#[test]
fn fresh_connections_and_calls_of_no_cell_are_in_no_figure() {
    let (mut bed, cells) = Bed::two_blocks();
    let fresh = bed.add(0, 5, gateway_truth);
    fresh.outer.connection.upstream_reused = Some(false);
    bed.add(0, 6, gateway_truth).outer.keys.client = None;
    bed.add(77, 0, gateway_truth);
    let samples = bed.samples(&cells);
    assert_eq!(samples.fresh, 1);
    let found = outcome(&settings(), &samples, CHECKS).calibration;
    assert_eq!(found.lines[0].samples, 2);
}

#[test]
fn each_bound_that_does_not_hold_is_a_line() {
    let (mut bed, cells) = Bed::two_blocks();
    bed.add(2, 9, gateway_truth).outer.stream.counts.text_events = 2;
    let mut samples = bed.samples(&cells);
    samples.account.pairing.paired = 1;
    let mut settings = settings();
    settings.bounds.error_p50 = "30ns".parse::<Period>().unwrap();
    let checks = Checks {
        long: 99,
        slow: Some(98),
    };
    let beyond = outcome(&settings, &samples, checks).beyond;
    for what in [
        "request leg, 1 streams, pass: error p50 0.0 µs",
        "slope: not measured",
        "pairing 0.5",
        "merge ratio: off by 0.5",
        "1000 tokens: not measured",
        "slow client: no text position",
    ] {
        assert!(
            beyond.iter().any(|b| b.contains(what)),
            "{what}: {beyond:?}"
        );
    }
    assert_eq!(beyond.len(), 6, "{beyond:?}");
}

#[test]
fn text_that_the_stand_in_does_not_know_is_said() {
    let (mut bed, cells) = Bed::two_blocks();
    bed.add(0, 3, gateway_truth);
    bed.truths.get_mut("0.3").unwrap().tokens.pop();
    let beyond = outcome(&settings(), &bed.samples(&cells), CHECKS).beyond;
    assert!(
        beyond.iter().any(|b| b.contains("1 calls whose text")),
        "{beyond:?}"
    );
}

#[test]
fn a_slope_off_one_is_found_over_the_cells() {
    let settings = settings();
    let mut bed = Bed::default();
    let mut cells = Vec::new();
    for block in 0..2 {
        for delay in 0..5_u32 {
            let id = u32::try_from(cells.len()).unwrap();
            bed.add(id, 0, gateway_truth);
            // The stand-in says twice as much more as the taps see.
            let truth = bed.truths.get_mut(&format!("{id}.0")).unwrap();
            let (_, wb) = (0, &mut truth.attempts[0].request_write_begin);
            *wb = Some(2_050 + u64::from(delay) * 200);
            let outer = &mut bed.calls.last_mut().unwrap().attempts[0].marks.request;
            outer.as_mut().unwrap().arrival.at += u64::from(delay) * 100;
            cells.push(cell(
                block,
                Kind::Gateway {
                    mode: StreamMode::Pass,
                    delay: delay as usize,
                },
            ));
        }
    }
    let outcome = outcome(&settings, &bed.samples(&cells), CHECKS);
    let (slope, low, high) = outcome.calibration.slope.unwrap();
    assert!((slope - 0.5).abs() < 1e-9 && low <= slope && slope <= high);
    assert!(outcome.beyond.iter().any(|b| b.starts_with("slope 0.5")));
}
