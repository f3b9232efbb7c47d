//! The two listeners beside the traffic: telemetry for machines of the cluster, admin for people.

use super::Metrics;
use crate::meter::Meter;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpListener;
use tokio::sync::broadcast::error::RecvError;

type Answer = Response<BoxBody<Bytes, Infallible>>;

const PROTOBUF: &str =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What the two listeners show.
pub struct Endpoints {
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The finished calls.
    pub feed: crate::meter::Feed,
    /// False while the process drains.
    pub ready: AtomicBool,
}

impl Endpoints {
    /// The endpoints of a process with this meter.
    #[must_use]
    pub fn of(meter: &Meter) -> Arc<Self> {
        Arc::new(Self {
            metrics: meter.metrics.clone(),
            feed: meter.feed.clone(),
            ready: AtomicBool::new(true),
        })
    }
}

/// Serves `/livez`, `/readyz` and `/metrics`, for ever.
pub async fn serve_telemetry(listener: TcpListener, endpoints: Arc<Endpoints>) {
    serve(listener, move |request| {
        let endpoints = endpoints.clone();
        async move { telemetry(&request, &endpoints) }
    })
    .await;
}

/// Serves `/calls`, for ever.
pub async fn serve_admin(listener: TcpListener, endpoints: Arc<Endpoints>) {
    serve(listener, move |request| {
        let endpoints = endpoints.clone();
        async move { admin(&request, &endpoints) }
    })
    .await;
}

async fn serve<F, R>(listener: TcpListener, handler: F)
where
    F: Fn(Request<Incoming>) -> R + Clone + Send + 'static,
    R: Future<Output = Answer> + Send + 'static,
{
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        let handler = handler.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answer = handler(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            let served = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
            if let Err(error) = served {
                tracing::debug!(%error, "connection ended");
            }
        });
    }
}

fn answer(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()).boxed());
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}

fn telemetry(request: &Request<Incoming>, endpoints: &Endpoints) -> Answer {
    match request.uri().path() {
        "/livez" => answer(StatusCode::OK, TEXT, "ok\n"),
        "/readyz" if endpoints.ready.load(Ordering::Relaxed) => {
            answer(StatusCode::OK, TEXT, "ok\n")
        }
        "/readyz" => answer(StatusCode::SERVICE_UNAVAILABLE, TEXT, "draining\n"),
        "/metrics" => metrics(request, &endpoints.metrics),
        _ => answer(
            StatusCode::NOT_FOUND,
            TEXT,
            "here are /livez, /readyz and /metrics\n",
        ),
    }
}

fn metrics(request: &Request<Incoming>, metrics: &Metrics) -> Answer {
    use prometheus_client::encoding::{prometheus_protobuf, prometheus_text};
    let wants = request
        .headers()
        .get(ACCEPT)
        .and_then(|v| v.to_str().ok())
        .unwrap_or_default();
    // A scraper that can read native histograms names the protobuf form first.
    if wants
        .split(',')
        .next()
        .is_some_and(|first| first.contains("io.prometheus.client.MetricFamily"))
    {
        return match prometheus_protobuf::encode_to_vec(metrics.registry()) {
            Ok(body) => answer(StatusCode::OK, PROTOBUF, body),
            Err(error) => answer(
                StatusCode::INTERNAL_SERVER_ERROR,
                TEXT,
                format!("cannot encode: {error}\n"),
            ),
        };
    }
    let mut body = String::new();
    match prometheus_text::encode(&mut body, metrics.registry()) {
        Ok(()) => answer(StatusCode::OK, TEXT, body),
        Err(error) => answer(
            StatusCode::INTERNAL_SERVER_ERROR,
            TEXT,
            format!("cannot encode: {error}\n"),
        ),
    }
}

fn admin(request: &Request<Incoming>, endpoints: &Endpoints) -> Answer {
    if request.uri().path() != "/calls" {
        return answer(
            StatusCode::NOT_FOUND,
            TEXT,
            "here is /calls: finished calls as they end, one JSON object a line\n",
        );
    }
    let feed = endpoints.feed.listen();
    let lines = futures_util::stream::unfold(feed, |mut feed| async move {
        let line = match feed.recv().await {
            Ok(call) => format!("{call}\n"),
            Err(RecvError::Lagged(missed)) => format!("{{\"missed\":{missed}}}\n"),
            Err(RecvError::Closed) => return None,
        };
        Some((Ok::<_, Infallible>(Frame::data(Bytes::from(line))), feed))
    });
    let mut response = Response::new(BodyExt::boxed(StreamBody::new(lines)));
    response.headers_mut().insert(
        CONTENT_TYPE,
        http::HeaderValue::from_static("application/x-ndjson"),
    );
    response
}
