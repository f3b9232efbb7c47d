//! The threads that carry streams: one event loop each, with connections of its own.

use crate::LoadError;
use std::future::Future;
use std::thread::JoinHandle;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Event loops. A call lives on one of them from its first to its last byte.
pub(crate) struct Lanes {
    lanes: Vec<Lane>,
}

struct Lane {
    handle: Handle,
    /// Dropped to end the lane.
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Lanes {
    /// Starts `count` lanes.
    pub(crate) fn start(count: usize) -> Result<Self, LoadError> {
        let lanes = (0..count.max(1))
            .map(|_| Lane::start())
            .collect::<Result<_, _>>()?;
        Ok(Self { lanes })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lanes.len()
    }

    /// Which lane call or worker `number` goes to.
    pub(crate) fn of(&self, number: u64) -> usize {
        usize::try_from(number % self.lanes.len() as u64).unwrap_or_default()
    }

    /// Runs `task` on a lane.
    pub(crate) fn spawn(&self, lane: usize, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(lane) = self.lanes.get(lane) {
            lane.handle.spawn(task);
        }
    }

    /// Runs `task` on the first lane and waits for it.
    pub(crate) fn block_on<T: Send + 'static>(
        &self,
        task: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        self.spawn(0, async move {
            // The receiver waits below for as long as this runs.
            let _ = sender.send(task.await);
        });
        receiver.recv().ok()
    }
}

impl Lane {
    fn start() -> Result<Self, LoadError> {
        let failed = |source| LoadError::Start {
            what: "a thread that carries streams",
            source,
        };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let thread = std::thread::Builder::new()
            .name("lane".to_owned())
            .spawn(move || {
                // Ends with an error when the sender is dropped: that is the signal.
                let _ = runtime.block_on(ended);
            })
            .map_err(failed)?;
        Ok(Self {
            handle,
            end: Some(end),
            thread: Some(thread),
        })
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.end.take();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("a thread that carries streams ended with a panic");
        }
    }
}

/// Raises the number of files that this process may open as far as it is allowed to: each stream
/// is a connection. Returns the number.
pub(crate) fn raise_file_limit() -> Option<u64> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let now = getrlimit(Resource::Nofile);
    let wanted = Rlimit {
        current: now.maximum,
        maximum: now.maximum,
    };
    match setrlimit(Resource::Nofile, wanted) {
        Ok(()) => now.maximum,
        Err(_) => now.current,
    }
}
