use std::time::Duration;

use super::*;
use crate::rig::*;
use crate::truth::{Field, Mark, Outcome};

mod bedrock;
mod calling;
mod faults;
mod load;
mod modelled;

/// Fast, so that tests are.
fn quick() -> EngineOptions {
    EngineOptions {
        ttft_us: 2_000,
        gap_us: 500,
        ..EngineOptions::default()
    }
}

async fn get(address: &str, line: &str) -> Answer {
    let mut client = Client::connect(address).await;
    client
        .send(format!("{line}\r\nhost: x\r\nconnection: close\r\n\r\n").as_bytes())
        .await;
    client.read_until(|_| false).await
}

#[tokio::test]
async fn a_stream_has_the_shape_of_vllm_and_the_truth_agrees_with_the_client() {
    let engine = Running::engine(quick()).await;
    let mut client = Client::connect(&engine.address).await;
    let extra = "x-request-id: rid-1\r\nx-hopscope-call: call-7\r\n";
    let answer = client.post(CHAT, extra, &stream_of(20)).await;
    assert_eq!(answer.status(), 200);
    let chunks = answer.chunks();
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    assert!(chunks.iter().all(|chunk| chunk["id"] == "chatcmpl-rid-1"));
    let last = &chunks[20]["choices"][0];
    assert_eq!(last["finish_reason"], "length");
    assert_eq!(
        chunks[19]["choices"][0]["finish_reason"],
        serde_json::Value::Null
    );
    let usage = &chunks[21]["usage"];
    assert_eq!(chunks[21]["choices"], serde_json::json!([]));
    assert_eq!(
        (&usage["prompt_tokens"], &usage["completion_tokens"]),
        (&3.into(), &20.into())
    );
    assert_eq!(answer.datas().last().unwrap(), "[DONE]");
    assert_eq!(answer.content().split_whitespace().count(), 20);

    let truth = engine.stop().await.remove(0);
    assert_complete(&truth);
    assert_eq!(truth.call.as_deref(), Some("call-7"));
    assert_eq!(truth.response_id.as_deref(), Some("chatcmpl-rid-1"));
    assert_eq!(truth.text_events_written, 20);
    agrees_with_client(&truth, &answer);
    for mark in [
        Mark::ResponseHead,
        Mark::Role,
        Mark::Finish,
        Mark::Usage,
        Mark::Done,
        Mark::End,
    ] {
        assert!(truth.mark(mark).is_some(), "{mark:?} is missing");
    }
}

/// Every text that the client got is in the truth, at its position, and came after it was written.
fn agrees_with_client(truth: &crate::truth::ExchangeTruth, answer: &Answer) {
    let text = answer.text();
    let (mut offset, mut from, mut late) = (0, 0, Vec::new());
    for chunk in answer.chunks() {
        let Some(said) = chunk["choices"][0]["delta"]["content"].as_str() else {
            continue;
        };
        if said.is_empty() {
            continue;
        }
        offset += said.len() as u64;
        let needle = format!("\"content\":\"{said}\"");
        let at = from + text[from..].find(&needle).unwrap();
        from = at + needle.len();
        let token = truth.reached((0, Field::Content, 0), offset).unwrap();
        assert_eq!(token.end_text_offset, offset);
        let arrived = answer.arrival(at);
        assert!(arrived >= token.write_begin, "came before it was written");
        late.push(arrived - token.write_begin);
    }
    assert_eq!(late.len(), truth.tokens.len());
    late.sort_unstable();
    let median = late[late.len() / 2];
    assert!(
        median < 50_000_000,
        "half of the texts came {median} ns late"
    );
}

#[tokio::test]
async fn the_schedule_is_absolute_and_never_early() {
    let options = EngineOptions {
        ttft_us: 30_000,
        gap_us: 4_000,
        ..EngineOptions::default()
    };
    let engine = Running::engine(options).await;
    let mut client = Client::connect(&engine.address).await;
    client.post(CHAT, "", &stream_of(25)).await;
    let truth = engine.stop().await.remove(0);
    let start = truth.mark(Mark::RequestBody).unwrap().read_at.unwrap();
    let mut lateness: Vec<u64> = (0..)
        .zip(&truth.tokens)
        .map(|(n, token)| {
            token
                .write_begin
                .checked_sub(start + 30_000_000 + n * 4_000_000)
        })
        .map(|late| late.expect("a token was early"))
        .collect();
    lateness.sort_unstable();
    // Sleep after sleep would drift; on an absolute schedule half of the tokens stay close to it.
    assert!(
        lateness[12] < 4_000_000,
        "median lateness {} ns",
        lateness[12]
    );
}

