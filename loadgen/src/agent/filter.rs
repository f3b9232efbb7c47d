//! The check of a tool filter: what a key that may not use some tools could do with them all the same.

use super::kit::list;
use super::session::{NoSession, Server, Session};
use crate::LoadError;
use crate::client::Cut;
use crate::lanes::Lanes;
use config::Scenario;
use record::agent::{ToolFilter, ToolOutcome};
use rmcp::model::{JsonObject, Tool};
use serde_json::{Map, Value};

/// Makes the scenario's filter check, if it asks for one.
///
/// # Errors
/// It could not be made, or would show nothing: the run's own key does not see the tools either.
pub(crate) fn check(scenario: &Scenario, lanes: &Lanes) -> Result<Option<ToolFilter>, LoadError> {
    let tools = scenario.agent.as_ref().and_then(|a| a.tools.as_ref());
    let Some((tools, check)) = tools.and_then(|t| Some((t, t.filter_check.as_ref()?))) else {
        return Ok(None);
    };
    let own = Server::new(tools, tools.key_env.as_ref(), &scenario.timeouts)?;
    let restricted = Server::new(tools, check.key_env.as_ref(), &scenario.timeouts)?;
    let (own_server, may_not) = (own.clone(), check.may_not.clone());
    lanes
        .block_on(async move { look(&own_server, &restricted, &may_not).await })
        .unwrap_or_else(|| Err("the thread that asks is gone".to_owned()))
        .map(Some)
        .map_err(|what| own.failed(&format!("filter check: {what}")))
}

async fn look(own: &Server, restricted: &Server, may_not: &[String]) -> Result<ToolFilter, String> {
    let offered = list(own).await?;
    let mut forbidden = Vec::new();
    for name in may_not {
        let tool = offered.iter().find(|tool| tool.name == *name);
        forbidden.push(tool.ok_or_else(|| {
            format!("the run's own key does not see `{name}` either, so that nothing would be shown; correct `may_not`")
        })?);
    }
    let mut found = ToolFilter {
        server: own.url.to_string(),
        offered: count(&offered),
        seen: None,
        may_not: may_not.to_vec(),
        listed: Vec::new(),
        ran: Vec::new(),
        untried: Vec::new(),
    };
    let session = match Session::open(restricted).await {
        Ok(session) => session,
        Err(NoSession::Denied) => return Ok(found),
        Err(NoSession::Failed(what)) => return Err(what),
    };
    if let Some(seen) = session.list().await? {
        found.seen = Some(count(&seen));
        let among = |name: &&String| seen.iter().any(|tool| tool.name == **name);
        found.listed = may_not.iter().filter(among).cloned().collect();
    }
    let free = match Session::open(own).await {
        Ok(session) => session,
        Err(why) => return Err(format!("{why:?}")),
    };
    for tool in forbidden {
        // A refusal and a fault of the arguments look alike: only what works with the run's own key shows
        // anything.
        if !runs(&free, tool).await {
            found.untried.push(tool.name.to_string());
        } else if runs(&session, tool).await {
            found.ran.push(tool.name.to_string());
        }
    }
    Ok(found)
}

fn count(tools: &[Tool]) -> u32 {
    u32::try_from(tools.len()).unwrap_or(u32::MAX)
}

async fn runs(session: &Session, tool: &Tool) -> bool {
    let done = session
        .call(&Cut::default(), &tool.name, arguments(&tool.input_schema))
        .await;
    done.outcome == ToolOutcome::Answered
}

/// The required arguments, from the schema's examples.
fn arguments(schema: &JsonObject) -> JsonObject {
    let required = schema.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let mut all = Map::new();
    for name in names {
        let property = &schema.get("properties").unwrap_or(&Value::Null)[name];
        let given = [
            &property["examples"][0],
            &property["default"],
            &property["enum"][0],
        ];
        let value = match given.into_iter().find(|value| !value.is_null()) {
            Some(value) => value.clone(),
            None => match property["type"].as_str() {
                Some("integer" | "number") => 1.into(),
                Some("boolean") => false.into(),
                Some("array") => Value::Array(Vec::new()),
                Some("object") => Value::Object(Map::new()),
                _ => "hopscope".into(),
            },
        };
        all.insert(name.to_owned(), value);
    }
    all
}
