//! Reads the components' own metrics while their chain is driven: once before a cell, every now and then
//! within it, once after it. A thread and connections of its own; each look ends in time, and what could
//! not be read is a gap in the record and never a 0.

mod names;
mod text;

use crate::error::causes;
use crate::target::key_of;
use crate::{LoadError, PlannedChain};
use names::{Found, Wanted};
use record::clock::{Nanos, now, thread_cpu};
use record::rundir::{RunDir, RunDirError, SCRAPES, SEGMENT, SegmentWriter};
use record::scrape::{Look, Scraped};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A look that takes longer is given up.
const PATIENCE: Duration = Duration::from_secs(2);
/// A longer page is given up.
const PAGE: usize = 16 << 20;

/// What the manifest says of it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Account {
    /// The endpoints, with the metrics that were found there.
    pub(crate) scraped: Vec<Scraped>,
    /// CPU seconds that it took so far; `None` without an endpoint.
    pub(crate) cpu: Option<f64>,
}

/// Cells that are being driven at once.
#[derive(Debug, Clone, Copy)]
struct Driven {
    chain: usize,
    first: u32,
    count: u32,
}

enum Order {
    /// Look at all of the chain, and go on looking.
    Begin(Driven, SyncSender<()>),
    /// Look once more, and no further.
    End(SyncSender<()>),
}

/// The campaign's end. Without an endpoint it does nothing.
pub(crate) struct Scraper {
    orders: Option<UnboundedSender<Order>>,
    thread: Option<JoinHandle<Result<(), RunDirError>>>,
    account: Arc<Mutex<Account>>,
}

impl Scraper {
    /// Looks at the endpoints that `chains` name.
    ///
    /// # Errors
    /// A key is not in the environment, or the thread cannot be started.
    pub(crate) fn start(chains: &[PlannedChain], run: &RunDir) -> Result<Self, LoadError> {
        let mut endpoints = Vec::new();
        for (chain, planned) in chains.iter().enumerate() {
            for scrape in &planned.chain.scrape {
                endpoints.push(Endpoint::of(chain, &planned.chain.name, scrape)?);
            }
        }
        let account = Arc::new(Mutex::new(Account {
            scraped: endpoints.iter().map(|e| e.told.clone()).collect(),
            cpu: None,
        }));
        if endpoints.is_empty() {
            return Ok(Self {
                orders: None,
                thread: None,
                account,
            });
        }
        let failed = |source| LoadError::Start {
            what: "the thread that reads metrics",
            source,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(failed)?;
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::limited(2))
            .build()
            .map_err(|error| failed(std::io::Error::other(error)))?;
        let mut worker = Worker {
            endpoints,
            http,
            segments: SegmentWriter::create(&run.root().join(SCRAPES), SCRAPES, SEGMENT)?,
            account: account.clone(),
        };
        let (orders, received) = unbounded_channel();
        let thread = std::thread::Builder::new()
            .name("scrape".to_owned())
            .spawn(move || runtime.block_on(worker.run(received)))
            .map_err(failed)?;
        Ok(Self {
            orders: Some(orders),
            thread: Some(thread),
            account,
        })
    }

    /// Looks at the endpoints of chain `chain` before its cells `first`, … are driven.
    pub(crate) fn begin(&self, chain: usize, first: u32, count: u32) {
        let driven = Driven {
            chain,
            first,
            count,
        };
        self.order(|done| Order::Begin(driven, done));
    }

    /// Looks once more after them.
    pub(crate) fn end(&self) {
        self.order(Order::End);
    }

    fn order(&self, make: impl FnOnce(SyncSender<()>) -> Order) {
        let Some(orders) = &self.orders else { return };
        let (done, wait) = sync_channel(1);
        if orders.send(make(done)).is_ok() {
            // An error is a thread that has failed; the run ends with its error.
            let _ = wait.recv();
        }
    }

    /// What there is to say of it so far.
    pub(crate) fn account(&self) -> Account {
        let account = self.account.lock();
        account.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends it.
    ///
    /// # Errors
    /// Its records could not be written.
    pub(crate) fn finish(&mut self) -> Result<(), LoadError> {
        self.orders.take();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(result)) => Ok(result?),
            _ => Ok(()),
        }
    }
}

struct Endpoint {
    chain: usize,
    told: Scraped,
    wanted: Wanted,
    key: Option<String>,
    every: Duration,
    due: Instant,
    /// It was said that it cannot be read.
    warned: bool,
}

impl Endpoint {
    fn of(chain: usize, name: &str, scrape: &config::chain::Scrape) -> Result<Self, LoadError> {
        let key = scrape.key_env.as_ref().map(|v| key_of(v.as_str()));
        let key = key.transpose().map_err(|what| {
            LoadError::Plan(format!("chain {name}, scrape {}: {what}", scrape.component))
        })?;
        Ok(Self {
            chain,
            told: Scraped {
                chain: name.to_owned(),
                component: scrape.component.clone(),
                kind: scrape.kind.as_str().to_owned(),
                url: scrape.url.to_string(),
                sources: Vec::new(),
            },
            wanted: Wanted::of(scrape),
            key,
            every: scrape.every.get(),
            due: Instant::now(),
            warned: false,
        })
    }
}

/// What came of one request.
struct Answer {
    endpoint: usize,
    at: Nanos,
    took: Nanos,
    page: Result<String, String>,
}

