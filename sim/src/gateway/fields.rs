//! Which header fields go on, and under which name.

use super::GatewayOptions;
use super::keys::is_credential;
use crate::http::{Framing, Headers, RequestHead};

/// Fields of one connection only, and those that the gateway sets itself.
const OWN: [&str; 10] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "expect",
    "host",
    "content-length",
];

fn is_own(name: &str) -> bool {
    OWN.iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// The request as it goes upstream, head and body in one piece so that one write can take it.
pub(super) fn outbound(
    options: &GatewayOptions,
    host: &str,
    head: &RequestHead,
    body: &[u8],
) -> Vec<u8> {
    let mut bytes = format!(
        "{} {} HTTP/1.1\r\nhost: {host}\r\n",
        head.method, head.target
    )
    .into_bytes();
    // A virtual key ends at the gateway, which has a credential of its own.
    let has_keys = options.key_options.keys.is_some();
    for (name, value) in &head.headers.0 {
        let goes = if options.strip_headers {
            name.eq_ignore_ascii_case("content-type")
                || options
                    .forward_header
                    .iter()
                    .any(|listed| name.eq_ignore_ascii_case(listed))
        } else {
            true
        };
        let is_key = has_keys && is_credential(name);
        if goes && !is_own(name) && !is_key {
            push(&mut bytes, name, value);
        }
    }
    if options.strip_headers || has_keys {
        push(&mut bytes, "authorization", b"Bearer sim");
    }
    if options.strip_headers {
        push(&mut bytes, "user-agent", b"sim-gateway");
    }
    push(
        &mut bytes,
        "content-length",
        body.len().to_string().as_bytes(),
    );
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(body);
    bytes
}

fn push(bytes: &mut Vec<u8>, name: &str, value: &[u8]) {
    for part in [name.as_bytes(), b": ", value, b"\r\n"] {
        bytes.extend_from_slice(part);
    }
}

/// The upstream's fields as the client gets them.
pub(super) fn inbound(options: &GatewayOptions, upstream: &Headers) -> Headers {
    let mut fields = Headers::default();
    for (name, value) in upstream.0.iter().filter(|(name, _)| !is_own(name)) {
        let is_type = name.eq_ignore_ascii_case("content-type");
        if options.strip_headers {
            let prefixed = format!("llm_provider-{}", name.to_ascii_lowercase());
            fields.0.push((prefixed, value.clone()));
        }
        if is_type || !options.strip_headers {
            fields.0.push((name.clone(), value.clone()));
        }
    }
    fields
}

/// Adds the fields that tell how the body ends and what becomes of the connection.
pub(super) fn close_head(fields: &mut Headers, framing: Framing, keep_alive: bool) {
    let mut add = |name: &str, value: &str| {
        fields.0.push((name.to_owned(), value.as_bytes().to_vec()));
    };
    match framing {
        Framing::Chunked => add("transfer-encoding", "chunked"),
        Framing::Length(length) => add("content-length", &length.to_string()),
        Framing::UntilClose => {}
    }
    if !keep_alive {
        add("connection", "close");
    }
}
