//! The server as its clients see it: a real MCP client, and bytes on a socket.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::RunningService;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{RoleClient, ServiceError, ServiceExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::{TOOLS, ToolsOptions, serve};

async fn start(options: ToolsOptions) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(serve(listener, options, std::future::pending()));
    at
}

fn restricted() -> ToolsOptions {
    ToolsOptions {
        allow: vec![
            "all=web_search,database_query,calculate".parse().unwrap(),
            "some=web_search,calculate".parse().unwrap(),
        ],
        ..ToolsOptions::default()
    }
}

type Client = RunningService<RoleClient, ()>;

async fn connect(at: SocketAddr, key: Option<&str>) -> Client {
    let mut config = StreamableHttpClientTransportConfig::with_uri(format!("http://{at}/mcp"));
    if let Some(key) = key {
        config = config.auth_header(key);
    }
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let transport = StreamableHttpClientTransport::with_client(http, config);
    ().serve(transport).await.unwrap()
}

async fn call(
    client: &Client,
    tool: &str,
    arguments: Value,
) -> Result<CallToolResult, ServiceError> {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object")
    };
    let call = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    client.call_tool(call).await
}

fn text(result: &CallToolResult) -> &str {
    result.content[0].as_text().unwrap().text.as_str()
}

async fn listed(client: &Client) -> Vec<String> {
    let tools = client.list_all_tools().await.unwrap();
    tools
        .into_iter()
        .map(|tool| tool.name.into_owned())
        .collect()
}

#[tokio::test]
async fn a_real_client_lists_the_tools_and_their_examples_work() {
    let client = connect(start(ToolsOptions::default()).await, None).await;
    let tools = client.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, TOOLS);
    for tool in &tools {
        let required = tool.input_schema["required"][0].as_str().unwrap();
        let example = tool.input_schema["properties"][required]["examples"][0].clone();
        let result = call(&client, &tool.name, json!({required: example})).await;
        let result = result.unwrap();
        assert_eq!(result.is_error, Some(false), "{}: {result:?}", tool.name);
        assert!(serde_json::from_str::<Value>(text(&result)).is_ok());
    }
    let sum = call(&client, "calculate", json!({"expression": "6 * 7"}))
        .await
        .unwrap();
    assert_eq!(text(&sum), r#"{"value":42.0}"#);
}

#[tokio::test]
async fn what_a_tool_refuses_is_a_result_and_not_a_broken_session() {
    let client = connect(start(ToolsOptions::default()).await, None).await;
    for (tool, arguments, why) in [
        (
            "database_query",
            json!({"sql": "DELETE FROM calls"}),
            "only SELECT",
        ),
        ("database_query", json!({}), "`sql` is missing"),
        ("calculate", json!({"expression": "1 +"}), "ends"),
        ("web_search", json!({"query": 5}), "`query`"),
    ] {
        let result = call(&client, tool, arguments).await.unwrap();
        assert_eq!(result.is_error, Some(true), "{tool}");
        assert!(text(&result).contains(why), "{}", text(&result));
    }
    assert!(call(&client, "shell", json!({})).await.is_err());
    assert_eq!(listed(&client).await, TOOLS);
}

#[tokio::test]
async fn a_tool_that_a_key_may_not_use_is_neither_seen_nor_called() {
    let at = start(restricted()).await;
    let all = connect(at, Some("all")).await;
    assert_eq!(listed(&all).await, TOOLS);
    let some = connect(at, Some("some")).await;
    assert_eq!(listed(&some).await, ["web_search", "calculate"]);
    let sql = json!({"sql": "SELECT 1"});
    assert!(call(&all, "database_query", sql.clone()).await.is_ok());
    let refused = call(&some, "database_query", sql.clone())
        .await
        .unwrap_err();
    let unknown = call(&some, "database_quern", sql).await.unwrap_err();
    let without = |error: &ServiceError, name: &str| error.to_string().replace(name, "?");
    assert_eq!(
        without(&refused, "database_query"),
        without(&unknown, "database_quern"),
        "a refusal must not say that the tool is there"
    );
    for key in [None, Some("other")] {
        assert_eq!(listed(&connect(at, key).await).await, Vec::<String>::new());
    }
    let broken = start(ToolsOptions {
        ignore_allow: true,
        ..restricted()
    })
    .await;
    assert_eq!(listed(&connect(broken, Some("some")).await).await, TOOLS);
}

#[tokio::test]
async fn latency_is_added_to_every_call_and_calls_do_not_wait_for_each_other() {
    let options = ToolsOptions {
        latency_ms: 60,
        ..ToolsOptions::default()
    };
    let client = connect(start(options).await, None).await;
    let begin = Instant::now();
    let one = || call(&client, "calculate", json!({"expression": "1"}));
    let (a, b, c) = tokio::join!(one(), one(), one());
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    let lasted = begin.elapsed();
    assert!(lasted >= Duration::from_millis(60), "{lasted:?}");
    assert!(
        lasted < Duration::from_millis(170),
        "{lasted:?}: one after the other"
    );
}

/// One POST on a connection of its own: status, session and body.
async fn post(at: SocketAddr, extra: &str, body: &Value) -> (u16, Option<String>, String) {
    let body = body.to_string();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: tools\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nConnection: close\r\n{extra}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut socket = TcpStream::connect(at).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let session = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("mcp-session-id")
            .then(|| value.to_owned())
    });
    (status, session, body.to_owned())
}

#[tokio::test]
async fn bytes_on_a_socket_get_what_the_protocol_says() {
    let at = start(restricted()).await;
    let bearer = "Authorization: Bearer some\r\n";
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"}}});
    let (status, session, body) = post(at, bearer, &hello).await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains("hopscope-tools"), "{body}");
    let session = session.expect("a session");
    let extra =
        format!("{bearer}Mcp-Session-Id: {session}\r\nMCP-Protocol-Version: 2025-06-18\r\n");
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(post(at, &extra, &ready).await.0, 202);
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let (_, _, body) = post(at, &extra, &list).await;
    assert!(
        body.contains("web_search") && !body.contains("database_query"),
        "{body}"
    );
    let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
        "name": "database_query", "arguments": {"sql": "SELECT 1"}}});
    let (_, _, body) = post(at, &extra, &call).await;
    assert!(
        body.contains("-32602") && body.contains("no tool is called"),
        "{body}"
    );
    // The key of each request counts, not that of the session's first.
    let other = extra.replace("Bearer some", "Bearer all");
    assert!(post(at, &other, &call).await.2.contains("rows"));
    assert!(post(at, "", &json!({"nonsense": true})).await.0 >= 400);
}
