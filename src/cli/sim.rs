//! `hopscope sim`: one stand-in as a process. What is measured against it is *simulated*.

use super::Done;
use anyhow::Context as _;
use sim::truth::{Log, Role};
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// An OpenAI-compatible engine with vLLM's stream shape and a scripted timing.
    Engine(StandIn<sim::engine::EngineOptions>),
    /// A gateway that adds known delays and rewrites streams as real ones do.
    Gateway(StandIn<sim::gateway::GatewayOptions>),
    /// A byte relay that adds nothing.
    Relay(StandIn<sim::relay::RelayOptions>),
}

#[derive(clap::Args)]
struct StandIn<T: clap::Args> {
    /// Where to listen.
    #[arg(long, value_name = "ADDR")]
    listen: SocketAddr,
    /// Write the truth log here: the stamps around the stand-in's own system calls.
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Worker threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    #[command(flatten)]
    options: T,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Done> {
    match args.what {
        What::Engine(it) => serve(it, Role::Engine, |l, o, log, stop| {
            sim::engine::serve(l, o, log, stop)
        }),
        What::Gateway(it) => serve(it, Role::Gateway, |l, o, log, stop| {
            sim::gateway::serve(l, o, log, stop)
        }),
        What::Relay(it) => serve(it, Role::Relay, |l, o, log, stop| {
            sim::relay::serve(l, o, log, stop)
        }),
    }
}

type Stop = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

fn serve<T, R>(
    it: StandIn<T>,
    role: Role,
    start: impl FnOnce(TcpListener, T, Log, Stop) -> R,
) -> anyhow::Result<Done>
where
    T: clap::Args,
    R: Future<Output = std::io::Result<()>>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(it.threads.max(1))
        .enable_all()
        .build()?;
    let log = match &it.truth {
        Some(path) => Log::create(path, role)?,
        None => Log::off(),
    };
    runtime.block_on(async {
        let listener = TcpListener::bind(it.listen).await.with_context(|| {
            format!(
                "cannot listen on {}: is another program using it? choose another --listen",
                it.listen
            )
        })?;
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let stop: Stop = Box::pin(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
        tracing::info!(?role, listen = %it.listen, "stand-in serving: results are simulated");
        start(listener, it.options, log.clone(), stop).await?;
        anyhow::Ok(())
    })?;
    let closed = log.close()?;
    if closed.dropped > 0 {
        tracing::warn!(
            dropped = closed.dropped,
            "the truth log was full: these exchanges have no truth"
        );
    }
    Ok(Done::Well)
}
