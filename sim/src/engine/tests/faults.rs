use super::*;

async fn with_fault(fault: &str, tokens: u64) -> (Answer, crate::truth::ExchangeTruth) {
    let engine = Running::engine(quick()).await;
    let mut client = Client::connect(&engine.address).await;
    let extra = format!("x-sim-fault: {fault}\r\n");
    let answer = client.post(CHAT, &extra, &stream_of(tokens)).await;
    drop(client);
    let truth = engine.stop().await.remove(0);
    assert_eq!(truth.fault.as_deref(), Some(fault));
    (answer, truth)
}

fn texts(answer: &Answer) -> usize {
    answer.content().split_whitespace().count()
}

#[tokio::test]
async fn a_cut_stream_ends_with_a_fin() {
    let (answer, truth) = with_fault("close-after=3", 10).await;
    assert_eq!((answer.ended, texts(&answer)), (Some(false), 3));
    assert!(!complete(&answer.bytes));
    assert_eq!((truth.outcome, truth.tokens.len()), (Outcome::Fault, 3));
    assert!(truth.mark(Mark::End).is_none());
}

#[tokio::test]
async fn a_reset_stream_ends_with_a_reset() {
    let (answer, truth) = with_fault("reset-after=3", 10).await;
    assert_eq!(answer.ended, Some(true));
    assert_eq!((truth.outcome, truth.tokens.len()), (Outcome::Fault, 3));
}

#[tokio::test]
async fn a_stalled_stream_says_nothing_until_the_client_goes() {
    let engine = Running::engine(quick()).await;
    let mut client = Client::connect(&engine.address).await;
    let request = post(CHAT, "x-sim-fault: stall-after=2\r\n", &stream_of(10));
    client.send(request.as_bytes()).await;
    let quiet = async {
        client.read_until(|_| false).await;
    };
    let waited = tokio::time::timeout(Duration::from_millis(200), quiet).await;
    assert!(waited.is_err(), "the stream went on or ended");
    drop(client);
    let truth = engine.truths(1).await.remove(0);
    assert_eq!((truth.outcome, truth.tokens.len()), (Outcome::Fault, 2));
}

#[tokio::test]
async fn errors_come_before_any_token() {
    for status in [500, 429, 503] {
        let (answer, truth) = with_fault(&format!("status={status}"), 10).await;
        assert_eq!((answer.status(), truth.status), (status, Some(status)));
        let body: serde_json::Value = serde_json::from_str(&answer.body()).unwrap();
        assert_eq!(body["error"]["code"], status);
        assert_eq!(answer.text().contains("retry-after"), status != 500);
        assert!(truth.tokens.is_empty());
    }
}

#[tokio::test]
async fn a_length_that_lies() {
    let (answer, truth) = with_fault("truncate-length", 4).await;
    assert!(answer.text().contains("content-length: 1099511627776"));
    assert_eq!((answer.ended, truth.outcome), (Some(false), Outcome::Fault));
    let engine = Running::engine(quick()).await;
    for (fault, reset) in [
        ("truncate-length", false),
        ("close-after=0", false),
        ("reset-after=0", true),
    ] {
        let mut client = Client::connect(&engine.address).await;
        let extra = format!("x-sim-fault: {fault}\r\n");
        let whole = r#"{"messages":[{"content":"a"}]}"#;
        let answer = client.post(CHAT, &extra, whole).await;
        assert_eq!(answer.ended, Some(reset), "{fault}");
        assert!(!complete(&answer.bytes));
    }
    let truths = engine.stop().await;
    assert!(truths.iter().all(|truth| truth.outcome == Outcome::Fault));
}

#[tokio::test]
async fn an_error_inside_the_stream() {
    let (answer, truth) = with_fault("error-event=2", 10).await;
    let datas = answer.datas();
    assert_eq!(texts(&answer), 2);
    assert!(datas[datas.len() - 2].starts_with("{\"error\":"));
    assert_eq!(datas.last().unwrap(), "[DONE]");
    assert_eq!((answer.status(), truth.outcome), (200, Outcome::Fault));
}

#[tokio::test]
async fn missing_ends() {
    let (answer, truth) = with_fault("no-done", 3).await;
    assert!(!answer.text().contains("[DONE]") && complete(&answer.bytes));
    assert!(truth.mark(Mark::Done).is_none() && truth.mark(Mark::Finish).is_some());
    let (answer, truth) = with_fault("no-finish", 3).await;
    assert!(!answer.text().contains("\"length\"") && answer.text().contains("[DONE]"));
    assert!(truth.mark(Mark::Finish).is_none());
    assert_eq!(truth.outcome, Outcome::Fault);
}

