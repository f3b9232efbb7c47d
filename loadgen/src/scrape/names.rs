//! Which metric of a page means what, by product, the names of older versions included.

use super::text::samples;
use config::chain::{Figure, Scrape, ScrapeKind};
use std::collections::HashMap;

/// A metric by its names, the newest first. A counter is found with and without `_total`.
struct Known {
    figure: Figure,
    names: &'static [&'static str],
    /// Only samples with this label.
    label: Option<(&'static str, &'static str)>,
}

const fn known(figure: Figure, names: &'static [&'static str]) -> Known {
    Known {
        figure,
        names,
        label: None,
    }
}

/// vLLM: docs/design/metrics.md, vllm/v1/metrics/loggers.py. `gpu_` names are of 0.7 to 0.9. The engine
/// before V1 has no counters of its prefix cache, only a rate since its start: not read.
const VLLM: &[Known] = &[
    known(Figure::Requests, &["vllm:request_success"]),
    known(
        Figure::PrefixQueries,
        &["vllm:prefix_cache_queries", "vllm:gpu_prefix_cache_queries"],
    ),
    known(
        Figure::PrefixHits,
        &["vllm:prefix_cache_hits", "vllm:gpu_prefix_cache_hits"],
    ),
    known(Figure::PromptTokens, &["vllm:prompt_tokens"]),
    known(Figure::CachedTokens, &["vllm:prompt_tokens_cached"]),
    known(Figure::Preemptions, &["vllm:num_preemptions"]),
    known(Figure::Running, &["vllm:num_requests_running"]),
    known(Figure::Waiting, &["vllm:num_requests_waiting"]),
    known(
        Figure::KvUsage,
        &["vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"],
    ),
];

/// llm-d's picker: pkg/epp/metrics/metrics.go; `inference_model_` names are of older versions of the
/// Gateway API's inference extension. The KV usage is the mean of its pods.
const LLM_D_EPP: &[Known] = &[
    known(
        Figure::Requests,
        &["inference_objective_request", "inference_model_request"],
    ),
    known(
        Figure::PromptTokens,
        &[
            "inference_objective_input_tokens_sum",
            "inference_model_input_tokens_sum",
        ],
    ),
    known(
        Figure::CachedTokens,
        &[
            "inference_objective_prompt_cached_tokens_sum",
            "inference_objective_prompt_cached_tokens",
            "inference_model_prompt_cached_tokens_sum",
        ],
    ),
    known(
        Figure::IndexHitSum,
        &["inference_extension_prefix_indexer_hit_ratio_sum"],
    ),
    known(
        Figure::IndexHitCount,
        &["inference_extension_prefix_indexer_hit_ratio_count"],
    ),
    known(
        Figure::Running,
        &[
            "inference_objective_running_requests",
            "inference_model_running_requests",
        ],
    ),
    known(
        Figure::KvUsage,
        &["inference_pool_average_kv_cache_utilization"],
    ),
];

/// LiteLLM: litellm/integrations/prometheus.py.
const LITELLM: &[Known] = &[
    known(Figure::Requests, &["litellm_proxy_total_requests_metric"]),
    known(
        Figure::UpstreamRequests,
        &["litellm_deployment_total_requests"],
    ),
    known(Figure::PromptTokens, &["litellm_input_tokens_metric"]),
    known(
        Figure::CachedTokens,
        &[
            "litellm_input_cached_tokens_metric",
            "litellm_provider_cache_read_input_tokens_metric",
        ],
    ),
    known(Figure::CacheHits, &["litellm_cache_hits_metric"]),
    known(Figure::CacheMisses, &["litellm_cache_misses_metric"]),
    known(Figure::Running, &["litellm_in_flight_requests"]),
];

/// Bifrost: docs/features/telemetry.mdx. It counts no misses.
const BIFROST: &[Known] = &[
    known(Figure::UpstreamRequests, &["bifrost_upstream_requests"]),
    known(Figure::PromptTokens, &["bifrost_input_tokens"]),
    known(Figure::CacheHits, &["bifrost_cache_hits"]),
    Known {
        figure: Figure::SemanticHits,
        names: &["bifrost_cache_hits"],
        label: Some(("cache_type", "semantic")),
    },
    known(Figure::Running, &["bifrost_active_requests"]),
];

