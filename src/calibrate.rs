//! The instrument measures itself: a gateway stand-in with known delays between two taps, and the
//! difference between what the taps say and what the stand-in's own stamps say.
//!
//! Truth is never the delay that was asked for. *Raw residual* = measured − true: two loopback hops
//! and a wake-up. *Floor* = the same residual of a zero-delay relay on the same tap threads, in the
//! same block, with the same number of streams: a program that carries more streams sleeps less, so
//! a probe of one stream wakes later than a gateway of fifty. That probe runs beside every cell all
//! the same, as it does in a measured run, and is told. *Instrument error* = raw − floor, quantile
//! by quantile, block by block.
//! Everything here is simulated, and says only how well hopscope measures.

mod analysis;
mod bounds;
mod client;
mod print;
mod remarks;
mod rig;
mod samples;
mod stats;

pub use analysis::FLOOR_MARGIN;
pub use print::print;

use analysis::Checks;
use anyhow::Context as _;
use config::Calibration as Settings;
use record::manifest::Calibration;
use rig::Rig;
use samples::{Cell, Kind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Cells of the floor, for each number of streams in each block.
const FLOORS: usize = 3;

/// What a calibration found, and what of it is beyond its bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// The figures, as they travel in manifests.
    pub calibration: Calibration,
    /// One line a bound that does not hold.
    pub beyond: Vec<String>,
    /// What else was seen, in words.
    pub remarks: Vec<String>,
}

/// Runs a calibration with its files in `work`. `say` is told of progress. Blocks.
///
/// # Errors
/// A process cannot be started or fails, or `stop` was set.
pub fn run(
    settings: &Settings,
    work: &Path,
    say: &dyn Fn(&str),
    stop: &AtomicBool,
) -> anyhow::Result<Outcome> {
    let mut rig = Rig::start(settings, work)?;
    let mut cells: Vec<Cell> = Vec::new();
    let next = |cells: &[Cell]| u32::try_from(cells.len()).context("too many cells");
    for &load in &settings.host_load {
        let busy = Busy::at(load);
        for block in 0..settings.blocks {
            let percent = load * 100.0;
            let of = settings.blocks;
            say(&format!(
                "block {} of {of} at {percent:.0} % host load",
                block + 1
            ));
            for cell in order(settings, load, block) {
                anyhow::ensure!(!stop.load(Ordering::Relaxed), "stopped");
                rig.drive(settings, next(&cells)?, &cell)?;
                cells.push(cell);
            }
        }
        drop(busy);
    }
    say("a thousand tokens, and a slow client");
    let long = next(&cells)?;
    rig.drive_long(settings, long)?;
    cells.push(CHECK);
    let slow = settings.slow_client.then(|| next(&cells)).transpose()?;
    if let Some(cell) = slow {
        rig.drive_slow(settings, cell)?;
        cells.push(CHECK);
    }
    let samples = rig.collect(&cells)?;
    Ok(analysis::outcome(settings, &samples, Checks { long, slow }))
}

const CHECK: Cell = Cell {
    block: 0,
    load: 0.0,
    streams: 1,
    kind: Kind::Check,
};

/// The cells of a block in the random order of its seed, the floor among them.
fn order(settings: &Settings, load: f64, block: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    for &streams in &settings.streams {
        let gateways = settings.modes.iter().flat_map(|&mode| {
            (0..settings.delays.len()).map(move |delay| Kind::Gateway { mode, delay })
        });
        let back_to_back = [false, true].map(|relay| Kind::BackToBack { relay });
        let kinds = gateways.chain([Kind::Floor; FLOORS]).chain(back_to_back);
        cells.extend(kinds.map(|kind| Cell {
            block,
            load,
            streams,
            kind,
        }));
    }
    stats::shuffle(&mut cells, settings.seed.wrapping_add(u64::from(block)));
    cells
}

/// Threads that keep every CPU busy for a share of the time, until dropped.
struct Busy(Arc<AtomicBool>);

impl Busy {
    fn at(share: f64) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        if share > 0.0 {
            let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
            for _ in 0..cpus {
                let over = over.clone();
                std::thread::spawn(move || burn(share, &over));
            }
        }
        Self(over)
    }
}

fn burn(share: f64, over: &AtomicBool) {
    const PERIOD: f64 = 0.010;
    while !over.load(Ordering::Relaxed) {
        let begin = std::time::Instant::now();
        while begin.elapsed().as_secs_f64() < PERIOD * share {
            std::hint::spin_loop();
        }
        std::thread::sleep(std::time::Duration::from_secs_f64(PERIOD * (1.0 - share)));
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_has_every_cell_and_its_floor_in_an_order_of_its_own() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/calibration-short.yaml");
        let settings = config::load::<Settings>(&path).unwrap();
        let (a, b) = (order(&settings, 0.0, 0), order(&settings, 0.0, 1));
        let gateways = settings.streams.len() * settings.modes.len() * settings.delays.len();
        assert_eq!(a.len(), gateways + (FLOORS + 2) * settings.streams.len());
        for &streams in &settings.streams {
            let floors = |c: &&Cell| c.streams == streams && c.kind == Kind::Floor;
            assert_eq!(a.iter().filter(floors).count(), FLOORS);
        }
        let kinds = |cells: &[Cell]| {
            cells
                .iter()
                .map(|c| (c.streams, c.kind))
                .collect::<Vec<_>>()
        };
        assert_ne!(kinds(&a), kinds(&b));
        assert_eq!(kinds(&a), kinds(&order(&settings, 0.8, 0)));
    }
}
