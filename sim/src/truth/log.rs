//! Where truths go: a file written by a thread of its own, memory, or nowhere.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::read::{Footer, Header};
use super::{ExchangeTruth, Role};

/// Exchanges that may wait for the writer. At 64 tokens each this is about 20 MB.
const QUEUE: usize = 4096;
/// Between two looks at the queue, and so what a killed stand-in loses at the most. The writer is not
/// woken by an exchange: it would run while that exchange's last bytes are on their way through what is
/// being measured, and on a host with few CPUs in their way.
const PAUSE: Duration = Duration::from_millis(25);

/// Why a truth log could not be written.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The file could not be created.
    #[error(
        "cannot create truth log {path}: {source}; give a path in a directory that can be written"
    )]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Writing failed; exchanges were lost.
    #[error("cannot write truth log {path}: {source}; its exchanges are incomplete")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The writer ended without telling why.
    #[error("the writer of truth log {path} failed; its exchanges are incomplete")]
    Writer {
        /// The file.
        path: PathBuf,
    },
}

/// What a closed log holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Closed {
    /// Exchanges written, or held in memory.
    pub exchanges: u64,
    /// Exchanges dropped because the log was full. Anything but 0 makes comparisons with it partial.
    pub dropped: u64,
}

/// A handle on a truth log; clones share it. Recording never blocks: it drops and counts.
#[derive(Clone)]
pub struct Log(Arc<Inner>);

struct Inner {
    sink: Sink,
    dropped: AtomicU64,
}

enum Sink {
    Off,
    Memory {
        exchanges: Mutex<Vec<ExchangeTruth>>,
        most: usize,
    },
    File {
        path: PathBuf,
        queue: SyncSender<Message>,
        writer: Mutex<Option<JoinHandle<io::Result<u64>>>>,
    },
}

enum Message {
    Exchange(Box<ExchangeTruth>),
    Close { dropped: u64 },
}

impl Log {
    /// Keeps nothing.
    pub fn off() -> Self {
        Self::with(Sink::Off)
    }

    /// Keeps at most `most` exchanges in memory, for [`Log::take`].
    pub fn memory(most: usize) -> Self {
        Self::with(Sink::Memory {
            exchanges: Mutex::new(Vec::new()),
            most,
        })
    }

    /// Writes one line of JSON per exchange to `path`, replacing the file. Call [`Log::close`] at the
    /// end: without its footer the file counts as cut off.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(path: &Path, role: Role) -> Result<Self, LogError> {
        let create = || {
            let mut file = BufWriter::with_capacity(1 << 16, File::create(path)?);
            write_line(&mut file, &Header::new(role))?;
            file.flush()?;
            let (queue, waiting) = sync_channel(QUEUE);
            let writer = std::thread::Builder::new()
                .name("sim-truth".to_owned())
                .spawn(move || write_all(file, &waiting))?;
            Ok((queue, writer))
        };
        let (queue, writer) = create().map_err(|source| LogError::Create {
            path: path.to_owned(),
            source,
        })?;
        Ok(Self::with(Sink::File {
            path: path.to_owned(),
            queue,
            writer: Mutex::new(Some(writer)),
        }))
    }

    fn with(sink: Sink) -> Self {
        Self(Arc::new(Inner {
            sink,
            dropped: AtomicU64::new(0),
        }))
    }

    /// Takes what a memory log holds; nothing from another.
    pub fn take(&self) -> Vec<ExchangeTruth> {
        match &self.0.sink {
            Sink::Memory { exchanges, .. } => {
                std::mem::take(&mut *exchanges.lock().unwrap_or_else(PoisonError::into_inner))
            }
            _ => Vec::new(),
        }
    }

    /// Exchanges dropped so far because the log was full, closed or failing.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Ordering::Relaxed)
    }

    pub(crate) fn record(&self, truth: ExchangeTruth) {
        let kept = match &self.0.sink {
            Sink::Off => true,
            Sink::Memory { exchanges, most } => {
                let mut exchanges = exchanges.lock().unwrap_or_else(PoisonError::into_inner);
                let room = exchanges.len() < *most;
                if room {
                    exchanges.push(truth);
                }
                room
            }
            Sink::File { queue, .. } => queue.try_send(Message::Exchange(Box::new(truth))).is_ok(),
        };
        if !kept {
            self.0.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Writes what waits and the footer. Blocks until the file is flushed; call it after the stand-in's
    /// `serve` returned. What is recorded later is dropped. Closing twice is an error of the second.
    ///
    /// # Errors
    /// When a write failed: the file is then incomplete.
    pub fn close(&self) -> Result<Closed, LogError> {
        let dropped = self.dropped();
        let exchanges = match &self.0.sink {
            Sink::Off => 0,
            Sink::Memory { exchanges, .. } => exchanges
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .len() as u64,
            Sink::File {
                path,
                queue,
                writer,
            } => {
                let writer = writer.lock().unwrap_or_else(PoisonError::into_inner).take();
                // A failed send means that the writer has ended: its result tells why.
                let _ = queue.send(Message::Close { dropped });
                match writer.map(JoinHandle::join) {
                    Some(Ok(Ok(written))) => written,
                    Some(Ok(Err(source))) => {
                        return Err(LogError::Write {
                            path: path.clone(),
                            source,
                        });
                    }
                    Some(Err(_)) | None => return Err(LogError::Writer { path: path.clone() }),
                }
            }
        };
        Ok(Closed { exchanges, dropped })
    }
}

fn write_all(mut file: BufWriter<File>, waiting: &Receiver<Message>) -> io::Result<u64> {
    let mut written = 0;
    loop {
        match waiting.try_recv() {
            Ok(Message::Exchange(truth)) => {
                write_line(&mut file, &truth)?;
                written += 1;
            }
            Ok(Message::Close { dropped }) => {
                write_line(&mut file, &Footer::new(written, dropped))?;
                file.flush()?;
                return Ok(written);
            }
            Err(TryRecvError::Empty) => {
                file.flush()?;
                std::thread::sleep(PAUSE);
            }
            Err(TryRecvError::Disconnected) => {
                file.flush()?;
                return Ok(written);
            }
        }
    }
}

fn write_line(file: &mut BufWriter<File>, line: &impl serde::Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *file, line)?;
    file.write_all(b"\n")
}
