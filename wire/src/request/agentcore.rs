//! Requests to an agent behind AgentCore's runtime. Their form is the agent's; by custom the text is `prompt`.

use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::canonical::{self, Canonical};
use super::{RequestError, RequestFacts, mcp};
use crate::dialect;

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    prompt: Canonical,
    #[serde(default)]
    jsonrpc: Option<IgnoredAny>,
}

pub(super) fn facts(path: &str, bytes: &[u8]) -> Result<RequestFacts, RequestError> {
    let agent = dialect::agent(path).map(|arn| percent_decode_str(arn).decode_utf8_lossy());
    let model = agent.map(|arn| arn.into_owned());
    let body: Body = serde_json::from_slice(bytes)?;
    if body.jsonrpc.is_some() {
        let asked = mcp::facts(bytes)?;
        return Ok(RequestFacts { model, ..asked });
    }
    let whole: Canonical = serde_json::from_slice(bytes)?;
    Ok(RequestFacts {
        model,
        messages: u32::from(body.prompt.is_some()),
        prompt_bytes: body.prompt.text_bytes(),
        fingerprint: canonical::of_value(whole),
        ..RequestFacts::default()
    })
}
