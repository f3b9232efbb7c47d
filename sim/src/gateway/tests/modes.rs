use super::*;

async fn run_with(options: GatewayOptions, extra: &str, bodies: &[String]) -> Ran {
    Chain::new(quick(), options).await.run(extra, bodies).await
}

#[tokio::test]
async fn merged_text_keeps_every_position_of_the_upstream() {
    let options = GatewayOptions {
        merge: 4,
        ..GatewayOptions::default()
    };
    let ran = run_with(options, "", &[stream_of(10)]).await;
    assert_eq!(ran.answers[0].content().split_whitespace().count(), 10);
    let truth = &ran.gateway[0];
    assert_chained(&ran.engine[0], truth);
    // 4 + 4 + 1, and the last one with the finish reason.
    assert_eq!((truth.text_events_read, truth.text_events_written), (10, 4));
    let begins: Vec<u64> = truth.tokens.iter().map(|token| token.write_begin).collect();
    assert!(begins[..4].iter().all(|begin| *begin == begins[3]));
    assert!(
        truth.tokens[0].read_at < truth.tokens[9].read_at,
        "each keeps its own read"
    );
    assert!(begins[3] < begins[4]);
}

#[tokio::test]
async fn rewritten_streams_say_the_same() {
    let options = GatewayOptions {
        reserialize: true,
        drop_empty: true,
        synthesize_final: true,
        ..GatewayOptions::default()
    };
    let ran = run_with(options, "x-sim-fault: ping=1\r\n", &[stream_of(6)]).await;
    let answer = &ran.answers[0];
    assert!(!answer.text().contains("ping") && !answer.text().contains("\"role\""));
    assert_eq!(answer.content().split_whitespace().count(), 6);
    let finish = &answer.chunks()[6]["choices"][0];
    assert_eq!(
        (&finish["finish_reason"], &finish["delta"]),
        (&"length".into(), &serde_json::json!({}))
    );
    assert_eq!(answer.chunks()[7]["usage"]["completion_tokens"], 6);
    let truth = &ran.gateway[0];
    assert_complete(truth);
    assert_chained(&ran.engine[0], truth);
    let last = truth.tokens.last().unwrap();
    let finish = truth.mark(Mark::Finish).unwrap();
    assert_eq!(finish.read_at, last.read_at, "they came in one event");
    assert!(
        finish.write_begin > Some(last.write_begin),
        "and left in two"
    );
    assert!(truth.mark(Mark::Role).is_none());
}

#[tokio::test]
async fn a_missing_or_cut_end_is_made_up() {
    let options = GatewayOptions {
        synthesize_final: true,
        ..GatewayOptions::default()
    };
    for (fault, outcome) in [
        ("no-done", Outcome::Complete),
        ("close-after=2", Outcome::UpstreamFailed),
    ] {
        let extra = format!("x-sim-fault: {fault}\r\n");
        let ran = run_with(options.clone(), &extra, &[stream_of(4)]).await;
        assert_eq!(ran.answers[0].datas().last().unwrap(), "[DONE]");
        assert!(complete(&ran.answers[0].bytes));
        assert_eq!(ran.gateway[0].outcome, outcome);
        assert!(
            ran.gateway[0]
                .mark(Mark::Done)
                .unwrap()
                .write_begin
                .is_some()
        );
    }
}

#[tokio::test]
async fn unknown_headers_are_lost_unless_listed() {
    let extra = "x-hopscope-call: c\r\nx-request-id: lost\r\n";
    let strip = GatewayOptions {
        strip_headers: true,
        ..GatewayOptions::default()
    };
    let ran = run_with(strip.clone(), extra, &[stream_of(1)]).await;
    assert_eq!(ran.gateway[0].call.as_deref(), Some("c"));
    assert_eq!(ran.engine[0].call, None);
    assert!(!ran.engine[0].response_id.as_ref().unwrap().contains("lost"));
    let text = ran.answers[0].text();
    assert!(text.contains("llm_provider-server: uvicorn\r\n") && !text.contains("\r\nserver:"));
    assert!(text.contains("\r\ncontent-type: text/event-stream"));
    let listed = GatewayOptions {
        forward_header: vec!["X-Hopscope-Call".to_owned()],
        ..strip
    };
    let ran = run_with(listed, extra, &[stream_of(1)]).await;
    assert_eq!(ran.engine[0].call.as_deref(), Some("c"));
}

#[tokio::test]
async fn the_head_waits_for_the_first_event() {
    let engine = EngineOptions {
        ttft_us: 60_000,
        ..quick()
    };
    for hold_head in [false, true] {
        let options = GatewayOptions {
            hold_head,
            ..GatewayOptions::default()
        };
        let chain = Chain::new(engine.clone(), options).await;
        let ran = chain.run("", &[stream_of(2)]).await;
        let head = ran.gateway[0]
            .mark(Mark::ResponseHead)
            .unwrap()
            .write_begin
            .unwrap();
        let first = ran.gateway[0].first_token().unwrap().write_begin;
        assert_eq!(
            first - head < 30_000_000,
            hold_head,
            "hold {hold_head}: {} ns",
            first - head
        );
    }
}

#[tokio::test]
async fn a_repeated_request_is_answered_from_the_cache_with_the_old_id() {
    let options = GatewayOptions {
        cache: true,
        ..GatewayOptions::default()
    };
    let whole = r#"{"messages":[{"content":"a"}],"max_tokens":3}"#.to_owned();
    let bodies = [
        stream_of(5),
        stream_of(5),
        stream_of(6),
        whole.clone(),
        whole,
    ];
    let ran = run_with(options, "", &bodies).await;
    assert_eq!(ran.engine.len(), 3);
    for (first, second) in [(0, 1), (3, 4)] {
        assert_eq!(ran.answers[first].body(), ran.answers[second].body());
        assert!(!ran.answers[first].text().contains("x-cache-hit"));
        assert!(ran.answers[second].text().contains("x-cache-hit: true\r\n"));
        let truth = &ran.gateway[second];
        assert_eq!((truth.outcome, truth.attempt), (Outcome::CacheHit, 0));
        assert_eq!(truth.response_id, ran.gateway[first].response_id);
        assert!(truth.attempts.is_empty());
        let ends = |truth: &ExchangeTruth| -> Vec<u64> {
            truth
                .tokens
                .iter()
                .map(|token| token.end_text_offset)
                .collect()
        };
        assert_eq!(ends(truth), ends(&ran.gateway[first]));
        assert!(truth.tokens.iter().all(|token| token.read_at.is_none()));
    }
}

#[tokio::test]
async fn refusals_never_reach_the_upstream() {
    let options = GatewayOptions {
        refuse_every: 2,
        ..GatewayOptions::default()
    };
    let ran = run_with(options, "", &vec![stream_of(1); 4]).await;
    let statuses: Vec<u16> = ran.answers.iter().map(Answer::status).collect();
    assert_eq!(statuses, [200, 429, 200, 429]);
    assert!(ran.answers[1].text().contains("retry-after: 1\r\n"));
    assert_eq!(ran.gateway[1].outcome, Outcome::Refused);
    assert_eq!(ran.engine.len(), 2);
}
