//! One block: open the streams, warm up, measure, end. Server and client share one thread that
//! never sleeps, so that neither waits for the other to be scheduled and a token's delay is the
//! path's own.

use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Result, bail};
use rustix::event::epoll::{self, CreateFlags, Event};
use rustix::fd::OwnedFd;
use rustix::time::Timespec;

use crate::calls::{Calls, Window};
use crate::clock::{MILLISECOND, SECOND, now};
use crate::engine::Engine;
use crate::quiet::Reading;
use crate::samples::{Block, Delays};
use crate::subject::Subject;

/// Keys of the poller: what kind of socket, then its number.
const LISTENER: u64 = 0;
const CONNECTION: u64 = 1 << 32;
const CALL: u64 = 2 << 32;
/// Time between two new streams, so that opening them is not itself a burst.
const RAMP: u64 = MILLISECOND / 2;
/// Longest wait for the streams to end after the window.
const END_LIMIT: u64 = 10 * SECOND;
/// Sockets looked at before tokens are written again.
const ARRIVALS_AT_ONCE: usize = 32;

/// What a block does.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) streams: usize,
    /// Nanoseconds from the last stream's opening to the window.
    pub(crate) warm: u64,
    /// Nanoseconds of the window.
    pub(crate) window: u64,
}

/// The sockets of a run and their one loop.
pub(crate) struct Harness {
    poller: OwnedFd,
    engine: Engine,
    stop: Arc<AtomicBool>,
    buffer: Vec<u8>,
}

impl Harness {
    /// Puts `engine` under a poller. `stop` ends a block early when set.
    ///
    /// # Errors
    /// When the kernel gives no poller.
    pub(crate) fn new(engine: Engine, stop: Arc<AtomicBool>) -> Result<Self> {
        let poller = epoll::create(CreateFlags::CLOEXEC)?;
        engine.register(&poller, LISTENER)?;
        Ok(Self {
            poller,
            engine,
            stop,
            buffer: vec![0; 64 * 1024],
        })
    }

    /// True once a signal asked for the end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Runs one block through `to`; with a subject, its CPU and memory are read at the window's
    /// two ends.
    ///
    /// # Errors
    /// When a stream fails, a token is lost, the subject cannot keep up or a signal came.
    pub(crate) fn run(
        &mut self,
        to: SocketAddr,
        subject: Option<&Subject>,
        plan: Plan,
    ) -> Result<Block> {
        self.engine.begin_block();
        let mut calls = Calls::new()?;
        let mut turns = Delays::new()?;
        let processes = subject.map(Subject::processes).transpose()?;
        let never = Window { begin: 0, end: 0 };
        self.open(to, plan.streams, &mut calls)?;
        self.turn_until(now() + plan.warm, &mut calls, never, None)?;

        let before = processes.as_ref().map(|p| p.cpu()).transpose()?;
        let counters = Reading::take()?;
        self.engine.lag.clear();
        let begin = now();
        let end = begin + plan.window;
        let window = Window { begin, end };
        self.turn_until(end, &mut calls, window, Some(&mut turns))?;
        let after = processes.as_ref().map(|p| p.cpu()).transpose()?;
        let cpu = after.zip(before).map(|(a, b)| a.saturating_sub(b));
        let others = Reading::take()?.others_since(counters, cpu.unwrap_or(0));
        let memory = processes.as_ref().map(|p| p.memory()).transpose()?;

        let lag = (self.engine.lag.quantile(0.99), self.engine.lag.max());
        self.end(plan.streams, &mut calls, window)?;
        Ok(Block {
            delays: calls.delays,
            joined: calls.joined,
            cpu,
            memory,
            others,
            lag,
            turn: (turns.quantile(0.99), turns.max()),
        })
    }

    fn open(&mut self, to: SocketAddr, streams: usize, calls: &mut Calls) -> Result<()> {
        let never = Window { begin: 0, end: 0 };
        while calls.opened() < streams {
            calls.open(to, &self.poller, CALL)?;
            self.turn_until(now() + RAMP, calls, never, None)?;
        }
        Ok(())
    }

    fn turn_until(
        &mut self,
        end: u64,
        calls: &mut Calls,
        window: Window,
        mut turns: Option<&mut Delays>,
    ) -> Result<()> {
        let mut time = now();
        while time < end {
            self.turn(calls, window)?;
            let next = now();
            if let Some(turns) = turns.as_deref_mut() {
                turns.add(next - time);
            }
            time = next;
        }
        Ok(())
    }

    fn end(&mut self, streams: usize, calls: &mut Calls, window: Window) -> Result<()> {
        self.engine.ending = true;
        let limit = now() + END_LIMIT;
        while calls.finished < streams {
            self.turn(calls, window)?;
            if now() > limit {
                let open = streams - calls.finished;
                bail!(
                    "{open} of {streams} streams had not ended {} s after their last token",
                    END_LIMIT / SECOND
                );
            }
        }
        if calls.received != self.engine.sent {
            bail!(
                "{} tokens were sent and {} came out",
                self.engine.sent,
                calls.received
            );
        }
        Ok(())
    }

    /// Takes what has arrived, then writes what is due.
    fn turn(&mut self, calls: &mut Calls, window: Window) -> Result<()> {
        if self.is_stopped() {
            bail!("stopped by a signal");
        }
        let mut events = [MaybeUninit::<Event>::uninit(); ARRIVALS_AT_ONCE];
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let (ready, _) = match epoll::wait(&self.poller, &mut events, Some(&at_once)) {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            other => other?,
        };
        for event in ready {
            let key = event.data.u64();
            let number = usize::try_from(key & (CONNECTION - 1))?;
            match key & !(CONNECTION - 1) {
                LISTENER => self.engine.accept(&self.poller, CONNECTION)?,
                CONNECTION => self.engine.readable(number, &mut self.buffer)?,
                _ => calls.readable(number, &mut self.buffer, window)?,
            }
        }
        self.engine.write_due()
    }
}
