//! Request bodies: never a panic, and the facts do not depend on how the JSON is laid out.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{Dialect, request};

fuzz_target!(|input: &[u8]| {
    let converse = "/model/a%3A1/converse-stream";
    let invoke = "/model/a%3A1/invoke-with-response-stream";
    let agent = "/runtimes/a%3A1/invocations";
    for (dialect, path) in [
        (Dialect::OpenAiChat, ""),
        (Dialect::OpenAiCompletions, ""),
        (Dialect::Converse, converse),
        (Dialect::Invoke, invoke),
        (Dialect::AnthropicMessages, ""),
        (Dialect::OpenAiResponses, ""),
        (Dialect::AgentCore, agent),
        (Dialect::Mcp, ""),
    ] {
        if let Ok(facts) = request::facts(dialect, path, input) {
            assert!(facts.prompt_bytes <= input.len() as u64);
        }
        let Ok(value) = serde_json::from_slice::<serde_json::Value>(input) else {
            continue;
        };
        let compact = request::facts(dialect, path, value.to_string().as_bytes()).ok();
        let pretty = request::facts(dialect, path, format!("{value:#}").as_bytes()).ok();
        assert_eq!(compact, pretty);
    }
});
