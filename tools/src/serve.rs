//! The server's socket: HTTP/1.1, one path.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::access::ToolsOptions;
use crate::server::Server;

/// Connections at a time; a further one waits until one of them ends.
const CONNECTIONS: usize = 1024;
/// Largest message, bytes.
const MESSAGE: usize = 1 << 20;
/// How long a client may take for the head of a request.
const HEAD: Duration = Duration::from_secs(30);

/// Serves the tools on `listener`, at every path, until `stop` resolves.
///
/// # Errors
/// The listener cannot accept any more.
pub async fn serve(
    listener: TcpListener,
    options: ToolsOptions,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let server = Server::new(options);
    let config = StreamableHttpServerConfig::default()
        // The listener's address says who may come; a name that a tap or gateway uses is none of ours.
        .disable_allowed_hosts()
        .with_max_request_body_bytes(MESSAGE)
        .with_sse_keep_alive(None);
    let cancel = config.cancellation_token.clone();
    let sessions = Arc::new(LocalSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut stop = std::pin::pin!(stop);
    loop {
        let Ok(place) = room.clone().acquire_owned().await else {
            return Ok(());
        };
        let accepted = tokio::select! {
            () = &mut stop => {
                cancel.cancel();
                return Ok(());
            }
            accepted = listener.accept() => accepted,
        };
        let (socket, _) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_passing(&error) => continue,
            Err(error) => return Err(error),
        };
        // Answers are small: without it the kernel would hold them back.
        let _ = socket.set_nodelay(true);
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD)
                .serve_connection(TokioIo::new(socket), service)
                .await;
            if let Err(error) = served {
                tracing::debug!(%error, "a connection to the tool server ended early");
            }
            drop(place);
        });
    }
}

/// The peer gave up, or files ran out for a moment: the next one may do better.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}
