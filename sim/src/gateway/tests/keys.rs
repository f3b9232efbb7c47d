use std::io::Write;

use super::*;

/// Rules of a key as JSON, in a file that lives as long as the test.
fn keyed(rules: &str, mut options: KeyOptions) -> (tempfile::NamedTempFile, GatewayOptions) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    write!(file, r#"{{"keys":{{"sk-a":{{"tenant":"acme"{rules}}}}}}}"#).unwrap();
    options.keys = Some(file.path().to_owned());
    let gateway = GatewayOptions {
        key_options: options,
        ..GatewayOptions::default()
    };
    (file, gateway)
}

const KEY: &str = "authorization: Bearer sk-a\r\n";

async fn run(rules: &str, options: KeyOptions, extra: &str, bodies: &[String]) -> Ran {
    let (_file, gateway) = keyed(rules, options);
    let chain = Chain::new(quick(), gateway).await;
    chain.run(extra, bodies).await
}

fn bifrost() -> KeyOptions {
    KeyOptions {
        dialect: Dialect::Bifrost,
        ..KeyOptions::default()
    }
}

fn error(answer: &Answer) -> serde_json::Value {
    serde_json::from_str(&answer.body()).unwrap()
}

#[tokio::test]
async fn a_key_opens_and_ends_at_the_gateway() {
    let ran = run("", KeyOptions::default(), KEY, &[stream_of(3)]).await;
    assert_eq!(ran.answers[0].status(), 200);
    assert_complete(&ran.gateway[0]);
    for extra in ["", "authorization: Bearer sk-b\r\n"] {
        let ran = run("", KeyOptions::default(), extra, &[stream_of(3)]).await;
        assert_eq!(ran.answers[0].status(), 401);
        assert_eq!(
            error(&ran.answers[0])["error"]["type"],
            "token_not_found_in_db"
        );
        assert!(
            !ran.answers[0].text().contains("sk-"),
            "keys are never shown"
        );
        assert_eq!(ran.gateway[0].outcome, Outcome::Refused);
        assert!(ran.engine.is_empty());
    }
    let ran = run("", bifrost(), "x-bf-vk: sk-a\r\n", &[stream_of(3)]).await;
    assert_eq!(ran.answers[0].status(), 200);
    let ran = run("", bifrost(), "x-bf-vk: sk-b\r\n", &[stream_of(3)]).await;
    let told = error(&ran.answers[0]);
    assert_eq!(
        (&told["type"], &told["status_code"]),
        (&"virtual_key_required".into(), &401.into())
    );
}

#[test]
fn the_upstream_gets_no_virtual_key() {
    let (_file, options) = keyed("", KeyOptions::default());
    let head = format!("POST / HTTP/1.1\r\n{KEY}x-api-key: sk-a\r\nx-other: 1\r\n\r\n");
    let (head, _) = RequestHead::parse(head.as_bytes()).unwrap().unwrap();
    let sent = |options| String::from_utf8(fields::outbound(options, "h", &head, b"")).unwrap();
    let with_keys = sent(&options);
    assert!(
        !with_keys.contains("sk-a") && with_keys.contains("x-other: 1"),
        "{with_keys}"
    );
    assert!(with_keys.contains("authorization: Bearer sim\r\n"));
    assert!(sent(&GatewayOptions::default()).contains("Bearer sk-a"));
}

