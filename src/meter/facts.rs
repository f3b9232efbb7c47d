//! Reads a request's facts off the hot path, from the bytes that were sent.

use super::Finished;
use crate::tap::dechunk;
use record::timeline;
use std::borrow::Cow;

/// Fills in what the request's body says. The body itself goes no further.
pub(super) fn fill(finished: &mut Finished) {
    let Some((bytes, body_at, chunked)) = finished.sent.take() else {
        return;
    };
    let raw = bytes.get(body_at..).unwrap_or_default();
    let body = if chunked {
        Cow::Owned(dechunk(raw))
    } else {
        Cow::Borrowed(raw)
    };
    let request = &mut finished.exchange.request;
    request.bytes = body.len() as u64;
    request.body_hash = Some(timeline::hash(&body));
    if finished.dialect == wire::Dialect::Opaque || request.method != "POST" {
        return;
    }
    if let Ok(facts) = wire::request::facts(finished.dialect, &request.path, &body) {
        request.model = facts.model;
        request.stream = facts.stream;
        request.fingerprint = request.generation.then_some(facts.fingerprint);
        (request.rpc, request.tool) = (facts.method, facts.tool);
    }
}
