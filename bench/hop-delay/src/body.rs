//! What the client undoes to find the tokens: response head, chunked framing, events.

use anyhow::{Result, bail};
use memchr::memmem;

/// Longest response head and longest event that is accepted, in bytes.
const LIMIT: usize = 64 * 1024;

/// Where in the response the decoder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Head,
    /// In the line that gives a chunk's size; `digits` is false once an extension began.
    Size {
        size: usize,
        digits: bool,
    },
    Data {
        left: usize,
    },
    AfterData {
        left: usize,
    },
    /// In the two bytes that end the body (trailers are refused).
    Last {
        left: usize,
    },
    Done,
}

/// Reads one streamed HTTP/1.1 response, however a proxy has cut it.
pub(crate) struct Body {
    at: At,
    pending: Vec<u8>,
}

impl Body {
    pub(crate) fn new() -> Self {
        Self {
            at: At::Head,
            pending: Vec::new(),
        }
    }

    /// True once the end of the body was read.
    pub(crate) fn is_done(&self) -> bool {
        self.at == At::Done
    }

    /// Takes the bytes of one read and calls `token` with the send stamp of each token that they
    /// complete.
    ///
    /// # Errors
    /// When the response is not a chunked 200, its framing is broken or an event passes the limit.
    pub(crate) fn feed(&mut self, bytes: &[u8], mut token: impl FnMut(u64)) -> Result<()> {
        if self.at == At::Head {
            self.pending.extend_from_slice(bytes);
            if let Some(end) = memmem::find(&self.pending, b"\r\n\r\n") {
                check_head(&self.pending[..end])?;
                let rest = self.pending.split_off(end + 4);
                self.pending.clear();
                self.at = At::Size {
                    size: 0,
                    digits: true,
                };
                self.unframe(&rest)?;
            }
        } else {
            self.unframe(bytes)?;
        }
        if self.at != At::Head {
            self.drain_events(&mut token);
        }
        if self.pending.len() > LIMIT {
            bail!("an event or head longer than {LIMIT} bytes");
        }
        Ok(())
    }

    fn unframe(&mut self, mut bytes: &[u8]) -> Result<()> {
        while let Some((&first, rest)) = bytes.split_first() {
            match self.at {
                At::Data { left } => {
                    let (data, after) = bytes.split_at(left.min(bytes.len()));
                    self.pending.extend_from_slice(data);
                    bytes = after;
                    self.at = match left - data.len() {
                        0 => At::AfterData { left: 2 },
                        left => At::Data { left },
                    };
                }
                _ => {
                    self.at = framing_byte(self.at, first)?;
                    bytes = rest;
                }
            }
        }
        Ok(())
    }

    fn drain_events(&mut self, token: &mut impl FnMut(u64)) {
        let mut begin = 0;
        while let Some(length) = memmem::find(&self.pending[begin..], b"\n\n") {
            if let Some(stamp) = stamp_of(&self.pending[begin..begin + length]) {
                token(stamp);
            }
            begin += length + 2;
        }
        self.pending.drain(..begin);
    }
}

/// One byte of framing.
fn framing_byte(at: At, byte: u8) -> Result<At> {
    Ok(match at {
        At::Size { size: 0, .. } if byte == b'\n' => At::Last { left: 2 },
        At::Size { size, .. } if byte == b'\n' => At::Data { left: size },
        At::Size { size, .. } if byte == b'\r' => At::Size {
            size,
            digits: false,
        },
        At::Size { size, digits: true } => match char::from(byte).to_digit(16) {
            Some(digit) if size <= LIMIT => At::Size {
                size: size * 16 + digit as usize,
                digits: true,
            },
            _ if byte == b';' => At::Size {
                size,
                digits: false,
            },
            _ => bail!("a broken chunk size"),
        },
        At::Size { .. } => at,
        At::AfterData { left: 1 } => At::Size {
            size: 0,
            digits: true,
        },
        At::Last { left: 1 } => At::Done,
        At::AfterData { left } => At::AfterData { left: left - 1 },
        At::Last { left } => At::Last { left: left - 1 },
        At::Head | At::Data { .. } | At::Done => bail!("bytes after the end of the response"),
    })
}

fn check_head(head: &[u8]) -> Result<()> {
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    let status = text.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        bail!("the response began with \"{status}\" where 200 was expected");
    }
    if !text.contains("transfer-encoding: chunked") {
        bail!("the response is not chunked: it cannot have streamed");
    }
    Ok(())
}

/// The send stamp in an event's content, if it is a token.
fn stamp_of(event: &[u8]) -> Option<u64> {
    let key = b"\"content\":\"";
    let begin = memmem::find(event, key)? + key.len();
    let digits = event.get(begin..begin + 20)?;
    digits.iter().try_fold(0u64, |value, byte| {
        let digit = byte.checked_sub(b'0').filter(|digit| *digit < 10)?;
        value.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two tokens and another event, chunked across the events' own borders.
    fn response() -> Vec<u8> {
        let events = "data: {\"content\":\"00000000000000000007 ab\"}\n\n\
            data: {\"content\":\"00000000000000000042 ab\"}\n\ndata: {\"x\":1}\n\n";
        let mut text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
        for (size, from, to) in [("2A;x=1", 0, 42), ("1a", 42, 68), ("25", 68, events.len())] {
            text += &format!("{size}\r\n{}\r\n", &events[from..to]);
        }
        (text + "0\r\n\r\n").into_bytes()
    }

    #[test]
    fn any_cut_gives_the_same_tokens() {
        let response = response();
        for cut in 1..response.len() {
            let mut body = Body::new();
            let mut seen = Vec::new();
            for part in [&response[..cut], &response[cut..]] {
                body.feed(part, |stamp| seen.push(stamp)).unwrap();
            }
            assert_eq!(seen, [7, 42], "cut at {cut}");
            assert!(body.is_done(), "cut at {cut}");
        }
    }

    #[test]
    fn another_status_is_an_error() {
        let error = Body::new()
            .feed(b"HTTP/1.1 502 Bad Gateway\r\n\r\n", |_| ())
            .unwrap_err();
        assert!(error.to_string().contains("502"), "{error}");
    }

    #[test]
    fn broken_framing_is_an_error() {
        let response = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
        assert!(Body::new().feed(response, |_| ()).is_err());
    }
}
