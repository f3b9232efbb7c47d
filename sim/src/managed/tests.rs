use std::time::Duration;

use super::*;
use crate::rig::*;
use crate::truth::{ExchangeTruth, Mark, Outcome};

/// Without tail or spread, and quick.
fn plain() -> ManagedOptions {
    ManagedOptions {
        ttft_us: 5_000,
        ttft_sigma: 0.0,
        tail_share: 0.0,
        prefill_token_us: 0,
        gap_us: 1_000,
        rpm: 0,
        tpm: 0,
        ..ManagedOptions::default()
    }
}

async fn run(options: ManagedOptions, bodies: &[String]) -> (Vec<Answer>, Vec<ExchangeTruth>) {
    let service = Running::managed(options).await;
    let mut client = Client::connect(&service.address).await;
    let mut answers = Vec::new();
    for body in bodies {
        answers.push(client.post(CHAT, "", body).await);
    }
    drop(client);
    (answers, service.stop().await)
}

fn statuses(answers: &[Answer]) -> Vec<u16> {
    answers.iter().map(Answer::status).collect()
}

/// From the request's last byte to the first token, ns.
fn first_token_after(truth: &ExchangeTruth) -> u64 {
    let read = truth.mark(Mark::RequestBody).unwrap().read_at.unwrap();
    truth.first_token().unwrap().write_begin - read
}

#[tokio::test]
async fn requests_beyond_the_quota_are_throttled() {
    let options = ManagedOptions { rpm: 3, ..plain() };
    let bodies = vec![stream_of(1); 5];
    let (answers, truths) = run(options, &bodies).await;
    assert_eq!(statuses(&answers), [200, 200, 200, 429, 429]);
    let told = answers[3].text();
    assert!(
        told.contains("x-amzn-errortype: ThrottlingException:"),
        "{told}"
    );
    assert!(!told.contains("retry-after"));
    let body: serde_json::Value = serde_json::from_str(&answers[3].body()).unwrap();
    assert_eq!(body["error"]["type"], "ThrottlingException");
    assert_eq!(
        body["error"]["message"],
        "Too many requests, please wait before trying again."
    );
    assert_complete(&truths[0]);
    assert_eq!(
        (truths[3].outcome, truths[3].status),
        (Outcome::Refused, Some(429))
    );
}

#[tokio::test]
async fn max_tokens_is_reserved_from_the_quota() {
    // 3 + 10 tokens, or 3 + 50 where output burns five times as fast.
    let options = ManagedOptions { tpm: 60, ..plain() };
    let bodies = vec![stream_of(10); 6];
    let (answers, _) = run(options.clone(), &bodies).await;
    assert_eq!(statuses(&answers), [200, 200, 200, 200, 429, 429]);
    assert!(answers[4].body().contains("Too many tokens"));
    let burning = ManagedOptions {
        output_burndown: 5,
        ..options
    };
    assert_eq!(statuses(&run(burning, &bodies[..2]).await.0), [200, 429]);
}

#[tokio::test]
async fn a_quota_fills_in_scaled_time() {
    let options = ManagedOptions {
        rpm: 1,
        time_scale: 600.0, // a minute in 100 ms
        ..plain()
    };
    let service = Running::managed(options).await;
    let mut client = Client::connect(&service.address).await;
    assert_eq!(client.post(CHAT, "", &stream_of(1)).await.status(), 200);
    assert_eq!(client.post(CHAT, "", &stream_of(1)).await.status(), 429);
    tokio::time::sleep(Duration::from_millis(120)).await;
    assert_eq!(client.post(CHAT, "", &stream_of(1)).await.status(), 200);
    drop(client);
    service.stop().await;
}

