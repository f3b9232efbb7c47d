use super::*;
use crate::engine::EngineOptions;
use crate::rig::*;

fn quick() -> EngineOptions {
    EngineOptions {
        ttft_us: 1_000,
        gap_us: 500,
        ..EngineOptions::default()
    }
}

/// How many of `bodies`, sent one after the other, each of two engines got.
async fn shares(options: RouterOptions, bodies: &[String]) -> [usize; 2] {
    let engines = [
        Running::engine(quick()).await,
        Running::engine(quick()).await,
    ];
    let router = Running::router(RouterOptions {
        upstreams: engines.iter().map(|it| it.address.clone()).collect(),
        ..options
    })
    .await;
    let mut client = Client::connect(&router.address).await;
    for body in bodies {
        let answer = client.post(CHAT, "", body).await;
        assert_eq!(answer.content().split_whitespace().count(), 3);
    }
    drop(client);
    router.stop().await.iter().for_each(assert_complete);
    let [one, two] = engines;
    [one.stop().await.len(), two.stop().await.len()]
}

fn ask(prompt: &str) -> String {
    format!(
        r#"{{"stream":true,"max_tokens":3,"messages":[{{"role":"user","content":"{prompt}"}}]}}"#
    )
}

#[tokio::test]
async fn round_robin_is_even_and_prefixes_stay_together() {
    let same = vec![ask(&"table ".repeat(40)); 6];
    assert_eq!(shares(RouterOptions::default(), &same).await, [3, 3]);
    let options = RouterOptions {
        policy: Policy::Prefix,
        ..RouterOptions::default()
    };
    let mut shares = shares(options, &same).await;
    shares.sort_unstable();
    assert_eq!(shares, [0, 6]);
}

#[tokio::test]
async fn a_replica_that_has_not_started_gets_nothing() {
    let options = RouterOptions {
        scale: ScaleOptions {
            min_replicas: 1,
            ..ScaleOptions::default()
        },
        ..RouterOptions::default()
    };
    let bodies = vec![ask("one"); 4];
    assert_eq!(shares(options, &bodies).await, [4, 0]);
}
