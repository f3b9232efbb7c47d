use super::{RequestError, RequestFacts, facts};
use crate::dialect::Dialect;

fn chat(body: &str) -> RequestFacts {
    facts(Dialect::OpenAiChat, "", body.as_bytes()).expect(body)
}

fn completion(body: &str) -> RequestFacts {
    facts(Dialect::OpenAiCompletions, "", body.as_bytes()).expect(body)
}

const BASE: &str = r#"{"model":"m","messages":[{"role":"system","content":"be brief"},
    {"role":"user","content":"naïve"}],"seed":7,"max_tokens":100,"stream":true}"#;

#[test]
fn the_facts_of_a_chat() {
    let seen = chat(
        r#"{"model":"m","stream":true,"max_tokens":9,"max_completion_tokens":8,
        "stream_options":{"include_usage":true},"temperature":0,"messages":[
        {"role":"system","content":"ab"},{"role":"assistant","content":null,"tool_calls":[
        {"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},
        {"role":"user","content":[{"type":"text","text":"na\u00efve"},
        {"type":"image_url","image_url":{"url":"data:xxxx"}}]}]}"#,
    );
    assert_eq!(seen.model.as_deref(), Some("m"));
    assert!(seen.stream && seen.include_usage);
    assert_eq!(
        (seen.max_tokens, seen.messages, seen.prompt_bytes),
        (Some(8), 3, 8)
    );
}

#[test]
fn what_is_absent_is_none() {
    let seen = chat(r#"{"messages":null,"stream":null,"stream_options":null,"max_tokens":-1}"#);
    assert_eq!((seen.model.as_deref(), seen.max_tokens), (None, None));
    assert_eq!(
        (seen.stream, seen.include_usage, seen.messages),
        (false, false, 0)
    );
}

#[test]
fn the_facts_of_a_completion() {
    for (prompt, items, bytes) in [
        (r#""once""#, 1, 4),
        (r#"["once","é"]"#, 2, 6),
        ("[1,2,3]", 1, 0),
        ("[[1,2],[3]]", 2, 0),
        ("null", 0, 0),
    ] {
        let seen = completion(&format!(r#"{{"prompt":{prompt},"max_tokens":1}}"#));
        assert_eq!(
            (seen.messages, seen.prompt_bytes),
            (items, bytes),
            "{prompt}"
        );
    }
}

#[test]
fn what_gateways_do_keeps_the_fingerprint() {
    let wanted = chat(BASE).fingerprint;
    for same in [
        // Renamed model, other member order and spacing, escapes, an added stream option.
        r#"{"max_tokens":100,"stream_options":{"include_usage":true},"messages":[{"content":"be brief",
        "role":"system"},{"content":"na\u00efve","role":"user"}],"seed":7,"model":"vllm/m"}"#,
        // The limit under its other name, null and empty members, unknown members.
        r#"{"max_completion_tokens":100,"max_tokens":null,"messages":[{"role":"system","name":null,
        "content":"be brief","tool_calls":[]},{"role":"user","content":"naïve","extra":1}],"seed":7.0}"#,
        // A text part for a string.
        r#"{"max_tokens":100,"messages":[{"role":"system","content":[{"type":"text","text":"be brief",
        "cache_control":{"type":"ephemeral"}}]},{"role":"user","content":"naïve"}],"seed":7}"#,
    ] {
        assert_eq!(chat(same).fingerprint, wanted, "{same}");
    }
}

#[test]
fn another_request_has_another_fingerprint() {
    let base = chat(BASE).fingerprint;
    for (from, to) in [
        ("naïve", "naive"),
        ("\"seed\":7", "\"seed\":8"),
        ("\"seed\":7,", ""),
        ("100", "101"),
        ("\"user\"", "\"assistant\""),
        ("be brief", ""),
        (
            "\"role\":\"user\",\"content\"",
            "\"role\":\"user\",\"name\"",
        ),
    ] {
        let other = BASE.replace(from, to);
        assert_ne!(other, BASE);
        assert_ne!(chat(&other).fingerprint, base, "{other}");
    }
    let swapped = r#"{"messages":[{"role":"user","content":"naïve"},{"role":"system",
        "content":"be brief"}],"seed":7,"max_tokens":100}"#;
    assert_ne!(chat(swapped).fingerprint, base);
}

