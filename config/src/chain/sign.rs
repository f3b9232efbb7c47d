//! Requests that a tap signs for AWS.

use super::{HostHeader, TapPoint};
use crate::load::Report;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sign requests anew for the upstream (AWS Signature Version 4), since a signature holds for one host only.
/// What the client signed with is taken off. Keys come from the environment, a profile, IRSA or Pod Identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sign {
    /// The service that is signed for.
    pub service: AwsService,
    /// The region. Absent: the one in the upstream's host.
    #[serde(default)]
    pub region: Option<String>,
}

/// A service's name in the scope of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AwsService {
    /// Bedrock's models.
    Bedrock,
    /// AgentCore's runtimes, gateways and memories.
    BedrockAgentcore,
}

impl AwsService {
    /// The name as it is signed.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Bedrock => "bedrock",
            Self::BedrockAgentcore => "bedrock-agentcore",
        }
    }
}

impl TapPoint {
    /// The region that this tap signs for; `None` where it does not sign, or none is named.
    #[must_use]
    pub fn region(&self) -> Option<&str> {
        let written = self.upstream.sign.as_ref()?.region.as_deref();
        written.or_else(|| region_of(self.upstream.addresses.first()?.host()))
    }
}

/// The region in a host of AWS: the label behind that of the service.
fn region_of(host: &str) -> Option<&str> {
    let mut labels = host.split('.').skip_while(|l| !l.starts_with("bedrock"));
    let region = labels.nth(1)?;
    let mut parts = region.split('-');
    let area = parts.next().is_some_and(|p| p.len() == 2 && is_lower(p));
    let number = parts.next_back()?;
    let middle: Vec<&str> = parts.collect();
    let named = !middle.is_empty() && middle.iter().all(|part| is_lower(part));
    let numbered = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    (area && named && numbered).then_some(region)
}

fn is_lower(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase())
}

pub(super) fn check(at: &str, tap: &TapPoint, report: &mut Report<'_>) {
    let Some(sign) = &tap.upstream.sign else {
        return;
    };
    let at = format!("{at}.upstream.sign");
    let host = tap.upstream.addresses.first().map_or("", |a| a.host());
    match (sign.region.as_deref(), region_of(host)) {
        (None, None) => report.add(
            &at,
            format!("`{host}` names no region; write it as `region` of `sign`"),
        ),
        (Some(written), Some(region)) if written != region => report.add(
            &format!("{at}.region"),
            format!("`region` is {written}, and the host `{host}` is of {region}; remove `region`, or correct the address"),
        ),
        _ => {}
    }
    let service = host.split('.').find(|label| label.starts_with("bedrock"));
    let agentcore = service.map(|label| label.starts_with("bedrock-agentcore"));
    if agentcore.is_some_and(|is| is != (sign.service == AwsService::BedrockAgentcore)) {
        let service = sign.service.as_str();
        report.add(
            &format!("{at}.service"),
            format!("`service` is {service}, and the host `{host}` is of the other one; correct one of them"),
        );
    }
    if tap.upstream.bearer_env.is_some() {
        report.add(
            &at,
            "a request is signed or has a bearer key, and both are asked for; remove `sign` or `bearer_env`".to_owned(),
        );
    }
    if tap.upstream.addresses.len() > 1 {
        report.add(
            &at,
            "a signature holds for one host; name one address".to_owned(),
        );
    }
    if tap.upstream.host_header != HostHeader::Upstream {
        report.add(
            &at,
            "the signature is of the upstream's host, and the client's `Host` would be sent; add `host_header: upstream`".to_owned(),
        );
    }
    if tap.http2 {
        report.add(
            &at,
            "a tap that signs takes HTTP/1.1 from its clients; remove `http2` of the tap (that of its upstream may stay)".to_owned(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::region_of;

    #[test]
    fn the_region_stands_behind_the_service() {
        for (host, region) in [
            ("bedrock-runtime.us-east-1.amazonaws.com", Some("us-east-1")),
            (
                "bedrock-runtime-fips.us-gov-west-1.amazonaws.com",
                Some("us-gov-west-1"),
            ),
            (
                "vpce-0a.bedrock-runtime.eu-central-1.vpce.amazonaws.com",
                Some("eu-central-1"),
            ),
            (
                "g-1.gateway.bedrock-agentcore.ap-southeast-2.amazonaws.com",
                Some("ap-southeast-2"),
            ),
            ("bedrock-mantle.us-west-2.api.aws", Some("us-west-2")),
            ("bedrock-runtime.amazonaws.com", None),
            ("bedrock.default.svc", None),
            ("127.0.0.1", None),
            ("us-east-1.example", None),
        ] {
            assert_eq!(region_of(host), region, "{host}");
        }
    }
}
