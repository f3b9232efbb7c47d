//! The probe against a server that counts otherwise than we do.

use super::*;
use crate::PlannedChain;
use crate::testbed::{HEAD, Seen, Server, chunk, token};
use config::Scenario;
use std::io::Write as _;
use std::path::Path;

/// Answers with `usage` of the request's words; `None` states none.
fn server(usage: impl Fn(u32) -> Option<u32> + Send + Sync + 'static) -> Server {
    Server::start(move |seen, stream| {
        let usage = usage(words(seen)).map_or_else(String::new, |prompt| {
            format!(
                "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{prompt},\"completion_tokens\":1,\"total_tokens\":9}}}}\n\n"
            )
        });
        let end =
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
        let text = format!("{}{end}{usage}data: [DONE]\n\n", token("a"));
        let sent = stream
            .write_all(HEAD.as_bytes())
            .and_then(|()| chunk(stream, &text))
            .and_then(|()| stream.write_all(b"0\r\n\r\n"));
        sent.is_ok()
    })
}

/// Words of all messages.
fn words(seen: &Seen) -> u32 {
    let body: serde_json::Value = serde_json::from_str(&seen.body).unwrap();
    let messages = body["messages"].as_array().unwrap().iter();
    let count = |m: &serde_json::Value| m["content"].as_str().unwrap().split_whitespace().count();
    messages.map(|m| u32::try_from(count(m)).unwrap()).sum()
}

fn run(servers: &[(&str, &Server)], wanted: &str) -> Result<Vec<TokenProbe>, LoadError> {
    let text = format!(
        "name: p\nnumber: 1\nquestion: q\nworkload: {{input_tokens: 300, output_tokens: 16, system: {{count: 2, tokens: 200}}, usage_probe: {wanted}}}\n\
         closed_loop: {{concurrency: [1], cell: {{calls: 1}}}}\nwarmup: {{calls: 1}}\nseed: 1\n"
    );
    let scenario = config::from_text::<Scenario>(Path::new("p.yaml"), &text).unwrap();
    let mut plan = Plan::new("p", Path::new("unused"), scenario.into_inner(), text);
    for (name, server) in servers {
        plan.chains.push(PlannedChain {
            chain: server.chain(name, "service"),
            text: String::new(),
            base: Path::new("").to_owned(),
            pids: Vec::new(),
            injected: None,
        });
    }
    let lanes = Lanes::start(1).unwrap();
    let vocabulary = Vocabulary::load(&plan.scenario.workload.tokenizer).unwrap();
    let timeouts = &plan.scenario.timeouts;
    let targets: Vec<Arc<Target>> = plan
        .chains
        .iter()
        .map(|chain| Arc::new(Target::of(chain, timeouts, true).unwrap()))
        .collect();
    probe(&plan, &targets, &lanes, &vocabulary)
}

#[test]
fn prompts_are_brought_to_the_length_that_the_reference_counts() {
    // One counts 1.3 tokens a word and a template of 17, the other one more for each 50 words.
    let one = server(|words| Some(17 + words * 13 / 10));
    let other = server(|words| Some(17 + words * 13 / 10 + words / 50));
    let silent = server(|_| None);
    let chains = [("other", &other), ("one", &one), ("silent", &silent)];
    let probes = run(&chains, "{reference: one}").unwrap();
    assert_eq!(probes.len(), 1);
    let found = &probes[0];
    assert_eq!((found.reference.as_str(), found.asked), ("one", 500));
    // (500 − 17) ÷ 1.3 = 371.5 words, of which 200 ÷ 1.3 are the system prompt's.
    assert!(found.sent().abs_diff(372) <= 2, "{found:?}");
    assert!(found.system.abs_diff(154) <= 1, "{found:?}");
    assert!((found.each - 1.3).abs() < 0.01 && (found.template - 17.0).abs() < 2.0);
    assert!((found.counted[0].mean().unwrap() - 500.0).abs() <= 5.0);
    let names: Vec<&str> = found.counted.iter().map(|c| c.chain.as_str()).collect();
    assert_eq!(names, ["one", "other", "silent"]);
    // Seven of five hundred.
    let deviation = found.counted[1].deviation.unwrap();
    assert!((deviation - 0.014).abs() < 0.003, "{deviation}");
    assert_eq!(
        (found.counted[2].deviation, found.counted[2].mean()),
        (None, None)
    );
    // Identical text: the last prompts of each server are those of the others.
    let last = |server: &Server| server.seen().last().unwrap().body.clone();
    assert_eq!(last(&one), last(&other));
}

#[test]
fn chains_of_one_model_share_a_reference_and_one_with_a_template_only_is_refused() {
    let right = server(Some);
    let probes = run(&[("a", &right), ("b", &right)], "{}").unwrap();
    assert_eq!((probes.len(), probes[0].reference.as_str()), (1, "a"));
    assert_eq!((probes[0].system, probes[0].user), (200, 300));
    let wordy = server(|words| Some(words + 600));
    let error = run(&[("wordy", &wordy)], "{}").unwrap_err().to_string();
    assert!(error.contains("600 tokens beside the text"), "{error}");
}

#[test]
fn a_backend_that_cannot_be_asked_is_named_with_the_remedy() {
    let silent = server(|_| None);
    let constant = server(|_| Some(7));
    let count = std::sync::atomic::AtomicU32::new(0);
    // Every second answer is off by a quarter: no length has one count.
    let wild = server(move |words| {
        let odd = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 2;
        Some(words + odd * words / 4)
    });
    for (server, told) in [
        (silent, "no `usage.prompt_tokens`"),
        (constant, "0.000 tokens for each"),
        (wild, "after 5 corrections"),
    ] {
        let error = run(&[("x", &server)], "{}").unwrap_err().to_string();
        let place = format!("chain x at http://{}", server.address);
        assert!(error.contains(told) && error.contains(&place), "{error}");
        assert!(error.contains("tokenizer: {file"), "{error}");
    }
}
