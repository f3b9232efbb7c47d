//! Looks at servers of this process: good, dead, silent, and started anew.

use super::Scraper;
use crate::PlannedChain;
use crate::testbed::Server;
use record::rundir::RunDir;
use record::scrape::{Look, gain};
use std::io::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Serves a vLLM's page whose hits are 10 more with each look, and fall to 3 with the fourth.
fn engine() -> Server {
    let looks = AtomicU64::new(0);
    Server::start(move |seen, stream| {
        if seen.head.starts_with("GET /old") {
            let moved = "HTTP/1.1 307 Temporary Redirect\r\nlocation: /metrics\r\ncontent-length: 0\r\n\r\n";
            return stream.write_all(moved.as_bytes()).is_ok();
        }
        let look = looks.fetch_add(1, Ordering::Relaxed);
        let hits = if look < 3 { 10 * (look + 1) } else { 3 };
        let page = format!(
            "vllm:prefix_cache_hits_total{{engine=\"0\"}} {hits}.0\nvllm:prefix_cache_queries_total {}\n",
            hits * 2
        );
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\r\n",
            page.len()
        );
        stream.write_all((head + &page).as_bytes()).is_ok()
    })
}

/// A chain that names the endpoints `(component, address, path)`.
fn planned(server: &Server, endpoints: &[(&str, String)]) -> PlannedChain {
    let mut chain = server.chain("c", "untapped");
    for (component, url) in endpoints {
        let text = format!(
            "{{\"component\": \"{component}\", \"kind\": \"vllm\", \"url\": \"{url}\", \"every\": \"100ms\"}}"
        );
        chain.scrape.push(serde_json::from_str(&text).unwrap());
    }
    PlannedChain {
        chain,
        text: String::new(),
        base: PathBuf::new(),
        pids: Vec::new(),
        injected: None,
    }
}

fn looks_of<'a>(looks: &'a [Look], component: &str) -> Vec<&'a Look> {
    looks.iter().filter(|l| l.component == component).collect()
}

#[test]
fn a_restart_is_told_and_a_dead_endpoint_is_a_gap_beside_a_good_one() {
    let server = engine();
    let dead = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let chain = planned(
        &server,
        &[
            ("vllm", format!("http://{}/old", server.address)),
            ("dead", format!("http://{dead}/metrics")),
        ],
    );
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::create(dir.path()).unwrap();
    let mut scraper = Scraper::start(&[chain], &run).unwrap();
    scraper.begin(0, 7, 2);
    // Two looks by themselves, between the one before and the one after.
    let patience = Instant::now() + Duration::from_secs(20);
    let pages = || {
        server
            .seen()
            .iter()
            .filter(|s| s.head.starts_with("GET /metrics"))
            .count()
    };
    while pages() < 3 {
        assert!(Instant::now() < patience);
        std::thread::sleep(Duration::from_millis(5));
    }
    scraper.end();
    let before = pages();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(pages(), before, "between cells nothing is looked at");
    let account = scraper.account();
    scraper.finish().unwrap();
    let (looks, lost) = run.read_looks().unwrap();
    assert!(lost.is_empty());
    let good = looks_of(&looks, "vllm");
    assert!(good.len() >= 4 && good.iter().all(|l| l.fault.is_none()));
    assert!(
        good.iter()
            .all(|l| (l.cell, l.cells) == (7, 2) && l.took > 0)
    );
    // 10, 20, 30, then 3 for good: 20 before the restart, 3 since.
    let hits = gain(&good, "prefix_hits").unwrap();
    assert_eq!((hits.sum, hits.resets), (23.0, 1));
    let gaps = looks_of(&looks, "dead");
    assert!(gaps.len() >= 2 && gaps.iter().all(|l| l.values.is_empty()));
    let fault = gaps[0].fault.as_ref().unwrap();
    assert!(fault.contains("refused"), "{fault}");
    assert!(account.cpu.is_some_and(|cpu| cpu > 0.0));
    assert_eq!(
        account.scraped[0].sources,
        [
            (
                "prefix_queries".to_owned(),
                "vllm:prefix_cache_queries_total".to_owned()
            ),
            (
                "prefix_hits".to_owned(),
                "vllm:prefix_cache_hits_total".to_owned()
            ),
        ]
    );
}

#[test]
fn a_silent_endpoint_is_given_up_in_time() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = silent.local_addr().unwrap();
    let server = engine();
    let chain = planned(&server, &[("silent", format!("http://{at}/metrics"))]);
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::create(dir.path()).unwrap();
    let mut scraper = Scraper::start(&[chain], &run).unwrap();
    let began = Instant::now();
    scraper.begin(0, 0, 1);
    assert!(began.elapsed() < Duration::from_secs(8));
    scraper.finish().unwrap();
    let (looks, _) = run.read_looks().unwrap();
    assert!(
        looks[0]
            .fault
            .as_ref()
            .unwrap()
            .contains("no page within 2 s")
    );
}

#[test]
fn a_run_without_endpoints_has_no_thread_and_no_directory() {
    let server = engine();
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::create(dir.path()).unwrap();
    let mut scraper = Scraper::start(&[planned(&server, &[])], &run).unwrap();
    scraper.begin(0, 0, 1);
    scraper.end();
    assert!(scraper.account().cpu.is_none());
    scraper.finish().unwrap();
    assert!(!dir.path().join("scrapes").exists());
}

#[test]
fn a_key_that_is_not_there_is_named_before_anything_starts() {
    let server = engine();
    let mut chain = planned(&server, &[("epp", format!("http://{}/m", server.address))]);
    let name = serde_json::from_str("\"HOPSCOPE_NO_SUCH_KEY\"").unwrap();
    chain.chain.scrape[0].key_env = Some(name);
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::create(dir.path()).unwrap();
    let error = Scraper::start(&[chain], &run).err().unwrap().to_string();
    assert!(
        error.contains("scrape epp") && error.contains("HOPSCOPE_NO_SUCH_KEY"),
        "{error}"
    );
}