/// Envoy's statistics of its clusters.
const ENVOY: &[Known] = &[
    known(
        Figure::UpstreamRequests,
        &["envoy_cluster_upstream_rq_total"],
    ),
    known(Figure::Retries, &["envoy_cluster_upstream_rq_retry"]),
    known(Figure::Running, &["envoy_cluster_upstream_rq_active"]),
    known(
        Figure::Waiting,
        &["envoy_cluster_upstream_rq_pending_active"],
    ),
];

/// What the common clients of Prometheus say of their process.
const PROCESS: &[Known] = &[known(Figure::Started, &["process_start_time_seconds"])];

fn of_kind(kind: ScrapeKind) -> &'static [Known] {
    match kind {
        ScrapeKind::Vllm => VLLM,
        ScrapeKind::LlmDEpp => LLM_D_EPP,
        ScrapeKind::Litellm => LITELLM,
        ScrapeKind::Bifrost => BIFROST,
        ScrapeKind::Envoy => ENVOY,
        ScrapeKind::Other => &[],
    }
}

/// What is looked for on a page.
pub(super) struct Wanted {
    sources: Vec<Source>,
    /// Sources by the name of a metric, with the name's rank: the lowest that a page has is taken.
    by_name: HashMap<String, Vec<(usize, usize)>>,
}

struct Source {
    figure: Figure,
    label: Option<(&'static str, &'static str)>,
}

/// A figure of a page, and the metric that it is of.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) figure: Figure,
    pub(super) metric: String,
    pub(super) value: f64,
}

impl Wanted {
    /// What the chain's file wants of an endpoint: its own names in place of the kind's.
    pub(super) fn of(scrape: &Scrape) -> Self {
        let mut wanted = Self {
            sources: Vec::new(),
            by_name: HashMap::new(),
        };
        for (figure, metric) in &scrape.figures {
            wanted.add(*figure, None, std::iter::once(metric.clone()));
        }
        for known in of_kind(scrape.kind).iter().chain(PROCESS) {
            if !scrape.figures.contains_key(&known.figure) {
                let counter = known.figure.is_counter();
                let names = known.names.iter().flat_map(|name| {
                    let total = counter.then(|| format!("{name}_total"));
                    std::iter::once((*name).to_owned()).chain(total)
                });
                wanted.add(known.figure, known.label, names);
            }
        }
        wanted
    }

    fn add(
        &mut self,
        figure: Figure,
        label: Option<(&'static str, &'static str)>,
        names: impl Iterator<Item = String>,
    ) {
        let source = self.sources.len();
        self.sources.push(Source { figure, label });
        for (rank, name) in names.enumerate() {
            self.by_name.entry(name).or_default().push((source, rank));
        }
    }

    /// The figures that a page has. Samples of one metric are added up, but for the KV usage and the start of
    /// the process, of which the largest counts.
    ///
    /// # Errors
    /// The page is not in Prometheus' text format.
    pub(super) fn read(&self, page: &str) -> Result<Vec<Found>, String> {
        let mut best: Vec<Option<(usize, Found)>> = self.sources.iter().map(|_| None).collect();
        for sample in samples(page) {
            let sample = sample.map_err(|line| {
                format!("line {line} of the page is no sample of Prometheus' text format; does `url` name the metrics?")
            })?;
            let sources = self.by_name.get(sample.name).map_or(&[][..], Vec::as_slice);
            for (at, rank) in sources.iter().filter(|_| sample.value.is_finite()) {
                let source = &self.sources[*at];
                if source
                    .label
                    .is_some_and(|(name, value)| !sample.has(name, value))
                {
                    continue;
                }
                match &mut best[*at] {
                    Some((taken, found)) if *taken == *rank => {
                        found.value = joined(source.figure, found.value, sample.value);
                    }
                    Some((taken, _)) if *taken < *rank => {}
                    other => {
                        let found = Found {
                            figure: source.figure,
                            metric: sample.name.to_owned(),
                            value: sample.value,
                        };
                        *other = Some((*rank, found));
                    }
                }
            }
        }
        Ok(best.into_iter().flatten().map(|(_, found)| found).collect())
    }
}

