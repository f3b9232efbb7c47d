//! What probes of tenants saw, call by call: `probes.json` of a run directory. What it shows is worked out
//! from these rows when a report is made.

mod refusal;

pub use refusal::{Answer, Fate, Reason};

use crate::clock::Nanos;
use serde::{Deserialize, Serialize};

/// All that the probes of a run saw.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Probes {
    /// Keys driven beyond a limit.
    pub limits: Vec<LimitRun>,
    /// Prompts of another looked for in a cache.
    pub cache_timing: Vec<CacheRun>,
    /// Guardrails tried.
    pub guardrails: Vec<GuardrailRun>,
    /// Caches that go by meaning.
    #[serde(default)]
    pub semantic: Vec<SemanticRun>,
}

impl Probes {
    /// Nothing was probed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.limits.is_empty()
            && self.cache_timing.is_empty()
            && self.guardrails.is_empty()
            && self.semantic.is_empty()
    }
}

/// What a limit bounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitUnit {
    /// Calls.
    Requests,
    /// Prompt and completion tokens.
    Tokens,
    /// Money, at these prices.
    Usd {
        /// USD for a million prompt tokens.
        per_million_in: f64,
        /// USD for a million completion tokens.
        per_million_out: f64,
    },
}

impl LimitUnit {
    /// What a call with these tokens takes of the limit.
    #[must_use]
    pub fn of(self, prompt: u32, completion: u32) -> f64 {
        match self {
            Self::Requests => 1.0,
            Self::Tokens => f64::from(prompt) + f64::from(completion),
            Self::Usd {
                per_million_in,
                per_million_out,
            } => {
                (f64::from(prompt) * per_million_in + f64::from(completion) * per_million_out) / 1e6
            }
        }
    }
}

/// Why a drive against a limit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DriveEnd {
    /// It was refused as often as was asked for.
    Refused,
    /// The window, or the time for it, was over.
    Time,
    /// So many calls were made that no more are kept.
    Calls,
}

/// One drive of a key against a limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitRun {
    /// The chain.
    pub chain: String,
    /// The probe's name.
    pub probe: String,
    /// What the limit bounds.
    pub unit: LimitUnit,
    /// The limit, in its unit: as the scenario says that the gateway is configured.
    pub limit: f64,
    /// The time that it is for, nanoseconds; `None`: for ever.
    pub window: Option<Nanos>,
    /// Callers at once.
    pub concurrency: u32,
    /// Why the drive ended.
    pub ended: DriveEnd,
    /// The drive's calls, in the order in which they were sent.
    pub calls: Vec<LimitCall>,
    /// What was tried after it, one by one, until a call passed again; empty where nothing was.
    pub tries: Vec<LimitCall>,
}

/// One call of a drive. Instants are nanoseconds after the drive's first send.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LimitCall {
    /// It was handed to the socket; where it never was, it was taken up.
    pub sent: Nanos,
    /// The response head was there: by then the gateway had decided.
    pub head: Option<Nanos>,
    /// The last byte was there.
    pub end: Nanos,
    /// What came back.
    pub answer: Answer,
    /// Prompt and completion tokens by the answer's usage; `None` where it states none.
    pub tokens: Option<(u32, u32)>,
}

/// Pairs of calls of one tenant: a prompt that another had answered just before, and one that nobody had.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CacheRun {
    /// The chain.
    pub chain: String,
    /// The tenant whose prompts were looked for.
    pub primer: String,
    /// The tenant that looked.
    pub observer: String,
    /// Tokens of a prompt under the scenario's tokenizer.
    pub prompt_tokens: u32,
    /// How sure a difference must be, as a share of 1.
    pub confidence: f64,
    /// The pairs, in their order.
    pub pairs: Vec<CachePair>,
    /// Prompts that the primer's call did not get answered: no pair was made of them.
    pub unprimed: u32,
}

/// One pair.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CachePair {
    /// The prompt that the other tenant had sent.
    pub probe: CacheCall,
    /// One that nobody had sent.
    pub control: CacheCall,
    /// The probe was sent first; the order was drawn by lot.
    pub probe_first: bool,
}

/// One call of a pair.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheCall {
    /// TTFT, nanoseconds; `None` where the call was not answered in full.
    pub ttft: Option<u64>,
    /// Prompt tokens that the usage calls cached; `None` where it does not say.
    pub cached: Option<u32>,
}

/// What guardrails did to prompts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GuardrailRun {
    /// The chain.
    pub chain: String,
    /// The tenant under the policy.
    pub tenant: String,
    /// The tenant without guardrails that it was compared with.
    pub unguarded: Option<String>,
    /// The trials, in their order.
    pub trials: Vec<Trial>,
}

/// One prompt, sent by the tenant under the policy and, where there is one, by the other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Which prompt of its list, from 0. Never its text.
    pub prompt: u32,
    /// It must be blocked; else it must pass.
    pub must_block: bool,
    /// The guarded call was sent first; the order was drawn by lot.
    pub guarded_first: bool,
    /// The call under the policy.
    pub guarded: TrialCall,
    /// The other.
    pub unguarded: Option<TrialCall>,
}

/// One call of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialCall {
    /// What came back.
    pub answer: Answer,
    /// TTFT, nanoseconds; `None` without a text.
    pub ttft: Option<u64>,
    /// E2E, nanoseconds; `None` where the call was not answered in full.
    pub e2e: Option<u64>,
}

/// What a cache that goes by meaning did with prompts that mean the same as one before, and with near misses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SemanticRun {
    /// The chain.
    pub chain: String,
    /// Who asked.
    pub tenant: String,
    /// The calls, in their order.
    pub calls: Vec<SemanticCall>,
}

/// What a prompt is to the first one of its set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SemanticRole {
    /// It is the first one: its answer is to be remembered.
    Ask,
    /// It means the same: the answer may come from a cache.
    Same,
    /// It looks alike and wants another answer: none may come from a cache.
    Near,
}

/// One of these calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SemanticCall {
    /// Which set, from 0.
    pub set: u32,
    /// What the prompt is in it.
    pub role: SemanticRole,
    /// Which prompt of its list, from 0. Never its text.
    pub prompt: u32,
    /// It was answered in full.
    pub answered: bool,
    /// The answer has a response id: without one it cannot be told where it came from.
    pub named: bool,
    /// The first of the run's calls, from 0, whose answer had this id: this one is that answer again.
    pub of: Option<u32>,
    /// TTFT, nanoseconds; `None` where it was not answered in full.
    pub ttft: Option<u64>,
}
