use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_streams_at_once() {
    let options = EngineOptions {
        ttft_us: 100_000,
        gap_us: 20_000,
        ..EngineOptions::default()
    };
    let engine = Running::engine(options).await;
    let mut streams = tokio::task::JoinSet::new();
    for _ in 0..300 {
        let address = engine.address.clone();
        streams.spawn(async move {
            let mut client = Client::connect(&address).await;
            let answer = client.post(CHAT, "", &stream_of(20)).await;
            answer.content().split_whitespace().count()
        });
    }
    let tokens = streams.join_all().await;
    assert_eq!(tokens, vec![20; 300]);
    let truths = engine.stop().await;
    assert_eq!(truths.len(), 300);
    for truth in &truths {
        assert_complete(truth);
        assert_eq!(truth.tokens.len(), 20);
    }
}