#[tokio::test]
async fn first_tokens_come_as_the_seed_draws_them() {
    let options = ManagedOptions {
        ttft_us: 10_000,
        ttft_sigma: 0.3,
        tail_share: 0.3,
        tail_from: 5.0,
        tail_alpha: 3.0,
        seed: 9,
        ..plain()
    };
    let mut tail = Tail::new(options.seed);
    let wishes: Vec<f64> = (0..12).map(|_| tail.draw(&options) * 1e7).collect();
    assert!(
        wishes.iter().any(|wish| *wish > 5e7),
        "the seed draws from the tail"
    );
    let (_, truths) = run(options, &vec![stream_of(1); 12]).await;
    for (wish, truth) in wishes.iter().zip(&truths) {
        let after = first_token_after(truth) as f64;
        assert!(after >= wish - 1e3, "{after} ns before its time, {wish} ns");
        assert!(
            after < wish + 2e7,
            "{after} ns long after its time, {wish} ns"
        );
    }
}

#[tokio::test]
async fn a_known_prefix_is_reported_and_shortens_the_first_token() {
    let options = ManagedOptions {
        prompt_cache: true,
        cache_min_tokens: 160,
        prefill_token_us: 500,
        ..plain()
    };
    let ask = |beginning: &str, end: &str| {
        let prompt = beginning.repeat(200) + end;
        stream_of(2).replace("one two three", &prompt)
    };
    let bodies = [ask("a ", "first"), ask("a ", "second"), ask("b ", "third")];
    let (answers, truths) = run(options.clone(), &bodies).await;
    let cached: Vec<u64> = truths
        .iter()
        .map(|truth| truth.cached_tokens.unwrap())
        .collect();
    assert_eq!(cached, [0, 192, 0], "twelve blocks of 16");
    let usage = answers[1].chunks().pop().unwrap()["usage"].clone();
    assert_eq!(usage["prompt_tokens_details"]["cached_tokens"], 192);
    assert_eq!(usage["prompt_tokens"], 201);
    let after: Vec<u64> = truths.iter().map(first_token_after).collect();
    assert!(after[0] >= 105_000_000 && after[2] >= 105_000_000);
    assert!(
        after[1] >= 9_500_000 && after[1] < after[0] / 2,
        "{after:?}"
    );

    let without = ManagedOptions {
        prompt_cache: false,
        ..options
    };
    let (_, truths) = run(without, &bodies[..2]).await;
    assert_eq!(truths[1].cached_tokens, Some(0));
}

/// A Converse request whose system prompt of 200 words ends at a cache point, where one is set.
fn conversation(system: &str, cached: bool, end: &str) -> String {
    let mut parts = vec![serde_json::json!({"text": system.repeat(200)})];
    if cached {
        parts.push(serde_json::json!({"cachePoint": {"type": "default"}}));
    }
    serde_json::json!({
        "system": parts, "inferenceConfig": {"maxTokens": 2},
        "messages": [{"role": "user", "content": [{"text": end}]}]
    })
    .to_string()
}

#[tokio::test]
async fn bedrocks_own_api_caches_what_ends_at_a_cache_point_and_nothing_else() {
    let options = ManagedOptions {
        prompt_cache: true,
        cache_min_tokens: 160,
        prefill_token_us: 500,
        ..plain()
    };
    let service = Running::managed(options).await;
    let mut client = Client::connect(&service.address).await;
    let mut usages = Vec::new();
    for (system, cached, end) in [
        ("a ", false, "one two"),
        ("a ", true, "one two"),
        ("a ", true, "three"),
        ("a ", false, "three"),
        ("b ", true, "three"),
    ] {
        let body = conversation(system, cached, end);
        let answer = client.post("/model/m/converse", "", &body).await;
        let answer: serde_json::Value = serde_json::from_str(&answer.body()).unwrap();
        let usage = |name: &str| answer["usage"][name].as_u64().unwrap();
        usages.push([
            usage("inputTokens"),
            usage("cacheReadInputTokens"),
            usage("cacheWriteInputTokens"),
        ]);
    }
    assert_eq!(
        usages,
        [
            [202, 0, 0],
            [2, 0, 200],
            [1, 200, 0],
            [201, 0, 0],
            [1, 0, 200]
        ]
    );
    // The same in a model's own form.
    let body = serde_json::json!({
        "anthropic_version": "bedrock-2023-05-31", "max_tokens": 2,
        "system": [{"type": "text", "text": "a ".repeat(200), "cache_control": {"type": "ephemeral"}}],
        "messages": [{"role": "user", "content": "four five six"}]
    });
    let answer = client.post("/model/m/invoke", "", &body.to_string()).await;
    let told = answer.text();
    assert!(
        told.contains("x-amzn-bedrock-cache-read-input-token-count: 200"),
        "{told}"
    );
    let answer: serde_json::Value = serde_json::from_str(&answer.body()).unwrap();
    let usage = &answer["usage"];
    assert_eq!(
        (&usage["input_tokens"], &usage["cache_read_input_tokens"]),
        (&3.into(), &200.into())
    );
    drop(client);
    let after: Vec<u64> = service.stop().await.iter().map(first_token_after).collect();
    assert!(after[0] >= 106_000_000 && after[1] >= 106_000_000);
    assert!(after[2] < after[0] / 2, "{after:?}");
}

