//! The keys that requests are signed with: from the environment, a profile, a web identity (IRSA) or a container's
//! agent (Pod Identity), in the order of AWS' SDKs.
//!
//! One thread fetches them for all taps, ahead of their expiry, so that no call waits for that and no two fetch
//! at once. Where it fails, the keys that still hold are used on.

use aws_config::{BehaviorVersion, Region};
use aws_credential_types::Credentials;
use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_smithy_http_client::{Builder, tls};
use std::error::Error;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;
use tokio::time::timeout;

/// For how long one fetch may take.
const FETCH: Duration = Duration::from_secs(10);
/// For how long the first requests wait for keys.
const FIRST: Duration = Duration::from_secs(12);
/// Keys are fetched anew so long before they end, or at half of what is left of them.
const AHEAD: Duration = Duration::from_secs(300);
/// Keys without an end are looked at again after this.
const LASTING: Duration = Duration::from_secs(3600);
/// Between two fetches, at the least; and after one that failed.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Clone)]
enum State {
    /// The first fetch goes on.
    Waiting,
    There(Credentials),
    /// And why.
    Missing(String),
}

/// The keys of a process. Nothing prints them.
#[derive(Clone)]
pub(crate) struct Keys(watch::Receiver<State>);

impl Keys {
    /// Begins to fetch keys, as they are used in `region`, for as long as anybody holds this.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(region: String) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (sender, receiver) = watch::channel(State::Waiting);
        std::thread::Builder::new()
            .name("aws-keys".to_owned())
            .spawn(move || runtime.block_on(keep(region, sender)))?;
        Ok(Self(receiver))
    }

    /// The keys of this moment, or why there are none.
    pub(crate) async fn get(&self) -> Result<Credentials, String> {
        let mut states = self.0.clone();
        let known = timeout(FIRST, states.wait_for(|s| !matches!(s, State::Waiting))).await;
        let state = match known {
            Ok(Ok(state)) => state.clone(),
            Ok(Err(_)) => return Err("the thread that fetches AWS credentials ended".to_owned()),
            Err(_) => return Err(format!("no AWS credentials within {} s", FIRST.as_secs())),
        };
        match state {
            State::There(keys) if hold(&keys) => Ok(keys),
            State::There(_) => {
                Err("the AWS credentials have expired and were not renewed".to_owned())
            }
            State::Missing(why) => Err(why),
            State::Waiting => Err("no AWS credentials yet".to_owned()),
        }
    }
}

/// Whether they have not ended.
fn hold(keys: &Credentials) -> bool {
    keys.expiry().is_none_or(|end| end > SystemTime::now())
}

/// When to fetch keys anew.
fn until_next(keys: &Credentials, now: SystemTime) -> Duration {
    let Some(end) = keys.expiry() else {
        return LASTING;
    };
    let left = end.duration_since(now).unwrap_or_default();
    left.checked_sub(AHEAD)
        .unwrap_or(Duration::ZERO)
        .max(left / 2)
        .max(PAUSE)
}

async fn keep(region: String, states: watch::Sender<State>) {
    let provider = provider(region).await;
    loop {
        let next = match fetch(provider.as_ref()).await {
            Ok(keys) => {
                let next = until_next(&keys, SystemTime::now());
                states.send_replace(State::There(keys));
                next
            }
            Err(why) => {
                tracing::warn!(%why, "AWS credentials cannot be fetched");
                let kept = matches!(&*states.borrow(), State::There(keys) if hold(keys));
                if !kept {
                    states.send_replace(State::Missing(why));
                }
                PAUSE
            }
        };
        tokio::select! {
            () = tokio::time::sleep(next) => {}
            () = states.closed() => return,
        }
    }
}

/// The chain of sources.
async fn provider(region: String) -> Option<SharedCredentialsProvider> {
    let ring = tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring);
    let http = Builder::new().tls_provider(ring).build_https();
    let config = aws_config::defaults(BehaviorVersion::latest())
        .region(Region::new(region))
        .http_client(http)
        .load()
        .await;
    config.credentials_provider()
}

async fn fetch(provider: Option<&SharedCredentialsProvider>) -> Result<Credentials, String> {
    let provider = provider.ok_or("AWS' SDK has no source of credentials")?;
    match timeout(FETCH, provider.provide_credentials()).await {
        Ok(Ok(keys)) if hold(&keys) => Ok(keys),
        Ok(Ok(_)) => Err("the AWS credentials that were handed out have expired".to_owned()),
        Ok(Err(error)) => Err(format!("AWS credentials: {}", causes(&error))),
        Err(_) => Err(format!(
            "AWS credentials were not handed out within {} s",
            FETCH.as_secs()
        )),
    }
}

/// An error and what led to it.
fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_fetched_ahead_of_their_end() {
        let now = SystemTime::now();
        let keys = |left: Option<u64>| {
            let end = left.map(|s| now + Duration::from_secs(s));
            Credentials::new("a", "b", None, end, "test")
        };
        let next = |left| until_next(&keys(left), now).as_secs();
        assert_eq!(next(Some(3_600)), 3_300);
        assert_eq!(next(Some(400)), 200);
        assert_eq!(next(Some(0)), 1);
        assert_eq!(next(None), 3_600);
    }
}
