//! Where delays are spent.

use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{Semaphore, oneshot};

use crate::clock::{Alarm, now, thread_cpu};

/// The way in which a gateway spends its delays.
pub(super) enum Station {
    /// By waiting, every exchange for itself.
    Free,
    /// By waiting, a limited number at a time.
    Limited(Semaphore),
    /// By burning CPU on threads of its own.
    Cpu(Sender<Job>),
}

/// CPU nanoseconds to burn and whom to tell.
pub(super) struct Job {
    nanoseconds: u64,
    done: oneshot::Sender<()>,
}

impl Station {
    /// A station with this many workers, or an error when their threads cannot be started. Its threads end
    /// when it is dropped.
    pub(super) fn new(cpu: bool, workers: usize) -> io::Result<Self> {
        if !cpu {
            return Ok(match workers {
                0 => Self::Free,
                workers => Self::Limited(Semaphore::new(workers.min(Semaphore::MAX_PERMITS))),
            });
        }
        // At most one job per exchange waits here, so connections bound the queue.
        let (jobs, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..workers.max(1) {
            let waiting = Arc::clone(&waiting);
            std::thread::Builder::new()
                .name("sim-worker".to_owned())
                .spawn(move || work(&waiting))?;
        }
        Ok(Self::Cpu(jobs))
    }

    /// Whether delays pass side by side, so that an exchange may read on while one passes.
    pub(super) fn is_free(&self) -> bool {
        matches!(self, Self::Free)
    }

    /// Spends a delay that began at `from`. A busy station lets it queue first.
    pub(super) async fn spend(
        &self,
        alarm: &mut Alarm,
        from: u64,
        microseconds: u64,
    ) -> io::Result<()> {
        let nanoseconds = microseconds * 1000;
        if nanoseconds == 0 {
            return Ok(());
        }
        match self {
            Self::Free => alarm.until(from + nanoseconds).await,
            Self::Limited(permits) => {
                let _permit = permits.acquire().await.map_err(io::Error::other)?;
                alarm.until(now() + nanoseconds).await
            }
            Self::Cpu(jobs) => {
                let (done, is_done) = oneshot::channel();
                jobs.send(Job { nanoseconds, done })
                    .map_err(|_| io::Error::other("the gateway's workers have ended"))?;
                is_done.await.map_err(io::Error::other)
            }
        }
    }
}

fn work(waiting: &Mutex<Receiver<Job>>) {
    loop {
        let job = waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok(job) = job else { return };
        if job.done.is_closed() {
            continue; // its client has gone while it queued
        }
        let until = thread_cpu() + job.nanoseconds;
        while thread_cpu() < until {
            std::hint::spin_loop();
        }
        // The exchange may have ended meanwhile.
        let _ = job.done.send(());
    }
}

#[cfg(test)]
mod tests {
    use super::Station;
    use crate::clock::{Alarm, now};

    async fn three_at_once(station: &Station) -> u64 {
        let begin = now();
        let one = async || {
            let mut alarm = Alarm::new().unwrap();
            station.spend(&mut alarm, begin, 10_000).await.unwrap();
        };
        tokio::join!(one(), one(), one());
        now() - begin
    }

    #[tokio::test]
    async fn limited_stations_queue_and_free_ones_do_not() {
        let free = three_at_once(&Station::new(false, 0).unwrap()).await;
        let waiting = three_at_once(&Station::new(false, 1).unwrap()).await;
        let burning = three_at_once(&Station::new(true, 1).unwrap()).await;
        assert!(free >= 10_000_000);
        assert!(waiting >= 30_000_000 && burning >= 30_000_000);
        assert!(free < waiting, "a free station queued");
    }
}
