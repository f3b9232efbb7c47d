//! Heads between HTTP/2 and what the tap understands (RFC 9113 §8.2, §8.3).

use crate::tap::framing::BodyLength;
use crate::tap::head::{RequestHead, ResponseHead};
use http::header::{CONTENT_LENGTH, COOKIE, HOST, HeaderMap, TE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri, Version};

/// Fields that belong to one connection of HTTP/1: HTTP/2 forbids them (RFC 9113 §8.2.2).
const OF_HTTP1: [&str; 5] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];

/// A head that HTTP/2 cannot carry, or that carries what it must not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("head cannot be carried over HTTP/2")]
pub(crate) struct Unfit;

fn length(headers: &HeaderMap, ended: bool) -> BodyLength {
    if ended {
        return BodyLength::None;
    }
    let told = headers
        .get(CONTENT_LENGTH)
        .and_then(|v| v.to_str().ok()?.trim().parse().ok());
    told.map_or(BodyLength::Chunked, BodyLength::Fixed)
}

/// The request of a stream; `ended` where no body follows.
pub(crate) fn request_head<B>(request: &Request<B>, ended: bool) -> RequestHead {
    let headers = request.headers();
    let uri = request.uri();
    let mut head = RequestHead {
        method: request.method().as_str().to_owned(),
        target: uri
            .path_and_query()
            .map_or("/", PathAndQuery::as_str)
            .to_owned(),
        minor: 1,
        body: length(headers, ended),
        keep_alive: true,
        upgrade: None,
        call: None,
        client: None,
        traceparent: None,
        fields: Vec::with_capacity(headers.len() + 3),
    };
    if let Some(authority) = uri.authority().filter(|_| !headers.contains_key(HOST)) {
        head.take("host", authority.as_str().as_bytes());
    }
    // HTTP/2 may split cookies for its compression; HTTP/1 knows one field (RFC 9113 §8.2.3).
    let cookies: Vec<&[u8]> = headers
        .get_all(COOKIE)
        .iter()
        .map(HeaderValue::as_bytes)
        .collect();
    if !cookies.is_empty() {
        head.take("cookie", &cookies.join(&b"; "[..]));
    }
    for (name, value) in headers.iter().filter(|(name, _)| **name != COOKIE) {
        head.take(name.as_str(), value.as_bytes());
    }
    head
}

/// The response of a stream; `ended` where no body follows.
pub(crate) fn response_head<B>(response: &Response<B>, ended: bool) -> ResponseHead {
    let status = response.status();
    let mut head = ResponseHead {
        minor: 1,
        status: status.as_u16(),
        reason: status.canonical_reason().unwrap_or_default().to_owned(),
        body: length(response.headers(), ended),
        keep_alive: true,
        upgrade: None,
        content_type: None,
        encoded: false,
        echoed: None,
        fields: Vec::with_capacity(response.headers().len() + 2),
    };
    for (name, value) in response.headers() {
        head.take(name.as_str(), value.as_bytes());
    }
    head
}

fn add(to: &mut HeaderMap, name: &str, value: &[u8]) -> Result<(), Unfit> {
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| Unfit)?;
    let of_http1 = OF_HTTP1.contains(&name.as_str());
    // Of `TE` only this may go on (RFC 9113 §8.2.2).
    let te = name == TE && !value.eq_ignore_ascii_case(b"trailers");
    if !of_http1 && !te {
        to.append(name, HeaderValue::from_bytes(value).map_err(|_| Unfit)?);
    }
    Ok(())
}

/// The request as HTTP/2 has it; `host` replaces the client's.
pub(crate) fn request(
    head: &RequestHead,
    host: Option<&str>,
    tls: bool,
    extra: &[(&str, &str)],
) -> Result<Request<()>, Unfit> {
    let mut headers = HeaderMap::with_capacity(head.fields.len() + 2);
    let mut authority = host.map(|h| h.as_bytes().to_vec());
    for (name, value) in &head.fields {
        if name.eq_ignore_ascii_case("host") {
            authority.get_or_insert_with(|| value.clone());
        } else if !name.eq_ignore_ascii_case("expect") {
            add(&mut headers, name, value)?;
        }
    }
    for (name, value) in extra {
        add(&mut headers, name, value.as_bytes())?;
    }
    let mut uri = http::uri::Parts::default();
    uri.scheme = Some(if tls { Scheme::HTTPS } else { Scheme::HTTP });
    uri.authority =
        Some(Authority::try_from(authority.unwrap_or_default().as_slice()).map_err(|_| Unfit)?);
    uri.path_and_query = Some(PathAndQuery::try_from(head.target.as_str()).map_err(|_| Unfit)?);
    let mut request = Request::new(());
    *request.version_mut() = Version::HTTP_2;
    *request.method_mut() = Method::from_bytes(head.method.as_bytes()).map_err(|_| Unfit)?;
    *request.uri_mut() = Uri::from_parts(uri).map_err(|_| Unfit)?;
    *request.headers_mut() = headers;
    Ok(request)
}

/// The response as HTTP/2 has it.
pub(crate) fn response(head: &ResponseHead, extra: &[(&str, &str)]) -> Result<Response<()>, Unfit> {
    let mut response = Response::new(());
    *response.version_mut() = Version::HTTP_2;
    *response.status_mut() = StatusCode::from_u16(head.status).map_err(|_| Unfit)?;
    for (name, value) in &head.fields {
        add(response.headers_mut(), name, value)?;
    }
    for (name, value) in extra {
        add(response.headers_mut(), name, value.as_bytes())?;
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_http2_has_a_host_and_one_cookie_field() {
        let request = Request::builder()
            .method("POST")
            .uri("https://api.example:8443/v1/chat/completions?a=b")
            .header("cookie", "a=1")
            .header("cookie", "b=2")
            .header("x-hopscope-call", "c7")
            .header("x-hopscope-request", "1-2")
            .header("content-length", "7")
            .body(())
            .unwrap();
        let head = request_head(&request, false);
        assert_eq!(head.target, "/v1/chat/completions?a=b");
        assert_eq!(head.body, BodyLength::Fixed(7));
        assert_eq!(
            (head.call.as_deref(), head.client.as_deref()),
            (Some("c7"), Some("1-2"))
        );
        let mut out = Vec::new();
        head.write(&mut out, None, &[]);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "POST /v1/chat/completions?a=b HTTP/1.1\r\nhost: api.example:8443\r\ncookie: a=1; b=2\r\ncontent-length: 7\r\n\r\n"
        );
    }

    #[test]
    fn what_http2_forbids_stays_behind() {
        let bytes = b"POST /x HTTP/1.1\r\nHost: a:1\r\nTE: gzip\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\nExpect: 100-continue\r\n\r\n";
        let (_, head) = crate::tap::head::request(bytes).unwrap().unwrap();
        let made = request(&head, None, false, &[("x-hopscope-call", "c1")]).unwrap();
        assert_eq!(made.uri().to_string(), "http://a:1/x");
        let names: Vec<&str> = made.headers().keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["x-a", "x-hopscope-call"]);
        let kept = request(&head, Some("b:2"), true, &[]).unwrap();
        assert_eq!(kept.uri().to_string(), "https://b:2/x");
    }

    #[test]
    fn the_echo_is_understood_over_http2_too() {
        let response = Response::builder()
            .status(200)
            .header("x-hopscope-exchange", "ff")
            .body(())
            .unwrap();
        let head = response_head(&response, false);
        assert_eq!((head.echoed, head.body), (Some(255), BodyLength::Chunked));
        assert!(head.fields.is_empty());
    }
}
