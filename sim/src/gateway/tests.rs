use std::time::Duration;

use super::*;
use crate::engine::EngineOptions;
use crate::rig::*;
use crate::truth::{ExchangeTruth, Mark, Outcome};

mod failures;
mod keys;
mod modes;
mod semantic;

/// A gateway before an engine.
struct Chain {
    engine: Running,
    gateway: Running,
}

impl Chain {
    async fn new(engine: EngineOptions, gateway: GatewayOptions) -> Self {
        let engine = Running::engine(engine).await;
        let gateway = Running::gateway(GatewayOptions {
            upstream: engine.address.clone(),
            ..gateway
        })
        .await;
        Self { engine, gateway }
    }

    /// One client that posts `bodies` in turn with the header lines `extra`.
    async fn run(self, extra: &str, bodies: &[String]) -> Ran {
        let mut client = Client::connect(&self.gateway.address).await;
        let mut answers = Vec::new();
        for body in bodies {
            answers.push(client.post(CHAT, extra, body).await);
        }
        drop(client);
        Ran {
            answers,
            gateway: self.gateway.stop().await,
            engine: self.engine.stop().await,
        }
    }
}

struct Ran {
    answers: Vec<Answer>,
    gateway: Vec<ExchangeTruth>,
    engine: Vec<ExchangeTruth>,
}

fn quick() -> EngineOptions {
    EngineOptions {
        ttft_us: 2_000,
        gap_us: 4_000,
        ..EngineOptions::default()
    }
}

/// Positions and stamps of both truths fit together: the gateway read what the engine wrote, afterwards.
fn assert_chained(engine: &ExchangeTruth, gateway: &ExchangeTruth) {
    assert_ordered(gateway);
    assert_eq!(engine.tokens.len(), gateway.tokens.len());
    for (inner, outer) in engine.tokens.iter().zip(&gateway.tokens) {
        assert_eq!(inner.end_text_offset, outer.end_text_offset);
        assert!(outer.read_at.unwrap() >= inner.write_begin);
    }
    let sent = gateway.attempts.last().unwrap().request_write_begin;
    let arrived = engine.mark(Mark::RequestBody).unwrap().read_at;
    assert!(arrived >= sent);
}

/// Shortest and median time that the gateway held a token.
fn holds(gateway: &ExchangeTruth) -> (u64, u64) {
    let mut holds: Vec<u64> = gateway
        .tokens
        .iter()
        .map(|token| token.write_begin - token.read_at.unwrap())
        .collect();
    holds.sort_unstable();
    (holds[0], holds[holds.len() / 2])
}

#[tokio::test]
async fn passing_through_changes_no_byte_of_the_body() {
    let chain = Chain::new(quick(), GatewayOptions::default()).await;
    let mut direct = Client::connect(&chain.engine.address).await;
    let extra = "x-request-id: r\r\nx-hopscope-call: c-1\r\nx-sim-fault: ping=3\r\n";
    let expected = direct.post(CHAT, extra, &stream_of(10)).await;
    let ran = chain.run(extra, &[stream_of(10)]).await;
    let untimed = |answer: &Answer| {
        let body = answer.body();
        let created = body.split("\"created\":").nth(1).unwrap()[..10].to_owned();
        body.replace(&created, "0")
    };
    assert_eq!(untimed(&ran.answers[0]), untimed(&expected));
    assert!(ran.answers[0].text().contains("server: uvicorn\r\n"));
    assert!(ran.answers[0].text().contains("x-sim-overhead-ms: "));
    let truth = &ran.gateway[0];
    assert_complete(truth);
    assert_chained(&ran.engine[1], truth);
    assert_eq!((truth.call.as_deref(), truth.attempt), (Some("c-1"), 1));
    assert_eq!(truth.response_id, ran.engine[1].response_id);
    assert_eq!(
        (truth.text_events_read, truth.text_events_written),
        (10, 10)
    );
    assert_eq!(
        (truth.prompt_tokens, truth.completion_tokens),
        (Some(3), Some(10))
    );
    assert_eq!(ran.engine[1].attempt, 2, "the call id went through");
}

