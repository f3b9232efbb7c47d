//! Requests of the Model Context Protocol: JSON-RPC.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::canonical::{self, Canonical};
use super::{RequestError, RequestFacts};

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    jsonrpc: Option<IgnoredAny>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Params>,
}

/// What is asked. `_meta` belongs to the hop, as the request's id does.
#[derive(Default, Deserialize)]
struct Params {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Canonical,
    #[serde(default)]
    uri: Canonical,
    #[serde(default)]
    cursor: Canonical,
}

pub(super) fn facts(body: &[u8]) -> Result<RequestFacts, RequestError> {
    let body: Body = serde_json::from_slice(body)?;
    if body.jsonrpc.is_none() {
        return Err(RequestError::NotRpc);
    }
    let params = body.params.unwrap_or_default();
    let parts = [params.arguments, params.uri, params.cursor];
    let names = [body.method.as_deref(), params.name.as_deref()];
    let fingerprint = canonical::rpc(names, parts);
    let calls = body.method.as_deref() == Some("tools/call");
    Ok(RequestFacts {
        method: body.method,
        tool: params.name.filter(|_| calls),
        fingerprint,
        ..RequestFacts::default()
    })
}
