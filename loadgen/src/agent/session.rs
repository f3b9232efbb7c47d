//! A session with an MCP server over streamable HTTP.

use crate::LoadError;
use crate::client::{Broken, Cut};
use crate::error::causes;
use crate::target::key_of;
use config::scenario::AgentTools;
use config::{EnvName, HttpUrl};
use record::agent::ToolOutcome;
use record::clock::{Nanos, now};
use rmcp::model::{CallToolRequestParams, CallToolResult, JsonObject, Tool};
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceError, ServiceExt as _};
use std::time::Duration;

/// Largest message that a server may send, bytes.
const MESSAGE: usize = 4 << 20;
/// Longest result that is given back to the model, bytes; the rest is cut.
const RESULT: usize = 64 << 10;

/// Where the tools are, and with which key they are asked.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) url: HttpUrl,
    key: Option<String>,
    connect: Duration,
    answer: Duration,
}

impl Server {
    /// The server of `tools`, asked with the key in `key_env`. `connect` and `answer` bound the waits.
    pub(super) fn new(
        tools: &AgentTools,
        key_env: Option<&EnvName>,
        timeouts: &config::scenario::Timeouts,
    ) -> Result<Self, LoadError> {
        let key = key_env.map(|name| key_of(name.as_str())).transpose();
        Ok(Self {
            url: tools.server.clone(),
            key: key.map_err(|what| LoadError::Plan(format!("agent.tools: {what}")))?,
            connect: timeouts.connect.get(),
            answer: timeouts.first_byte.get(),
        })
    }

    /// What a failure to speak with it is called.
    pub(super) fn failed(&self, what: &str) -> LoadError {
        LoadError::Plan(format!(
            "tool server {}: {what}; is it started (`hopscope sim tools`), and is `agent.tools.server` its MCP address?",
            self.url
        ))
    }
}

/// Why there is no session.
#[derive(Debug)]
pub(super) enum NoSession {
    /// The server does not let this key in.
    Denied,
    /// Anything else, in words.
    Failed(String),
}

/// What one tool call came to.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) begin: Nanos,
    pub(super) end: Nanos,
    pub(super) outcome: ToolOutcome,
    pub(super) fault: Option<String>,
    /// What the tool said, for the model. Never recorded.
    pub(super) text: Option<String>,
}

/// One session. Ends when it is dropped.
pub(super) struct Session {
    client: RunningService<RoleClient, ()>,
    limit: Duration,
}

impl Session {
    /// Opens a session on the runtime that this runs on.
    pub(super) async fn open(server: &Server) -> Result<Self, NoSession> {
        let mut config = StreamableHttpClientTransportConfig::with_uri(server.url.to_string())
            .max_sse_event_size(MESSAGE)
            .max_json_response_size(MESSAGE);
        if let Some(key) = &server.key {
            config = config.auth_header(key.clone());
        }
        // The library's own client opens a connection for every call; an agent's does not.
        let http = reqwest::Client::builder()
            .no_proxy()
            .tcp_nodelay(true)
            .connect_timeout(server.connect)
            .pool_max_idle_per_host(4)
            .build()
            .map_err(|error| NoSession::Failed(error.to_string()))?;
        let transport = StreamableHttpClientTransport::with_client(http, config);
        let opened = tokio::time::timeout(server.answer, ().serve(transport)).await;
        match opened {
            Ok(Ok(client)) => Ok(Self {
                client,
                limit: server.answer,
            }),
            Ok(Err(error)) if denies(&error) => Err(NoSession::Denied),
            Ok(Err(error)) => Err(NoSession::Failed(causes(&error))),
            Err(_) => Err(NoSession::Failed("no session in time".to_owned())),
        }
    }

