//! The tools as MCP shows them: definitions, the filter, and one call after another.

use std::sync::Arc;
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData,
    Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    Tool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Map, Value, json};

use crate::access::ToolsOptions;
use crate::database::{self, Database};
use crate::search::{self, Index};
use crate::{TOOLS, evaluate};

/// What all sessions share.
#[derive(Clone)]
pub(crate) struct Server(Arc<Shared>);

struct Shared {
    options: ToolsOptions,
    index: Index,
    database: Database,
    tools: Vec<Tool>,
}

impl Server {
    pub(crate) fn new(options: ToolsOptions) -> Self {
        Self(Arc::new(Shared {
            options,
            index: Index::new(),
            database: Database::default(),
            tools: TOOLS.iter().map(|name| definition(name)).collect(),
        }))
    }

    fn run(&self, tool: &str, arguments: &Map<String, Value>) -> Result<Value, String> {
        let text = |name: &str| {
            arguments
                .get(name)
                .and_then(Value::as_str)
                .ok_or_else(|| format!("the argument `{name}` is missing, or no text"))
        };
        match tool {
            "web_search" => {
                let limit = arguments.get("limit").and_then(Value::as_u64).unwrap_or(3);
                Ok(self.0.index.search(text("query")?, limit))
            }
            "database_query" => self.0.database.query(text("sql")?),
            _ => evaluate(text("expression")?).map(|value| json!({"value": value})),
        }
    }
}

/// A tool with the arguments that it takes. Each has an example: a stand-in for a model, which
/// understands nothing, calls the tool with it.
fn definition(name: &'static str) -> Tool {
    let (description, properties, required) = match name {
        "web_search" => (
            "Searches a small corpus on serving and measuring language models; the best documents first.".to_owned(),
            json!({
                "query": {"type": "string", "description": "What to look for.", "examples": ["overhead that a gateway adds to an agent"]},
                "limit": {"type": "integer", "minimum": 1, "maximum": search::HITS, "description": "How many documents; 3 where it is left out."}
            }),
            "query",
        ),
        "database_query" => (
            format!(
                "Runs one SQLite SELECT on the tables {}; at most {} rows.",
                database::SCHEMA,
                database::ROWS
            ),
            json!({"sql": {"type": "string", "description": "One SELECT statement.", "examples": ["SELECT chain, count(*) AS calls, avg(ttft_ms) AS ttft FROM calls GROUP BY chain ORDER BY ttft"]}}),
            "sql",
        ),
        _ => (
            "Evaluates arithmetic: + - * / % ^, parentheses, sqrt, abs, ln, log10, exp, floor, ceil, round, pi, e.".to_owned(),
            json!({"expression": {"type": "string", "description": "The expression.", "examples": ["(69.5 - 40) / 40 * 100"]}}),
            "expression",
        ),
    };
    let mut schema = Map::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties);
    schema.insert("required".to_owned(), json!([required]));
    schema.insert("additionalProperties".to_owned(), false.into());
    Tool::new(name, description, Arc::new(schema))
        .annotate(ToolAnnotations::new().read_only(true).open_world(false))
}

/// The bearer key of the HTTP request that a message came with.
fn key(context: &RequestContext<RoleServer>) -> Option<String> {
    let parts = context.extensions.get::<Parts>()?;
    let value = parts.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| key.trim().to_owned())
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("hopscope-tools", env!("CARGO_PKG_VERSION"));
        info
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let key = key(&context);
        let may = |tool: &&Tool| self.0.options.may(key.as_deref(), &tool.name);
        Ok(ListToolsResult::with_all_items(
            self.0.tools.iter().filter(may).cloned().collect(),
        ))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.into_owned();
        // One that a key may not use is not there for it: the two answers do not differ.
        if !TOOLS.contains(&name.as_str()) || !self.0.options.may(key(&context).as_deref(), &name) {
            let shown: String = name.chars().take(64).collect();
            return Err(ErrorData::invalid_params(
                format!("no tool is called `{shown}`; tools/list has those that are"),
                None,
            ));
        }
        if self.0.options.latency_ms > 0 {
            tokio::time::sleep(Duration::from_millis(self.0.options.latency_ms)).await;
        }
        let (server, arguments) = (self.clone(), request.arguments.unwrap_or_default());
        // A query may run for a while: not on the threads that read sockets.
        let result = tokio::task::spawn_blocking(move || server.run(&name, &arguments))
            .await
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let result = match result {
            Ok(value) => CallToolResult::success(vec![ContentBlock::text(value.to_string())]),
            Err(why) => CallToolResult::error(vec![ContentBlock::text(why)]),
        };
        Ok(result.into())
    }
}
