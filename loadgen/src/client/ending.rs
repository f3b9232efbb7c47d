//! How a call ended: the one place that decides what is a success.

use record::client::CallOutcome;
use record::stream::StreamRecord;
use wire::{Decoder, Framing};

/// Judges an answer whose body ended as its framing promised.
pub(super) fn judge(
    status: u16,
    stream: &StreamRecord,
    decoder: &Decoder,
) -> (CallOutcome, Option<String>) {
    if !(200..300).contains(&status) {
        let error = stream
            .error
            .as_deref()
            .map_or_else(String::new, |e| format!(": {e}"));
        return (CallOutcome::Status, Some(format!("status {status}{error}")));
    }
    if stream.counts.errors > 0 {
        let error = stream.error.as_deref().unwrap_or("error");
        return (
            CallOutcome::ErrorInStream,
            Some(format!("error in the stream: {error}")),
        );
    }
    let missing = missing(stream, decoder);
    let outcome = if missing.is_some() {
        CallOutcome::Truncated
    } else {
        CallOutcome::Complete
    };
    (outcome, missing)
}

/// Judges an answer of an agent, whose content is its own affair.
pub(super) fn judge_opaque(status: u16) -> (CallOutcome, Option<String>) {
    if (200..300).contains(&status) {
        (CallOutcome::Complete, None)
    } else {
        (CallOutcome::Status, Some(format!("status {status}")))
    }
}

/// What a complete answer has and this one lacks.
fn missing(stream: &StreamRecord, decoder: &Decoder) -> Option<String> {
    let counts = decoder.counts();
    let unread = counts.malformed + counts.oversized + counts.cut;
    let say = |text: &str| Some(text.to_owned());
    if decoder.framing() == Framing::Opaque {
        return say("the answer is neither an event stream nor JSON");
    }
    if unread > 0 {
        return Some(format!("{unread} events could not be read"));
    }
    if stream.finish_reason.is_none() {
        return say("no finish reason");
    }
    if decoder.framing() == Framing::Sse && stream.marks.done.is_none() {
        return say("no terminal marker [DONE]");
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
    use wire::{Dialect, Limits};

    fn ended(kind: &str, body: &str, status: u16) -> (CallOutcome, Option<String>) {
        let mut decoder = Decoder::new(Dialect::OpenAiChat, Some(kind), Limits::default());
        let mut stream = StreamRecord::starting(0);
        let passage = Passage {
            arrival: Arrival::instant(1),
            departure: None,
        };
        decoder.feed(body.as_bytes(), &mut |framed| {
            stream.observe(&framed, &passage);
        });
        decoder.finish(&mut |framed| stream.observe(&framed, &passage));
        judge(status, &stream, &decoder)
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
