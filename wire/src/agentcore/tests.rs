use super::*;

fn read(events: &[&str]) -> (Vec<String>, Counts) {
    let mut agent = AgentCore::default();
    let mut seen = Vec::new();
    for (at, payload) in events.iter().enumerate() {
        let place = Place::of_frame(at as u64);
        agent.event(payload.as_bytes(), place, &mut |framed| {
            seen.push(format!("{:?}", framed.events));
        });
    }
    (seen, agent.counts())
}

fn body(json: &str) -> (Vec<String>, Counts) {
    let mut agent = AgentCore::default();
    let mut seen = Vec::new();
    let place = Place::of_body(json.len() as u64);
    agent.body(json.as_bytes(), place, &mut |framed| {
        seen.push(format!("{:?}", framed.events));
    });
    (seen, agent.counts())
}

fn content(text: &str) -> String {
    format!("[Text(TextDelta {{ choice: 0, field: Content, tool: 0, text: {text:?} }})]")
}

const NONE: &str = "[Empty { choice: 0 }]";

#[test]
fn strings_and_plain_text_are_the_agent_s_text_as_it_stands() {
    let (seen, counts) = read(&[r#""a\n\"b""#, " naïve", "[1] x", "12", " ", "null", r#""""#]);
    let wanted: Vec<String> = ["a\n\"b", " naïve", "[1] x", "12", " "].map(content).into();
    assert_eq!(seen[..5], wanted);
    assert_eq!(seen[5..], [NONE, NONE]);
    assert_eq!(counts, Counts::default());
}

#[test]
fn text_that_strands_says_twice_is_given_once() {
    let event = r#"{"event":{"contentBlockDelta":{"delta":{"text":"a"}}}}"#;
    let data = r#"{"data":"a"}"#;
    let python = r#""{'data': 'a'}""#;
    assert_eq!(read(&[event, data, python]).0, [&content("a"), NONE, NONE]);
    // Of an agent that yields only the text, it is the text.
    assert_eq!(read(&[data, data]).0, [content("a"), content("a")]);
    let (seen, counts) = read(&[python]);
    assert_eq!((seen, counts.unknown), (vec!["[Unknown]".to_owned()], 1));
}

#[test]
fn the_reason_is_the_answer_s_and_the_counts_are_of_all_model_calls() {
    let metadata = |tokens: u8| {
        format!(
            r#"{{"event":{{"metadata":{{"usage":{{"inputTokens":{tokens},"outputTokens":1,"cacheReadInputTokens":2}}}}}}}}"#
        )
    };
    let stop =
        |reason: &str| format!(r#"{{"event":{{"messageStop":{{"stopReason":"{reason}"}}}}}}"#);
    let (seen, _) = read(&[
        &stop("tool_use"),
        &metadata(5),
        &stop("end_turn"),
        &metadata(7),
    ]);
    assert_eq!(seen[0], NONE);
    assert!(seen[1].contains("prompt_tokens: Some(7), completion_tokens: Some(1)"));
    assert!(seen[2].contains("reason: Stop"));
    assert!(
        seen[3].contains(
            "prompt_tokens: Some(16), completion_tokens: Some(2), cached_tokens: Some(4)"
        )
    );
}

#[test]
fn calls_of_later_messages_are_other_calls() {
    let start = r#"{"event":{"contentBlockStart":{"start":{"toolUse":{"toolUseId":"t","name":"n"}},"contentBlockIndex":1}}}"#;
    let message = r#"{"event":{"messageStart":{"role":"assistant"}}}"#;
    let (seen, _) = read(&[message, start, message, start]);
    assert!(
        seen[1].contains("tool: 0") && seen[3].contains("tool: 1"),
        "{seen:?}"
    );
}

#[test]
fn errors_are_errors_and_what_is_not_known_stays_so() {
    let failed = r#"{"error":"no","error_type":"ValueError","message":"An error occurred during streaming"}"#;
    let wanted = "[Error { message: \"no\", code: None, kind: Some(\"ValueError\") }]";
    assert_eq!(read(&[failed]).0, [wanted]);
    assert_eq!(body(failed).0, [wanted]);
    let (seen, counts) = read(&[
        r#"{"chunk":"x"}"#,
        r#"{"text":"x"}"#,
        r#"{"event":{"other":{}}}"#,
        "{x",
        "\"x",
    ]);
    assert_eq!(seen, ["[Unknown]"; 3]);
    assert_eq!((counts.unknown, counts.malformed), (3, 2));
}

#[test]
fn json_rpc_at_the_same_path_is_mcp_s() {
    let (seen, counts) = read(&[r#"{"jsonrpc":"2.0","id":1,"result":{"isError":true}}"#]);
    assert!(seen[0].contains("isError") && seen[0].contains("Done"));
    assert_eq!(counts, Counts::default());
    assert!(
        body(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1}}"#).0[0].contains("code: Some(\"-1\")")
    );
}

#[test]
fn bodies_of_the_usual_forms_have_text() {
    for (json, wanted) in [
        (r#""Hi""#, content("Hi")),
        (r#"{"result":"Hi"}"#, content("Hi")),
        (r#"{"response":"Hi","status":"success"}"#, content("Hi")),
        (
            r#"{"result":{"role":"assistant","content":[{"text":"Hi"}]}}"#,
            content("Hi"),
        ),
        (r#"{"result":[{"text":"Hi"}]}"#, content("Hi")),
        (r#"{"result":5}"#, "[Unknown]".to_owned()),
        (r#"{"answer":"Hi"}"#, "[Unknown]".to_owned()),
        (
            r#"{"message":"maxVms limit exceeded"}"#,
            "[Error { message: \"maxVms limit exceeded\", code: None, kind: None }]".to_owned(),
        ),
    ] {
        assert_eq!(body(json).0, [wanted], "{json}");
    }
    assert_eq!(body("{").1.cut, 1);
}
