//! A chain as the client sees it: where to send, and with which headers.

use crate::api::{Api, agent_path};
use crate::{LoadError, PlannedChain};
use config::scenario::{AgentEndpoint, Tenant, Timeouts};
use config::{Chain, EnvName};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs as _};

/// The load generator's name of a request, for the first tap only.
pub(crate) const REQUEST_HEADER: HeaderName = HeaderName::from_static("x-hopscope-request");

/// Everything that a call needs to know of its chain.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) chain: String,
    pub(crate) api: Api,
    /// Answers are to be streamed.
    pub(crate) stream: bool,
    /// What precedes the API's own path.
    pub(crate) prefix: String,
    /// Resolved once: a name server's delay is no part of a call.
    pub(crate) address: SocketAddr,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    /// A tap is first to read the request: it takes the request's name off again.
    pub(crate) tapped: bool,
    pub(crate) overhead_header: Option<HeaderName>,
    pub(crate) timeouts: Timeouts,
}

impl Target {
    /// Resolves the chain's address and builds its headers.
    pub(crate) fn of(
        planned: &PlannedChain,
        timeouts: &Timeouts,
        stream: bool,
    ) -> Result<Self, LoadError> {
        let chain = &planned.chain;
        let wrong = |what: String| LoadError::Plan(format!("chain {}: {what}", chain.name));
        let place = chain.entry.authority();
        let address = (place.host(), place.port())
            .to_socket_addrs()
            .ok()
            .and_then(|mut all| all.next())
            .ok_or_else(|| {
                wrong(format!(
                    "`entry` {place} does not resolve; correct it, or the name server"
                ))
            })?;
        let (api, prefix) = (Api::of(chain), chain.path(""));
        let uri = uri(&format!("{prefix}{}", api.path(&chain.model, stream))).map_err(wrong)?;
        let overhead = chain
            .gateway
            .as_ref()
            .and_then(|g| g.overhead_header.as_ref());
        Ok(Self {
            chain: chain.name.clone(),
            api,
            stream,
            prefix,
            address,
            uri,
            headers: headers(chain).map_err(wrong)?,
            tapped: !chain.taps.is_empty(),
            overhead_header: overhead.and_then(|name| HeaderName::try_from(name.as_str()).ok()),
            timeouts: timeouts.clone(),
        })
    }

    /// The same entry as an agent.
    pub(crate) fn agent(&self, endpoint: &AgentEndpoint) -> Result<Self, LoadError> {
        let path = agent_path(endpoint);
        let uri = path.parse().map_err(|error| {
            LoadError::Plan(format!("agent.endpoint: {path}: {error}; correct it"))
        })?;
        let mut headers = self.headers.clone();
        if endpoint.agentcore.is_some() {
            // The runtime passes it on, and an agent may go by it.
            let accept = if self.stream {
                "text/event-stream"
            } else {
                "application/json"
            };
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
        }
        Ok(Self {
            api: Api::of_agent(endpoint),
            uri,
            headers,
            ..self.clone()
        })
    }

    /// The same chain, asked for another model.
    pub(crate) fn asking(&self, model: &str) -> Result<Self, LoadError> {
        let path = format!("{}{}", self.prefix, self.api.path(model, self.stream));
        let uri =
            uri(&path).map_err(|what| LoadError::Plan(format!("chain {}: {what}", self.chain)))?;
        Ok(Self {
            uri,
            ..self.clone()
        })
    }

    /// The same chain as `tenant` sees it: with its own key and headers.
    pub(crate) fn for_tenant(&self, tenant: &Tenant) -> Result<Self, LoadError> {
        let who = format!("tenant {}", tenant.name);
        self.with_key(tenant.key_env.as_ref(), &tenant.headers, &who)
    }

    /// The same chain with the key in `variable`, if one is named, and further headers. `who` is named
    /// where they are not usable.
    pub(crate) fn with_key(
        &self,
        variable: Option<&EnvName>,
        fields: &BTreeMap<config::HeaderName, String>,
        who: &str,
    ) -> Result<Self, LoadError> {
        let mut target = self.clone();
        let wrong = |what: String| LoadError::Plan(format!("{who}: {what}"));
        add_fields(&mut target.headers, fields).map_err(wrong)?;
        if let Some(variable) = variable {
            let key = bearer(variable.as_str()).map_err(wrong)?;
            target.headers.insert(AUTHORIZATION, key);
        }
        Ok(target)
    }

    /// The address, as messages name it.
    pub(crate) fn place(&self) -> String {
        format!("http://{}{}", self.address, self.uri)
    }
}

fn uri(path: &str) -> Result<Uri, String> {
    path.parse()
        .map_err(|error| format!("path {path} is not usable ({error}); correct `path_prefix`"))
}

fn headers(chain: &Chain) -> Result<HeaderMap, String> {
    let mut all = HeaderMap::new();
    let host = HeaderValue::try_from(chain.entry.authority().to_string())
        .map_err(|_| "`entry` cannot be sent as Host; correct it".to_owned())?;
    all.insert(HOST, host);
    all.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let agent = concat!("hopscope/", env!("CARGO_PKG_VERSION"));
    all.insert(USER_AGENT, HeaderValue::from_static(agent));
    add_fields(&mut all, &chain.request_headers)?;
    if let Some(variable) = &chain.key_env {
        all.insert(AUTHORIZATION, bearer(variable.as_str())?);
    }
    Ok(all)
}

fn add_fields(
    to: &mut HeaderMap,
    fields: &BTreeMap<config::HeaderName, String>,
) -> Result<(), String> {
    for (name, value) in fields {
        let wrong = || {
            format!(
                "request header {} cannot be sent; correct its value",
                name.as_str()
            )
        };
        let name = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
        to.insert(name, HeaderValue::try_from(value).map_err(|_| wrong())?);
    }
    Ok(())
}

/// The key in `variable`.
pub(crate) fn key_of(variable: &str) -> Result<String, String> {
    std::env::var(variable).map_err(|_| {
        format!("`key_env` names {variable}, which is not set; export it before the run")
    })
}

/// The key in `variable` as it is sent.
fn bearer(variable: &str) -> Result<HeaderValue, String> {
    let key = key_of(variable)?;
    let mut bearer = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| {
        format!("the key in {variable} holds characters that no header may; correct it")
    })?;
    bearer.set_sensitive(true);
    Ok(bearer)
}
