//! What probes of tenants showed.

use record::probe::{DriveEnd, LimitUnit};
use serde::Serialize;

/// All findings of a run's probes.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ProbeFindings {
    /// What limits let through.
    pub limits: Vec<LimitFinding>,
    /// What a tenant can learn of another's prompts.
    pub cache_timing: Vec<CacheFinding>,
    /// What guardrails do.
    pub guardrails: Vec<GuardrailFinding>,
    /// What caches that go by meaning answer.
    pub semantic: Vec<SemanticFinding>,
}

/// What a drive against a limit showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitVerdict {
    /// More was let through than the limit says.
    Beyond,
    /// The limit was reached, refused, and nothing beyond it was let through.
    Held,
    /// It refused although less than the limit was used.
    Early,
    /// The drive did not reach the limit: nothing is shown.
    NotReached,
    /// Refusals or losses that cannot be told whose they are: too many for a finding.
    Unclear,
    /// Nothing was let through at all: a wrong key, or a chain that does not answer.
    Unusable,
}

/// A key driven beyond a limit by some callers at once.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitFinding {
    /// The chain.
    pub chain: String,
    /// The probe.
    pub probe: String,
    /// What the limit bounds.
    pub unit: LimitUnit,
    /// The limit, in its unit.
    pub limit: f64,
    /// The time it is for, nanoseconds; `None`: for ever.
    pub window: Option<u64>,
    /// Callers at once.
    pub concurrency: u32,
    /// Why the drive ended.
    pub ended: DriveEnd,
    /// Calls let through that were decided within one window of the first send.
    pub admitted: u64,
    /// Refused for this limit.
    pub refused: u64,
    /// Refused for another reason that was named.
    pub other: u64,
    /// Refused without a reason that is known, or not answered: were all of them let through, so much more
    /// would have been.
    pub unclear: u64,
    /// Answered only after the window was over, so that it is open in which window they count: in no figure.
    pub late: u64,
    /// What was let through, in the limit's unit: calls, or what the usage of their answers says.
    pub used: f64,
    /// Calls let through whose answer states no usage: `used` is too small then. 0 for requests.
    pub without_usage: u64,
    /// Let through beyond the limit, in its unit.
    pub beyond: f64,
    /// The same as a share of the limit.
    pub beyond_share: f64,
    /// Calls let through beyond the limit. Of tokens and money: sent when answers that had been read to
    /// their end had used it up.
    pub calls_beyond: u64,
    /// Calls let through that were sent after the first refusal for this limit was there.
    pub after_refusal: u64,
    /// From the first send to the head of the first refusal for this limit, nanoseconds.
    pub first_refusal: Option<u64>,
    /// From the first send to when a call passed again: not before the first of these, and at the latest the
    /// second, nanoseconds. `None` where it was not tried, or did not.
    pub passed_again: Option<(u64, u64)>,
    /// It was tried whether a call passes again.
    pub tried_again: bool,
    /// Smallest and largest `retry-after` of the refusals, seconds; `None` where none had one.
    pub retry_after: Option<(f64, f64)>,
    /// What the refusals looked like, and how many.
    pub refusals: Vec<(String, usize)>,
    /// What it comes to.
    pub verdict: LimitVerdict,
}

/// Whether a tenant can tell that a prompt of another is cached.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CacheFinding {
    /// The chain.
    pub chain: String,
    /// Whose prompts were looked for.
    pub primer: String,
    /// Who looked.
    pub observer: String,
    /// Tokens of a prompt.
    pub prompt_tokens: u32,
    /// How sure a difference had to be.
    pub confidence: f64,
    /// Pairs in which both calls were answered in full.
    pub pairs: usize,
    /// Pairs left out, since one of the calls or the one before them failed.
    pub lost: usize,
    /// Median TTFT of the fresh prompts, nanoseconds.
    pub control: Option<f64>,
    /// Median of the differences, fresh less known prompt, nanoseconds; above 0: the known one was faster.
    pub difference: Option<f64>,
    /// Its interval of that confidence, exact (order statistics).
    pub interval: Option<(f64, f64)>,
    /// How often a known prompt is faster than a fresh one, of all such twos: 0.5 tells nothing, 1 tells
    /// always (area under the ROC curve).
    pub advantage: Option<f64>,
    /// Its 95 % interval, by resampling pairs.
    pub advantage_interval: Option<(f64, f64)>,
    /// The interval of the difference excludes zero: a tenant can tell by the time. `None` where too few
    /// pairs are left to show anything.
    pub by_time: Option<bool>,
    /// Pairs in which one of the answers states cached tokens; 0: usage does not say.
    pub usage_pairs: usize,
    /// Of these, pairs in which the known prompt had more than the fresh one: a tenant is simply told.
    pub by_usage: usize,
}

/// Prompts of one kind under a policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct PolicyCount {
    /// Prompts of which something is known.
    pub prompts: usize,
    /// Of these, prompts that were at least once not treated as the policy says.
    pub wrong_prompts: usize,
    /// The 95 % interval of that share, as if the prompts were drawn from all such prompts (exact).
    pub interval: Option<(f64, f64)>,
    /// Calls.
    pub calls: usize,
    /// Of these, not treated as the policy says.
    pub wrong: usize,
}

/// What guardrails do to prompts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GuardrailFinding {
    /// The chain.
    pub chain: String,
    /// The tenant under the policy.
    pub tenant: String,
    /// The tenant that it is compared with.
    pub unguarded: Option<String>,
    /// Prompts that must be blocked; wrong: a miss.
    pub block: PolicyCount,
    /// Prompts that must pass; wrong: a false block.
    pub pass: PolicyCount,
    /// Blocks that the gateway did not name: taken for one since the same call without a policy passed.
    pub inferred: usize,
    /// Refusals whose reason cannot be told: in no count.
    pub unclear: usize,
    /// Calls that failed, or were refused for a limit or a key: in no count.
    pub failed: usize,
    /// What refusals looked like, and how many.
    pub refusals: Vec<(String, usize)>,
    /// Twos of calls that both passed: what the added times are of.
    pub pairs: usize,
    /// Median of TTFT under the policy less TTFT without, nanoseconds.
    pub added_ttft: Option<f64>,
    /// Its 95 % interval, exact.
    pub added_ttft_interval: Option<(f64, f64)>,
    /// The same of E2E.
    pub added_e2e: Option<f64>,
    /// Its interval.
    pub added_e2e_interval: Option<(f64, f64)>,
}

/// How many prompts of a kind were answered from a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct CacheShare {
    /// Prompts of which it is known.
    pub prompts: usize,
    /// Of these, answered from the cache.
    pub hits: usize,
    /// The 95 % interval of that share, as if the prompts were drawn from all such prompts (exact).
    pub interval: Option<(f64, f64)>,
}

/// What a cache that goes by meaning answers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SemanticFinding {
    /// The chain.
    pub chain: String,
    /// Who asked.
    pub tenant: String,
    /// Prompts that mean the same as one before: a hit is what the cache is for.
    pub same: CacheShare,
    /// Near misses: a hit is false.
    pub near: CacheShare,
    /// Other prompts that got the answer to one of another meaning.
    pub astray: usize,
    /// Answers without a response id: in no count.
    pub nameless: usize,
    /// Calls that were not answered in full: in no count.
    pub failed: usize,
    /// Median TTFT of hits, nanoseconds.
    pub hit_ttft: Option<f64>,
    /// Median TTFT of the others.
    pub miss_ttft: Option<f64>,
}