#[tokio::test]
async fn a_fin_although_keep_alive_was_promised() {
    let engine = Running::engine(quick()).await;
    let mut client = Client::connect(&engine.address).await;
    let extra = "x-sim-fault: fin-after-response\r\n";
    let answer = client.post(CHAT, extra, &stream_of(3)).await;
    assert!(answer.text().contains("connection: keep-alive\r\n"));
    assert!(complete(&answer.bytes) && client.closes(PATIENCE).await);
    assert_eq!(engine.stop().await[0].outcome, Outcome::Complete);
}

#[tokio::test]
async fn large_and_broken_events() {
    let (answer, truth) = with_fault("oversized-event=5000000", 3).await;
    assert!(answer.bytes.len() > 5_000_000);
    assert_eq!((texts(&answer), truth.outcome), (3, Outcome::Complete));
    let (answer, truth) = with_fault("malformed-chunk=1", 3).await;
    let broken = answer
        .datas()
        .iter()
        .filter(|data| serde_json::from_str::<serde_json::Value>(data).is_err())
        .count();
    assert_eq!(
        (broken, texts(&answer)),
        (2, 3),
        "[DONE] and the broken chunk"
    );
    assert_eq!(truth.outcome, Outcome::Fault);
}

#[tokio::test]
async fn unusual_forms_of_a_whole_stream() {
    let (answer, truth) = with_fault("crlf", 3).await;
    assert!(answer.body().contains("}\r\n\r\ndata: ") && !answer.body().contains("}\n"));
    assert_eq!((texts(&answer), truth.outcome), (3, Outcome::Complete));

    let (answer, _) = with_fault("informational", 3).await;
    assert!(answer.text().starts_with("HTTP/1.1 103 Early Hints\r\n"));
    assert_eq!(texts(&answer), 3);

    let (answer, _) = with_fault("trailers", 3).await;
    assert!(answer.text().contains("trailer: x-sim-trailer\r\n"));
    assert!(answer.text().ends_with("0\r\nx-sim-trailer: end\r\n\r\n"));

    let (answer, _) = with_fault("ping=2", 5).await;
    assert_eq!(answer.text().matches(": ping\n\n").count(), 3);
    assert_eq!(texts(&answer), 5);
}

#[tokio::test]
async fn pairs_share_a_write_and_split_events_end_with_their_second() {
    let (_, truth) = with_fault("pair-events", 5).await;
    let begins: Vec<_> = truth.tokens.iter().map(|token| token.write_begin).collect();
    assert_eq!(begins[0], begins[1]);
    assert_eq!(begins[2], begins[3]);
    assert!(begins[1] < begins[2] && begins[3] < begins[4]);

    let (answer, truth) = with_fault("split-event", 3).await;
    assert_eq!(texts(&answer), 3);
    let text = answer.text();
    let opening = text.find("\"content\":\" ").unwrap();
    let first = &truth.tokens[0];
    let began = answer.arrival(text[..opening].rfind("data: ").unwrap());
    assert!(
        began < first.write_begin,
        "its first half came before the write that ended it"
    );
}

#[tokio::test]
async fn a_slowly_read_request_blocks_its_sender() {
    let engine = Running::engine(quick()).await;
    let mut client = Client::connect(&engine.address).await;
    let body = format!(r#"{{"messages":[{{"content":"{}"}}]}}"#, "x".repeat(60_000));
    let extra = "x-sim-fault: slow-read=200000\r\n";
    client.post(CHAT, extra, &body).await;
    let truth = engine.stop().await.remove(0);
    let read = |mark| truth.mark(mark).unwrap().read_at.unwrap();
    let took = read(Mark::RequestBody) - read(Mark::RequestHead);
    assert!(took > 100_000_000, "60 kB at 200 kB/s took {took} ns");
    assert_eq!(truth.outcome, Outcome::Complete);
}

#[tokio::test]
async fn faults_of_the_options_take_turns() {
    let options = EngineOptions {
        fault: "status=503".parse().unwrap(),
        fault_every: 3,
        ..quick()
    };
    let engine = Running::engine(options).await;
    let mut client = Client::connect(&engine.address).await;
    let mut statuses = Vec::new();
    for _ in 0..6 {
        statuses.push(client.post(CHAT, "", &stream_of(1)).await.status());
    }
    assert_eq!(statuses, [200, 200, 503, 200, 200, 503]);
    let in_body = r#"{"messages":[],"sim":{"fault":"status=500"}}"#;
    assert_eq!(client.post(CHAT, "", in_body).await.status(), 500);
    engine.stop().await;
}
