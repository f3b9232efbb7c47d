//! Request and response heads of HTTP/1: read, understood as far as a proxy must, and written on.
//!
//! Names, values, order and case stay as they came. Left out are what belongs to one connection
//! only (RFC 9110 §7.6.1) and our own headers; added are our own headers where the next tap or the
//! client's side of the gateway needs them.

use super::framing::BodyLength;
use httparse::{EMPTY_HEADER, Header, Status};

/// The call id, from the outermost tap to the inner one.
pub(crate) const CALL: &str = "x-hopscope-call";
/// The call id under the name that Bifrost passes on as [`CALL`].
pub(crate) const CALL_BIFROST: &str = "x-bf-eh-x-hopscope-call";
/// The inner exchange's id, back through the gateway.
pub(crate) const EXCHANGE: &str = "x-hopscope-exchange";
/// The same as LiteLLM echoes it.
const EXCHANGE_LITELLM: &str = "llm_provider-x-hopscope-exchange";
/// The load generator's name of the request; for the first tap only.
pub(crate) const REQUEST: &str = "x-hopscope-request";

/// Header fields of one head, at the most.
const MAX_HEADERS: usize = 128;
/// Bytes of one head, at the most.
pub(crate) const MAX_HEAD: usize = 64 * 1024;

/// Why a head cannot be passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum HeadError {
    #[error("head is longer than 64 KiB")]
    TooLong,
    #[error("head has more than 128 fields")]
    TooMany,
    #[error("head is malformed")]
    Malformed,
    #[error("content-length is not one number, or stands beside transfer-encoding")]
    Length,
    #[error("transfer-encoding does not end in chunked")]
    Coding,
}

impl HeadError {
    /// The status that a client is answered with.
    pub(crate) fn status(self) -> u16 {
        match self {
            Self::TooLong | Self::TooMany => 431,
            Self::Malformed | Self::Length => 400,
            Self::Coding => 501,
        }
    }
}

impl From<httparse::Error> for HeadError {
    fn from(error: httparse::Error) -> Self {
        if error == httparse::Error::TooManyHeaders {
            Self::TooMany
        } else {
            Self::Malformed
        }
    }
}

/// A request head, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestHead {
    pub(crate) method: String,
    pub(crate) target: String,
    /// Minor version of HTTP/1.
    pub(crate) minor: u8,
    pub(crate) body: BodyLength,
    /// The client wants to go on using the connection.
    pub(crate) keep_alive: bool,
    /// The protocol that the client asks to upgrade to.
    pub(crate) upgrade: Option<String>,
    pub(crate) call: Option<String>,
    pub(crate) client: Option<String>,
    pub(crate) traceparent: Option<String>,
    /// The fields to pass on, as they came.
    pub(crate) fields: Vec<(String, Vec<u8>)>,
}

/// A response head, understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResponseHead {
    pub(crate) minor: u8,
    pub(crate) status: u16,
    pub(crate) reason: String,
    pub(crate) body: BodyLength,
    /// The upstream connection may carry another request.
    pub(crate) keep_alive: bool,
    pub(crate) upgrade: Option<String>,
    pub(crate) content_type: Option<String>,
    /// The body is compressed: its bytes pass, its events are not read.
    pub(crate) encoded: bool,
    pub(crate) echoed: Option<u64>,
    pub(crate) fields: Vec<(String, Vec<u8>)>,
}

/// What the framing and connection fields say.
#[derive(Default)]
struct Frame<'a> {
    length: Option<u64>,
    chunked: bool,
    close: bool,
    keep: bool,
    upgrade_token: bool,
    upgrade: Option<&'a str>,
    /// Fields that `Connection` names as belonging to it.
    named: Vec<&'a str>,
}

fn text<'a>(header: &Header<'a>) -> Result<&'a str, HeadError> {
    std::str::from_utf8(header.value)
        .map(str::trim)
        .map_err(|_| HeadError::Malformed)
}