#[tokio::test]
async fn delays_are_at_least_those_asked_for_and_do_not_add_up() {
    let delays = GatewayOptions {
        request_delay_us: 30_000,
        token_delay_us: 10_000,
        first_token_delay_us: 20_000,
        finish_delay_us: 15_000,
        ..GatewayOptions::default()
    };
    let chain = Chain::new(quick(), delays).await;
    let ran = chain.run("", &[stream_of(25)]).await;
    let truth = &ran.gateway[0];
    assert_chained(&ran.engine[0], truth);
    let read = truth.mark(Mark::RequestBody).unwrap().read_at.unwrap();
    let sent = truth.attempts[0].request_write_begin.unwrap();
    assert!(sent - read >= 30_000_000);
    let first = truth.first_token().unwrap();
    assert!(first.write_begin - first.read_at.unwrap() >= 30_000_000);
    let (shortest, median) = holds(truth);
    assert!(shortest >= 10_000_000);
    // Gaps are shorter than the delay: if delays queued, the 13th token would be 78 ms late.
    assert!(median < 30_000_000, "median hold {median} ns");
    let done = truth.mark(Mark::Done).unwrap();
    assert!(done.write_begin.unwrap() - done.read_at.unwrap() >= 15_000_000);
}

#[tokio::test]
async fn a_worker_that_burns_cpu_queues_and_claims_less_than_it_costs() {
    let python = GatewayOptions {
        request_delay_us: 10_000,
        token_delay_us: 2_000,
        cpu_delay: true,
        workers: 1,
        ..GatewayOptions::default()
    };
    let chain = Chain::new(quick(), python).await;
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let address = chain.gateway.address.clone();
        clients.spawn(async move {
            let mut client = Client::connect(&address).await;
            client.post(CHAT, "", &stream_of(5)).await.status()
        });
    }
    assert_eq!(clients.join_all().await, [200; 4]);
    let truths = chain.gateway.stop().await;
    let mut requests: Vec<u64> = truths
        .iter()
        .map(|truth| {
            assert_complete(truth);
            assert!(holds(truth).0 >= 2_000_000);
            let read = truth.mark(Mark::RequestBody).unwrap().read_at.unwrap();
            truth.attempts[0].request_write_begin.unwrap() - read
        })
        .collect();
    requests.sort_unstable();
    assert!(requests[0] >= 10_000_000);
    assert!(
        requests[3] >= 35_000_000,
        "the fourth waits for the three before it"
    );
    chain.engine.stop().await;
}

#[tokio::test]
async fn whole_answers_pass_and_pages_of_its_own_answer() {
    let chain = Chain::new(quick(), GatewayOptions::default()).await;
    let address = chain.gateway.address.clone();
    let body = r#"{"messages":[{"content":"a"}],"max_tokens":3}"#.to_owned();
    let ran = chain.run("", &[body.clone(), "{broken".to_owned()]).await;
    assert!(ran.answers[0].body().contains("\"completion_tokens\":3"));
    assert_eq!(ran.answers[1].status(), 400);
    let truth = &ran.gateway[0];
    assert_eq!((truth.outcome, truth.tokens.len()), (Outcome::Complete, 1));
    assert_eq!(truth.response_id, ran.engine[0].response_id);
    assert_eq!(ran.gateway[1].outcome, Outcome::Rejected);
    assert!(ran.gateway[1].attempts[0].reused_connection);
    drop(address);

    let chain = Chain::new(quick(), GatewayOptions::default()).await;
    let mut client = Client::connect(&chain.gateway.address).await;
    client.post(CHAT, "", &body).await;
    client
        .send(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
        .await;
    let metrics = client.read_until(complete).await.body();
    assert!(
        metrics.contains("sim_gateway_requests_total 1\n"),
        "{metrics}"
    );
    assert!(metrics.contains("sim_gateway_overhead_seconds_count 1\n"));
    client
        .send(b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n")
        .await;
    assert!(client.read_until(complete).await.body().contains("vllm"));
    chain.gateway.stop().await;
    chain.engine.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_streams_at_once() {
    let engine = EngineOptions {
        ttft_us: 100_000,
        gap_us: 20_000,
        ..EngineOptions::default()
    };
    let delays = GatewayOptions {
        token_delay_us: 1_000,
        merge: 2,
        ..GatewayOptions::default()
    };
    let chain = Chain::new(engine, delays).await;
    let mut streams = tokio::task::JoinSet::new();
    for _ in 0..300 {
        let address = chain.gateway.address.clone();
        streams.spawn(async move {
            let mut client = Client::connect(&address).await;
            let answer = client.post(CHAT, "", &stream_of(20)).await;
            answer.content().split_whitespace().count()
        });
    }
    assert_eq!(streams.join_all().await, vec![20; 300]);
    let truths = chain.gateway.stop().await;
    assert_eq!(truths.len(), 300);
    for truth in &truths {
        assert_complete(truth);
        assert_eq!(truth.tokens.len(), 20);
        // 19 are merged in pairs, the one with the finish is not.
        assert_eq!(
            (truth.text_events_read, truth.text_events_written),
            (20, 11)
        );
    }
    chain.engine.stop().await;
}
