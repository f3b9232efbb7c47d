//! What is read of a chain's components while it is driven: their own metrics.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::load::Report;
use crate::names;
use crate::scalar::{EnvName, HttpUrl, Period};

/// One Prometheus endpoint that the load generator reads while it drives the chain, and just before and
/// after each cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Scrape {
    /// Whose metrics these are, as results show it; one name for each pod. Letters, digits, `-`, `_`, `.`.
    pub component: String,
    /// Which product's names are looked for, the older ones included.
    pub kind: ScrapeKind,
    /// Where the metrics are, with the path. Cleartext only.
    pub url: HttpUrl,
    /// How often they are read within a cell. Default 5s: rendering a page costs the component CPU, and a
    /// gateway of one process does it between two tokens.
    #[serde(default = "default_every")]
    pub every: Period,
    /// The environment variable that holds a key for the endpoint; sent as `Authorization: Bearer`.
    #[serde(default)]
    pub key_env: Option<EnvName>,
    /// Metrics to read in place of the kind's own, by what they mean. Required for `other`. The name as the
    /// page has it; all its samples are added up.
    #[serde(default)]
    pub figures: BTreeMap<Figure, String>,
}

/// A product whose metrics are known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScrapeKind {
    /// vLLM, one pod.
    Vllm,
    /// llm-d's endpoint picker.
    LlmDEpp,
    /// LiteLLM's proxy with its `prometheus` callback.
    Litellm,
    /// Bifrost.
    Bifrost,
    /// Envoy and what is built on it.
    Envoy,
    /// Anything else: only what `figures` names.
    Other,
}

impl ScrapeKind {
    /// The name as it is written in a file.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::LlmDEpp => "llm-d-epp",
            Self::Litellm => "litellm",
            Self::Bifrost => "bifrost",
            Self::Envoy => "envoy",
            Self::Other => "other",
        }
    }
}

/// What a metric of a component means. Counters count since the component's start.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Counter: requests, as the component counts them.
    Requests,
    /// Counter: requests that went on to what stands behind it.
    UpstreamRequests,
    /// Counter: prompt tokens looked up in the KV prefix cache.
    PrefixQueries,
    /// Counter: prompt tokens found there.
    PrefixHits,
    /// Counter: prompt tokens.
    PromptTokens,
    /// Counter: prompt tokens that a prompt cache behind it served.
    CachedTokens,
    /// Counter: requests answered from a cache of answers, by equality or similarity.
    CacheHits,
    /// Counter: requests that this cache had no answer for.
    CacheMisses,
    /// Counter: those of them that were answered by similarity.
    SemanticHits,
    /// Counter: requests that no answer was similar enough for.
    SemanticMisses,
    /// Counter: a router's estimates of the share of each prompt that is cached where it sends it, added up.
    IndexHitSum,
    /// Counter: how many estimates these are.
    IndexHitCount,
    /// Counter: requests that lost their KV blocks to others.
    Preemptions,
    /// Counter: further attempts.
    Retries,
    /// Gauge: requests being served.
    Running,
    /// Gauge: requests in the queue.
    Waiting,
    /// Gauge: share of the KV blocks in use, 0 to 1.
    KvUsage,
    /// When the process started, seconds since the Unix epoch: another value is a restart.
    Started,
}

impl Figure {
    /// Every one.
    pub const ALL: [Self; 18] = [
        Self::Requests,
        Self::UpstreamRequests,
        Self::PrefixQueries,
        Self::PrefixHits,
        Self::PromptTokens,
        Self::CachedTokens,
        Self::CacheHits,
        Self::CacheMisses,
        Self::SemanticHits,
        Self::SemanticMisses,
        Self::IndexHitSum,
        Self::IndexHitCount,
        Self::Preemptions,
        Self::Retries,
        Self::Running,
        Self::Waiting,
        Self::KvUsage,
        Self::Started,
    ];

    /// The name as it is written in a file and in the tables of a run.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::UpstreamRequests => "upstream_requests",
            Self::PrefixQueries => "prefix_queries",
            Self::PrefixHits => "prefix_hits",
            Self::PromptTokens => "prompt_tokens",
            Self::CachedTokens => "cached_tokens",
            Self::CacheHits => "cache_hits",
            Self::CacheMisses => "cache_misses",
            Self::SemanticHits => "semantic_hits",
            Self::SemanticMisses => "semantic_misses",
            Self::IndexHitSum => "index_hit_sum",
            Self::IndexHitCount => "index_hit_count",
            Self::Preemptions => "preemptions",
            Self::Retries => "retries",
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::KvUsage => "kv_usage",
            Self::Started => "started",
        }
    }

    /// Whether it only grows until the component starts anew.
    #[must_use]
    pub const fn is_counter(self) -> bool {
        !matches!(
            self,
            Self::Running | Self::Waiting | Self::KvUsage | Self::Started
        )
    }
}

fn default_every() -> Period {
    Period::secs(5)
}

/// Checks the endpoints of a chain.
pub(super) fn check(scrapes: &[Scrape], report: &mut Report<'_>) {
    names::unique(
        report,
        scrapes
            .iter()
            .enumerate()
            .map(|(at, one)| (format!("scrape[{at}].component"), one.component.as_str())),
    );
    for (at, one) in scrapes.iter().enumerate() {
        let at = format!("scrape[{at}]");
        names::check(report, &format!("{at}.component"), &one.component);
        if one.url.tls() {
            report.add(&format!("{at}.url"), format!("`{}` is https, and metrics are read in the clear only; name an address inside the cluster or a forwarded port", one.url));
        }
        if one.every.get() < SHORTEST {
            report.add(&format!("{at}.every"), format!("`every` is {} and would make the reading a load of its own; write 100ms or more", one.every));
        }
        if one.kind == ScrapeKind::Other && one.figures.is_empty() {
            report.add(&format!("{at}.kind"), "no metric is known of kind `other`; name them under `figures`, for example `figures: {cache_hits: my_cache_hits_total}`".to_owned());
        }
        for (figure, metric) in &one.figures {
            let valid = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b':';
            let digit = metric.bytes().next().is_none_or(|b| b.is_ascii_digit());
            if digit || !metric.bytes().all(valid) {
                report.add(&format!("{at}.figures.{}", figure.as_str()), format!("`{metric}` is no name of a metric; write it as the page has it, without labels: letters, digits, `_` and `:`"));
            }
        }
    }
}

const SHORTEST: std::time::Duration = std::time::Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::Figure;

    #[test]
    fn every_figure_is_listed_once_under_the_name_that_files_use() {
        let mut names = std::collections::BTreeSet::new();
        for figure in Figure::ALL {
            let written = serde_json::to_value(figure).unwrap();
            assert_eq!(written, figure.as_str());
            assert!(names.insert(figure.as_str()));
        }
        assert_eq!(names.len(), Figure::ALL.len());
    }
}