    /// The tools that the server shows to this key; `None` where it refuses the list.
    pub(super) async fn list(&self) -> Result<Option<Vec<Tool>>, String> {
        match tokio::time::timeout(self.limit, self.client.list_all_tools()).await {
            Ok(Ok(tools)) => Ok(Some(tools)),
            Ok(Err(ServiceError::McpError(_))) => Ok(None),
            Ok(Err(error)) if error.auth_challenge().is_some() => Ok(None),
            Ok(Err(error)) => Err(causes(&error)),
            Err(_) => Err("no list of tools in time".to_owned()),
        }
    }

    /// Calls a tool and waits for its result, or for the end of the cell.
    pub(super) async fn call(&self, cut: &Cut, tool: &str, arguments: JsonObject) -> Done {
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let begin = now();
        let result = cut.bound(self.limit, self.client.call_tool(request)).await;
        let end = now();
        let (outcome, fault, text) = match result {
            Ok(Ok(result)) if result.is_error == Some(true) => {
                (ToolOutcome::ToolError, None, Some(said(&result)))
            }
            Ok(Ok(result)) => (ToolOutcome::Answered, None, Some(said(&result))),
            Ok(Err(error)) => {
                let (outcome, fault) = judge(&error);
                (outcome, Some(fault), None)
            }
            Err(Broken::CutOff) => (ToolOutcome::CutOff, Some("the cell ended".to_owned()), None),
            Err(Broken::TimedOut(_)) => {
                let fault = "no result within `timeouts.first_byte`".to_owned();
                (ToolOutcome::TimedOut, Some(fault), None)
            }
        };
        Done {
            begin,
            end,
            outcome,
            fault,
            text,
        }
    }
}

/// A server's own words may quote the arguments: only its code is told.
fn judge(error: &ServiceError) -> (ToolOutcome, String) {
    match error {
        ServiceError::McpError(error) => (
            ToolOutcome::Refused,
            format!("refused with code {}", error.code.0),
        ),
        error if error.auth_challenge().is_some() => {
            (ToolOutcome::Refused, "the key was refused".to_owned())
        }
        ServiceError::TransportClosed => (ToolOutcome::Transport, "the session ended".to_owned()),
        _ => (ToolOutcome::Transport, "the connection failed".to_owned()),
    }
}

/// 401 and 403, with or without the field that should come with them. Only where the server said so: a
/// connection that failed must not pass for a refusal.
fn denies(error: &ClientInitializeError) -> bool {
    let text = causes(error);
    let status = text.split_once("HTTP ").map_or("", |(_, rest)| rest);
    error.is_authorization_required() || status.starts_with("401") || status.starts_with("403")
}

/// The text of a result.
fn said(result: &CallToolResult) -> String {
    let mut text = String::new();
    for block in &result.content {
        if let Some(part) = block.as_text() {
            text.push_str(&part.text);
        }
    }
    let mut end = text.len().min(RESULT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed;
    use std::io::Write as _;

    fn opened(server: &testbed::Server) -> Result<Session, NoSession> {
        let server = Server {
            url: format!("http://{}/401/mcp", server.address)
                .parse()
                .unwrap(),
            key: None,
            connect: Duration::from_secs(5),
            answer: Duration::from_secs(20),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(Session::open(&server))
    }

    #[test]
    fn only_what_the_server_refuses_is_a_refusal() {
        for (status, denied) in [("401 No", true), ("403 No", true), ("500 HTTP 403", false)] {
            let server = testbed::Server::start(move |_, stream| {
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
                stream.write_all(answer.as_bytes()).is_ok()
            });
            match opened(&server) {
                Err(NoSession::Denied) => assert!(denied, "{status}"),
                Err(NoSession::Failed(what)) => assert!(!denied, "{status}: {what}"),
                Ok(_) => panic!("a session with {status}"),
            }
        }
        let mut nobody = testbed::Server::start(|_, _| false);
        nobody.address = "127.0.0.1:1".parse().unwrap();
        assert!(matches!(opened(&nobody), Err(NoSession::Failed(_))));
    }
}
