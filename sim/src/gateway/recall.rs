//! Answering from memory, exactly or by similarity.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::cache::{Answer, Cache};
use super::exchange::Turn;
use super::keys::credential;
use super::semantic::Question;
use crate::clock::now;
use crate::http::RequestHead;

/// Under which names an answer is to be kept.
#[derive(Debug, Clone, Default)]
pub(super) struct Keep {
    exact: Option<u64>,
    question: Option<Question>,
}

/// What memory says.
pub(super) enum Recalled {
    /// An answer, with its similarity where that is why it is given.
    Hit(Arc<Answer>, Option<f64>),
    Miss(Keep),
}

impl Turn<'_> {
    /// Looks for an answer in the caches that are on.
    pub(super) async fn recall(&mut self, head: &RequestHead, body: &[u8]) -> io::Result<Recalled> {
        let gateway = self.gateway;
        let options = &gateway.options;
        let exact = options.cache.then(|| Cache::key(&head.target, body));
        if let Some(answer) = exact.and_then(|key| gateway.cache.get(key)) {
            gateway.counters.cache_hits.fetch_add(1, Ordering::Relaxed);
            return Ok(Recalled::Hit(answer, None));
        }
        let question = match options.semantic.semantic_cache {
            true => Question::new(self.tenant(head), &head.target, body),
            false => None,
        };
        if let Some(question) = &question {
            let lookup = options.semantic.semantic_lookup_us;
            gateway.station.spend(self.alarm, now(), lookup).await?;
            if let Some((answer, alike)) = gateway.semantic.get(&options.semantic, question, now())
            {
                gateway.counters.cache_hits.fetch_add(1, Ordering::Relaxed);
                gateway
                    .counters
                    .semantic_hits
                    .fetch_add(1, Ordering::Relaxed);
                return Ok(Recalled::Hit(answer, Some(alike)));
            }
            gateway
                .counters
                .semantic_misses
                .fetch_add(1, Ordering::Relaxed);
        }
        Ok(Recalled::Miss(Keep { exact, question }))
    }

    /// Keeps an answer for later requests.
    pub(super) fn keep(&self, keep: Keep, answer: Answer) {
        let answer = Arc::new(answer);
        if let Some(key) = keep.exact {
            self.gateway.cache.put(key, Arc::clone(&answer));
        }
        if let Some(question) = keep.question {
            let options = &self.gateway.options.semantic;
            self.gateway.semantic.put(options, question, answer, now());
        }
    }

    /// Whose answers a request may get; `None` where that is not asked.
    fn tenant<'h>(&'h self, head: &'h RequestHead) -> Option<&'h str> {
        if self.gateway.options.semantic.leak_across_tenants {
            return None;
        }
        match self.key {
            Some(key) => Some(&key.rules.tenant),
            None => credential(&head.headers),
        }
    }
}
