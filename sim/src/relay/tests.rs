use std::time::Duration;

use super::*;
use crate::engine::EngineOptions;
use crate::rig::*;
use crate::truth::{ExchangeTruth, Mark, Outcome};

async fn chain(options: RelayOptions) -> (Running, Running) {
    let engine = Running::engine(EngineOptions {
        ttft_us: 2_000,
        gap_us: 2_000,
        ..EngineOptions::default()
    })
    .await;
    let relay = Running::relay(RelayOptions {
        upstream: engine.address.clone(),
        ..options
    })
    .await;
    (engine, relay)
}

fn bytes(truth: &ExchangeTruth, direction: Direction) -> u64 {
    truth
        .segments
        .iter()
        .filter(|segment| segment.direction == direction)
        .map(|segment| segment.end_offset - segment.begin_offset)
        .sum()
}

#[tokio::test]
async fn exchanges_of_one_connection_are_told_apart() {
    let (engine, relay) = chain(RelayOptions::default()).await;
    let mut client = Client::connect(&relay.address).await;
    let mut answers = Vec::new();
    for call in ["a", "b"] {
        let extra = format!("x-hopscope-call: {call}\r\nx-sim-fault: informational,trailers\r\n");
        answers.push(client.post(CHAT, &extra, &stream_of(8)).await);
    }
    let whole = r#"{"messages":[{"content":"a"}],"max_tokens":3}"#;
    answers.push(client.post(CHAT, "", whole).await);
    let truths = relay.truths(3).await;
    let inner = engine.stop().await;
    for (truth, answer) in truths.iter().zip(&answers) {
        assert_complete(truth);
        assert_eq!(bytes(truth, Direction::Down), answer.bytes.len() as u64);
        assert_eq!(truth.status, Some(200));
    }
    let calls: Vec<_> = truths.iter().map(|truth| truth.call.as_deref()).collect();
    assert_eq!(calls, [Some("a"), Some("b"), None]);
    for (truth, inner) in truths.iter().zip(&inner).take(2) {
        assert_eq!(truth.response_id, inner.response_id);
        assert_eq!(truth.tokens.len(), inner.tokens.len());
        for (outer, inner) in truth.tokens.iter().zip(&inner.tokens) {
            assert_eq!(outer.end_text_offset, inner.end_text_offset);
            assert!(outer.read_at.unwrap() >= inner.write_begin);
        }
        for mark in [Mark::Role, Mark::Finish, Mark::Usage, Mark::Done, Mark::End] {
            assert!(truth.mark(mark).is_some(), "{mark:?}");
        }
    }
    let first = &truths[0].segments[0];
    assert_eq!((first.direction, first.begin_offset), (Direction::Up, 0));
    assert!(
        truths[1].segments[0].begin_offset > 0,
        "offsets are the connection's"
    );
    relay.stop().await;
}

#[tokio::test]
async fn stamps_of_each_read_are_in_order() {
    let (engine, relay) = chain(RelayOptions::default()).await;
    let mut client = Client::connect(&relay.address).await;
    client.post(CHAT, "", &stream_of(10)).await;
    let truth = relay.truths(1).await.remove(0);
    let mut holds: Vec<u64> = truth
        .segments
        .iter()
        .map(|segment| {
            assert!(segment.write_begin <= segment.write_end);
            segment.write_begin - segment.read_at
        })
        .collect();
    holds.sort_unstable();
    assert!(holds[holds.len() / 2] < 1_000_000, "a relay does not wait");
    engine.stop().await;
}

#[tokio::test]
async fn cuts_and_resets_pass_through() {
    let (engine, relay) = chain(RelayOptions::default()).await;
    for (fault, reset) in [("close-after=2", false), ("reset-after=2", true)] {
        let mut client = Client::connect(&relay.address).await;
        let extra = format!("x-sim-fault: {fault}\r\n");
        let answer = client.post(CHAT, &extra, &stream_of(5)).await;
        assert_eq!(answer.ended, Some(reset), "{fault}");
        drop(client);
        let truth = relay.truths(1).await.remove(0);
        assert_eq!(
            (truth.outcome, truth.tokens.len()),
            (Outcome::UpstreamFailed, 2),
            "{fault}"
        );
    }
    let mut client = Client::connect(&relay.address).await;
    client
        .send(post(CHAT, "x-sim-fault: stall-after=1\r\n", &stream_of(5)).as_bytes())
        .await;
    let first = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("\"content\":\" ");
    client.read_until(first).await;
    drop(client);
    assert_eq!(relay.truths(1).await[0].outcome, Outcome::ClientGone);
    engine.stop().await;
}

#[tokio::test]
async fn an_opaque_relay_notes_bytes_only() {
    let options = RelayOptions {
        opaque: true,
        ..RelayOptions::default()
    };
    let (engine, relay) = chain(options).await;
    let mut client = Client::connect(&relay.address).await;
    let mut received = 0;
    for _ in 0..2 {
        received += client
            .post(CHAT, "x-hopscope-call: a\r\n", &stream_of(3))
            .await
            .bytes
            .len();
    }
    drop(client);
    let truth = relay.truths(1).await.remove(0);
    assert_eq!(
        (truth.outcome, truth.call, truth.tokens.len()),
        (Outcome::Complete, None, 0)
    );
    assert_eq!(truth.segments.last().unwrap().end_offset, received as u64);
    engine.stop().await;
}

#[tokio::test]
async fn a_missing_upstream_resets_the_client() {
    let relay = Running::relay(RelayOptions {
        upstream: "127.0.0.1:1".to_owned(),
        ..RelayOptions::default()
    })
    .await;
    let mut client = Client::connect(&relay.address).await;
    assert!(client.closes(Duration::from_secs(5)).await);
    assert!(relay.stop().await.is_empty());
}
