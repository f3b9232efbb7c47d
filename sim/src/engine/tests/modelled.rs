use super::*;

/// A thousand times as fast as the default engine.
fn modelled() -> EngineOptions {
    EngineOptions {
        model_options: ModelOptions {
            modelled: true,
            time_scale: 1000.0,
            ..ModelOptions::default()
        },
        ..EngineOptions::default()
    }
}

fn ask(prompt: &str, tokens: u64) -> String {
    format!(
        r#"{{"stream":true,"stream_options":{{"include_usage":true}},"max_tokens":{tokens},"messages":[{{"role":"user","content":"{prompt}"}}]}}"#
    )
}

fn cached(answer: &Answer) -> u64 {
    let chunks = answer.chunks();
    let usage = &chunks.last().unwrap()["usage"];
    usage["prompt_tokens_details"]["cached_tokens"]
        .as_u64()
        .unwrap()
}

#[tokio::test]
async fn a_repeated_prompt_and_a_later_turn_come_from_the_cache() {
    let engine = Running::engine(modelled()).await;
    let mut client = Client::connect(&engine.address).await;
    let prompt = "table ".repeat(160);
    let first = client.post(CHAT, "", &ask(&prompt, 40)).await;
    let again = client.post(CHAT, "", &ask(&prompt, 40)).await;
    assert_eq!((cached(&first), cached(&again)), (0, 144));
    assert_eq!(first.content().split_whitespace().count(), 40);
    let turn = format!("{prompt}{} next", first.content().trim());
    let turn = client.post(CHAT, "", &ask(&turn, 1)).await;
    // 160 + 39 tokens were computed: 12 blocks of 16.
    assert_eq!(cached(&turn), 192);

    let metrics = get(&engine.address, "GET /metrics HTTP/1.1").await.body();
    for sample in [
        "vllm:prefix_cache_queries_total{model_name=\"sim\",engine=\"0\"} 521\n",
        "vllm:prefix_cache_hits_total{model_name=\"sim\",engine=\"0\"} 336\n",
        "vllm:generation_tokens_total{model_name=\"sim\",engine=\"0\"} 81\n",
        "vllm:time_to_first_token_seconds_count{model_name=\"sim\",engine=\"0\"} 3\n",
        "vllm:num_requests_running{model_name=\"sim\",engine=\"0\"} 0\n",
        "vllm:kv_cache_usage_perc{model_name=\"sim\",engine=\"0\"} 0\n",
    ] {
        assert!(metrics.contains(sample), "{sample} is not in {metrics}");
    }
    let truths = engine.stop().await;
    assert_eq!(truths[1].cached_tokens, Some(144));
    truths.iter().for_each(assert_complete);
}

#[tokio::test]
async fn whole_answers_wait_and_what_cannot_fit_is_refused() {
    let mut options = modelled();
    options.model_options.kv_blocks = 4;
    let engine = Running::engine(options).await;
    let mut client = Client::connect(&engine.address).await;
    let body = ask("one two", 30).replace("\"stream\":true,", "");
    let answer = client.post(CHAT, "", &body).await;
    let answer: serde_json::Value = serde_json::from_str(&answer.body()).unwrap();
    assert_eq!(answer["usage"]["completion_tokens"], 30);
    let refused = client.post(CHAT, "", &ask("one two", 100)).await;
    assert_eq!(refused.status(), 400);
    assert!(refused.body().contains("--kv-blocks"));
}

#[tokio::test]
async fn a_full_batch_queues_and_one_that_leaves_makes_room() {
    let mut options = modelled();
    options.model_options.max_num_seqs = 1;
    options.model_options.time_scale = 100.0;
    let engine = Running::engine(options).await;
    let mut leaves = Client::connect(&engine.address).await;
    let long = post(CHAT, "", &ask("one", 100_000));
    leaves.send(long.as_bytes()).await;
    leaves
        .read_until(|bytes| bytes.windows(9).any(|b| b == b"\"content\""))
        .await;
    let waits = tokio::spawn({
        let address = engine.address.clone();
        async move {
            let mut client = Client::connect(&address).await;
            client.post(CHAT, "", &ask("two", 3)).await
        }
    });
    let waiting = "vllm:num_requests_waiting{model_name=\"sim\",engine=\"0\"} 1\n";
    let queued = async {
        while !get(&engine.address, "GET /metrics HTTP/1.1")
            .await
            .body()
            .contains(waiting)
        {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, queued).await.unwrap();
    drop(leaves);
    let answer = waits.await.unwrap();
    assert_eq!(answer.content().split_whitespace().count(), 3);
}
