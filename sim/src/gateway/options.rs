//! What a gateway does to the traffic.

use serde::{Deserialize, Serialize};

use super::{KeyOptions, SemanticOptions};

/// A gateway's modes; they combine. Delays are wishes: the truth log has what happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, clap::Args)]
#[serde(deny_unknown_fields, default)]
pub struct GatewayOptions {
    /// Where requests go, `host:port`, cleartext HTTP/1.1.
    #[arg(long, default_value_t = Self::default().upstream)]
    pub upstream: String,
    /// Delay between the last request byte read and the upstream request written, µs.
    #[arg(long, default_value_t = Self::default().request_delay_us)]
    pub request_delay_us: u64,
    /// Delay of every event with text, µs.
    #[arg(long, default_value_t = Self::default().token_delay_us)]
    pub token_delay_us: u64,
    /// Further delay of the first event with text, and of an answer that is not streamed, µs.
    #[arg(long, default_value_t = Self::default().first_token_delay_us)]
    pub first_token_delay_us: u64,
    /// Delay of what follows the text (finish, usage, `[DONE]`), µs; on top where finish rides on text.
    #[arg(long, default_value_t = Self::default().finish_delay_us)]
    pub finish_delay_us: u64,
    /// Spends the delays as busy CPU on worker threads, as an interpreter does, instead of waiting.
    #[arg(long)]
    pub cpu_delay: bool,
    /// How many delays can pass at a time over all exchanges, so that the gateway saturates at
    /// workers ÷ delay. 0 sets no limit; with `cpu_delay` it means 1.
    #[arg(long, default_value_t = Self::default().workers)]
    pub workers: usize,
    /// Parses every chunk and emits it as JSON of its own; comments are lost.
    #[arg(long)]
    pub reserialize: bool,
    /// Drops role chunks and chunks without any content.
    #[arg(long)]
    pub drop_empty: bool,
    /// Merges up to n chunks with text of the same (choice, field) into one; 1 merges nothing. A chunk with the
    /// finish reason is not merged.
    #[arg(long, default_value_t = Self::default().merge)]
    pub merge: u32,
    /// Makes the last chunks itself: the finish reason split off its text, usage in a chunk of its own, and
    /// a `[DONE]` even where the upstream sent none or was cut off.
    #[arg(long)]
    pub synthesize_final: bool,
    /// Forwards none of the client's header fields but the content type and `forward_header`, and gives the
    /// upstream's back under `llm_provider-`, as LiteLLM does.
    #[arg(long)]
    pub strip_headers: bool,
    /// Fields that survive `strip_headers`. Repeat it.
    #[arg(long)]
    pub forward_header: Vec<String>,
    /// Repeats a request once when the upstream cannot be reached or answers 5xx.
    #[arg(long)]
    pub retry: bool,
    /// Gives up this share of first attempts, 0 to 1, after their response head, and makes a second.
    #[arg(long, default_value_t = Self::default().abandon_share, value_parser = share)]
    pub abandon_share: f64,
    /// Answers a repeated request (same path and body bytes) from memory, with the old id.
    #[arg(long)]
    pub cache: bool,
    /// Refuses each n-th request with 429; 0 refuses none.
    #[arg(long, default_value_t = Self::default().refuse_every)]
    pub refuse_every: u64,
    /// Refuses requests beyond this many in any one second with 429; 0 sets no limit.
    #[arg(long, default_value_t = Self::default().refuse_above_rate)]
    pub refuse_above_rate: u64,
    /// Holds the response head until the first event, as LiteLLM does.
    #[arg(long)]
    pub hold_head: bool,
    /// Idle upstream connections kept for reuse; 0 opens one for each attempt.
    #[arg(long, default_value_t = Self::default().pool)]
    pub pool: usize,
    /// Seed of what is random (which attempts are abandoned).
    #[arg(long, default_value_t = Self::default().seed)]
    pub seed: u64,
    /// The semantic cache.
    #[command(flatten)]
    pub semantic: SemanticOptions,
    /// Virtual keys.
    #[command(flatten)]
    pub key_options: KeyOptions,
}

impl Default for GatewayOptions {
    /// Passes everything through without a delay.
    fn default() -> Self {
        Self {
            upstream: "127.0.0.1:8000".to_owned(),
            request_delay_us: 0,
            token_delay_us: 0,
            first_token_delay_us: 0,
            finish_delay_us: 0,
            cpu_delay: false,
            workers: 0,
            reserialize: false,
            drop_empty: false,
            merge: 1,
            synthesize_final: false,
            strip_headers: false,
            forward_header: Vec::new(),
            retry: false,
            abandon_share: 0.0,
            cache: false,
            refuse_every: 0,
            refuse_above_rate: 0,
            hold_head: false,
            pool: 1024,
            seed: 0,
            semantic: SemanticOptions::default(),
            key_options: KeyOptions::default(),
        }
    }
}

impl GatewayOptions {
    /// Whether answers are kept for later requests.
    pub(super) fn keeps_answers(&self) -> bool {
        self.cache || self.semantic.semantic_cache
    }
}

/// A share of one.
pub(super) fn share(text: &str) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "expected a number from 0 to 1".to_owned())
}