fn imported(cold: Cold) -> ManagedOptions {
    ManagedOptions {
        imported: true,
        cold,
        // 100 ms to load, gone after 300.
        cold_start_ms: 10_000,
        cold_after_ms: 30_000,
        time_scale: 100.0,
        ttft_us: 500_000,
        ..plain()
    }
}

#[tokio::test]
async fn a_cold_copy_is_not_ready_then_warm_then_cold_again() {
    let service = Running::managed(imported(Cold::Refuse)).await;
    let mut client = Client::connect(&service.address).await;
    let cold = client.post(CHAT, "", &stream_of(1)).await;
    assert_eq!(cold.status(), 429);
    assert!(
        cold.text()
            .contains("x-amzn-errortype: ModelNotReadyException:")
    );
    assert!(cold.body().contains("Model is not ready for inference."));
    tokio::time::sleep(Duration::from_millis(110)).await;
    assert_eq!(client.post(CHAT, "", &stream_of(1)).await.status(), 200);
    client
        .send(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
        .await;
    let metrics = client.read_until(complete).await.body();
    assert!(metrics.contains("sim_managed_copies 1\n"), "{metrics}");
    assert!(metrics.contains("sim_managed_not_ready_total 1\n"));
    tokio::time::sleep(Duration::from_millis(320)).await;
    assert_eq!(client.post(CHAT, "", &stream_of(1)).await.status(), 429);
    drop(client);
    service.stop().await;
}

#[tokio::test]
async fn those_who_wait_for_a_cold_copy_pay_its_start() {
    let (answers, truths) = run(imported(Cold::Wait), &[stream_of(1), stream_of(1)]).await;
    assert_eq!(statuses(&answers), [200, 200]);
    let (cold, warm) = (first_token_after(&truths[0]), first_token_after(&truths[1]));
    assert!(cold >= 104_000_000, "{cold} ns");
    assert!(warm < cold / 2, "{warm} ns, cold {cold} ns");
}

#[tokio::test]
async fn more_calls_than_one_copy_takes_start_another() {
    let options = ManagedOptions {
        copy_concurrency: 1,
        max_copies: 2,
        ttft_us: 20_000_000, // 200 ms
        ..imported(Cold::Wait)
    };
    let service = Running::managed(options).await;
    let mut calls = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let address = service.address.clone();
        calls.spawn(async move {
            let mut client = Client::connect(&address).await;
            client.post(CHAT, "", &stream_of(1)).await.status()
        });
    }
    let mut statuses = calls.join_all().await;
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 200, 429], "two copies are the most");
    service.stop().await;
}

#[test]
fn the_command_line_has_the_same_defaults() {
    use clap::{Args, FromArgMatches};
    let line = ManagedOptions::augment_args(clap::Command::new("x"));
    let parse = |words: &[&str]| line.clone().try_get_matches_from(words);
    let parsed = ManagedOptions::from_arg_matches(&parse(&["x"]).unwrap()).unwrap();
    assert_eq!(parsed, ManagedOptions::default());
    assert!(parse(&["x", "--tail-share", "1.5"]).is_err());
    assert!(parse(&["x", "--max-copies", "0"]).is_err());
}
