//! Frames of `application/vnd.amazon.eventstream`. Written with code of its own, so that an error of the decoder
//! under test cannot cancel out.

/// What pads the payloads of the service, so that their sizes do not tell their texts.
const PADDING: &str = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// The padding of the `number`-th payload of a stream.
pub(crate) fn padding(number: usize) -> &'static str {
    &PADDING[..1 + number * 7 % PADDING.len()]
}

/// An event of this type with a payload of JSON.
pub(crate) fn event(kind: &str, payload: &[u8]) -> Vec<u8> {
    let headers = [
        (":event-type", kind),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];
    frame(&headers, payload)
}

/// An exception of this type.
pub(crate) fn exception(kind: &str, message: &str) -> Vec<u8> {
    let headers = [
        (":exception-type", kind),
        (":content-type", "application/json"),
        (":message-type", "exception"),
    ];
    let payload = serde_json::json!({"message": message}).to_string();
    frame(&headers, payload.as_bytes())
}

/// One frame: total length, length of the headers, their CRC-32, headers, payload, CRC-32 of all.
fn frame(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut lines = Vec::new();
    for (name, value) in headers {
        lines.push(name.len() as u8);
        lines.extend_from_slice(name.as_bytes());
        // A string of so many bytes.
        lines.push(7);
        lines.extend_from_slice(&(value.len() as u16).to_be_bytes());
        lines.extend_from_slice(value.as_bytes());
    }
    let total = 12 + lines.len() + payload.len() + 4;
    let mut frame = Vec::with_capacity(total);
    frame.extend_from_slice(&(total as u32).to_be_bytes());
    frame.extend_from_slice(&(lines.len() as u32).to_be_bytes());
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(&lines);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use super::event;

    #[test]
    fn a_frame_is_that_of_a_capture() {
        let made = event("messageStart", br#"{"p":"abcdefghij","role":"assistant"}"#);
        let hex: String = made.iter().map(|byte| format!("{byte:02x}")).collect();
        // Of a public capture of Bedrock (agentgateway's test data).
        assert!(hex.starts_with("0000008700000052e38183330b3a6576656e742d74797065"));
        assert!(hex.ends_with("22726f6c65223a22617373697374616e74227d7459264a"));
    }
}
