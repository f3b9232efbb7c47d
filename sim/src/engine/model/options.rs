//! The parameters of the modelled engine.
//!
//! Defaults: Llama 3.1 70B in 4-bit AWQ on four A10G with tensor parallelism over PCIe (g5.12xlarge), from
//! a roofline calculation, never measured: reading the weights takes 22 ms, 160 all-reduces 7 ms, a
//! sequence 0.55 ms, and one token of context 320 KiB ÷ 4 cards ÷ 450 GB/s = 182 ns; prefill goes at 700
//! tokens/s (range 500–1,100), limited by compute at 40 % utilisation and by the all-reduces. One decoding
//! sequence then gets 33 tokens/s, in line with the 34 published for MLC-LLM on such cards.

use serde::{Deserialize, Serialize};

use crate::prompt::BLOCK_TOKENS;

/// A step model. Times are those of the modelled engine, before `time_scale`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, default)]
pub struct ModelOptions {
    /// Times answers by a model of continuous batching instead of by the script; the options of the
    /// script's times, `--cached-share`, and a request's wishes for them then have no effect.
    #[arg(long)]
    pub modelled: bool,
    /// Most sequences in one step. (vLLM's default on cards below 70 GB.)
    #[arg(long, default_value_t = Self::default().max_num_seqs, value_parser = clap::value_parser!(u64).range(1..=65_536))]
    pub max_num_seqs: u64,
    /// Most tokens in one step: longer prefills are cut into chunks. (vLLM's default for its server on
    /// cards below 70 GB.) At least `max_num_seqs` for every sequence to advance in each step.
    #[arg(long, default_value_t = Self::default().max_num_batched_tokens, value_parser = clap::value_parser!(u64).range(1..))]
    pub max_num_batched_tokens: u64,
    /// KV blocks of 16 tokens. (9.1 GiB a card hold 119k tokens at 320 KiB a token over four cards.)
    #[arg(long, default_value_t = Self::default().kv_blocks, value_parser = clap::value_parser!(u64).range(1..=16_777_216))]
    pub kv_blocks: u64,
    /// Forgets all KV blocks at the end of a request.
    #[arg(long)]
    pub no_prefix_cache: bool,
    /// Time of every step, µs.
    #[arg(long, default_value_t = Self::default().step_us)]
    pub step_us: u64,
    /// Time for each prompt token computed in a step, µs: cached tokens cost none.
    #[arg(long, default_value_t = Self::default().prefill_token_us)]
    pub prefill_token_us: u64,
    /// Time for each decoding sequence of a step, µs.
    #[arg(long, default_value_t = Self::default().decode_sequence_us)]
    pub decode_sequence_us: u64,
    /// Time for each token of context that the decoding sequences of a step read, ns.
    #[arg(long, default_value_t = Self::default().context_token_ns)]
    pub context_token_ns: u64,
    /// How many seconds of the modelled engine pass in one second: 60 puts an hour into a minute. All
    /// that clients and `/metrics` see is in real seconds.
    #[arg(long, default_value_t = Self::default().time_scale, value_parser = scale)]
    pub time_scale: f64,
}

impl Default for ModelOptions {
    /// Off; the engine of the module's documentation.
    fn default() -> Self {
        Self {
            modelled: false,
            max_num_seqs: 256,
            max_num_batched_tokens: 2048,
            kv_blocks: 119_000 / BLOCK_TOKENS,
            no_prefix_cache: false,
            step_us: 29_000,
            prefill_token_us: 1_429,
            decode_sequence_us: 550,
            context_token_ns: 182,
            time_scale: 1.0,
        }
    }
}

fn scale(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|scale| (0.001..=100_000.0).contains(scale))
        .ok_or_else(|| "expected a number from 0.001 to 100000".to_owned())
}