#[tokio::test]
async fn whole_answers_and_other_pages() {
    let engine = Running::engine(quick()).await;
    let address = &engine.address;
    let mut client = Client::connect(address).await;
    let body = r#"{"messages":[{"role":"user","content":"a b"}],"max_completion_tokens":4,"ignore_eos":true,"n":2}"#;
    let answer = client.post(CHAT, "", body).await;
    let answer: serde_json::Value = serde_json::from_str(&answer.body()).unwrap();
    let said = answer["choices"][1]["message"]["content"].as_str().unwrap();
    assert_eq!(said.split_whitespace().count(), 4);
    assert_eq!(answer["usage"]["completion_tokens"], 8);
    assert!(answer["id"].as_str().unwrap().starts_with("chatcmpl-"));

    let body = r#"{"prompt":"a b c","stream":true,"max_tokens":3}"#;
    let answer = client.post("/v1/completions", "", body).await;
    let texts: String = answer
        .chunks()
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["text"].as_str())
        .collect();
    assert_eq!(texts.split_whitespace().count(), 3);
    assert!(
        answer.chunks()[0]["id"]
            .as_str()
            .unwrap()
            .starts_with("cmpl-")
    );

    assert_eq!(get(address, "GET /health HTTP/1.1").await.status(), 200);
    assert!(
        get(address, "GET /v1/models HTTP/1.1")
            .await
            .body()
            .contains("\"sim\"")
    );
    let head = get(address, "HEAD /v1/models HTTP/1.1").await;
    assert_eq!((head.status(), head.body()), (200, String::new()));
    assert_eq!(get(address, "GET /nowhere HTTP/1.1").await.status(), 404);
    assert_eq!(
        get(address, "GET /v1/completions HTTP/1.1").await.status(),
        405
    );
    assert_eq!(get(address, "nonsense").await.status(), 400);
    assert_eq!(
        engine.stop().await.len(),
        2,
        "only generations are recorded"
    );
}

#[tokio::test]
async fn wrong_requests_get_an_error_of_the_api_and_the_connection_lives_on() {
    let engine = Running::engine(quick()).await;
    let mut client = Client::connect(&engine.address).await;
    for (extra, body) in [
        ("", "{broken"),
        ("x-sim-fault: nonsense\r\n", &*stream_of(1)),
        ("", "{}"),
    ] {
        let answer = client.post(CHAT, extra, body).await;
        assert_eq!(answer.status(), 400);
        let error: serde_json::Value = serde_json::from_str(&answer.body()).unwrap();
        assert!(error["error"]["message"].is_string());
    }
    assert_eq!(client.post(CHAT, "", &stream_of(2)).await.status(), 200);
    let outcomes: Vec<_> = engine
        .stop()
        .await
        .iter()
        .map(|truth| truth.outcome)
        .collect();
    assert_eq!(outcomes[..3], [Outcome::Rejected; 3]);
    assert_eq!(outcomes[3], Outcome::Complete);
}

#[tokio::test]
async fn chunked_bodies_and_expectations() {
    let engine = Running::engine(quick()).await;
    let mut client = Client::connect(&engine.address).await;
    let head = format!("POST {CHAT} HTTP/1.1\r\nhost: x\r\n");
    client
        .send(
            format!(
                "{head}expect: 100-continue\r\ncontent-length: {}\r\n\r\n",
                stream_of(2).len()
            )
            .as_bytes(),
        )
        .await;
    let leave = client
        .read_until(|bytes| bytes.ends_with(b"\r\n\r\n"))
        .await;
    assert_eq!(leave.status(), 100);
    client.send(stream_of(2).as_bytes()).await;
    assert_eq!(client.read_until(complete).await.status(), 200);

    let body = stream_of(2);
    let (first, second) = body.split_at(10);
    client
        .send(format!("{head}transfer-encoding: chunked\r\n\r\na\r\n{first}\r\n").as_bytes())
        .await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    client
        .send(format!("{:x}\r\n{second}\r\n", second.len()).as_bytes())
        .await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    client.send(b"0\r\n\r\n").await;
    assert_eq!(client.read_until(complete).await.status(), 200);
    let truths = engine.stop().await;
    let read = |mark| truths[1].mark(mark).unwrap().read_at.unwrap();
    let (head, body) = (read(Mark::RequestHead), read(Mark::RequestBody));
    assert!(body - head >= 20_000_000, "the body's last byte came later");
    let answered = truths[1]
        .mark(Mark::ResponseHead)
        .unwrap()
        .write_begin
        .unwrap();
    assert!(
        answered - body >= 20_000_000,
        "the end of the framing is not the last body byte"
    );
}