#[test]
fn seed_and_limit_are_not_interchangeable() {
    let seed = chat(r#"{"messages":[],"seed":5}"#).fingerprint;
    let limit = chat(r#"{"messages":[],"max_tokens":5}"#).fingerprint;
    assert_ne!(seed, limit);
}

#[test]
fn the_fingerprint_is_the_same_in_every_version() {
    // Files of different builds are paired by it: a change here is a change of the file format.
    assert_eq!(chat(BASE).fingerprint, PINNED);
}

const PINNED: u64 = 13_221_219_543_480_801_221;

#[test]
fn an_unreadable_body_says_so() {
    for body in [
        "",
        "{",
        "x",
        r#"{"messages":1}"#,
        r#"{"messages":["x"]}"#,
        "{}x",
    ] {
        let error = facts(Dialect::OpenAiChat, "", body.as_bytes()).expect_err(body);
        assert!(matches!(error, RequestError::Unreadable(_)), "{body}");
    }
    let array = facts(Dialect::OpenAiChat, "", b" [\"m\",true]");
    assert!(matches!(array, Err(RequestError::Array)));
    assert!(matches!(
        facts(Dialect::Opaque, "", b"{}"),
        Err(RequestError::Opaque)
    ));
}

#[test]
fn deep_nesting_is_refused_and_not_a_crash() {
    let deep = "[".repeat(100_000);
    let body = format!(r#"{{"messages":[{{"content":{deep}"#);
    assert!(facts(Dialect::OpenAiChat, "", body.as_bytes()).is_err());
}

#[test]
fn the_facts_of_a_converse_request() {
    let path = "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aimported-model%2Fab/converse-stream";
    let body = r#"{"messages":[{"role":"user","content":[{"text":"naïve"}]}],"system":[{"text":"be brief"}],
        "inferenceConfig":{"maxTokens":100,"temperature":0.5}}"#;
    let seen = facts(Dialect::Converse, path, body.as_bytes()).unwrap();
    assert_eq!(
        seen.model.as_deref(),
        Some("arn:aws:bedrock:us-east-1:1:imported-model/ab")
    );
    assert_eq!(
        (
            seen.stream,
            seen.max_tokens,
            seen.messages,
            seen.prompt_bytes
        ),
        (true, Some(100), 2, 14)
    );
    let whole = facts(Dialect::Converse, "/model/m/converse", b"{}").unwrap();
    assert_eq!((whole.model.as_deref(), whole.stream), (Some("m"), false));
    assert_eq!((whole.messages, whole.max_tokens), (0, None));
}

fn read(dialect: Dialect, path: &str, body: &str) -> RequestFacts {
    facts(dialect, path, body.as_bytes()).expect(body)
}

#[test]
fn a_chat_and_its_translations_have_one_fingerprint() {
    let asked = chat(
        r#"{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"naïve"}],"max_tokens":100}"#,
    );
    let (system, user) = (r#"[{"text":"be brief"}]"#, r#"[{"text":"na\u00efve"}]"#);
    let (typed, input) = (
        r#"[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}]"#,
        r#"[{"type":"input_text","text":"naïve"}]"#,
    );
    for (dialect, path, body) in [
        (
            Dialect::Converse,
            "/model/m/converse",
            format!(
                r#"{{"system":{system},"messages":[{{"role":"user","content":{user}}}],"inferenceConfig":{{"maxTokens":100}}}}"#
            ),
        ),
        (
            Dialect::AnthropicMessages,
            "",
            r#"{"model":"claude","max_tokens":100,"system":"be brief","messages":[{"role":"user","content":"naïve"}]}"#
                .to_owned(),
        ),
        (
            Dialect::AnthropicMessages,
            "",
            format!(
                r#"{{"stream":true,"max_tokens":100,"system":{typed},"messages":[{{"role":"user","content":{user}}}]}}"#
            ),
        ),
        (
            Dialect::Invoke,
            "/model/m/invoke",
            format!(
                r#"{{"anthropic_version":"bedrock-2023-05-31","max_tokens":100,"system":{typed},"messages":[{{"role":"user","content":{user}}}]}}"#
            ),
        ),
        (
            Dialect::Invoke,
            "/model/m/invoke",
            r#"{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"naïve"}],"max_tokens":100}"#
                .to_owned(),
        ),
        (
            Dialect::OpenAiResponses,
            "",
            r#"{"instructions":"be brief","input":"naïve","max_output_tokens":100}"#.to_owned(),
        ),
        (
            Dialect::OpenAiResponses,
            "",
            format!(
                r#"{{"instructions":"be brief","input":[{{"role":"user","content":{input}}}],"max_output_tokens":100}}"#
            ),
        ),
    ] {
        let seen = read(dialect, path, &body);
        assert_eq!(seen.fingerprint, asked.fingerprint, "{body}");
        assert_eq!(
            (seen.messages, seen.prompt_bytes, seen.max_tokens),
            (2, 14, Some(100)),
            "{body}"
        );
        for (from, to) in [("be brief", "be long"), ("100", "101"), ("\"user\"", "\"assistant\"")] {
            let other = body.replace(from, to);
            if other != body {
                assert_ne!(read(dialect, path, &other).fingerprint, asked.fingerprint, "{other}");
            }
        }
    }
}

#[test]
fn the_facts_of_an_invocation_are_those_of_its_path_and_of_the_model_s_own_body() {
    let path = "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aimported-model%2Fab/invoke-with-response-stream";
    let seen = read(
        Dialect::Invoke,
        path,
        r#"{"prompt":"<s>[INST] Hi","max_gen_len":64,"model":"other","stream":false}"#,
    );
    assert_eq!(
        seen.model.as_deref(),
        Some("arn:aws:bedrock:us-east-1:1:imported-model/ab")
    );
    assert_eq!(
        (
            seen.stream,
            seen.max_tokens,
            seen.messages,
            seen.prompt_bytes
        ),
        (true, Some(64), 1, 12)
    );
    assert!(!read(Dialect::Invoke, "/model/m/invoke", "{}").stream);
}

#[test]
fn the_facts_of_a_response() {
    let seen = read(
        Dialect::OpenAiResponses,
        "/v1/responses",
        r#"{"model":"gpt","stream":true,"prompt":{"id":"stored"},"input":[{"role":"user","content":"ab"},
        {"type":"function_call","call_id":"c","name":"f","arguments":"{}"},
        {"type":"function_call_output","call_id":"c","output":"3"}]}"#,
    );
    assert_eq!((seen.model.as_deref(), seen.stream), (Some("gpt"), true));
    assert_eq!(
        (seen.max_tokens, seen.messages, seen.prompt_bytes),
        (None, 3, 2)
    );
    let output = |output: &str| {
        let body = format!(
            r#"{{"input":[{{"type":"function_call_output","call_id":"c","output":"{output}"}}]}}"#
        );
        read(Dialect::OpenAiResponses, "", &body).fingerprint
    };
    assert_ne!(output("3"), output("4"));
}

#[test]
fn an_agent_s_request_is_hashed_whole() {
    let path = "/runtimes/arn%3Aaws%3Abedrock-agentcore%3Aus-east-1%3A1%3Aruntime%2Fa-b/invocations?qualifier=DEFAULT";
    let seen = read(Dialect::AgentCore, path, r#"{"prompt":"naïve","user":"u"}"#);
    assert_eq!(
        seen.model.as_deref(),
        Some("arn:aws:bedrock-agentcore:us-east-1:1:runtime/a-b")
    );
    assert_eq!(
        (
            seen.messages,
            seen.prompt_bytes,
            seen.stream,
            seen.max_tokens
        ),
        (1, 6, false, None)
    );
    let again = read(
        Dialect::AgentCore,
        path,
        r#"{"user":"u", "prompt":"na\u00efve"}"#,
    );
    assert_eq!(again.fingerprint, seen.fingerprint);
    for other in [
        r#"{"prompt":"naïve","user":"v"}"#,
        r#"{"input":{"prompt":"naïve"}}"#,
    ] {
        assert_ne!(
            read(Dialect::AgentCore, path, other).fingerprint,
            seen.fingerprint
        );
    }
    let rpc = read(
        Dialect::AgentCore,
        path,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"sum"}}"#,
    );
    assert_eq!((rpc.tool.as_deref(), rpc.model), (Some("sum"), seen.model));
}