fn joined(figure: Figure, one: f64, other: f64) -> f64 {
    match figure {
        Figure::KvUsage | Figure::Started => one.max(other),
        _ => one + other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scrape(kind: &str, figures: &str) -> Scrape {
        let text = format!(
            "{{\"component\": \"c\", \"kind\": \"{kind}\", \"url\": \"http://127.0.0.1:1/metrics\", \"figures\": {{{figures}}}}}"
        );
        serde_json::from_str(&text).unwrap()
    }

    fn read(scrape: &Scrape, page: &str) -> Vec<(Figure, String, f64)> {
        let found = Wanted::of(scrape).read(page).unwrap();
        let plain = |f: Found| (f.figure, f.metric, f.value);
        found.into_iter().map(plain).collect()
    }

    #[test]
    fn names_of_all_versions_of_vllm_are_found_and_the_newest_is_taken() {
        let old = "vllm:gpu_prefix_cache_queries_total{engine=\"0\"} 100.0\nvllm:gpu_prefix_cache_hits_total{engine=\"0\"} 40.0\n\
                   vllm:gpu_cache_usage_perc 0.5\n";
        let of = |page: &str| read(&scrape("vllm", ""), page);
        assert_eq!(
            of(old),
            [
                (
                    Figure::PrefixQueries,
                    "vllm:gpu_prefix_cache_queries_total".to_owned(),
                    100.0
                ),
                (
                    Figure::PrefixHits,
                    "vllm:gpu_prefix_cache_hits_total".to_owned(),
                    40.0
                ),
                (Figure::KvUsage, "vllm:gpu_cache_usage_perc".to_owned(), 0.5),
            ]
        );
        // Both at once, as in the versions between; and two engines of one process.
        let both = format!(
            "{old}vllm:prefix_cache_hits_total{{engine=\"0\"}} 41\nvllm:prefix_cache_hits_total{{engine=\"1\"}} 9\n\
             vllm:kv_cache_usage_perc{{engine=\"0\"}} 0.6\nvllm:kv_cache_usage_perc{{engine=\"1\"}} 0.2\n"
        );
        let found = of(&both);
        let value = |figure| {
            let mut all = found.iter().filter(|(f, _, _)| *f == figure);
            all.next().map(|(_, name, value)| (name.as_str(), *value))
        };
        assert_eq!(
            value(Figure::PrefixHits),
            Some(("vllm:prefix_cache_hits_total", 50.0))
        );
        assert_eq!(
            value(Figure::KvUsage),
            Some(("vllm:kv_cache_usage_perc", 0.6))
        );
        assert_eq!(value(Figure::Requests), None);
    }

    #[test]
    fn a_counter_counts_with_and_without_total_and_created_is_none() {
        for name in [
            "litellm_cache_hits_metric",
            "litellm_cache_hits_metric_total",
        ] {
            let page = format!(
                "{name}{{user=\"a\"}} 3\n{name}{{user=\"b\"}} 4\nlitellm_cache_hits_metric_created 1.7e9\n"
            );
            let found = read(&scrape("litellm", ""), &page);
            assert_eq!(found, [(Figure::CacheHits, name.to_owned(), 7.0)]);
        }
    }

    #[test]
    fn bifrosts_hits_are_told_apart_by_label() {
        let page = "bifrost_cache_hits_total{cache_type=\"direct\"} 2\nbifrost_cache_hits_total{cache_type=\"semantic\"} 5\n";
        let name = "bifrost_cache_hits_total".to_owned();
        assert_eq!(
            read(&scrape("bifrost", ""), page),
            [
                (Figure::CacheHits, name.clone(), 7.0),
                (Figure::SemanticHits, name, 5.0)
            ]
        );
    }

    #[test]
    fn a_file_names_its_own_metrics_in_place_of_the_kinds() {
        let own = scrape("vllm", "\"prefix_hits\": \"my_hits\"");
        let page = "my_hits 3\nvllm:prefix_cache_hits_total 9\nvllm:prefix_cache_queries_total 10\nprocess_start_time_seconds NaN\n";
        assert_eq!(
            read(&own, page),
            [
                (Figure::PrefixHits, "my_hits".to_owned(), 3.0),
                (
                    Figure::PrefixQueries,
                    "vllm:prefix_cache_queries_total".to_owned(),
                    10.0
                )
            ]
        );
    }

    #[test]
    fn a_page_that_is_none_is_an_error_and_no_0() {
        let wanted = Wanted::of(&scrape("vllm", ""));
        let error = wanted.read("<html>\n").unwrap_err();
        assert!(error.contains("line 1"), "{error}");
        assert_eq!(wanted.read("up 1\n").unwrap(), []);
    }
}
