//! What the modelled engine tells about itself, under vLLM's names.

use super::scheduler::Scheduler;
use crate::exposition::{Exposition, Seconds};

/// Bounds of vLLM's `time_to_first_token_seconds`, s.
const FIRST_TOKEN: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
];
/// Bounds of vLLM's `inter_token_latency_seconds`, s.
const BETWEEN_TOKENS: &[f64] = &[
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0,
];
/// Bounds of vLLM's latencies of whole requests, s.
const REQUEST: &[f64] = &[
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 7680.0,
];

/// Counters and histograms since the start.
pub(super) struct Meters {
    pub(super) prompt_tokens: u64,
    pub(super) generation_tokens: u64,
    pub(super) succeeded: u64,
    /// The most by which a step ended later than the model has it, ns: where it nears a step's time, this
    /// machine is too slow for the time scale and the times are wrong.
    pub(super) behind: u64,
    pub(super) first_token: Seconds,
    pub(super) between_tokens: Seconds,
    pub(super) whole: Seconds,
    pub(super) queued: Seconds,
}

impl Default for Meters {
    fn default() -> Self {
        Self {
            prompt_tokens: 0,
            generation_tokens: 0,
            succeeded: 0,
            behind: 0,
            first_token: Seconds::new(FIRST_TOKEN),
            between_tokens: Seconds::new(BETWEEN_TOKENS),
            whole: Seconds::new(REQUEST),
            queued: Seconds::new(REQUEST),
        }
    }
}

impl Meters {
    /// The page, in Prometheus' text format.
    pub(super) fn render(&self, model: &str, scheduler: &Scheduler) -> String {
        let mut page = Exposition::with_labels(&[("model_name", model), ("engine", "0")]);
        for (name, help, value) in [
            (
                "vllm:num_requests_running",
                "Requests in the batch.",
                scheduler.running() as f64,
            ),
            (
                "vllm:num_requests_waiting",
                "Requests in the queue.",
                scheduler.waiting() as f64,
            ),
            (
                "vllm:kv_cache_usage_perc",
                "Share of the KV blocks in use, 0 to 1.",
                scheduler.kv_usage(),
            ),
            (
                "sim_engine_behind_seconds",
                "The most by which a step ended late: near a step's time, results are wrong.",
                self.behind as f64 / 1e9,
            ),
        ] {
            page.gauge(name, help, value);
        }
        let tally = scheduler.tally;
        for (name, help, value) in [
            (
                "vllm:prefix_cache_queries_total",
                "Tokens looked up in the prefix cache.",
                tally.queried,
            ),
            (
                "vllm:prefix_cache_hits_total",
                "Tokens found in the prefix cache.",
                tally.found,
            ),
            (
                "vllm:num_preemptions_total",
                "Preemptions.",
                tally.preemptions,
            ),
            (
                "vllm:prompt_tokens_total",
                "Prompt tokens processed.",
                self.prompt_tokens,
            ),
            (
                "vllm:generation_tokens_total",
                "Tokens generated.",
                self.generation_tokens,
            ),
            (
                "vllm:request_success_total",
                "Requests completed.",
                self.succeeded,
            ),
        ] {
            page.counter(name, help, value);
        }
        for (name, help, histogram) in [
            (
                "vllm:time_to_first_token_seconds",
                "Arrival to first token.",
                &self.first_token,
            ),
            (
                "vllm:inter_token_latency_seconds",
                "Between two tokens.",
                &self.between_tokens,
            ),
            (
                "vllm:e2e_request_latency_seconds",
                "Arrival to last token.",
                &self.whole,
            ),
            (
                "vllm:request_queue_time_seconds",
                "Arrival to first admission.",
                &self.queued,
            ),
        ] {
            page.histogram(name, help, histogram);
        }
        page.finish()
    }
}
