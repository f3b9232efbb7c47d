//! Accepting connections until told to stop.

use std::io;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// More connections than this wait in the kernel's accept queue: the bound of a stand-in's memory.
const MAX_CONNECTIONS: usize = 16_384;
/// Pause after a failed accept (usually: out of descriptors), so that the loop does not spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Runs `connection` for every accepted stream until `stop` resolves, then ends those still open and
/// waits for their truth to be recorded.
pub(crate) async fn accept<F, C>(
    listener: TcpListener,
    stop: impl Future<Output = ()>,
    mut connection: F,
) -> io::Result<()>
where
    F: FnMut(TcpStream) -> C,
    C: Future<Output = ()> + Send + 'static,
{
    let mut open = JoinSet::new();
    tokio::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            Some(_) = open.join_next() => {}
            accepted = listener.accept(), if open.len() < MAX_CONNECTIONS => match accepted {
                Ok((stream, _)) => {
                    open.spawn(connection(stream));
                }
                Err(error) => {
                    tracing::warn!(%error, "stand-in could not accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    open.shutdown().await;
    Ok(())
}
