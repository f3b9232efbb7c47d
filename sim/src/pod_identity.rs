//! A stand-in for the EKS Pod Identity agent: hands out temporary keys to who presents the pod's token.
//!
//! Models: `GET /v1/credentials` with the token in `Authorization`, keys that hold for a while and are replaced in
//! turn, an agent that refuses and one that does not answer. With a key file, what it hands out is what a verifying
//! stand-in accepts. Does not model: the exchange of the token at AWS, associations, roles, the address
//! 169.254.170.23 (SDKs accept plain HTTP from loopback too).

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

use crate::accept::accept;
use crate::aws::time;
use crate::clock::unix_seconds;
use crate::http::{Conn, Headers, HttpError, RequestHead, simple_response};

#[cfg(test)]
mod tests;

/// Most key sets that are remembered for the key file.
const MAX_SETS: usize = 1_024;

/// What is wrong with an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Trouble {
    /// It answers 500.
    Refuse,
    /// It does not answer.
    Hang,
}

/// What an agent hands out. The defaults of its times are assumed.
#[derive(Debug, Clone, clap::Args)]
pub struct PodIdentityOptions {
    /// The file with the token that callers must present, read anew for each (`AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE`
    /// of the pod).
    #[arg(long, value_name = "FILE")]
    pub token_file: PathBuf,
    /// Hands out new keys after so many seconds.
    #[arg(long, default_value_t = 3_600, value_parser = clap::value_parser!(u64).range(1..=604_800))]
    pub rotate_s: u64,
    /// For how many seconds keys hold. SDKs fetch new ones some minutes before the end.
    #[arg(long, default_value_t = 21_600, value_parser = clap::value_parser!(u64).range(1..=604_800))]
    pub valid_s: u64,
    /// Writes the keys that hold here, for `--aws-keys` of a stand-in for a service. Readable by its owner alone.
    #[arg(long, value_name = "FILE")]
    pub write_keys: Option<PathBuf>,
    /// Hands out nothing.
    #[arg(long, value_enum)]
    pub trouble: Option<Trouble>,
}

/// Temporary keys.
#[derive(Clone)]
pub struct Keys {
    /// Access key id.
    pub id: String,
    /// Secret access key.
    pub secret: String,
    /// Session token.
    pub token: String,
    /// Until when they hold, seconds since 1970.
    pub expires: u64,
}

/// What the agent does with the next caller that presents the token.
#[derive(Clone)]
pub enum Hands {
    /// It gives these.
    Keys(Keys),
    /// It is in trouble.
    Trouble(Trouble),
}

/// An agent whose hands can be filled while it serves.
#[derive(Clone)]
pub struct Agent(Arc<Mutex<Hands>>);

impl Default for Agent {
    /// One that has nothing and refuses.
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Hands::Trouble(Trouble::Refuse))))
    }
}

impl Agent {
    /// From now on it does this.
    pub fn hand(&self, hands: Hands) {
        *self.lock() = hands;
    }

    /// Answers on `listener` until `stop` resolves who presents the token of `token_file`.
    ///
    /// # Errors
    /// Where `listener` is not on loopback: keys would be for whoever reaches it.
    pub async fn serve(
        &self,
        listener: TcpListener,
        token_file: PathBuf,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        let address = listener.local_addr()?;
        if !address.ip().is_loopback() {
            return Err(io::Error::other(format!(
                "the Pod Identity agent does not listen on {address}: it hands out keys in plain HTTP; choose a loopback address, as 127.0.0.1"
            )));
        }
        let token_file = Arc::new(token_file);
        accept(listener, stop, |stream| {
            let (agent, token_file) = (self.clone(), Arc::clone(&token_file));
            async move {
                if let Err(error) = agent.connection(&token_file, stream).await {
                    tracing::debug!(%error, "pod identity agent dropped a connection");
                }
            }
        })
        .await
    }

    async fn connection(&self, token_file: &Path, stream: TcpStream) -> Result<(), HttpError> {
        let mut conn = Conn::new(stream)?;
        while let Some(head) = conn.request_head().await? {
            let keep_alive = head.keeps_alive();
            let Some((status, body)) = self.answer(token_file, &head) else {
                conn.gone().await;
                break;
            };
            let body = body.to_string();
            let (kind, none) = ("application/json", Headers::default());
            let answer = simple_response(status, kind, &none, body.as_bytes(), keep_alive);
            conn.write(&answer).await?;
            if !keep_alive {
                break;
            }
        }
        conn.close().await;
        Ok(())
    }

