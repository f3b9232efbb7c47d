//! Virtual keys: who may ask for what, how much and how often.
//!
//! Models: unknown keys, models and tools that are not allowed, requests and tokens per minute, budgets in
//! USD, blocked words; the errors of two products ([`Dialect`]). What is used is known exactly here, so that
//! the precision of limits can be judged: requests are counted when they are let in, tokens and money when
//! their answer has ended, so that those in flight at a limit overshoot it, as in both products. With
//! `limit_lag_ms` nothing counts before that time after the answer; with `limit_race_ms` a request counts so
//! long after it was let in.
//!
//! Does not model: teams and other levels above a key, budgets that are renewed, keys that expire,
//! parallel-request limits, several instances that share their counts.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

mod file;
mod ledger;
mod options;
mod refuse;

use file::read;
pub(super) use file::{KeyRules, Side};
use ledger::Ledger;
pub use options::{Dialect, KeyOptions};
pub(super) use refuse::{Refused, Why};

use crate::exposition::Exposition;
use crate::http::{Headers, RequestHead};

/// Header fields that carry a key, in the order in which they are looked for.
const CREDENTIALS: [&str; 6] = [
    "authorization",
    "x-litellm-api-key",
    "x-bf-vk",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
];

/// Whether a field carries a credential.
pub(super) fn is_credential(name: &str) -> bool {
    CREDENTIALS
        .iter()
        .any(|field| name.eq_ignore_ascii_case(field))
}

/// The credential of a request without its scheme.
pub(super) fn credential(headers: &Headers) -> Option<&str> {
    let value = CREDENTIALS.iter().find_map(|field| headers.get(field))?;
    Some(match value.split_once(' ') {
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key.trim(),
        _ => value,
    })
}

/// One key: its rules, which never change, and what it has used. Keys themselves are only compared, never
/// shown.
pub(super) struct Key {
    pub(super) rules: KeyRules,
    ledger: Mutex<Ledger>,
}

impl Key {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// All keys of a gateway.
pub(super) struct Keys {
    options: KeyOptions,
    /// `None` where everyone may ask.
    keys: Option<HashMap<String, Key>>,
}

impl Keys {
    /// The keys of the file that the options name, if any.
    pub(super) fn new(options: KeyOptions) -> std::io::Result<Self> {
        let keys = match &options.keys {
            Some(path) => Some(read(path)?),
            None => None,
        };
        let keys = keys.map(|rules| {
            let key = |rules| Key {
                rules,
                ledger: Mutex::default(),
            };
            rules
                .into_iter()
                .map(|(name, rules)| (name, key(rules)))
                .collect()
        });
        Ok(Self { options, keys })
    }

    /// The key of a request: `None` where keys are off, or none was presented and none is needed.
    pub(super) fn of(&self, head: &RequestHead) -> Result<Option<&Key>, Why> {
        let Some(keys) = &self.keys else {
            return Ok(None);
        };
        let presented = credential(&head.headers);
        if presented.is_none() && self.options.keys_optional {
            return Ok(None);
        }
        let key = presented.and_then(|key| keys.get(key));
        key.map(Some).ok_or(Why::UnknownKey)
    }

    /// Lets a request in at `at` ns and counts it, or tells why not.
    pub(super) fn admit(&self, key: &Key, at: u64) -> Result<(), Why> {
        let admitted = key.ledger().admit(&key.rules, &self.options, at);
        if let Err(why) = &admitted {
            self.note_refusal(key, why);
        }
        admitted
    }

    /// Counts a refusal for a reason that is not the ledger's.
    pub(super) fn note_refusal(&self, key: &Key, why: &Why) {
        key.ledger().used.note_refusal(why);
    }

    /// Accounts for an admitted request whose exchange ended at `at` ns with this many tokens.
    pub(super) fn settle(&self, key: &Key, at: u64, prompt: u64, completion: u64) {
        let mut ledger = key.ledger();
        ledger.settle(&key.rules, &self.options, at, (prompt, completion));
    }

    /// The error for a refusal in the dialect of the options.
    pub(super) fn refused(&self, why: &Why) -> Refused {
        why.answer(&self.options)
    }

    /// The salt of the upstream's prefix cache for this key; `None` where tenants share it.
    pub(super) fn cache_salt<'k>(&self, key: &'k Key) -> Option<&'k str> {
        self.options
            .salt_by_tenant
            .then_some(key.rules.tenant.as_str())
    }

    /// Whether tools that are not allowed are taken out of requests instead of being refused.
    pub(super) fn filters_tools(&self) -> bool {
        self.options.dialect == Dialect::Bifrost
    }

    /// What each tenant has really used, whatever the lag hides from the limits.
    pub(super) fn render(&self) -> String {
        let mut tenants: HashMap<&str, ledger::Used> = HashMap::new();
        for key in self.keys.iter().flat_map(HashMap::values) {
            let used = key.ledger().used.clone();
            tenants.entry(&key.rules.tenant).or_default().add(&used);
        }
        let mut tenants: Vec<_> = tenants.into_iter().collect();
        tenants.sort_by_key(|(tenant, _)| *tenant);
        let pages = tenants.iter().map(|(tenant, used)| {
            let mut page = Exposition::with_labels(&[("tenant", tenant)]);
            used.render(&mut page);
            page.finish()
        });
        pages.collect()
    }
}
