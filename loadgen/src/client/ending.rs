//! How a call ended: the one place that decides what is a success.

use crate::api::Api;
use record::client::CallOutcome;
use record::service::ServiceFault;
use record::stream::StreamRecord;
use wire::{Decoder, Framing};

/// An answer whose body ended as its framing promised.
pub(super) struct Ended<'a> {
    pub(super) status: u16,
    pub(super) api: Api,
    pub(super) stream: &'a StreamRecord,
    pub(super) decoder: &'a Decoder,
    /// Type or code of its error.
    pub(super) error: Option<&'a str>,
    /// The class of the error, where a service said it.
    pub(super) service: Option<ServiceFault>,
}

/// Judges it. Where a service names the type of its error, that is the class, whatever the status.
pub(super) fn judge(ended: &Ended<'_>) -> (CallOutcome, Option<String>) {
    let Ended {
        status,
        stream,
        error,
        ..
    } = *ended;
    let failed = |outcome, fault| {
        let outcome = ended.service.map_or(outcome, CallOutcome::Service);
        (outcome, Some(fault))
    };
    if !(200..300).contains(&status) {
        let error = error.map_or_else(String::new, |error| format!(": {error}"));
        return failed(CallOutcome::Status, format!("status {status}{error}"));
    }
    if ended.api == Api::BlackBox {
        return (CallOutcome::Complete, None);
    }
    if stream.counts.errors > 0 {
        let error = error.unwrap_or("error");
        let fault = format!("error in the stream: {error}");
        return failed(CallOutcome::ErrorInStream, fault);
    }
    let missing = missing(ended);
    let outcome = if missing.is_some() {
        CallOutcome::Truncated
    } else {
        CallOutcome::Complete
    };
    (outcome, missing)
}

/// What a complete answer has and this one lacks.
fn missing(ended: &Ended<'_>) -> Option<String> {
    let (stream, decoder) = (ended.stream, ended.decoder);
    let counts = decoder.counts();
    let unread = counts.malformed + counts.oversized + counts.cut;
    let say = |text: &str| Some(text.to_owned());
    let marks_its_end = ended.api.dialect().marks_its_end();
    if decoder.framing() == Framing::Opaque && marks_its_end {
        return say("the answer is neither an event stream nor JSON");
    }
    if unread > 0 {
        return Some(format!("{unread} events could not be read"));
    }
    if !marks_its_end {
        // An agent's form is its own: what is not read in it may be its text all the same.
        return None;
    }
    if stream.finish_reason.is_none() {
        return say("no finish reason");
    }
    match (decoder.framing(), stream.marks.done) {
        (Framing::Sse, None) => return say("no terminal marker [DONE]"),
        (Framing::EventStream, None) => return say("no terminal event `metadata`"),
        _ => {}
    }
    let stated = stream.usage.and_then(|usage| usage.completion_tokens);
    match (stated, stream.counts.text_events) {
        // An answer of nothing is the quickest of all: it must not count as one.
        (None | Some(0), 0) => say("no text came"),
        (Some(0), events) => Some(format!(
            "{events} events with text, but usage states no token"
        )),
        (Some(tokens), 0) => Some(format!("usage states {tokens} tokens, but no text came")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::stamp::{Arrival, Passage};
    use wire::Limits;

    fn ended(kind: &str, body: &str, status: u16) -> (CallOutcome, Option<String>) {
        let mut decoder = Decoder::new(Api::Chat.dialect(), Some(kind), Limits::default());
        let mut stream = StreamRecord::starting(0);
        let passage = Passage {
            arrival: Arrival::instant(1),
            departure: None,
        };
        decoder.feed(body.as_bytes(), &mut |framed| {
            stream.observe(&framed, &passage);
        });
        decoder.finish(&mut |framed| stream.observe(&framed, &passage));
        judge(&Ended {
            status,
            api: Api::Chat,
            stream: &stream,
            decoder: &decoder,
            error: stream.error.as_deref(),
            service: None,
        })
    }

    const TEXT: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"}}]}\n\n";
    const END: &str =
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
    const DONE: &str = "data: [DONE]\n\n";
    const SSE: &str = "text/event-stream";

    fn usage(tokens: u32) -> String {
        format!(
            "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":1,\"completion_tokens\":{tokens},\"total_tokens\":2}}}}\n\n"
        )
    }

    #[test]
    fn only_a_whole_answer_is_complete() {
        use CallOutcome::{Complete, ErrorInStream, Status, Truncated};
        let error = "data: {\"error\":{\"message\":\"secret\",\"type\":\"overloaded\"}}\n\n";
        let cases = [
            (format!("{TEXT}{END}{}{DONE}", usage(1)), Complete),
            (format!("{TEXT}{END}{DONE}"), Complete),
            (format!("{TEXT}{END}"), Truncated),
            (format!("{TEXT}{DONE}"), Truncated),
            (format!("{END}{}{DONE}", usage(3)), Truncated),
            (format!("{END}{}{DONE}", usage(0)), Truncated),
            (format!("{END}{DONE}"), Truncated),
            (format!("{TEXT}{END}{}{DONE}", usage(0)), Truncated),
            (format!("{TEXT}data: {{oops\n\n{END}{DONE}"), Truncated),
            (format!("{TEXT}{error}{DONE}"), ErrorInStream),
        ];
        for (body, outcome) in cases {
            let (found, fault) = ended(SSE, &body, 200);
            assert_eq!(found, outcome, "{body}");
            assert_eq!(fault.is_none(), outcome == Complete);
            assert!(!fault.unwrap_or_default().contains("secret"));
        }
        let (outcome, fault) = ended(
            "application/json",
            "{\"error\":{\"message\":\"m\",\"type\":\"rate_limit\"}}",
            429,
        );
        assert_eq!(
            (outcome, fault.as_deref()),
            (Status, Some("status 429: rate_limit"))
        );
        let (_, fault) = ended(
            "application/json",
            r#"{"type":"request_limited","status_code":429,"error":{"message":"m"}}"#,
            429,
        );
        assert_eq!(fault.as_deref(), Some("status 429: request_limited"));
        assert_eq!(ended("text/html", "<p>", 200).0, Truncated);
    }
}
