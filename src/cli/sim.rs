//! `hopscope sim`: one stand-in, or the tool server, as a process. What is measured against a stand-in is
//! *simulated*.

use super::Done;
use anyhow::Context as _;
use sim::truth::{Log, Role};
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// An OpenAI-compatible engine with vLLM's stream shape and a scripted or modelled timing.
    Engine(StandIn<sim::engine::EngineOptions>),
    /// A managed service: quotas, a heavy-tailed first token, a prompt cache, copies that come and go.
    Managed(StandIn<sim::managed::ManagedOptions>),
    /// Amazon Bedrock AgentCore: Runtime with a scripted agent and sessions that start cold, Gateway with tools.
    #[command(name = "agentcore")]
    AgentCore(StandIn<sim::agentcore::AgentCoreOptions>),
    /// A gateway that adds known delays and rewrites streams as real ones do.
    Gateway(StandIn<sim::gateway::GatewayOptions>),
    /// A router before several engines, with replicas that come and go.
    Router(StandIn<sim::router::RouterOptions>),
    /// A byte relay that adds nothing.
    Relay(StandIn<sim::relay::RelayOptions>),
    /// The tools of an agent over MCP: search, SQL and arithmetic, at http://ADDR/mcp.
    Tools(ToolServer),
    /// The EKS Pod Identity agent: temporary AWS keys for who has the pod's token, at
    /// http://ADDR/v1/credentials (AWS_CONTAINER_CREDENTIALS_FULL_URI). On loopback only.
    PodIdentity(PodIdentity),
}

#[derive(clap::Args)]
struct PodIdentity {
    /// Where to listen: a loopback address.
    #[arg(long, value_name = "ADDR")]
    listen: SocketAddr,
    #[command(flatten)]
    options: sim::pod_identity::PodIdentityOptions,
}

#[derive(clap::Args)]
struct ToolServer {
    /// Where to listen.
    #[arg(long, value_name = "ADDR")]
    listen: SocketAddr,
    /// Worker threads.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    #[command(flatten)]
    options: tools::ToolsOptions,
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
    /// Serves this many alike and independent ones, on as many ports from that of `--listen` on.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    replicas: u16,
    #[command(flatten)]
    options: T,
}

pub(crate) fn run(args: Args) -> anyhow::Result<Done> {
    match args.what {
        What::Engine(it) => serve(&it, Role::Engine, |l, o, log, stop| {
            sim::engine::serve(l, o, log, stop)
        }),
        What::Managed(it) => serve(&it, Role::Engine, |l, o, log, stop| {
            sim::managed::serve(l, o, log, stop)
        }),
        What::AgentCore(it) => serve(&it, Role::Engine, |l, o, log, stop| {
            sim::agentcore::serve(l, o, log, stop)
        }),
        What::Gateway(it) => serve(&it, Role::Gateway, |l, o, log, stop| {
            sim::gateway::serve(l, o, log, stop)
        }),
        What::Router(it) => serve(&it, Role::Gateway, |l, o, log, stop| {
            sim::router::serve(l, o, log, stop)
        }),
        What::Relay(it) => serve(&it, Role::Relay, |l, o, log, stop| {
            sim::relay::serve(l, o, log, stop)
        }),
        What::Tools(it) => serve_tools(it),
        What::PodIdentity(it) => serve_pod_identity(it),
    }
}

fn serve_tools(it: ToolServer) -> anyhow::Result<Done> {
    runtime(it.threads)?.block_on(async {
        let mut stopped = told_to_stop()?;
        let listener = listen(it.listen, 0).await?;
        tracing::info!(listen = %listener.local_addr()?, "tool server serving");
        let stop = async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        tools::serve(listener, it.options, stop).await?;
        anyhow::Ok(Done::Well)
    })
}

fn serve_pod_identity(it: PodIdentity) -> anyhow::Result<Done> {
    runtime(1)?.block_on(async {
        let mut stopped = told_to_stop()?;
        let listener = listen(it.listen, 0).await?;
        tracing::info!(listen = %listener.local_addr()?, "pod identity agent serving");
        let stop = async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        };
        sim::pod_identity::serve(listener, it.options, stop).await?;
        anyhow::Ok(Done::Well)
    })
}

fn runtime(threads: usize) -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads.max(1))
        .enable_all()
        .build()
}

type Stop = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

fn serve<T, R>(
    it: &StandIn<T>,
    role: Role,
    start: impl Fn(TcpListener, T, Log, Stop) -> R,
) -> anyhow::Result<Done>
where
    T: clap::Args + Clone,
    R: Future<Output = std::io::Result<()>> + Send + 'static,
{
    let runtime = runtime(it.threads)?;
    let log = match &it.truth {
        Some(path) => Log::create(path, role)?,
        None => Log::off(),
    };
    runtime.block_on(async {
        let stopped = told_to_stop()?;
        let mut replicas = tokio::task::JoinSet::new();
        for number in 0..it.replicas {
            let listener = listen(it.listen, number).await?;
            let listen = listener.local_addr()?;
            let mut stopped = stopped.clone();
            let stop: Stop = Box::pin(async move {
                // An error is the end of the one that tells, which only happens at the end.
                let _ = stopped.wait_for(|stopped| *stopped).await;
            });
            tracing::info!(?role, %listen, "stand-in serving: results are simulated");
            replicas.spawn(start(listener, it.options.clone(), log.clone(), stop));
        }
        while let Some(served) = replicas.join_next().await {
            served??;
        }
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

/// Listens for replica `number`: its port is so many after that of `first` (any free one for port 0).
async fn listen(first: SocketAddr, number: u16) -> anyhow::Result<TcpListener> {
    let mut address = first;
    if number > 0 && first.port() > 0 {
        let port = first.port().checked_add(number);
        address.set_port(port.context("--replicas needs more ports than there are from --listen")?);
    }
    TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address}: is another program using it? choose another --listen")
    })
}

/// Becomes true at SIGTERM or SIGINT.
fn told_to_stop() -> std::io::Result<watch::Receiver<bool>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (tell, told) = watch::channel(false);
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tell.send_replace(true);
    });
    Ok(told)
}
