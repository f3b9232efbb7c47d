//! TLS on either side of a tap: certificates beside the chain's file, stamps of their own class.

use crate::rig::{END, certificate, chat, connect, exchange, free, pair, serve, upstream};
use config::Chain;
use record::pairing::CallClass;
use record::stamp::StampClass;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

/// Cleartext client → outer tap → TLS → inner tap → cleartext engine.
fn between(verify: &str) -> (Vec<u8>, Vec<record::pairing::Call>) {
    let (at, _) = upstream(|socket, _| {
        let event = "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        socket.write_all(format!("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{event}\r\n0\r\n\r\n", event.len()).as_bytes()).unwrap();
    });
    let dir = tempfile::tempdir().unwrap();
    let taps = dir.path().join("taps/tap");
    std::fs::create_dir_all(&taps).unwrap();
    certificate(&taps);
    let (outer, inner) = (free(), free());
    let text = format!(
        "name: rig\nkind: loop\nsimulated: true\nentry: http://{outer}\nmodel: m\ntaps:\n\
         \x20 - {{name: outer, position: outer, listen: \"{outer}\", upstream: {{addresses: [\"{inner}\"], tls: {{server_name: localhost, {verify}}}}}}}\n\
         \x20 - {{name: inner, position: inner, listen: \"{inner}\", tls: {{cert: cert.pem, key: key.pem}}, upstream: {{addresses: [\"{at}\"]}}}}\n"
    );
    let chain = config::from_text::<Chain>(&taps.join("rig.yaml"), &text)
        .unwrap()
        .into_inner();
    let server = serve(&chain, &taps, "tap");
    let got = exchange(&mut connect(outer), chat(16, "", "").as_bytes(), END);
    server.stop(Duration::from_secs(2));
    (got, pair(Path::new(dir.path())))
}

#[test]
fn a_stream_passes_through_tls_and_its_stamps_are_of_class_tls() {
    for verify in ["verify: false", "ca: cert.pem"] {
        let (got, calls) = between(verify);
        assert!(
            got.ends_with(END),
            "{verify}: {}",
            String::from_utf8_lossy(&got)
        );
        let call = &calls[0];
        assert_eq!(call.class, CallClass::Served, "{verify}");
        assert_eq!(call.outer.connection.client_class, StampClass::Socket);
        assert_eq!(call.outer.connection.upstream_class, StampClass::Tls);
        assert_eq!(call.attempts[0].connection.client_class, StampClass::Tls);
        assert!(call.legs().unwrap().added_ttft.is_some());
    }
}

#[test]
fn a_certificate_that_nobody_vouches_for_is_refused_with_a_reason() {
    let (got, calls) = between("verify: true");
    let got = String::from_utf8_lossy(&got);
    assert!(
        got.starts_with("HTTP/1.1 502") && got.to_lowercase().contains("cert"),
        "{got}"
    );
    assert!(calls[0].attempts.is_empty());
}
