//! `hopscope demo`: the whole product on one machine, with stand-ins, in processes of their own.

use super::{Done, calibrate, load, report};
use anyhow::Context as _;
use config::ChainKind;
use hopscope::spawn::Children;
use hopscope::{standin, truth};
use loadgen::{Plan, PlannedChain, PlannedTap};
use record::client::ClientCall;
use record::manifest::Drive;
use record::pairing::Call;
use record::rundir::RunDir;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The demonstration's file.
    #[arg(
        long,
        short,
        value_name = "FILE",
        default_value = "config/demo/demo.yaml"
    )]
    config: PathBuf,
    /// Where the results go, in place of the file's `output`. What an earlier demonstration left there is removed.
    #[arg(long, short, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Say nothing but the result.
    #[arg(long, short)]
    quiet: bool,
}

/// Where things lie under the output directory.
struct Place {
    root: PathBuf,
}

impl Place {
    /// Makes the directory anew; refuses one that an earlier demonstration did not make.
    fn fresh(root: PathBuf) -> anyhow::Result<Self> {
        const MARK: &str = ".hopscope-demo";
        if root.exists() {
            anyhow::ensure!(
                root.join(MARK).exists() || std::fs::read_dir(&root)?.next().is_none(),
                "{}: exists and is not of an earlier demonstration; name another --out",
                root.display()
            );
            std::fs::remove_dir_all(&root)
                .with_context(|| format!("{}: cannot be removed", root.display()))?;
        }
        std::fs::create_dir_all(&root)
            .with_context(|| format!("{}: cannot be made", root.display()))?;
        std::fs::write(root.join(MARK), "")?;
        Ok(Self { root })
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn truth(&self, name: &str) -> PathBuf {
        self.root.join(format!("{name}.truth"))
    }
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Done> {
    let set = config::demo(&args.config)
        .context("the demonstration runs from the repository's root, or with --config FILE")?;
    let place = Place::fresh(args.out.clone().unwrap_or_else(|| set.demo.output.clone()))?;
    say(
        args,
        "calibrating the instrument (simulated gateway with known delays)",
    );
    let calibrated = calibrate::measure(&set.calibration, &place.at("calibration"), args.quiet)?;
    let mut children = Children::new(&place.at("logs"))?;
    let pids = start(&set, &place, &mut children)?;
    say(args, "driving scenario 4, shortened, over every chain");
    let plan = plan(&set, &place, &pids, calibrated)?;
    let (_runtime, stop) = load::stop_on_ctrl_c()?;
    let run = load::measure(&plan, load::progress(args.quiet), &stop)?;
    children.check()?;
    children.stop_all();
    let page = place.at("report.html");
    report::write(
        &[run.root().to_owned()],
        &page,
        Some(&place.at("report.md")),
        Some(&place.at("report.json")),
    )?;
    print_truth(&set, &place, &run)?;
    load::verdict(&run)?;
    println!(
        "\nEverything above is simulated: it shows that the instrument works, and nothing about any product."
    );
    println!("page: {}", std::path::absolute(&page)?.display());
    // Whether the run is valid depends on what else this machine does; whether it was stopped does not.
    Ok(match stop.requested() {
        true => Done::Badly,
        false => Done::Well,
    })
}

fn say(args: &Args, what: &str) {
    if !args.quiet {
        eprintln!("demo: {what}");
    }
}

struct Pids {
    engine: u32,
    tap: u32,
    gateways: Vec<(String, u32)>,
}

fn start(set: &config::DemoSet, place: &Place, children: &mut Children) -> anyhow::Result<Pids> {
    let demo = &set.demo;
    let listen = demo.engine.listen.get();
    let engine = children.start(
        "engine",
        &standin::engine(&demo.engine.script, listen, &place.truth("engine")),
    )?;
    children.wait_for(listen)?;
    let relay = demo.relay.listen.get();
    children.start(
        "relay",
        &standin::relay(
            relay,
            &demo.relay.upstream.to_string(),
            &place.truth("relay"),
        ),
    )?;
    children.wait_for(relay)?;
    let mut gateways = Vec::new();
    for gateway in &demo.gateways {
        let listen = gateway.listen.get();
        let line = standin::gateway(
            &gateway.script,
            listen,
            &gateway.upstream.to_string(),
            &place.truth(&gateway.chain),
        );
        gateways.push((
            gateway.chain.clone(),
            children.start(&gateway.chain, &line)?,
        ));
        children.wait_for(listen)?;
    }
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let line = [
        "tap".to_owned(),
        "--config".to_owned(),
        text(set.tap.process.path()),
        "--record".to_owned(),
        text(&place.at("records")),
    ];
    let tap = children.start("tap", &line)?;
    for chain in &set.tap.chains {
        for point in &chain.taps {
            children.wait_for(point.listen.get())?;
        }
    }
    Ok(Pids {
        engine,
        tap,
        gateways,
    })
}

fn plan(
    set: &config::DemoSet,
    place: &Place,
    pids: &Pids,
    calibration: record::manifest::Calibration,
) -> anyhow::Result<Plan> {
    let text = std::fs::read_to_string(set.scenario.path())?;
    let mut plan = Plan::new(
        "demo",
        &place.at("run"),
        config::Scenario::clone(&set.scenario),
        text,
    );
    for chain in set.chains() {
        let mut planned = PlannedChain::from_file(chain)?;
        let stand_in = set.demo.gateways.iter().find(|g| g.chain == chain.name);
        planned.injected = stand_in.map(|g| standin::injected(&g.script));
        planned.pids = pids
            .gateways
            .iter()
            .filter(|(name, _)| *name == chain.name)
            .map(|(_, pid)| *pid)
            .collect();
        plan.chains.push(planned);
    }
    plan.taps = vec![PlannedTap {
        records: place.at("records"),
        pid: Some(pids.tap),
    }];
    plan.engine_pids = vec![pids.engine];
    plan.calibration = Some(calibration);
    Ok(plan)
}

/// The injected truth beside what was measured.
fn print_truth(set: &config::DemoSet, place: &Place, run: &RunDir) -> anyhow::Result<()> {
    // Beyond capacity a call waits before the stand-in's first stamp: that is its queue.
    let cells = run.manifest()?.cells;
    let counted: HashSet<u32> = cells
        .iter()
        .filter(|c| c.saturated != Some(true) && !matches!(c.drive, Drive::Capacity { .. }))
        .map(|c| c.id)
        .collect();
    let of_cells = |call: &Call| {
        let name = call.outer.keys.client.as_deref();
        let cell = name.and_then(ClientCall::parse_key).map(|(cell, _)| cell);
        cell.is_some_and(|id| counted.contains(&id))
    };
    let calls: Vec<Call> = run.pair()?.filter(of_cells).collect();
    println!(
        "\nTruth (the stand-in's own stamps) beside what the taps measured, below capacity, medians in µs, simulated:"
    );
    println!(
        "{:<12} {:<12} {:>8} {:>12} {:>12} {:>12}",
        "chain", "leg", "calls", "true", "measured", "difference"
    );
    let gateways = set.demo.gateways.iter().map(|g| g.chain.as_str());
    let tapped = set
        .tap
        .chains
        .iter()
        .filter(|c| c.kind == ChainKind::Gateway);
    let tapped: Vec<&str> = tapped.map(|c| c.name.as_str()).collect();
    for name in gateways.filter(|name| tapped.contains(name)) {
        let truths = sim::truth::read(&place.truth(name))?;
        let those: Vec<Call> = calls
            .iter()
            .filter(|c| &*c.outer.chain == name)
            .cloned()
            .collect();
        for row in truth::compare(&those, &truths) {
            let micros = |ns: f64| format!("{:.1}", ns / 1e3);
            let (found, measured, apart) = (
                micros(row.truth),
                micros(row.measured),
                micros(row.residual),
            );
            println!(
                "{name:<12} {:<12} {:>8} {found:>12} {measured:>12} {apart:>12}",
                row.leg, row.samples
            );
        }
    }
    println!(
        "The difference is two loopback hops and a wake-up: the floor, printed beside each leg in the report. Where a busy stand-in\nreads late, its bytes wait before its first stamp: that is its queue, and in the difference too."
    );
    Ok(())
}
