//! Splitting a stream of server-sent events, for the stand-ins that forward one.
//!
//! Models: LF and CRLF lines, events of any size up to a bound. Does not model: CR alone as a line end,
//! `retry` and `id` fields. Bytes are never changed: an event keeps its raw form.

/// Larger events are passed on as opaque bytes.
const MAX_EVENT: usize = 16 * 1024 * 1024;

/// Raw bytes of a stream, cut after each event's blank line.
#[derive(Default)]
pub(crate) struct Splitter {
    pub(crate) bytes: Vec<u8>,
    line_start: usize,
    scanned: usize,
}

impl Splitter {
    /// The next whole event with its blank line, or bytes too many to be one.
    pub(crate) fn next_event(&mut self) -> Option<Vec<u8>> {
        while let Some(at) = memchr::memchr(b'\n', &self.bytes[self.scanned..]) {
            let end = self.scanned + at;
            let line = &self.bytes[self.line_start..end];
            self.scanned = end + 1;
            self.line_start = self.scanned;
            if matches!(line, [] | [b'\r']) {
                return Some(self.cut(self.scanned));
            }
        }
        self.scanned = self.bytes.len();
        (self.bytes.len() > MAX_EVENT).then(|| self.cut(self.bytes.len()))
    }

    /// What is left: an event without its blank line.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        self.cut(self.bytes.len())
    }

    fn cut(&mut self, length: usize) -> Vec<u8> {
        let event = self.bytes.drain(..length).collect();
        self.line_start = 0;
        self.scanned = 0;
        event
    }
}

/// The data of an event, `None` for comments and other events without any.
pub(crate) fn data(event: &[u8]) -> Option<Vec<u8>> {
    let mut data: Option<Vec<u8>> = None;
    for line in event.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(value) = line.strip_prefix(b"data:") {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            match &mut data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => data = Some(value.to_vec()),
            }
        }
    }
    data
}

#[cfg(test)]
mod tests {
    use super::{Splitter, data};

    const STREAM: &[u8] =
        b": ping\n\ndata: {\"a\":1}\r\n\r\ndata:x\ndata: y\n\ndata: [DONE]\n\ntail";

    #[test]
    fn any_split_gives_the_same_events() {
        for cut in 0..STREAM.len() {
            let mut splitter = Splitter::default();
            let mut events = Vec::new();
            for part in [&STREAM[..cut], &STREAM[cut..]] {
                splitter.bytes.extend_from_slice(part);
                events.extend(std::iter::from_fn(|| splitter.next_event()));
            }
            let datas: Vec<_> = events.iter().map(|event| data(event)).collect();
            assert_eq!(events.concat(), STREAM[..STREAM.len() - 4]);
            assert_eq!(splitter.rest(), b"tail");
            assert_eq!(
                datas,
                [
                    None,
                    Some(b"{\"a\":1}".to_vec()),
                    Some(b"x\ny".to_vec()),
                    Some(b"[DONE]".to_vec())
                ]
            );
        }
    }
}
