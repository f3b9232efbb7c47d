//! Directions that one expects, shown by the whole chain of tools: a prefix-aware router before modelled
//! engines against round robin before as many. *Simulated*: it shows that the tools can tell, not what
//! any product does.

use crate::rig::{chain, free};
use config::{ChainKind, Scenario};
use loadgen::progress::Silent;
use loadgen::{Plan, PlannedChain, Stop};
use report::Arm;
use sim::engine::{EngineOptions, ModelOptions};
use sim::router::{Policy, RouterOptions};
use sim::truth::Log;
use std::future::pending;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

const REPLICAS: usize = 3;

/// A router of its own before engines of its own.
async fn fleet(policy: Policy) -> SocketAddr {
    let bind = || async { TcpListener::bind("127.0.0.1:0").await.unwrap() };
    let mut upstreams = Vec::new();
    for _ in 0..REPLICAS {
        let listener = bind().await;
        upstreams.push(listener.local_addr().unwrap().to_string());
        let options = EngineOptions {
            model_options: ModelOptions {
                modelled: true,
                // Room for some of the five system prompts and what is being answered, not for all. Five, since
                // a multiple of the replicas would give each its own prompts in turn.
                kv_blocks: 200,
                time_scale: 20.0,
                ..ModelOptions::default()
            },
            ..EngineOptions::default()
        };
        tokio::spawn(sim::engine::serve(listener, options, Log::off(), pending()));
    }
    let listener = bind().await;
    let at = listener.local_addr().unwrap();
    let options = RouterOptions {
        upstreams,
        policy,
        ..RouterOptions::default()
    };
    tokio::spawn(sim::router::serve(listener, options, Log::off(), pending()));
    at
}

/// The arms of both routers under `workload`: round robin, prefix-aware.
fn compare(workload: &str) -> (Arm, Arm) {
    let runtime = Runtime::new().unwrap();
    let scenario = format!(
        "name: routing\nnumber: 3\nquestion: Does cache-aware routing pay?\nworkload: {workload}\n\
         closed_loop: {{concurrency: [4], cell: {{calls: 40}}}}\nblocks: 4\nwarmup: {{calls: 24}}\nseed: 3\n"
    );
    let parsed = config::from_text::<Scenario>(Path::new("routing.yaml"), &scenario).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("run");
    let mut plan = Plan::new("routing", &out, parsed.into_inner(), scenario.clone());
    let routers = runtime.block_on(async {
        [
            ("round-robin", fleet(Policy::RoundRobin).await),
            ("prefix", fleet(Policy::Prefix).await),
        ]
    });
    for (name, at) in routers {
        let mut driven = chain(&[("outer", at, free())]);
        driven.name = name.to_owned();
        driven.kind = ChainKind::Service;
        driven.taps.clear();
        plan.chains.push(PlannedChain {
            chain: driven,
            text: String::new(),
            base: dir.path().to_owned(),
            pids: Vec::new(),
            injected: None,
        });
    }
    let run = loadgen::run(&plan, Arc::new(Silent), &Stop::default()).unwrap();
    let report = report::build(&[run.root().to_owned()]).unwrap();
    let arm = |name: &str| {
        report
            .arms
            .iter()
            .find(|a| a.chain == name)
            .unwrap()
            .clone()
    };
    runtime.shutdown_background();
    (arm("round-robin"), arm("prefix"))
}

#[test]
fn prefix_aware_routing_pays_on_shared_prompts_and_not_on_unique_ones() {
    let shared = "{input_tokens: 20, output_tokens: 16, system: {count: 5, tokens: 1000}}";
    let (robin, prefix) = compare(shared);
    let (slow, quick) = (robin.ttft.interval.unwrap(), prefix.ttft.interval.unwrap());
    println!(
        "shared prompts: round robin {slow:?}, cached {:?}; prefix-aware {quick:?}, cached {:?}",
        robin.cached_share, prefix.cached_share
    );
    assert!(quick.1 < slow.0, "the intervals exclude each other");
    assert!(prefix.cached_share.unwrap() > robin.cached_share.unwrap() + 0.2);
    let (robin, prefix) = compare("{input_tokens: 400, output_tokens: 16}");
    let (one, other) = (robin.ttft.interval.unwrap(), prefix.ttft.interval.unwrap());
    println!("unique prompts: round robin {one:?}, prefix-aware {other:?}");
    assert!(
        other.1 > one.0 * 0.8,
        "nothing to win where nothing repeats"
    );
    assert_eq!(prefix.cached_share, Some(0.0));
}