#[test]
fn a_tool_call_over_mcp_is_named_and_hashed_without_what_is_of_the_hop() {
    let mcp = |body: &str| read(Dialect::Mcp, "/mcp", body);
    let seen = mcp(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"q":"a","n":1},"_meta":{"progressToken":0}}}"#,
    );
    assert_eq!(
        (seen.method.as_deref(), seen.tool.as_deref()),
        (Some("tools/call"), Some("search"))
    );
    let same = r#"{"jsonrpc":"2.0","id":"9","method":"tools/call","params":{"arguments":{"n":1,"q":"a"},"name":"search"}}"#;
    assert_eq!(mcp(same).fingerprint, seen.fingerprint);
    for (from, to) in [
        ("\"a\"", "\"b\""),
        ("search", "sql"),
        ("tools/call", "prompts/get"),
    ] {
        let other = mcp(&same.replace(from, to));
        assert_ne!(other.fingerprint, seen.fingerprint, "{to}");
    }
    let listed = mcp(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert_eq!(
        (listed.method.as_deref(), listed.tool),
        (Some("tools/list"), None)
    );
    let prompt = mcp(&same.replace("tools/call", "prompts/get"));
    assert_eq!(prompt.tool, None, "a prompt is no tool");
}

#[test]
fn a_path_that_ends_like_mcp_s_is_not_enough() {
    for body in [r#"{"method":"tools/call"}"#, "{}", r#"{"jsonrpc":null}"#] {
        let error = facts(Dialect::Mcp, "/mcp", body.as_bytes()).expect_err(body);
        assert!(matches!(error, RequestError::NotRpc), "{body}");
    }
}
