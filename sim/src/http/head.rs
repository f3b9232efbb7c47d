//! Message heads.

use super::{Framing, HttpError, MAX_HEAD};

const MAX_FIELDS: usize = 96;

/// Fields of a head in their order and spelling.
#[derive(Debug, Clone, Default)]
pub(crate) struct Headers(pub(crate) Vec<(String, Vec<u8>)>);

impl Headers {
    fn from_parsed(fields: &[httparse::Header<'_>]) -> Self {
        Self(
            fields
                .iter()
                .map(|field| (field.name.to_owned(), field.value.to_vec()))
                .collect(),
        )
    }

    /// The first value of a field, `None` also where it is not UTF-8.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(field, _)| field.eq_ignore_ascii_case(name))
            .and_then(|(_, value)| std::str::from_utf8(value).ok())
    }

    /// Whether a comma-separated field lists a token.
    pub(crate) fn has_token(&self, name: &str, token: &str) -> bool {
        self.get(name).is_some_and(|value| {
            value
                .split(',')
                .any(|part| part.trim().eq_ignore_ascii_case(token))
        })
    }
}

/// The head of a request.
#[derive(Debug)]
pub(crate) struct RequestHead {
    pub(crate) method: String,
    pub(crate) target: String,
    /// Minor version of HTTP/1.
    pub(crate) minor: u8,
    pub(crate) headers: Headers,
}

impl RequestHead {
    /// The head at the start of `bytes` and its length; `None` when it is not complete.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, HttpError> {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        let Some(length) = complete(request.parse(bytes))? else {
            return Ok(None);
        };
        let head = Self {
            method: request.method.unwrap_or_default().to_owned(),
            target: request.path.unwrap_or_default().to_owned(),
            minor: request.version.unwrap_or(1),
            headers: Headers::from_parsed(request.headers),
        };
        Ok(Some((head, length)))
    }

    /// The target without its query.
    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or(&self.target)
    }

    /// How the body ends.
    pub(crate) fn framing(&self) -> Result<Framing, HttpError> {
        Framing::of(&self.headers, Framing::Length(0))
    }

    /// Whether the client lets the connection live on after the answer.
    pub(crate) fn keeps_alive(&self) -> bool {
        self.minor >= 1 && !self.headers.has_token("connection", "close")
    }

    /// Whether the client waits for leave to send its body.
    pub(crate) fn expects_continue(&self) -> bool {
        self.headers.has_token("expect", "100-continue")
    }
}

/// The head of a response.
#[derive(Debug)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    pub(crate) minor: u8,
    pub(crate) headers: Headers,
}

impl ResponseHead {
    /// The head at the start of `bytes` and its length; `None` when it is not complete.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<(Self, usize)>, HttpError> {
        let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
        let mut response = httparse::Response::new(&mut fields);
        let Some(length) = complete(response.parse(bytes))? else {
            return Ok(None);
        };
        let head = Self {
            status: response.code.unwrap_or(0),
            minor: response.version.unwrap_or(1),
            headers: Headers::from_parsed(response.headers),
        };
        Ok(Some((head, length)))
    }

    /// A 1xx head: another one follows.
    pub(crate) fn is_informational(&self) -> bool {
        (100..200).contains(&self.status)
    }

    /// How the body of an answer to a request with `method` ends.
    pub(crate) fn framing(&self, method: &str) -> Result<Framing, HttpError> {
        if method == "HEAD" || matches!(self.status, 204 | 304) {
            return Ok(Framing::Length(0));
        }
        Framing::of(&self.headers, Framing::UntilClose)
    }

    /// Whether the server lets the connection live on after the answer.
    pub(crate) fn keeps_alive(&self) -> bool {
        self.minor >= 1 && !self.headers.has_token("connection", "close")
    }

    /// Whether the body is a stream of server-sent events.
    pub(crate) fn is_event_stream(&self) -> bool {
        self.headers
            .get("content-type")
            .is_some_and(|value| value.trim_start().starts_with("text/event-stream"))
    }
}

fn complete(parsed: httparse::Result<usize>) -> Result<Option<usize>, HttpError> {
    match parsed {
        Ok(httparse::Status::Complete(length)) if length > MAX_HEAD => Err(HttpError::HeadTooLarge),
        Ok(httparse::Status::Complete(length)) => Ok(Some(length)),
        Ok(httparse::Status::Partial) => Ok(None),
        Err(httparse::Error::TooManyHeaders) => Err(HttpError::HeadTooLarge),
        Err(_) => Err(HttpError::Malformed("the head cannot be parsed")),
    }
}

/// The reason phrase of the statuses that stand-ins send.
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        422 => "Unprocessable Content",
        424 => "Failed Dependency",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Status",
    }
}

/// A part of a target with its `%XX` resolved; what is no UTF-8 then is replaced.
pub(crate) fn percent_decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        let hex = behind
            .get(..2)
            .and_then(|two| std::str::from_utf8(two).ok());
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (first, byte) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            _ => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// An error in the form of the OpenAI API.
pub(crate) fn error_body(status: u16, message: &str) -> String {
    let kind = match status {
        404 => "NotFoundError",
        429 => "RateLimitError",
        400..500 => "BadRequestError",
        _ => "InternalServerError",
    };
    serde_json::json!({
        "error": {"message": message, "type": kind, "param": null, "code": status}
    })
    .to_string()
}
