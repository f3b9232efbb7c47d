//! A bearer key of the tap's own, in place of the client's.

use super::head::RequestHead;
use config::EnvName;

/// The value of `Authorization`. It has no `Debug`: nothing may print it.
#[derive(Clone)]
pub(crate) struct Bearer(Vec<u8>);

impl Bearer {
    /// The key that `variable` holds; `None` where it is not set, or empty.
    pub(crate) fn from_env(variable: &EnvName) -> Option<Self> {
        let key = std::env::var(variable.as_str()).ok()?;
        let key = key.trim();
        (!key.is_empty()).then(|| Self(format!("Bearer {key}").into_bytes()))
    }

    /// Puts it into a request's head.
    pub(crate) fn put(&self, head: &mut RequestHead) {
        head.fields
            .retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
        head.fields
            .push(("Authorization".to_owned(), self.0.clone()));
    }
}
