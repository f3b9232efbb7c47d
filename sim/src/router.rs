//! A stand-in for a router before several replicas of an engine, and for what scales them.
//!
//! Models: choosing a replica for each request, round robin, at random, or by prefix as llm-d's endpoint
//! picker does (see [`Policy`]); requests and answers passed on as they came; replicas that appear after
//! their launch, pull and load times when the load grows, and go when they idle ([`ScaleOptions`]).
//!
//! Does not model: reading the replicas' metrics (load is what this router has in flight), KV events (the
//! prefix index is the router's own guess, as llm-d's default is), health checks, disaggregated prefill,
//! flow control, priorities, nodes that are lost. Every replica's process must run from the start: one
//! that is not yet ready gets no requests, and one that comes back has the cache it had.

use std::io;
use std::sync::Arc;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::net::TcpListener;

use crate::clock::now;
use crate::exposition::Exposition;
use crate::gateway::{self, GatewayOptions};
use crate::http::Pool;
use crate::prompt::prompt_hashes;
use crate::truth::Log;

mod balance;
mod options;
mod scale;
#[cfg(test)]
mod tests;

use balance::Balancer;
pub use options::{Policy, RouterOptions, ScaleOptions};
use scale::Scaler;

/// Serves a router on `listener` until `stop` resolves.
///
/// # Errors
/// As [`gateway::serve`].
pub async fn serve(
    listener: TcpListener,
    options: RouterOptions,
    log: Log,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let passes_on = GatewayOptions::default();
    let fleet = Fleet::new(options, passes_on.pool);
    gateway::serve_before(fleet, listener, passes_on, log, stop).await
}

/// The replicas behind a router.
pub(crate) struct Fleet {
    pools: Vec<Arc<Pool>>,
    by_prefix: bool,
    state: Mutex<State>,
}

struct State {
    balancer: Balancer,
    scaler: Scaler,
    /// Requests in flight, by replica.
    load: Vec<u64>,
}

impl Fleet {
    /// A fleet that keeps at most `idle` connections to each replica.
    pub(crate) fn new(options: RouterOptions, idle: usize) -> Self {
        let count = options.upstreams.len();
        let pools = options.upstreams.into_iter();
        Self {
            pools: pools.map(|to| Arc::new(Pool::new(to, idle))).collect(),
            by_prefix: options.policy == Policy::Prefix,
            state: Mutex::new(State {
                balancer: Balancer::new(options.policy, count, options.seed),
                scaler: Scaler::new(options.scale, count),
                load: vec![0; count],
            }),
        }
    }

    /// The fleet of one replica that every gateway without a router has.
    pub(crate) fn one(upstream: String, idle: usize) -> Self {
        let options = RouterOptions {
            upstreams: vec![upstream],
            ..RouterOptions::default()
        };
        Self::new(options, idle)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Chooses a replica for a request with this body; `None` where there is none.
    pub(crate) fn choose(&self, body: &[u8]) -> Option<Berth<'_>> {
        let hashes = match self.by_prefix {
            true => prompt_hashes(body),
            false => Vec::new(),
        };
        let mut guard = self.lock();
        let state = &mut *guard;
        state.scaler.arrival(now(), &state.load);
        let ready = state.scaler.ready();
        let replica = state.balancer.pick(&ready, &state.load, &hashes)?;
        let pool = Arc::clone(self.pools.get(replica)?);
        state.load[replica] += 1;
        Some(Berth {
            fleet: self,
            replica,
            pool,
        })
    }

    /// Adds the fleet to a page of metrics.
    pub(crate) fn render(&self) -> String {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.scaler.look(now(), &state.load);
        let mut page = Exposition::default();
        for (name, help, value) in [
            (
                "sim_router_ready_replicas",
                "Replicas that get requests.",
                state.scaler.ready().len() as f64,
            ),
            (
                "sim_router_starting_replicas",
                "Replicas that are launched, pulled or loaded.",
                state.scaler.starting() as f64,
            ),
            (
                "sim_router_in_flight",
                "Requests in flight.",
                state.load.iter().sum::<u64>() as f64,
            ),
        ] {
            page.gauge(name, help, value);
        }
        if let Some((decided, ready)) = state.scaler.last_launch() {
            for (name, help, at) in [
                (
                    "sim_router_last_launch_seconds",
                    "Monotonic clock: when the last launch was decided.",
                    decided,
                ),
                (
                    "sim_router_last_ready_seconds",
                    "Monotonic clock: when its replica gets requests.",
                    ready,
                ),
            ] {
                page.gauge(name, help, at as f64 / 1e9);
            }
        }
        page.finish()
    }
}

/// A request's place at a replica, given back when dropped.
pub(crate) struct Berth<'f> {
    fleet: &'f Fleet,
    replica: usize,
    /// Connections to the replica.
    pub(crate) pool: Arc<Pool>,
}

impl Drop for Berth<'_> {
    fn drop(&mut self) {
        let mut guard = self.fleet.lock();
        let state = &mut *guard;
        state.load[self.replica] = state.load[self.replica].saturating_sub(1);
        state.scaler.look(now(), &state.load);
    }
}
