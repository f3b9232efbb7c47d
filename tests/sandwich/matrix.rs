//! `load --all`: every run of a matrix, on stand-ins that it starts, and on after a kill.

use crate::rig::{PATIENCE, free};
use record::rundir::RunDir;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn scenario(name: &str, cells: &str) -> String {
    format!(
        "name: {name}\nnumber: 1\nquestion: Does it go on?\nworkload: {{input_tokens: 20, output_tokens: 16}}\n\
         closed_loop: {{concurrency: {cells}, cell: {{duration: 1s}}}}\nblocks: 1\nwarmup: {{calls: 1}}\nseed: 7\n"
    )
}

/// Writes a matrix of two runs through one tap before one engine; gives the engine's address.
fn write(dir: &Path) -> std::net::SocketAddr {
    let (engine, outer) = (free(), free());
    let put = |name: &str, text: String| std::fs::write(dir.join(name), text).unwrap();
    put("first.yaml", scenario("first", "[1]"));
    put("second.yaml", scenario("second", "[1, 2, 3]"));
    put(
        "chain.yaml",
        format!(
            "name: rig\nkind: service\ngateway: {{name: stand-in}}\nsimulated: true\nentry: http://{outer}\nmodel: m\n\
             taps: [{{name: outer, position: outer, listen: \"{outer}\", upstream: {{addresses: [\"{engine}\"]}}}}]\n"
        ),
    );
    put("tap.yaml", "chains: [chain.yaml]\n".to_owned());
    put(
        "matrix.yaml",
        format!(
            "tap: tap.yaml\nstart:\n  - {{name: engine, run: \"sim engine --listen {engine} --ttft-us 20000 --gap-us 1000\", ready: \"{engine}\", engine: true}}\n\
             runs:\n  - {{scenario: first.yaml, chains: [chain.yaml]}}\n  - {{scenario: second.yaml, chains: [chain.yaml]}}\n"
        ),
    );
    engine
}

fn all(dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopscope"));
    command
        .args(["load", "--all", "--quiet", "--matrix"])
        .arg(dir.join("matrix.yaml"))
        .arg("--out")
        .arg(dir.join("out"))
        .stderr(Stdio::null());
    command
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn wait(what: &str, mut there: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !there() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_matrix_goes_on_after_a_kill_and_ends_what_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let engine = write(dir.path());
    let mut killed = all(dir.path()).stdout(Stdio::null()).spawn().unwrap();
    let second = dir.path().join("out/second");
    let cells = || {
        let manifest = RunDir::open(&second).and_then(|run| run.manifest());
        manifest.map_or(0, |m| m.cells.len())
    };
    wait("the second run does not come", || cells() == 1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    wait("a stand-in outlives its matrix", || {
        TcpStream::connect(engine).is_err()
    });
    let first = RunDir::open(&dir.path().join("out/first")).unwrap();
    let before = first.manifest().unwrap();

    let output = all(dir.path()).output().unwrap();
    let told = text(&output);
    assert!(
        told.contains("first") && told.contains("done before"),
        "{told}"
    );
    assert_eq!(first.manifest().unwrap(), before);
    let after = RunDir::open(&second).unwrap().manifest().unwrap();
    assert_eq!((after.cells.len(), after.resumed.len()), (3, 1));
    // Closed loops have no schedule, and a service has no legs: neither is asked for.
    let checks = after.verdict.unwrap();
    assert!(
        checks
            .checks
            .iter()
            .all(|c| !c.name.starts_with("schedule") && c.name != "pairing")
    );
    let page = std::fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    assert!(page.contains("simulated"));
    // Both runs have this arm, with other calls.
    assert!(page.contains("first: 1 at once") && page.contains("second: 1 at once"));
    assert!(TcpStream::connect(engine).is_err());

    // Nothing is left to do.
    let output = all(dir.path()).output().unwrap();
    assert_eq!(text(&output).matches("done before").count(), 2);
}

#[test]
fn a_matrix_that_does_not_fit_starts_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let engine = write(dir.path());
    let path = dir.path().join("matrix.yaml");
    let broken = std::fs::read_to_string(&path)
        .unwrap()
        .replace("second.yaml", "third.yaml");
    std::fs::write(&path, broken).unwrap();
    let output = all(dir.path()).stderr(Stdio::piped()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        error.contains("matrix.yaml:6:") && error.contains("third.yaml"),
        "{error}"
    );
    assert!(TcpStream::connect(engine).is_err() && !dir.path().join("out").exists());
}