#[tokio::test]
async fn requests_beyond_the_rate_get_429_and_a_new_minute_opens() {
    let options = KeyOptions {
        limit_window_ms: 400,
        ..KeyOptions::default()
    };
    let (_file, gateway) = keyed(r#","rpm":3"#, options);
    let chain = Chain::new(quick(), gateway).await;
    let mut client = Client::connect(&chain.gateway.address).await;
    let mut statuses = Vec::new();
    let mut refused = None;
    for number in 0..6 {
        if number == 5 {
            tokio::time::sleep(Duration::from_millis(450)).await;
        }
        let answer = client.post(CHAT, KEY, &stream_of(1)).await;
        statuses.push(answer.status());
        refused = (answer.status() == 429).then_some(answer).or(refused);
    }
    assert_eq!(statuses, [200, 200, 200, 429, 429, 200]);
    let refused = refused.unwrap();
    assert!(refused.text().contains("retry-after: 1\r\n"));
    assert!(refused.text().contains("rate_limit_type: requests\r\n"));
    client
        .send(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
        .await;
    let metrics = client.read_until(complete).await.body();
    assert!(
        metrics.contains("sim_gateway_tenant_requests_total{tenant=\"acme\"} 4\n"),
        "{metrics}"
    );
    assert!(metrics.contains("sim_gateway_tenant_rate_limited_total{tenant=\"acme\"} 2\n"));
    // Three words and one token each.
    assert!(metrics.contains("sim_gateway_tenant_tokens_total{tenant=\"acme\"} 16\n"));
    assert!(!metrics.contains("sk-a"));
    chain.gateway.stop().await;
    chain.engine.stop().await;
}

#[tokio::test]
async fn tokens_beyond_the_rate_get_429() {
    for (options, kind) in [
        (KeyOptions::default(), "throttling_error"),
        (bifrost(), "token_limited"),
    ] {
        // 3 + 7 tokens an answer.
        let bodies = [stream_of(7), stream_of(7), stream_of(7)];
        let ran = run(r#","tpm":20"#, options, KEY, &bodies).await;
        let statuses: Vec<u16> = ran.answers.iter().map(Answer::status).collect();
        assert_eq!(statuses, [200, 200, 429]);
        assert!(
            ran.answers[2].body().contains(kind),
            "{}",
            ran.answers[2].body()
        );
    }
}

#[tokio::test]
async fn a_spent_budget_is_refused_as_each_product_does() {
    // 3 × 1 + 7 × 2 = 17 USD an answer.
    let rules = r#","budget_usd":17,"usd_per_million_in":1e6,"usd_per_million_out":2e6"#;
    let old = KeyOptions {
        budget_status: Some(400),
        ..KeyOptions::default()
    };
    for (options, status) in [(KeyOptions::default(), 422), (old, 400), (bifrost(), 402)] {
        let ran = run(rules, options, KEY, &[stream_of(7), stream_of(7)]).await;
        assert_eq!(
            (ran.answers[0].status(), ran.answers[1].status()),
            (200, status)
        );
        assert!(ran.answers[1].body().contains("budget_exceeded"));
        assert!(
            ran.answers[1]
                .body()
                .contains("Current cost: 17, Max budget: 17")
        );
    }
    // Without usage on the stream the gateway counts itself.
    let silent = stream_of(7).replace(r#""include_usage":true"#, r#""include_usage":false"#);
    let ran = run(rules, KeyOptions::default(), KEY, &[silent.clone(), silent]).await;
    assert_eq!(ran.answers[1].status(), 422);
}

#[tokio::test]
async fn late_accounting_lets_requests_beyond_a_budget() {
    let rules = r#","budget_usd":17,"usd_per_million_in":1e6,"usd_per_million_out":2e6"#;
    let lagging = KeyOptions {
        limit_lag_ms: 600_000,
        ..KeyOptions::default()
    };
    let ran = run(
        rules,
        lagging,
        KEY,
        &[stream_of(7), stream_of(7), stream_of(7)],
    )
    .await;
    assert!(ran.answers.iter().all(|answer| answer.status() == 200));
}

#[tokio::test]
async fn models_that_are_not_allowed_are_refused() {
    for (options, kind) in [
        (KeyOptions::default(), "key_model_access_denied"),
        (bifrost(), "model_blocked"),
    ] {
        let other = stream_of(1).replace(r#""model":"m""#, r#""model":"n""#);
        let ran = run(r#","models":["m"]"#, options, KEY, &[stream_of(1), other]).await;
        assert_eq!(
            (ran.answers[0].status(), ran.answers[1].status()),
            (200, 403)
        );
        assert!(ran.answers[1].body().contains(kind));
    }
}

#[tokio::test]
async fn tools_that_are_not_allowed_are_refused_or_taken_out() {
    let tools = r#""tools":[{"type":"function","function":{"name":"search"}},{"type":"function","function":{"name":"pay"}}],"stream":true"#;
    let body = stream_of(1).replace(r#""stream":true"#, tools);
    let rules = r#","tools":["search"]"#;
    let ran = run(
        rules,
        KeyOptions::default(),
        KEY,
        std::slice::from_ref(&body),
    )
    .await;
    assert_eq!(ran.answers[0].status(), 400);
    assert!(
        ran.answers[0]
            .body()
            .contains("not allowed to use tool pay")
    );

    let (_file, gateway) = keyed(rules, bifrost());
    let upstream = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gateway = Running::gateway(GatewayOptions {
        upstream: upstream.local_addr().unwrap().to_string(),
        ..gateway
    })
    .await;
    let mut client = Client::connect(&gateway.address).await;
    client.send(post(CHAT, KEY, &body).as_bytes()).await;
    let (stream, _) = upstream.accept().await.unwrap();
    let asked = Client(stream).read_until(complete_request).await.text();
    assert!(
        asked.contains("search") && !asked.contains("pay"),
        "{asked}"
    );
    drop(client);
    gateway.stop().await;
}

fn complete_request(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.split("content-length: ").nth(1).unwrap();
    body.len() >= length.split("\r\n").next().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_guardrail_on_the_input_blocks_and_costs_its_time_on_the_request_leg() {
    let rules =
        r#","guardrails":[{"name":"names","on":"input","words":["Voldemort"],"latency_us":30000}]"#;
    let bad = stream_of(1).replace("two", "voldemort's");
    let ran = run(rules, KeyOptions::default(), KEY, &[stream_of(1), bad]).await;
    assert_eq!(
        (ran.answers[0].status(), ran.answers[1].status()),
        (200, 400)
    );
    let told = error(&ran.answers[1]);
    assert_eq!(told["error"]["message"], "Violated guardrail policy: names");
    assert_eq!(ran.gateway[1].outcome, Outcome::Refused);
    assert_eq!(ran.engine.len(), 1);
    let truth = &ran.gateway[0];
    let read = truth.mark(Mark::RequestBody).unwrap().read_at.unwrap();
    let sent = truth.attempts[0].request_write_begin.unwrap();
    assert!(sent - read >= 30_000_000);
}

#[tokio::test]
async fn a_guardrail_on_the_output_holds_the_stream_and_blocks_it() {
    let rail = |word: &str| {
        format!(
            r#","guardrails":[{{"name":"out","on":"output","words":["{word}"],"latency_us":20000}}]"#
        )
    };
    let ran = run(&rail("zebra"), KeyOptions::default(), KEY, &[stream_of(9)]).await;
    let truth = &ran.gateway[0];
    assert_complete(truth);
    assert_eq!(ran.answers[0].content().split_whitespace().count(), 9);
    let (held, _) = holds(truth);
    assert!(held >= 20_000_000, "held {held} ns");
    assert_eq!(truth.text_events_read, 9);

    // The engine is seeded: what it said once it says again.
    let content = ran.answers[0].content();
    let word = content.split_whitespace().next().unwrap();
    let ran = run(&rail(word), KeyOptions::default(), KEY, &[stream_of(9)]).await;
    assert_eq!(ran.answers[0].status(), 400);
    assert_eq!(ran.gateway[0].outcome, Outcome::Rejected);
    assert_eq!(
        ran.gateway[0].completion_tokens,
        Some(9),
        "it was paid for all the same"
    );
    let whole = stream_of(9).replace(r#""stream":true"#, r#""stream":false"#);
    let ran = run(&rail(word), KeyOptions::default(), KEY, &[whole]).await;
    assert_eq!(ran.answers[0].status(), 400);
}

#[tokio::test]
async fn a_missing_key_file_is_told_at_the_start() {
    let options = GatewayOptions {
        key_options: KeyOptions {
            keys: Some("/nonexistent/keys.json".into()),
            ..KeyOptions::default()
        },
        ..GatewayOptions::default()
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let failed = serve(listener, options, Log::off(), std::future::pending()).await;
    assert!(failed.unwrap_err().to_string().contains("check --keys"));
}
