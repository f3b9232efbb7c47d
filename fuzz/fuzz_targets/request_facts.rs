//! Request bodies: never a panic, and the facts do not depend on how the JSON is laid out.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{Dialect, request};

fuzz_target!(|input: &[u8]| {
    for dialect in [Dialect::OpenAiChat, Dialect::OpenAiCompletions] {
        if let Ok(facts) = request::facts(dialect, input) {
            assert!(facts.prompt_bytes <= input.len() as u64);
        }
        let Ok(value) = serde_json::from_slice::<serde_json::Value>(input) else {
            continue;
        };
        let compact = request::facts(dialect, value.to_string().as_bytes()).ok();
        let pretty = request::facts(dialect, format!("{value:#}").as_bytes()).ok();
        assert_eq!(compact, pretty);
    }
});
