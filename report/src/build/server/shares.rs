//! Which of a component's counters make a hit rate.

use config::chain::Figure;

/// A share by counters: which figure of which others' sum, and what that counts.
pub(super) struct Share {
    pub(super) name: &'static str,
    pub(super) part: Figure,
    /// The first whose figures a page has.
    pub(super) wholes: &'static [(&'static [Figure], &'static str)],
}

pub(super) const CACHE_OF_ANSWERS: &str = "cache of answers";

pub(super) const SHARES: [Share; 5] = [
    Share {
        name: "KV cache",
        part: Figure::PrefixHits,
        wholes: &[(&[Figure::PrefixQueries], "prompt tokens looked up")],
    },
    Share {
        name: "prompt cache",
        part: Figure::CachedTokens,
        wholes: &[(&[Figure::PromptTokens], "prompt tokens")],
    },
    Share {
        name: "prefix index, the router's estimate",
        part: Figure::IndexHitSum,
        wholes: &[(&[Figure::IndexHitCount], "estimates")],
    },
    Share {
        name: CACHE_OF_ANSWERS,
        part: Figure::CacheHits,
        wholes: &[
            (&[Figure::CacheHits, Figure::CacheMisses], "hits and misses"),
            (
                &[Figure::CacheHits, Figure::UpstreamRequests],
                "hits and requests passed on",
            ),
            (&[Figure::Requests], "requests"),
        ],
    },
    Share {
        name: "semantic cache",
        part: Figure::SemanticHits,
        wholes: &[
            (
                &[Figure::SemanticHits, Figure::SemanticMisses],
                "hits and misses by similarity",
            ),
            (
                &[Figure::CacheHits, Figure::UpstreamRequests],
                "all hits and requests passed on",
            ),
        ],
    },
];