fn frame<'a>(headers: &[Header<'a>]) -> Result<Frame<'a>, HeadError> {
    let mut frame = Frame::default();
    let mut coded = false;
    for header in headers {
        if header.name.eq_ignore_ascii_case("content-length") {
            let value = text(header)?;
            let digits = !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit());
            let length = digits
                .then(|| value.parse().ok())
                .flatten()
                .ok_or(HeadError::Length)?;
            if frame.length.is_some_and(|known| known != length) {
                return Err(HeadError::Length);
            }
            frame.length = Some(length);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            coded = true;
            let last = text(header)?.rsplit(',').next().unwrap_or_default().trim();
            frame.chunked = last.eq_ignore_ascii_case("chunked");
        } else if header.name.eq_ignore_ascii_case("upgrade") {
            frame.upgrade = Some(text(header)?);
        } else if header.name.eq_ignore_ascii_case("connection") {
            for token in text(header)?
                .split(',')
                .map(str::trim)
                .filter(|t| !t.is_empty())
            {
                frame.close |= token.eq_ignore_ascii_case("close");
                frame.keep |= token.eq_ignore_ascii_case("keep-alive");
                frame.upgrade_token |= token.eq_ignore_ascii_case("upgrade");
                frame.named.push(token);
            }
        }
    }
    if coded && frame.length.is_some() {
        return Err(HeadError::Length);
    }
    if coded && !frame.chunked {
        return Err(HeadError::Coding);
    }
    Ok(frame)
}

impl Frame<'_> {
    fn keep_alive(&self, minor: u8) -> bool {
        !self.close && (minor >= 1 || self.keep)
    }

    /// What the peer asks to upgrade to. The upgrade to `h2c` is not passed on: RFC 9113 §3.1
    /// withdrew it, clients offer it unasked and go on without, and what follows it could not be
    /// measured.
    fn upgrade(&self) -> Option<String> {
        self.upgrade
            .filter(|protocol| self.upgrade_token && !protocol.eq_ignore_ascii_case("h2c"))
            .map(str::to_owned)
    }

    /// The field goes no further than this connection. Framing fields never count as such, since
    /// the body passes through framed as it is.
    fn keeps_back(&self, name: &str) -> bool {
        const ALWAYS: [&str; 4] = ["connection", "keep-alive", "proxy-connection", "upgrade"];
        const NEVER: [&str; 4] = ["content-length", "transfer-encoding", "host", "te"];
        let is = |other: &&str| name.eq_ignore_ascii_case(other);
        ALWAYS.iter().any(&is) || (!NEVER.iter().any(&is) && self.named.iter().any(is))
    }
}

/// Reads a request head from the start of `bytes`: its length and itself; `None` where more bytes
/// are needed.
pub(crate) fn request(bytes: &[u8]) -> Result<Option<(usize, RequestHead)>, HeadError> {
    let mut storage = [EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut storage);
    let Status::Complete(length) = parsed.parse(bytes)? else {
        return if bytes.len() >= MAX_HEAD {
            Err(HeadError::TooLong)
        } else {
            Ok(None)
        };
    };
    let minor = parsed.version.unwrap_or(1);
    let frame = frame(parsed.headers)?;
    let body = match (frame.chunked, frame.length) {
        (true, _) => BodyLength::Chunked,
        (false, Some(n)) => BodyLength::Fixed(n),
        (false, None) => BodyLength::None,
    };
    let mut head = RequestHead {
        method: parsed.method.unwrap_or_default().to_owned(),
        target: parsed.path.unwrap_or_default().to_owned(),
        minor,
        body,
        keep_alive: frame.keep_alive(minor),
        upgrade: frame.upgrade(),
        call: None,
        client: None,
        traceparent: None,
        fields: Vec::with_capacity(parsed.headers.len() + 2),
    };
    for header in parsed.headers.iter() {
        if !frame.keeps_back(header.name) {
            head.take(header.name, header.value);
        }
    }
    Ok(Some((length, head)))
}