    /// Status and body of the answer, `None` for none.
    fn answer(&self, token_file: &Path, head: &RequestHead) -> Option<(u16, serde_json::Value)> {
        let said =
            |code: &str, message: String| serde_json::json!({"code": code, "message": message});
        if (head.method.as_str(), head.path()) != ("GET", "/v1/credentials") {
            let message = "there is only GET /v1/credentials".to_owned();
            return Some((404, said("NotFoundException", message)));
        }
        let known = match std::fs::read_to_string(token_file) {
            Ok(token) => token,
            Err(error) => {
                let path = token_file.display();
                tracing::warn!(%path, %error, "the token file cannot be read: nobody gets keys");
                return Some((
                    500,
                    said("InternalServerException", "no token file".to_owned()),
                ));
            }
        };
        let known = known.trim();
        if known.is_empty() || head.headers.get("authorization").map(str::trim) != Some(known) {
            let message = "the Authorization field does not have the pod's token".to_owned();
            return Some((400, said("InvalidTokenException", message)));
        }
        match &*self.lock() {
            Hands::Keys(keys) => Some((200, keys.json())),
            Hands::Trouble(Trouble::Hang) => None,
            Hands::Trouble(Trouble::Refuse) => {
                let message = "there are no keys".to_owned();
                Some((500, said("InternalServerException", message)))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Hands> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keys {
    fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "AccessKeyId": self.id,
            "SecretAccessKey": self.secret,
            "Token": self.token,
            "Expiration": self.expiration()
        })
    }

    fn expiration(&self) -> String {
        time::extended(self.expires.cast_signed())
    }
}

/// Serves an agent with keys of its own making until `stop` resolves.
///
/// # Errors
/// As [`Agent::serve`], and where the key file cannot be written.
pub async fn serve(
    listener: TcpListener,
    options: PodIdentityOptions,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let agent = Agent::default();
    let token_file = options.token_file.clone();
    tokio::select! {
        served = agent.serve(listener, token_file, stop) => served,
        failed = rotate(&agent, &options) => failed,
    }
}

/// Hands out new keys again and again.
async fn rotate(agent: &Agent, options: &PodIdentityOptions) -> io::Result<()> {
    if let Some(trouble) = options.trouble {
        agent.hand(Hands::Trouble(trouble));
        std::future::pending::<()>().await;
    }
    let states = [(); 4].map(|()| RandomState::new());
    let mut sets: VecDeque<Keys> = VecDeque::new();
    for number in 1_u64.. {
        let random = states.each_ref().map(|state| state.hash_one(number));
        let now = unix_seconds();
        let keys = Keys {
            id: format!("ASIASIM{:013}", random[0] % 10_000_000_000_000),
            secret: format!("{:016x}{:016x}", random[1], random[2]),
            token: format!("sim-{:016x}-{number}", random[3]),
            expires: now + options.valid_s,
        };
        sets.retain(|keys| keys.expires > now);
        sets.push_back(keys.clone());
        if sets.len() > MAX_SETS {
            sets.pop_front();
        }
        // A service knows keys before anybody has them.
        if let Some(path) = &options.write_keys {
            write(path, &sets)?;
        }
        tracing::info!(id = keys.id, expires = keys.expiration(), "new keys");
        agent.hand(Hands::Keys(keys));
        tokio::time::sleep(Duration::from_secs(options.rotate_s)).await;
    }
    Ok(())
}

/// Writes a key file in one step, so that nobody reads half of it.
fn write(path: &Path, sets: &VecDeque<Keys>) -> io::Result<()> {
    let keys: serde_json::Map<String, serde_json::Value> = sets
        .iter()
        .map(|keys| {
            let entry = serde_json::json!({
                "secret": keys.secret, "session_token": keys.token, "expires": keys.expiration()
            });
            (keys.id.clone(), entry)
        })
        .collect();
    let told = |error: io::Error| {
        io::Error::other(format!("cannot write keys to {}: {error}", path.display()))
    };
    let mut half = path.as_os_str().to_owned();
    half.push(".new");
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(&half).map_err(told)?;
    let text = serde_json::json!({"keys": keys}).to_string();
    file.write_all(text.as_bytes()).map_err(told)?;
    std::fs::rename(&half, path).map_err(told)
}
