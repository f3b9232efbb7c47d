//! Asking the managed service whose engine this is.

use super::plan::Plan;
use super::reply::{Ending, Reply};
use super::{Engine, answer};
use crate::aws;
use crate::http::Headers;
use crate::managed::Call;
use crate::truth::Outcome;

/// Lets a call in that was read at `start` ns, once its copy is up, and gives the instant from which its times
/// run. Without a service all are let in. The error is the ending of a refused call.
pub(super) async fn enter<'e>(
    engine: &'e Engine,
    reply: &mut Reply<'_>,
    plan: &mut Plan,
    start: u64,
) -> Result<(u64, Option<Call<'e>>), Ending> {
    let Some(service) = &engine.service else {
        return Ok((start, None));
    };
    let tokens = (plan.counts.prompt, plan.most_tokens);
    let call = match service.enter(start, &plan.reusable(), tokens) {
        Ok(call) => call,
        Err(why) => {
            let body = serde_json::json!({"error": {
                "message": why.message(), "type": why.kind(), "param": null, "code": 429
            }})
            .to_string();
            if reply.aws {
                let (body, extra) = answer::of_kind(reply, 429, why.kind(), why.message());
                return Err(answer::send_error(reply, 429, &body, &extra, Outcome::Refused).await);
            }
            let kind = aws::error_field(why.kind());
            let extra = Headers(vec![("x-amzn-errortype".to_owned(), kind)]);
            return Err(answer::send_error(reply, 429, &body, &extra, Outcome::Refused).await);
        }
    };
    if call.ready_at > start {
        reply.wait_until(call.ready_at).await.map_err(Err)?;
    }
    plan.options.ttft_us = call.ttft_us;
    plan.options.ttft_sigma = 0.0;
    plan.counts.cached = call.reuse.read;
    plan.counts.written = call.reuse.written;
    Ok((start.max(call.ready_at), Some(call)))
}