struct Worker {
    endpoints: Vec<Endpoint>,
    http: reqwest::Client,
    segments: SegmentWriter<Look>,
    account: Arc<Mutex<Account>>,
}

impl Worker {
    async fn run(&mut self, mut orders: UnboundedReceiver<Order>) -> Result<(), RunDirError> {
        let mut driven: Option<Driven> = None;
        loop {
            let due = driven.and_then(|d| self.due(d.chain));
            let wake = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                order = orders.recv() => match order {
                    Some(Order::Begin(next, done)) => {
                        driven = Some(next);
                        self.look(next, |_| true).await?;
                        // Nobody waits any more where the run was given up.
                        let _ = done.send(());
                    }
                    Some(Order::End(done)) => {
                        if let Some(last) = driven.take() {
                            self.look(last, |_| true).await?;
                        }
                        let _ = done.send(());
                    }
                    None => return Ok(()),
                },
                () = wake => if let Some(driven) = driven {
                    let now = Instant::now();
                    self.look(driven, |endpoint| endpoint.due <= now).await?;
                },
            }
        }
    }

    /// When the next endpoint of a chain is to be looked at.
    fn due(&self, chain: usize) -> Option<Instant> {
        let of_chain = self.endpoints.iter().filter(|e| e.chain == chain);
        of_chain.map(|e| e.due).min()
    }

    /// Looks at those endpoints of the driven chain that `pick` takes, all at once.
    async fn look(
        &mut self,
        driven: Driven,
        pick: impl Fn(&Endpoint) -> bool,
    ) -> Result<(), RunDirError> {
        let mut asked = JoinSet::new();
        for (at, endpoint) in self.endpoints.iter_mut().enumerate() {
            if endpoint.chain != driven.chain || !pick(endpoint) {
                continue;
            }
            // From now on, and not from when it was due: a late look is not made up for.
            endpoint.due = Instant::now() + endpoint.every;
            let mut request = self.http.get(&endpoint.told.url);
            if let Some(key) = &endpoint.key {
                request = request.bearer_auth(key);
            }
            asked.spawn(ask(at, request));
        }
        while let Some(answer) = asked.join_next().await {
            if let Ok(answer) = answer {
                self.keep(driven, answer)?;
            }
        }
        let cpu = thread_cpu() as f64 / 1e9;
        let account = self.account.lock();
        account.unwrap_or_else(PoisonError::into_inner).cpu = Some(cpu);
        self.segments.sync()
    }

    fn keep(&mut self, driven: Driven, answer: Answer) -> Result<(), RunDirError> {
        let endpoint = &mut self.endpoints[answer.endpoint];
        let read = answer.page.and_then(|page| endpoint.wanted.read(&page));
        let read = read.and_then(|found| match found.is_empty() {
            true => Err("none of the metrics that are looked for is on the page; is `kind` right, and are its metrics on?".to_owned()),
            false => Ok(found),
        });
        let told = &mut endpoint.told;
        let (found, fault) = match read {
            Ok(found) => (found, None),
            Err(fault) => (Vec::new(), Some(fault)),
        };
        if let Some(fault) = fault.as_ref().filter(|_| !endpoint.warned) {
            endpoint.warned = true;
            tracing::warn!(chain = %told.chain, component = %told.component, url = %told.url, %fault,
                "cannot read metrics; what they would tell is not measured");
        }
        if learn(told, &found) {
            let account = self.account.lock();
            let mut account = account.unwrap_or_else(PoisonError::into_inner);
            account.scraped[answer.endpoint] = told.clone();
        }
        self.segments.append(&Look {
            cell: driven.first,
            cells: driven.count,
            chain: told.chain.clone(),
            component: told.component.clone(),
            at: answer.at,
            took: answer.took,
            values: found
                .into_iter()
                .map(|f| (f.figure.as_str().to_owned(), f.value))
                .collect(),
            fault,
        })
    }
}

/// Notes the metrics that are new; whether there was any.
fn learn(told: &mut Scraped, found: &[Found]) -> bool {
    let mut new = false;
    for one in found {
        let source = (one.figure.as_str().to_owned(), one.metric.clone());
        if !told.sources.contains(&source) {
            told.sources.push(source);
            new = true;
        }
    }
    new
}

async fn ask(endpoint: usize, request: reqwest::RequestBuilder) -> Answer {
    let at = now();
    let page = tokio::time::timeout(PATIENCE, fetch(request)).await;
    Answer {
        endpoint,
        at,
        took: now().saturating_sub(at),
        page: page.unwrap_or_else(|_| Err(format!("no page within {} s", PATIENCE.as_secs()))),
    }
}

async fn fetch(request: reqwest::RequestBuilder) -> Result<String, String> {
    let request = request.header(
        reqwest::header::ACCEPT,
        "text/plain;version=0.0.4,*/*;q=0.1",
    );
    let mut answer = request.send().await.map_err(|error| causes(&error))?;
    match answer.status().as_u16() {
        200..300 => {}
        status @ (401 | 403) => {
            return Err(format!(
                "status {status}: name the variable of its key with `key_env`"
            ));
        }
        status => {
            return Err(format!(
                "status {status}: is the path right, and are its metrics on?"
            ));
        }
    }
    let mut page = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(|error| causes(&error))? {
        page.extend_from_slice(&part);
        if page.len() > PAGE {
            return Err(format!("a page of more than {} MiB", PAGE >> 20));
        }
    }
    String::from_utf8(page).map_err(|_| "the page is no text".to_owned())
}

#[cfg(test)]
mod tests;
