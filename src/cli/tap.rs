//! `hopscope tap`: reads its file, opens its taps, serves until it is told to stop.

use super::Done;
use anyhow::Context as _;
use hopscope::tap::{NamedChain, ProcessOptions, TapServer};
use hopscope::telemetry::{Endpoints, serve_admin, serve_telemetry};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The tap process' file (config/taps/*.yaml): its chains, its listeners, what it records.
    #[arg(long, short, value_name = "FILE")]
    config: PathBuf,
    /// Write every exchange into this directory, whatever the file says.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// The name of this process in records.
    #[arg(long, value_name = "NAME", default_value = "tap")]
    name: String,
    /// Write the process id here once every tap listens.
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> anyhow::Result<Done> {
    let set = config::tap_process(&args.config)?;
    let drain = set.process.drain_timeout.into();
    let options = ProcessOptions::of(&set.process, args.record.clone(), args.name.clone());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let telemetry = listen(set.process.telemetry, "telemetry", &set.process).await?;
        let admin = listen(set.process.admin, "admin", &set.process).await?;
        let mut stop = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let places: Vec<_> = set
            .chains
            .iter()
            .map(|c| move |n: usize| c.location(&format!("taps[{n}].listen")))
            .collect();
        let chains: Vec<_> = set
            .chains
            .iter()
            .zip(&places)
            .map(|(chain, place)| NamedChain {
                chain,
                place,
                base: chain.path().parent().unwrap_or(Path::new(".")),
            })
            .collect();
        let server = TapServer::start(options, &chains)?;
        let endpoints = Endpoints::of(server.meter());
        if let Some(listener) = telemetry {
            tokio::spawn(serve_telemetry(listener, endpoints.clone()));
        }
        if let Some(listener) = admin {
            tokio::spawn(serve_admin(listener, endpoints.clone()));
        }
        announce(args, &set)?;
        tokio::select! {
            _ = stop.recv() => tracing::info!("draining"),
            _ = interrupt.recv() => tracing::info!("draining; interrupt again to cut"),
        }
        endpoints.ready.store(false, Ordering::Relaxed);
        let stopped = tokio::task::spawn_blocking(move || server.stop(drain));
        tokio::select! {
            done = stopped => done.context("the taps did not stop cleanly")?,
            _ = interrupt.recv() => tracing::warn!("cut"),
        }
        drop(Arc::clone(&endpoints));
        Ok(Done::Well)
    })
}

async fn listen(
    address: Option<config::Listen>,
    what: &str,
    process: &config::Checked<config::TapProcess>,
) -> anyhow::Result<Option<TcpListener>> {
    let Some(address) = address else {
        return Ok(None);
    };
    let bound = TcpListener::bind(address.get()).await;
    let place = process.location(what);
    Ok(Some(bound.with_context(|| {
        format!("{place}: `{what}` cannot listen on {address}; choose another address")
    })?))
}

fn announce(args: &Args, set: &config::TapSet) -> anyhow::Result<()> {
    for chain in &set.chains {
        for tap in &chain.taps {
            tracing::info!(chain = chain.name, tap = tap.name, listen = %tap.listen, "serving");
        }
    }
    if let Some(path) = &args.ready_file {
        let pid = std::process::id().to_string();
        std::fs::write(path, pid)
            .with_context(|| format!("{}: cannot write the ready file", path.display()))?;
    }
    Ok(())
}
