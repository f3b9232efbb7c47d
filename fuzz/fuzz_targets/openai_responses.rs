//! Bodies of OpenAI's responses, streamed or not: any split gives the same events.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::Dialect;

fuzz_target!(|input: &[u8]| splits::decoder_agrees(Dialect::OpenAiResponses, input));
