//! Files that work together but do not fit are refused before anything starts, with the place in both.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test fails loudly")]

use std::fs;
use std::path::Path;

use config::TapProcess;
use tempfile::TempDir;

const CHAIN: &str = "\
name: c
kind: gateway
gateway: {name: G}
entry: http://127.0.0.1:9000
model: m
recipe: {forward: header, tried: true, explain: none needed}
taps:
  - name: outer
    position: outer
    listen: 127.0.0.1:9000
    upstream: {addresses: [\"127.0.0.1:9001\"]}
  - name: inner
    position: inner
    listen: 127.0.0.1:9002
    upstream: {addresses: [\"127.0.0.1:8000\"]}
";

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A copy of the shipped files, to be altered.
fn shipped() -> TempDir {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    for part in ["chains", "taps", "demo"] {
        copy(&home.join(part), &dir.path().join(part));
    }
    dir
}

/// The findings when `from` is replaced in one file of a copy of the shipped files.
fn demo_with(file: &str, from: &str, to: &str) -> String {
    let dir = shipped();
    let path = dir.path().join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{file} lacks {from}");
    fs::write(&path, text.replacen(from, to, 1)).unwrap();
    match config::demo(dir.path().join("demo/demo.yaml")) {
        Ok(_) => panic!("accepted {to}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn stand_ins_chains_and_scenario_must_fit() {
    for (file, from, to, said) in [
        (
            "demo/demo.yaml",
            "127.0.0.1:17051",
            "127.0.0.1:17050",
            "already taken by the tap `outer`",
        ),
        (
            "demo/demo.yaml",
            "127.0.0.1:17042",
            "127.0.0.1:17999",
            "nothing of the demonstration listens there",
        ),
        (
            "demo/demo.yaml",
            "chain: sim-slow\n",
            "chain: sim-slo\n",
            "is called `sim-slo`",
        ),
        (
            "demo/demo.yaml",
            "127.0.0.1:17041",
            "127.0.0.1:17998",
            "does not lead to `127.0.0.1:17998`",
        ),
        (
            "demo/demo.yaml",
            "listen: 127.0.0.1:17000",
            "listen: 0.0.0.0:17000",
            "a stand-in listens on loopback",
        ),
        (
            "demo/demo.yaml",
            "taps/demo.yaml",
            "taps/none.yaml",
            "none.yaml` is not a file",
        ),
        (
            "demo/demo.yaml",
            "mode: reserialise",
            "mode: reserialize",
            "did you mean `reserialise`",
        ),
        (
            "demo/4-gateway-overhead.yaml",
            "chain: relay",
            "chain: loop",
            "no chain of kind `relay` is called `loop`",
        ),
        (
            "taps/demo.yaml",
            "  - ../chains/direct.yaml\n",
            "",
            "has no chain of kind `direct`",
        ),
        (
            "chains/direct.yaml",
            "simulated: true",
            "simulated: false",
            "is simulated; add",
        ),
        (
            "chains/sim-fast-untapped.yaml",
            "control_of: sim-fast",
            "control_of: fast",
            "is called `fast`",
        ),
        (
            "chains/relay.yaml",
            "127.0.0.1:17031",
            "127.0.0.1:17997",
            "nothing of the demonstration listens there",
        ),
    ] {
        let error = demo_with(file, from, to);
        assert!(
            error.contains(said),
            "{file}: {to}\n{error}\nexpected: {said}"
        );
    }
}

#[test]
fn a_matrix_and_all_that_it_names_must_fit() {
    let dir = shipped();
    let path = dir.path().join("demo/matrix.yaml");
    let text = fs::read_to_string(&path).unwrap();
    let refused = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        match config::matrix(&path) {
            Ok(_) => panic!("accepted: {to}"),
            Err(error) => error.to_string(),
        }
    };
    for (from, to, told) in [
        ("run: sim relay", "run: rm", "only stand-ins are started"),
        (
            "name: router-rr",
            "name: engines",
            "the name `engines` is taken at",
        ),
        (
            "ready: 127.0.0.1:17411",
            "ready: 127.0.0.1:17400",
            "already taken at",
        ),
        (
            "ready: 127.0.0.1:17411",
            "ready: 127.0.0.1:17420",
            "already taken by",
        ),
        (
            "ready: 127.0.0.1:17411",
            "ready: 0.0.0.0:17411",
            "reachable from other hosts",
        ),
        ("scenarios/9-burst", "scenarios/9-brust", "9-brust"),
        (
            "scenarios/9-burst",
            "scenarios/8-long-run",
            "would have one directory",
        ),
    ] {
        let error = refused(from, to);
        assert!(error.contains(told), "{to}: {error}");
        assert!(error.contains("matrix.yaml:"), "{error}");
    }
}

#[test]
fn chains_of_one_process_share_no_port_and_no_name() {
    let dir = tempfile::tempdir().unwrap();
    let other = CHAIN.replace("9000", "9010").replace("9001", "9011");
    fs::write(dir.path().join("a.yaml"), CHAIN).unwrap();
    fs::write(dir.path().join("b.yaml"), other).unwrap();
    fs::write(
        dir.path().join("tap.yaml"),
        "chains: [a.yaml, b.yaml]\ntelemetry: 127.0.0.1:9010\n",
    )
    .unwrap();
    let error = config::tap_process(dir.path().join("tap.yaml"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("b.yaml:1:7: the name `c` is taken at "),
        "{error}"
    );
    assert!(
        error.contains("b.yaml:14:13: `127.0.0.1:9002` is already taken by the tap `inner` at "),
        "{error}"
    );
    assert!(
        error.contains("a.yaml:14:13; choose another port"),
        "{error}"
    );

    let other = CHAIN.replace("name: c", "name: d").replace("900", "901");
    fs::write(dir.path().join("b.yaml"), other).unwrap();
    let error = config::tap_process(dir.path().join("tap.yaml"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("b.yaml:10:13: `127.0.0.1:9010` is already taken by `telemetry` at "),
        "{error}"
    );
    assert!(error.contains("tap.yaml:2:12"), "{error}");
}

#[test]
fn the_admin_listener_is_loopback_unless_it_is_meant_not_to_be() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("a.yaml"), CHAIN).unwrap();
    let path = dir.path().join("tap.yaml");
    let text = "chains: [a.yaml]\nadmin: 0.0.0.0:9100\n";
    let error = config::from_text::<TapProcess>(&path, text)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("tap.yaml:2:8: `0.0.0.0:9100` is reachable from other hosts"),
        "{error}"
    );
    let meant = format!("{text}allow_remote: true\ntraceparent: off\n");
    let tap = config::from_text::<TapProcess>(&path, &meant).unwrap();
    assert_eq!(tap.traceparent, config::tap::Traceparent::Off);
}
