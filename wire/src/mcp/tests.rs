use super::*;

fn read(json: &str) -> (Vec<String>, Counts) {
    let mut mcp = Mcp::default();
    let mut seen = Vec::new();
    let place = Place::of_body(json.len() as u64);
    mcp.payload(json.as_bytes(), place, &mut |framed| {
        assert!(!framed.has_choices);
        seen.push(format!("{:?}", framed.events));
    });
    (seen, mcp.counts)
}

#[test]
fn a_response_is_a_result_a_failure_or_an_error() {
    for (member, wanted) in [
        (
            r#""result":{"content":[]}"#,
            "[Finish { choice: 0, reason: Stop, raw: \"result\" }, Done]",
        ),
        (
            r#""result":{"isError":false}"#,
            "[Finish { choice: 0, reason: Stop, raw: \"result\" }, Done]",
        ),
        (
            r#""result":{"isError":true}"#,
            "[Finish { choice: 0, reason: Error, raw: \"isError\" }, Done]",
        ),
        (
            r#""result":3"#,
            "[Finish { choice: 0, reason: Stop, raw: \"result\" }, Done]",
        ),
        (
            r#""error":{"code":-32602,"message":"Unknown tool"}"#,
            "[Error { message: \"Unknown tool\", code: Some(\"-32602\"), kind: None }, Done]",
        ),
        (
            r#""method":"notifications/progress""#,
            "[Empty { choice: 0 }]",
        ),
    ] {
        let (seen, counts) = read(&format!(r#"{{"jsonrpc":"2.0","id":1,{member}}}"#));
        assert_eq!(seen, [wanted], "{member}");
        assert_eq!(counts, Counts::default());
    }
}

#[test]
fn a_list_is_read_as_its_messages() {
    let (seen, counts) = read(
        r#"[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":1,"result":{}},{"id":2,"result":{}}]"#,
    );
    assert_eq!(
        seen,
        [
            "[Empty { choice: 0 }, Finish { choice: 0, reason: Stop, raw: \"result\" }, Unknown, Done]"
        ]
    );
    assert_eq!(counts.unknown, 1);
}

#[test]
fn what_is_no_json_rpc_is_unknown() {
    for json in [r#"{"result":{}}"#, r#"{"jsonrpc":"2.0"}"#, "[]", "[3]", "3"] {
        let (seen, counts) = read(json);
        assert_eq!(
            (seen, counts.unknown),
            (vec!["[Unknown]".to_owned()], 1),
            "{json}"
        );
    }
    assert_eq!(read("[{").1.cut, 1);
    assert_eq!(read("{]").1.malformed, 1);
}