#[tokio::test]
async fn reasoning_tools_choices_and_wishes() {
    let engine = Running::engine(quick()).await;
    let mut client = Client::connect(&engine.address).await;
    let body = r#"{"stream":true,"max_tokens":12,"n":2,"stream_options":{"include_usage":true},
        "messages":[{"content":"a"}],"sim":{"reasoning_tokens":4,"tool_calls":2,"finish_apart":true,
        "prompt_tokens":100,"cached_tokens":64,"gap_us":100}}"#;
    let answer = client.post(CHAT, "", body).await;
    let text = answer.text();
    assert!(text.contains("\"reasoning_content\":\" "));
    assert!(text.contains("\"name\":\"tool_1\""));
    assert!(
        text.contains(r#""delta":{"content":""},"logprobs":null,"finish_reason":"tool_calls""#)
    );
    assert!(text.contains("\"cached_tokens\":64"));
    let truth = engine.stop().await.remove(0);
    assert_complete(&truth);
    assert_eq!(
        (truth.prompt_tokens, truth.cached_tokens),
        (Some(100), Some(64))
    );
    assert_eq!(truth.completion_tokens, Some(24));
    for choice in [0, 1] {
        for (field, tool) in [
            (Field::Reasoning, 0),
            (Field::ToolArguments, 0),
            (Field::ToolArguments, 1),
        ] {
            assert!(truth.reached((choice, field, tool), 1).is_some());
        }
    }
}

#[tokio::test]
async fn several_tokens_a_chunk_and_the_role_with_the_head() {
    let options = EngineOptions {
        tokens_per_chunk: 4,
        role_early: true,
        ttft_us: 60_000,
        cached_share: 0.5,
        ..quick()
    };
    let engine = Running::engine(options).await;
    let mut client = Client::connect(&engine.address).await;
    let prompt = "w ".repeat(40);
    let body =
        format!(r#"{{"stream":true,"messages":[{{"content":"{prompt}"}}],"max_tokens":10}}"#);
    client.post(CHAT, "", &body).await;
    let truth = engine.stop().await.remove(0);
    assert_eq!(truth.text_events_written, 3);
    assert_eq!(truth.cached_tokens, Some(16), "half of 40, in blocks of 16");
    let role = truth.mark(Mark::Role).unwrap().write_end.unwrap();
    let first = truth.first_token().unwrap().write_begin;
    assert!(first - role > 40_000_000, "the role came with the head");
}

#[tokio::test]
async fn attempts_of_a_call_are_counted() {
    let engine = Running::engine(quick()).await;
    let mut client = Client::connect(&engine.address).await;
    for call in ["a", "b", "a"] {
        let extra = format!("x-hopscope-call: {call}\r\n");
        client.post(CHAT, &extra, &stream_of(1)).await;
    }
    let attempts: Vec<_> = engine
        .stop()
        .await
        .iter()
        .map(|truth| truth.attempt)
        .collect();
    assert_eq!(attempts, [1, 1, 2]);
}

#[tokio::test]
async fn connections_end_as_announced() {
    let options = EngineOptions {
        keep_alive_ms: 30,
        ..quick()
    };
    let engine = Running::engine(options).await;
    let mut old = Client::connect(&engine.address).await;
    let request = post(CHAT, "", &stream_of(2)).replace("HTTP/1.1", "HTTP/1.0");
    old.send(request.as_bytes()).await;
    let answer = old.read_until(|_| false).await;
    assert!(answer.text().contains("connection: close") && !answer.text().contains("chunked"));
    assert!(answer.text().ends_with("data: [DONE]\n\n"));
    let mut idle = Client::connect(&engine.address).await;
    idle.post(CHAT, "", &stream_of(1)).await;
    assert!(idle.closes(PATIENCE).await, "an idle connection is closed");
    engine.stop().await;
}

#[tokio::test]
async fn a_client_that_leaves_and_a_stop_are_told_apart() {
    let slow = EngineOptions {
        gap_us: 5_000_000,
        ..quick()
    };
    let engine = Running::engine(slow).await;
    let first = |bytes: &[u8]| {
        String::from_utf8_lossy(bytes)
            .matches("\"content\":\" ")
            .count()
            > 0
    };
    let mut leaving = Client::connect(&engine.address).await;
    leaving.send(post(CHAT, "", &stream_of(5)).as_bytes()).await;
    leaving.read_until(first).await;
    drop(leaving);
    let truth = engine.truths(1).await.remove(0);
    assert_eq!(
        (truth.outcome, truth.tokens.len()),
        (Outcome::ClientGone, 1)
    );
    let mut staying = Client::connect(&engine.address).await;
    staying.send(post(CHAT, "", &stream_of(5)).as_bytes()).await;
    staying.read_until(first).await;
    let truth = engine.stop().await.remove(0);
    assert_eq!((truth.outcome, truth.tokens.len()), (Outcome::Stopped, 1));
}
