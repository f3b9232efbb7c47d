use super::*;

fn caching(mut semantic: SemanticOptions) -> GatewayOptions {
    semantic.semantic_cache = true;
    GatewayOptions {
        semantic,
        ..GatewayOptions::default()
    }
}

/// An engine that tells its system prompt.
fn telling() -> EngineOptions {
    EngineOptions {
        echo_system: true,
        ..quick()
    }
}

fn ask(system: &str, said: &str) -> String {
    format!(
        r#"{{"model":"m","stream":true,"max_tokens":9,"messages":[{{"role":"system","content":"{system}"}},{{"role":"user","content":"{said}"}}]}}"#
    )
}

async fn outcomes(options: SemanticOptions, said: &[&str]) -> Vec<bool> {
    let chain = Chain::new(telling(), caching(options)).await;
    let bodies: Vec<String> = said.iter().map(|said| ask("s", said)).collect();
    let ran = chain.run("", &bodies).await;
    let hits = ran
        .gateway
        .iter()
        .map(|truth| truth.outcome == Outcome::CacheHit);
    let hits: Vec<bool> = hits.collect();
    for (hit, answer) in hits.iter().zip(&ran.answers) {
        assert_eq!(*hit, answer.text().contains("x-cache-hit: true\r\n"));
        assert_eq!(*hit, answer.text().contains("x-semantic-similarity: "));
        assert_eq!(answer.content().split_whitespace().count(), 9);
    }
    let asked = hits.iter().filter(|hit| !**hit).count();
    assert_eq!(ran.engine.len(), asked, "a hit asks no engine");
    hits
}

const TWO: [&str; 4] = [
    "please refund order 17",
    "Order 17: refund, please!",
    "please refund order 18",
    "what time is it",
];

#[tokio::test]
async fn a_threshold_decides_what_is_alike() {
    let default = SemanticOptions::default();
    assert_eq!(
        outcomes(default.clone(), &TWO).await,
        [false, true, false, false]
    );
    let low = SemanticOptions {
        semantic_threshold: 0.7,
        ..default
    };
    // Three of four words: another order's answer, a false hit.
    assert_eq!(outcomes(low, &TWO).await, [false, true, true, false]);
}

#[tokio::test]
async fn answers_end_with_their_time_and_the_look_up_takes_its_own() {
    let options = SemanticOptions {
        semantic_ttl_ms: 150,
        semantic_lookup_us: 20_000,
        ..SemanticOptions::default()
    };
    let chain = Chain::new(telling(), caching(options)).await;
    let mut client = Client::connect(&chain.gateway.address).await;
    for _ in 0..2 {
        client.post(CHAT, "", &ask("s", "hello you")).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    client.post(CHAT, "", &ask("s", "hello you")).await;
    client
        .send(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
        .await;
    let metrics = client.read_until(complete).await.body();
    for counted in ["semantic_hits_total 1\n", "semantic_misses_total 2\n"] {
        assert!(
            metrics.contains(&format!("sim_gateway_{counted}")),
            "{metrics}"
        );
    }
    drop(client);
    let truths = chain.gateway.stop().await;
    let read = truths[0].mark(Mark::RequestBody).unwrap().read_at.unwrap();
    let sent = truths[0].attempts[0].request_write_begin.unwrap();
    assert!(sent - read >= 20_000_000);
    assert_eq!(truths[1].outcome, Outcome::CacheHit);
    assert_eq!(truths[2].outcome, Outcome::Complete);
    chain.engine.stop().await;
}

/// What tenant b is told after tenant a has asked the same.
async fn told_to_b(options: SemanticOptions) -> String {
    let chain = Chain::new(telling(), caching(options)).await;
    let mut client = Client::connect(&chain.gateway.address).await;
    let asked = [("a", "canary-a"), ("b", "canary-b")];
    let mut told = String::new();
    for (key, canary) in asked {
        let field = format!("authorization: Bearer sk-{key}\r\n");
        told = client
            .post(CHAT, &field, &ask(canary, "who are you"))
            .await
            .content();
    }
    drop(client);
    chain.gateway.stop().await;
    chain.engine.stop().await;
    told
}

#[tokio::test]
async fn tenants_are_apart_unless_the_cache_leaks() {
    let apart = told_to_b(SemanticOptions::default()).await;
    assert!(
        apart.contains("canary-b") && !apart.contains("canary-a"),
        "{apart}"
    );
    let leaks = told_to_b(SemanticOptions {
        leak_across_tenants: true,
        ..SemanticOptions::default()
    })
    .await;
    assert!(
        leaks.contains("canary-a") && !leaks.contains("canary-b"),
        "{leaks}"
    );
}

#[tokio::test]
async fn an_engine_tells_its_system_prompt_only_when_told_to() {
    let silent = Chain::new(quick(), GatewayOptions::default()).await;
    let ran = silent.run("", &[ask("canary-1", "hi")]).await;
    assert!(!ran.answers[0].content().contains("canary"));
    let chain = Chain::new(telling(), GatewayOptions::default()).await;
    let whole = ask("the code: \\\"canary-1\\\" ok", "hi").replace("\"stream\":true,", "");
    let ran = chain
        .run("", &[ask("the \\\"canary-1\\\" ok", "hi"), whole])
        .await;
    assert!(ran.answers[0].content().starts_with(" the canary-1 ok "));
    assert!(ran.answers[1].body().contains("\" the code canary-1 ok "));
}

#[test]
fn the_command_line_has_the_same_defaults_and_no_leak_without_a_cache() {
    use clap::{Args, FromArgMatches};
    let line = GatewayOptions::augment_args(clap::Command::new("x"));
    let parse = |words: &[&str]| line.clone().try_get_matches_from(words);
    let parsed = GatewayOptions::from_arg_matches(&parse(&["x"]).unwrap()).unwrap();
    assert_eq!(parsed, GatewayOptions::default());
    assert!(parse(&["x", "--leak-across-tenants"]).is_err());
    assert!(parse(&["x", "--leak-across-tenants", "--semantic-cache"]).is_ok());
    assert!(parse(&["x", "--semantic-threshold", "2"]).is_err());
}
