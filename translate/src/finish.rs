//! Why an answer ended, in OpenAI's words.

/// `finish_reason` of a `stopReason`. Converse has more of them; the answer keeps the original beside it.
pub(crate) fn reason(stop: &str) -> &'static str {
    match stop {
        "max_tokens" | "model_context_window_exceeded" => "length",
        "tool_use" => "tool_calls",
        "guardrail_intervened" | "content_filtered" => "content_filter",
        // As vLLM says it: there is no word of OpenAI's for an answer that cannot be read.
        "malformed_model_output" | "malformed_tool_use" => "error",
        // end_turn, stop_sequence, and what is not known yet.
        _ => "stop",
    }
}
