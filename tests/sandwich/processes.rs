//! Two tap processes pair offline as one does live; and the command line refuses what it should.

use crate::rig::{END, chain, chat, connect, exchange, free, pair, serve, upstream};
use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

#[test]
fn two_processes_pair_offline_exactly_as_one() {
    let (at, _) = upstream(|socket, _| {
        socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
        for text in ["a", "b", "c"] {
            let event = format!(
                "data: {{\"id\":\"x\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
            );
            socket
                .write_all(format!("{:x}\r\n{event}\r\n", event.len()).as_bytes())
                .unwrap();
        }
        let end = "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        socket
            .write_all(format!("{:x}\r\n{end}\r\n0\r\n\r\n", end.len()).as_bytes())
            .unwrap();
    });
    let (outer, inner) = (free(), free());
    let (first, second) = (chain(&[("outer", outer, inner), ("inner", inner, at)]), 5);
    let dir = tempfile::tempdir().unwrap();
    // As one: live and recorded.
    let one = serve(&first, &dir.path().join("one/taps/tap"), "tap");
    let mut feed = one.meter().feed.listen();
    for _ in 0..second {
        exchange(&mut connect(outer), chat(16, "", "").as_bytes(), END);
    }
    one.stop(Duration::from_secs(2));
    let mut live = Vec::new();
    while let Ok(line) = feed.try_recv() {
        live.push(serde_json::from_str::<serde_json::Value>(&line).unwrap());
    }
    let offline = pair(&dir.path().join("one"));
    assert_eq!((live.len(), offline.len()), (second, second));
    for (live, call) in live.iter().zip(&offline) {
        assert_eq!(live["call"].as_str(), call.outer.keys.call.as_deref());
        assert_eq!(live["class"], call.class.name());
        let legs = call.legs().unwrap();
        assert_eq!(
            live["legs"]["added_ttft"]["value"].as_i64(),
            legs.added_ttft.map(|s| s.value)
        );
    }
    // The same record, split by tap as two processes would have written it.
    let two = dir.path().join("two");
    for (name, keep) in [("outer", "outer"), ("inner", "inner")] {
        let path = two.join("taps").join(name);
        let mut writer =
            record::rundir::SegmentWriter::create(&path, "exchanges", 1 << 20).unwrap();
        for call in &offline {
            for exchange in std::iter::once(&call.outer)
                .chain(&call.attempts)
                .filter(|e| &*e.tap == keep)
            {
                writer.append(exchange).unwrap();
            }
        }
        writer.sync().unwrap();
    }
    assert_eq!(pair(&two), offline);
}

fn hopscope(arguments: &[&str]) -> (Option<i32>, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_hopscope"))
        .args(arguments)
        .output()
        .unwrap();
    (
        run.status.code(),
        String::from_utf8_lossy(&run.stderr).into_owned(),
    )
}

#[test]
fn bad_configurations_are_refused_with_place_and_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    let good = "name: c\nkind: loop\nentry: http://127.0.0.1:18801\nmodel: m\ntaps:\n  - {name: outer, position: outer, listen: \"127.0.0.1:18801\", upstream: {addresses: [\"127.0.0.1:18802\"]}}\n  - {name: inner, position: inner, listen: \"127.0.0.1:18802\", upstream: {addresses: [\"127.0.0.1:18803\"]}}\n";
    let cases = [
        ("unknown key", good.replace("model: m", "modle: m"), "modle"),
        (
            "bad address",
            good.replace("127.0.0.1:18803", "nowhere"),
            "nowhere",
        ),
        (
            "two taps on one port",
            good.replace("listen: \"127.0.0.1:18802\"", "listen: \"127.0.0.1:18801\""),
            "18801",
        ),
    ];
    write("tap.yaml", "chains: [chain.yaml]\n");
    let tap = dir.path().join("tap.yaml");
    for (what, text, named) in cases {
        write("chain.yaml", &text);
        let (code, said) = hopscope(&["tap", "--config", tap.to_str().unwrap()]);
        assert_eq!(code, Some(2), "{what}: {said}");
        assert!(
            said.contains("chain.yaml:") && said.contains(named),
            "{what}: {said}"
        );
    }
    let (code, said) = hopscope(&["tap", "--config", "/nowhere/tap.yaml"]);
    assert!(
        code == Some(2) && said.contains("/nowhere/tap.yaml"),
        "{said}"
    );
    let (code, said) = hopscope(&["report", dir.path().to_str().unwrap()]);
    assert!(
        code == Some(2) && said.contains("not a run directory"),
        "{said}"
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap();
    write(
        "chain.yaml",
        &format!(
            "name: c\nkind: direct\nentry: http://{port}\nmodel: m\ntaps:\n  - {{name: outer, position: outer, listen: \"{port}\", upstream: {{addresses: [\"127.0.0.1:18802\"]}}}}\n"
        ),
    );
    let (code, said) = hopscope(&["tap", "--config", tap.to_str().unwrap()]);
    assert!(
        code == Some(2)
            && said.contains("another program has the port")
            && said.contains("chain.yaml:"),
        "{said}"
    );
}
