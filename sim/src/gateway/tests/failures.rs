use super::*;

#[tokio::test]
async fn a_failed_first_attempt_is_repeated_once() {
    let engine = EngineOptions {
        fault: "status=503".parse().unwrap(),
        fault_every: 2,
        ..quick()
    };
    let options = GatewayOptions {
        retry: true,
        ..GatewayOptions::default()
    };
    let chain = Chain::new(engine, options).await;
    let call = "x-hopscope-call: c\r\n";
    let ran = chain.run(call, &[stream_of(2), stream_of(2)]).await;
    assert_eq!(ran.answers[1].status(), 200);
    let truth = &ran.gateway[1];
    let statuses: Vec<_> = truth
        .attempts
        .iter()
        .map(|attempt| attempt.status)
        .collect();
    assert_eq!((statuses, truth.attempt), (vec![Some(503), Some(200)], 2));
    assert!(truth.attempts[0].head_read_at <= truth.attempts[1].request_write_begin);
    assert_eq!(ran.engine.len(), 3);
    assert_chained(&ran.engine[2], truth);
}

#[tokio::test]
async fn an_abandoned_attempt_ends_at_the_engine() {
    let options = GatewayOptions {
        abandon_share: 1.0,
        ..GatewayOptions::default()
    };
    let chain = Chain::new(quick(), options).await;
    let mut client = Client::connect(&chain.gateway.address).await;
    assert_eq!(client.post(CHAT, "", &stream_of(3)).await.status(), 200);
    let truth = chain.gateway.stop().await.remove(0);
    let abandoned: Vec<_> = truth
        .attempts
        .iter()
        .map(|attempt| attempt.abandoned)
        .collect();
    assert_eq!(
        (abandoned, truth.outcome),
        (vec![true, false], Outcome::Complete)
    );
    let mut outcomes: Vec<_> = chain
        .engine
        .truths(2)
        .await
        .iter()
        .map(|truth| truth.outcome)
        .collect();
    outcomes.sort_by_key(|outcome| *outcome == Outcome::Complete);
    assert_eq!(outcomes, [Outcome::ClientGone, Outcome::Complete]);
}

#[tokio::test]
async fn a_cut_upstream_cuts_the_client() {
    for fault in ["close-after=2", "reset-after=2", "truncate-length"] {
        let chain = Chain::new(quick(), GatewayOptions::default()).await;
        let extra = format!("x-sim-fault: {fault}\r\n");
        let ran = chain.run(&extra, &[stream_of(4)]).await;
        assert_eq!(ran.answers[0].ended, Some(false), "{fault}");
        assert!(!complete(&ran.answers[0].bytes), "{fault}");
        assert_eq!(ran.gateway[0].outcome, Outcome::UpstreamFailed);
        assert_eq!(ran.gateway[0].tokens.len(), ran.engine[0].tokens.len());
    }
}

#[tokio::test]
async fn a_missing_upstream_is_told() {
    let options = GatewayOptions {
        upstream: "127.0.0.1:1".to_owned(),
        retry: true,
        ..GatewayOptions::default()
    };
    let gateway = Running::gateway(options).await;
    let mut client = Client::connect(&gateway.address).await;
    let answer = client.post(CHAT, "", &stream_of(1)).await;
    assert_eq!(answer.status(), 502);
    assert!(answer.body().contains("cannot reach 127.0.0.1:1"));
    let truth = gateway.stop().await.remove(0);
    assert_eq!(
        (truth.outcome, truth.attempts.len()),
        (Outcome::UpstreamFailed, 2)
    );
}

#[tokio::test]
async fn a_connection_that_the_engine_closed_is_not_an_error() {
    let chain = Chain::new(quick(), GatewayOptions::default()).await;
    let extra = "x-sim-fault: fin-after-response\r\n";
    let ran = chain.run(extra, &vec![stream_of(2); 5]).await;
    assert!(ran.answers.iter().all(|answer| answer.status() == 200));
    assert!(
        ran.gateway
            .iter()
            .all(|truth| truth.outcome == Outcome::Complete)
    );
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_upstream() {
    let slow = EngineOptions {
        gap_us: 10_000_000,
        ..quick()
    };
    let delays = GatewayOptions {
        token_delay_us: 1_000,
        ..GatewayOptions::default()
    };
    let chain = Chain::new(slow, delays).await;
    let mut client = Client::connect(&chain.gateway.address).await;
    client.send(post(CHAT, "", &stream_of(5)).as_bytes()).await;
    let first = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("\"content\":\" ");
    client.read_until(first).await;
    drop(client);
    assert_eq!(
        chain.gateway.truths(1).await[0].outcome,
        Outcome::ClientGone
    );
    assert_eq!(chain.engine.truths(1).await[0].outcome, Outcome::ClientGone);
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_the_stream_in_bounds() {
    let fast = EngineOptions {
        gap_us: 0,
        tokens_per_chunk: 50,
        ..quick()
    };
    let chain = Chain::new(fast, GatewayOptions::default()).await;
    let mut client = Client::with_small_buffer(&chain.gateway.address).await;
    client
        .send(post(CHAT, "", &stream_of(1_000_000)).as_bytes())
        .await;
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let answer = client.read_until(complete).await;
    assert_eq!(answer.content().split_whitespace().count(), 1_000_000);
    let truth = chain.gateway.stop().await.remove(0);
    assert_complete(&truth);
    let slowest = truth
        .tokens
        .iter()
        .map(|token| token.write_end - token.write_begin)
        .max();
    assert!(
        slowest > Some(50_000_000),
        "no write was blocked: {slowest:?}"
    );
    chain.engine.stop().await;
}

#[tokio::test]
async fn what_was_read_but_not_written_is_counted() {
    let delays = GatewayOptions {
        token_delay_us: 10_000_000,
        ..GatewayOptions::default()
    };
    let chain = Chain::new(quick(), delays).await;
    let mut client = Client::connect(&chain.gateway.address).await;
    client.send(post(CHAT, "", &stream_of(3)).as_bytes()).await;
    let role = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains("role");
    client.read_until(role).await;
    chain.engine.truths(1).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    drop(client);
    let truth = chain.gateway.truths(1).await.remove(0);
    assert_eq!((truth.tokens.len(), truth.tokens_unwritten), (0, 3));
}
