//! What a gateway stand-in was told to do comes out in the right leg, against its own stamps.

use crate::rig::{END, Rig, chat, connect, exchange};
use hopscope::truth;
use record::leg::{TextAgreement, identity_error};
use record::pairing::{Call, CallClass, MatchedBy};
use sim::engine::EngineOptions;
use sim::gateway::GatewayOptions;

fn engine() -> EngineOptions {
    EngineOptions {
        ttft_us: 10_000,
        gap_us: 4_000,
        ..EngineOptions::default()
    }
}

fn drive(rig: &mut Rig, calls: usize, tokens: u32) -> Vec<Call> {
    let mut socket = connect(rig.outer);
    for _ in 0..calls {
        let got = exchange(&mut socket, chat(tokens, "", "").as_bytes(), END);
        assert!(
            got.starts_with(b"HTTP/1.1 200"),
            "{}",
            String::from_utf8_lossy(&got)
        );
    }
    drop(socket);
    rig.calls()
}

#[test]
fn every_mode_pairs_every_call_and_keeps_the_identity() {
    let modes = [
        GatewayOptions::default(),
        GatewayOptions {
            reserialize: true,
            drop_empty: true,
            synthesize_final: true,
            ..GatewayOptions::default()
        },
        GatewayOptions {
            merge: 4,
            reserialize: true,
            hold_head: true,
            ..GatewayOptions::default()
        },
        GatewayOptions {
            strip_headers: true,
            forward_header: vec!["x-hopscope-call".to_owned()],
            ..GatewayOptions::default()
        },
    ];
    for mode in modes {
        let mut rig = Rig::start(engine(), mode.clone());
        let calls = drive(&mut rig, 6, 24);
        assert_eq!(calls.len(), 6);
        for call in &calls {
            assert_eq!(
                (call.class, call.matched),
                (CallClass::Served, Some(MatchedBy::Header)),
                "{mode:?}"
            );
            let legs = call.legs().unwrap();
            assert_eq!(legs.text, TextAgreement::Same, "{mode:?}");
            assert_eq!(legs.tokens.unmatched, 0, "{mode:?}");
            assert_eq!(
                identity_error(&call.outer, call.served_by().unwrap(), &legs),
                Some(0),
                "{mode:?}"
            );
        }
    }
}

#[test]
fn delays_come_out_where_they_were_injected() {
    let gateway = GatewayOptions {
        request_delay_us: 30_000,
        token_delay_us: 2_000,
        reserialize: true,
        ..GatewayOptions::default()
    };
    let mut rig = Rig::start(engine(), gateway);
    let calls = drive(&mut rig, 8, 24);
    let rows = truth::compare(&calls, &rig.truth.take());
    for (leg, at_least) in [
        ("request", 29e6),
        ("first token", 1.9e6),
        ("last token", 1.9e6),
    ] {
        let row = rows.iter().find(|r| r.leg == leg).unwrap();
        assert!(
            row.truth > at_least,
            "{leg}: the stand-in took {} ns",
            row.truth
        );
        // Two hops and a wake-up lie between; a busy machine may make them long.
        let apart = row.residual;
        assert!(
            (0.0..5e6).contains(&apart),
            "{leg}: measured − true = {apart} ns"
        );
    }
}

#[test]
fn a_millisecond_on_each_of_a_thousand_tokens_adds_a_millisecond() {
    let engine = EngineOptions {
        ttft_us: 5_000,
        gap_us: 2_000,
        ..EngineOptions::default()
    };
    let mut rig = Rig::start(
        engine,
        GatewayOptions {
            token_delay_us: 1_000,
            ..GatewayOptions::default()
        },
    );
    let calls = drive(&mut rig, 1, 1_000);
    let legs = calls[0].legs().unwrap();
    assert_eq!(legs.tokens.delays.len(), 999);
    let added = legs.added_text.unwrap().value;
    assert!(
        (900_000..100_000_000).contains(&added),
        "{added} ns: about 1 ms, not 1 s"
    );
}

#[test]
fn caches_retries_and_stripped_headers_are_told_apart() {
    let mut rig = Rig::start(
        engine(),
        GatewayOptions {
            cache: true,
            ..GatewayOptions::default()
        },
    );
    let classes: Vec<CallClass> = drive(&mut rig, 2, 16).iter().map(|c| c.class).collect();
    assert_eq!(classes, [CallClass::Served, CallClass::CacheHit]);

    let mut rig = Rig::start(
        engine(),
        GatewayOptions {
            abandon_share: 1.0,
            retry: true,
            ..GatewayOptions::default()
        },
    );
    let calls = drive(&mut rig, 1, 16);
    assert_eq!(
        (calls[0].class, calls[0].attempts.len()),
        (CallClass::Recovered, 2)
    );
    let legs = calls[0].legs().unwrap();
    assert!(legs.recovery.unwrap().value > 0 && legs.outside_attempts.is_some());

    let mut rig = Rig::start(
        engine(),
        GatewayOptions {
            strip_headers: true,
            ..GatewayOptions::default()
        },
    );
    let calls = drive(&mut rig, 1, 16);
    assert_eq!(
        (calls[0].class, calls[0].matched),
        (CallClass::Served, Some(MatchedBy::Fingerprint))
    );
}

#[test]
fn fifty_streams_at_once_all_pair() {
    let mut rig = Rig::start(
        engine(),
        GatewayOptions {
            reserialize: true,
            ..GatewayOptions::default()
        },
    );
    let outer = rig.outer;
    let threads: Vec<_> = (0..50)
        .map(|_| {
            std::thread::spawn(move || {
                exchange(&mut connect(outer), chat(32, "", "").as_bytes(), END)
            })
        })
        .collect();
    for thread in threads {
        assert!(thread.join().unwrap().ends_with(END));
    }
    let calls = rig.calls();
    assert_eq!(calls.len(), 50);
    assert!(
        calls
            .iter()
            .all(|c| c.class == CallClass::Served && c.legs().unwrap().tokens.unmatched == 0)
    );
}