/// Reads a response head to a request of `method` from the start of `bytes`.
pub(crate) fn response(
    bytes: &[u8],
    method: &str,
) -> Result<Option<(usize, ResponseHead)>, HeadError> {
    let mut storage = [EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Response::new(&mut storage);
    let Status::Complete(length) = parsed.parse(bytes)? else {
        return if bytes.len() >= MAX_HEAD {
            Err(HeadError::TooLong)
        } else {
            Ok(None)
        };
    };
    let (minor, status) = (parsed.version.unwrap_or(1), parsed.code.unwrap_or(0));
    let frame = frame(parsed.headers)?;
    let empty = method == "HEAD" || (100..200).contains(&status) || status == 204 || status == 304;
    let body = match (empty, frame.chunked, frame.length) {
        (true, ..) => BodyLength::None,
        (false, true, _) => BodyLength::Chunked,
        (false, false, Some(n)) => BodyLength::Fixed(n),
        (false, false, None) => BodyLength::UntilClose,
    };
    let mut head = ResponseHead {
        minor,
        status,
        reason: parsed.reason.unwrap_or_default().to_owned(),
        body,
        keep_alive: frame.keep_alive(minor) && body != BodyLength::UntilClose,
        upgrade: frame.upgrade(),
        content_type: None,
        encoded: false,
        echoed: None,
        fields: Vec::with_capacity(parsed.headers.len() + 1),
    };
    for header in parsed.headers.iter() {
        if !frame.keeps_back(header.name) {
            head.take(header.name, header.value);
        }
    }
    Ok(Some((length, head)))
}

/// Appends a field line.
pub(crate) fn field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

impl RequestHead {
    /// Takes a field that is not of one connection only: our own are understood and left out, the
    /// others are passed on.
    pub(crate) fn take(&mut self, name: &str, value: &[u8]) {
        let is = |ours: &str| name.eq_ignore_ascii_case(ours);
        let text = || std::str::from_utf8(value).ok().map(|v| v.trim().to_owned());
        if is(CALL) {
            self.call = text();
        } else if is(REQUEST) {
            self.client = text();
        } else if !is(CALL_BIFROST) {
            if is("traceparent") {
                self.traceparent = text();
            }
            self.fields.push((name.to_owned(), value.to_vec()));
        }
    }

    /// The head as bytes, with `extra` fields; `host` replaces the client's `Host`.
    pub(crate) fn write(&self, out: &mut Vec<u8>, host: Option<&str>, extra: &[(&str, &str)]) {
        out.extend_from_slice(
            format!("{} {} HTTP/1.{}\r\n", self.method, self.target, self.minor).as_bytes(),
        );
        for (name, value) in &self.fields {
            match host {
                Some(host) if name.eq_ignore_ascii_case("host") => {
                    field(out, name, host.as_bytes());
                }
                _ => field(out, name, value),
            }
        }
        for (name, value) in extra {
            field(out, name, value.as_bytes());
        }
        if let Some(protocol) = &self.upgrade {
            field(out, "Connection", b"Upgrade");
            field(out, "Upgrade", protocol.as_bytes());
        }
        out.extend_from_slice(b"\r\n");
    }

    /// The client waits for 100 before it sends its body.
    pub(crate) fn expects_continue(&self) -> bool {
        self.minor >= 1
            && self.fields.iter().any(|(name, value)| {
                name.eq_ignore_ascii_case("expect") && value.eq_ignore_ascii_case(b"100-continue")
            })
    }

    /// The target without its query.
    pub(crate) fn path(&self) -> &str {
        self.target.split(['?', '#']).next().unwrap_or_default()
    }
}

impl ResponseHead {
    /// Takes a field that is not of one connection only: the echo is understood and left out, the
    /// others are passed on.
    pub(crate) fn take(&mut self, name: &str, value: &[u8]) {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        let text = || std::str::from_utf8(value).unwrap_or_default().trim();
        if is(EXCHANGE) || is(EXCHANGE_LITELLM) {
            self.echoed = u64::from_str_radix(text(), 16).ok();
            return;
        }
        if is("content-type") {
            self.content_type = Some(text().to_owned());
        } else if is("content-encoding") {
            self.encoded = !text().eq_ignore_ascii_case("identity");
        }
        self.fields.push((name.to_owned(), value.to_vec()));
    }

    /// The head as bytes for a client of HTTP/1.`minor`; `close` tells it that no other follows.
    pub(crate) fn write(
        &self,
        out: &mut Vec<u8>,
        close: bool,
        keep_for_old: bool,
        extra: &[(&str, &str)],
    ) {
        out.extend_from_slice(
            format!("HTTP/1.{} {} {}\r\n", self.minor, self.status, self.reason).as_bytes(),
        );
        for (name, value) in &self.fields {
            field(out, name, value);
        }
        for (name, value) in extra {
            field(out, name, value.as_bytes());
        }
        if let Some(protocol) = self.upgrade.as_ref().filter(|_| self.status == 101) {
            field(out, "Connection", b"Upgrade");
            field(out, "Upgrade", protocol.as_bytes());
        } else if close && self.status >= 200 {
            field(out, "Connection", b"close");
        } else if keep_for_old && self.status >= 200 {
            field(out, "Connection", b"keep-alive");
        }
        out.extend_from_slice(b"\r\n");
    }

    /// The value of a field.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let (_, value) = self
            .fields
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(value).ok().map(str::trim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed_on(head: &str) -> String {
        let (_, head) = request(head.as_bytes()).unwrap().unwrap();
        let mut out = Vec::new();
        head.write(&mut out, None, &[(CALL, "c1")]);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_of_the_connection_or_ours_stays_behind_and_the_rest_keeps_order_and_case() {
        let out = passed_on(
            "POST /v1/chat/completions?x=1 HTTP/1.1\r\nHost: a\r\nX-Foo: Bar\r\nConnection: keep-alive, X-Private\r\n\
             X-Private: 1\r\nKeep-Alive: timeout=5\r\nx-hopscope-call: forged\r\nx-hopscope-request: 1-2\r\n\
             TE: trailers\r\nContent-Length: 3\r\n\r\n",
        );
        assert_eq!(
            out,
            "POST /v1/chat/completions?x=1 HTTP/1.1\r\nHost: a\r\nX-Foo: Bar\r\nTE: trailers\r\nContent-Length: 3\r\nx-hopscope-call: c1\r\n\r\n"
        );
    }

    #[test]
    fn smuggling_shapes_are_refused() {
        let refused = |fields: &str| {
            request(format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").as_bytes())
        };
        assert_eq!(
            refused("Content-Length: 3\r\nTransfer-Encoding: chunked\r\n"),
            Err(HeadError::Length)
        );
        assert_eq!(
            refused("Content-Length: 3\r\nContent-Length: 4\r\n"),
            Err(HeadError::Length)
        );
        assert_eq!(refused("Content-Length: +3\r\n"), Err(HeadError::Length));
        assert_eq!(
            refused("Transfer-Encoding: gzip\r\n"),
            Err(HeadError::Coding)
        );
        assert_eq!(
            refused("Content-Length: 3\r\nContent-Length: 3\r\n")
                .unwrap()
                .unwrap()
                .1
                .body,
            BodyLength::Fixed(3)
        );
    }

    #[test]
    fn a_head_is_complete_only_with_its_last_byte() {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
        for cut in 0..head.len() - 4 {
            assert_eq!(request(&head[..cut]), Ok(None), "cut {cut}");
        }
        assert_eq!(request(head).unwrap().unwrap().0, head.len() - 4);
        assert_eq!(request(&vec![b'a'; MAX_HEAD]), Err(HeadError::TooLong));
    }

    #[test]
    fn the_length_of_a_response_follows_status_and_method() {
        let body = |head: &str, method| response(head.as_bytes(), method).unwrap().unwrap().1.body;
        assert_eq!(
            body("HTTP/1.1 200 OK\r\n\r\n", "GET"),
            BodyLength::UntilClose
        );
        assert_eq!(
            body("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "HEAD"),
            BodyLength::None
        );
        assert_eq!(
            body("HTTP/1.1 304 X\r\nContent-Length: 9\r\n\r\n", "GET"),
            BodyLength::None
        );
        assert_eq!(
            body(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
                "GET"
            ),
            BodyLength::Chunked
        );
    }

    #[test]
    fn the_echo_is_read_in_either_form_and_taken_out() {
        for name in ["X-Hopscope-Exchange", "llm_provider-x-hopscope-exchange"] {
            let text =
                format!("HTTP/1.1 200 OK\r\n{name}: 00000000000000ff\r\nContent-Length: 0\r\n\r\n");
            let (_, head) = response(text.as_bytes(), "POST").unwrap().unwrap();
            assert_eq!(head.echoed, Some(255));
            let mut out = Vec::new();
            head.write(&mut out, false, false, &[]);
            assert!(
                !String::from_utf8(out)
                    .unwrap()
                    .to_lowercase()
                    .contains("hopscope")
            );
        }
    }
}
