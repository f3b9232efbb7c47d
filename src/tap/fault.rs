//! What a client is told when no answer can be had: a status and an OpenAI-shaped error object,
//! which every OpenAI client shows to its user.

use serde_json::json;

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
    pub(crate) fn body(&self) -> Vec<u8> {
        let body = json!({"error": {"message": self.message, "type": self.kind, "param": null, "code": self.status}});
        body.to_string().into_bytes()
    }

    /// The whole response of HTTP/1, after which the connection closes.
    pub(crate) fn response(&self) -> Vec<u8> {
        let body = self.body();
        let mut out = format!(
            "HTTP/1.1 {} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\nx-hopscope-fault: {}\r\n\r\n",
            self.status,
            self.reason(),
            body.len(),
            self.kind
        )
        .into_bytes();
        out.extend_from_slice(&body);
        out
    }
}
