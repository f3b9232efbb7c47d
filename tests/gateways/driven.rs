//! A scenario driven through the taps of one chain, as `hopscope load` does it, and its report.

use super::rig::pair;
use super::{Running, script};
use config::{Chain, Scenario};
use hopscope::tap::TapServer;
use loadgen::progress::Silent;
use loadgen::{Plan, PlannedChain, PlannedTap, Stop};
use record::client::ClientCall;
use record::pairing::Call;
use record::rundir::RunDir;
use report::Report;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// What a run left.
pub(super) struct Driven {
    pub(super) run: RunDir,
    /// As the load generator saw them, warm-up included.
    pub(super) calls: Vec<ClientCall>,
    /// Generations as the taps recorded and paired them, those before the first cell included.
    pub(super) tapped: Vec<Call>,
    pub(super) report: Report,
}

/// Where the taps of a run in `dir` record to.
pub(super) fn records(dir: &Path) -> std::path::PathBuf {
    dir.join("taps/tap")
}

/// Drives `scenario` through `chain`, whose taps are `server`, recording to [`records`]; `pids` are the gateway's.
pub(super) fn drive(
    dir: &Path,
    chain: Chain,
    server: TapServer,
    scenario: &str,
    pids: Vec<u32>,
) -> Driven {
    let parsed = config::from_text::<Scenario>(Path::new("scenario.yaml"), scenario)
        .unwrap_or_else(|error| panic!("{error}"))
        .into_inner();
    let name = parsed.name.clone();
    let mut plan = Plan::new(&name, &dir.join("run"), parsed, scenario.to_owned());
    plan.chains.push(PlannedChain {
        text: serde_json::to_string(&chain).unwrap(),
        chain,
        base: dir.to_owned(),
        pids,
        injected: None,
    });
    plan.taps.push(PlannedTap {
        records: records(dir),
        pid: Some(std::process::id()),
    });
    let run = loadgen::run(&plan, Arc::new(Silent), &Stop::default())
        .unwrap_or_else(|error| panic!("{error}"));
    server.stop(std::time::Duration::from_secs(2));
    let (calls, losses) = run.read_calls().unwrap();
    assert!(losses.is_empty(), "{losses:?}");
    let report = report::build(&[run.root().to_owned()]).unwrap();
    assert!(report.losses.is_empty(), "{:?}", report.losses);
    let mut tapped = pair(dir);
    tapped.retain(|call| call.outer.request.generation);
    Driven {
        run,
        calls,
        tapped,
        report,
    }
}

/// Starts `run/NAME.sh` with `dir/NAME-PORT` as its folder; what it says goes to `log` there.
pub(super) fn start(
    name: &str,
    dir: &Path,
    at: SocketAddr,
    rest: &[SocketAddr],
    environment: &[(&str, &str)],
) -> Running {
    let work = dir.join(format!("{name}-{}", at.port()));
    std::fs::create_dir_all(&work).unwrap();
    let log = std::fs::File::create(work.join("log")).unwrap();
    let child = Command::new(script(&format!("run/{name}.sh")))
        .arg(&work)
        .arg(at.port().to_string())
        .args(rest.iter().map(ToString::to_string))
        .envs(environment.iter().copied())
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .unwrap();
    Running(child)
}

/// Waits until what [`start`] started answers `path`.
pub(super) fn ready(name: &str, dir: &Path, at: SocketAddr, path: &str) {
    let log = dir.join(format!("{name}-{}/log", at.port()));
    super::wait(at, path, || {
        std::fs::read_to_string(&log).unwrap_or_default()
    });
}
