//! What a client is told when no answer can be had: a status and an error in the form that its kind of client
//! shows to its user.

use super::context::TapContext;
use serde_json::json;

/// In whose form an error is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// An `error` object, as OpenAI's clients read it.
    OpenAi,
    /// A `message`, and the type in `x-amzn-ErrorType`, as AWS' SDKs do.
    Aws,
}

/// An answer made by the tap itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) status: u16,
    pub(crate) kind: &'static str,
    pub(crate) message: String,
}

impl Fault {
    pub(crate) fn new(status: u16, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            message: message.into(),
        }
    }

    /// The answer to a request body that is longer than the tap takes.
    pub(crate) fn too_large(tap: &TapContext) -> Self {
        let (limit, name) = (tap.body_max, &tap.name);
        let message = format!(
            "hopscope: request body exceeds limits.request_body_max of tap {name} ({limit} bytes)"
        );
        Self::new(413, "request_too_large", message)
    }

    fn reason(&self) -> &'static str {
        match self.status {
            400 => "Bad Request",
            405 => "Method Not Allowed",
            413 => "Content Too Large",
            431 => "Request Header Fields Too Large",
            501 => "Not Implemented",
            502 => "Bad Gateway",
            503 => "Service Unavailable",
            504 => "Gateway Timeout",
            _ => "Error",
        }
    }

    /// The body.
    pub(crate) fn body(&self, form: Form) -> Vec<u8> {
        if form == Form::Aws {
            return json!({"message": self.message}).to_string().into_bytes();
        }
        let body = json!({"error": {"message": self.message, "type": self.kind, "param": null, "code": self.status}});
        body.to_string().into_bytes()
    }

    /// The head of the response of HTTP/2; [`Self::body`] follows.
    pub(crate) fn http2_head(&self, form: Form) -> http::Response<()> {
        let mut head = http::Response::new(());
        *head.status_mut() =
            http::StatusCode::from_u16(self.status).unwrap_or(http::StatusCode::BAD_GATEWAY);
        let json = http::HeaderValue::from_static("application/json");
        head.headers_mut().insert(http::header::CONTENT_TYPE, json);
        let kind = http::HeaderValue::from_static(self.kind);
        if form == Form::Aws {
            head.headers_mut().insert("x-amzn-errortype", kind.clone());
        }
        head.headers_mut().insert("x-hopscope-fault", kind);
        head
    }

    /// The whole response of HTTP/1, after which the connection closes.
    pub(crate) fn response(&self, form: Form) -> Vec<u8> {
        let body = self.body(form);
        let kind = self.kind;
        let theirs = match form {
            Form::Aws => format!("x-amzn-errortype: {kind}\r\n"),
            Form::OpenAi => String::new(),
        };
        let mut out = format!(
            "HTTP/1.1 {} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n{theirs}x-hopscope-fault: {kind}\r\n\r\n",
            self.status,
            self.reason(),
            body.len(),
        )
        .into_bytes();
        out.extend_from_slice(&body);
        out
    }
}
