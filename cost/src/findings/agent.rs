//! Do AgentCore's quotas allow the agents that the wanted rates need, and is their platform priced?

use super::{Finding, Inputs, Severity, evidence};
use config::plan::Agent;

pub(super) fn check(inputs: &Inputs<'_>) -> Vec<Finding> {
    let Some(agent) = &inputs.plan.agent else {
        return Vec::new();
    };
    let mut found = Vec::new();
    found.extend(priced(inputs, agent));
    found.extend(quotas(inputs, agent));
    found
}

/// Both parts of the platform's price.
fn priced(inputs: &Inputs<'_>, agent: &Agent) -> Option<Finding> {
    let runtime = agent.runtime.as_str();
    let missing: Vec<String> = ["vcpu-hour", "gb-hour"]
        .iter()
        .map(|part| format!("agentcore.runtime.{runtime}.{part}"))
        .filter(|id| inputs.prices.get(id).is_none())
        .collect();
    (!missing.is_empty()).then(|| Finding {
        id: "agent-price",
        severity: Severity::Warning,
        at: "agent.runtime",
        what: format!(
            "the price table does not price AgentCore Runtime {runtime}: it lacks {}",
            missing.join(" and ")
        ),
        evidence: Vec::new(),
        remedy:
            "add the prices with their source; the two platforms differ in price and in cold start"
                .to_owned(),
    })
}

/// What one task a second needs of a quota.
struct Need {
    name: &'static str,
    quota: Option<f64>,
    per_task: f64,
    how: String,
}

fn quotas(inputs: &Inputs<'_>, agent: &Agent) -> Option<Finding> {
    let quotas = &inputs.plan.quotas;
    let seconds = f64::from(agent.session_seconds);
    let tools = f64::from(agent.tool_calls);
    let needs = [
        Need {
            name: "runtime_sessions",
            quota: quotas.runtime_sessions,
            per_task: seconds,
            how: format!("a session of {seconds} s a task"),
        },
        Need {
            name: "runtime_new_sessions_per_minute",
            quota: quotas.runtime_new_sessions_per_minute,
            per_task: 60.0,
            how: "a new session a task".to_owned(),
        },
        Need {
            name: "runtime_calls_per_second",
            quota: quotas.runtime_calls_per_second,
            per_task: 1.0,
            how: "at least one call of the agent a task".to_owned(),
        },
        Need {
            name: "gateway_calls_per_second",
            quota: quotas.gateway_calls_per_second,
            per_task: tools,
            how: format!("{tools} tool calls a task"),
        },
    ];
    let traffic = &inputs.plan.traffic;
    let calls_allowed = |need: &Need| {
        let tasks = need.quota.filter(|_| need.per_task > 0.0)? / need.per_task;
        Some(tasks * traffic.calls_per_task / traffic.burst_ratio)
    };
    let (allowed, need) = needs
        .iter()
        .filter_map(|need| Some((calls_allowed(need)?, need)))
        .min_by(|(a, _), (b, _)| a.total_cmp(b))?;
    let rates = &inputs.plan.rates;
    let beyond: Vec<String> = rates
        .iter()
        .filter(|rate| **rate > allowed)
        .map(|rate| format!("{rate}"))
        .collect();
    if beyond.is_empty() {
        return None;
    }
    Some(Finding {
        id: "agent-quota",
        severity: Severity::Warning,
        at: "quotas",
        what: format!(
            "AgentCore's quota `{}` allows {allowed:.1} model calls a second, {} a task: the wanted rates {}/s are beyond it",
            need.name, traffic.calls_per_task, beyond.join(", "),
        ),
        evidence: vec![
            evidence(
                format!("{} {}", need.name, need.quota.unwrap_or(0.0)),
                quotas.source.clone().unwrap_or_else(|| "the plan; no source is stated".to_owned()),
            ),
            evidence(need.how.clone(), "the plan's `agent`"),
        ],
        remedy: "ask for a higher quota, let sessions serve several tasks, or shorten them; saturation shows as ServiceQuotaExceeded, status 402, not as throttling".to_owned(),
    })
}
