use super::*;

fn read(events: &[&str]) -> (Vec<String>, Counts) {
    let mut responses = Responses::default();
    let mut seen = Vec::new();
    for (at, json) in events.iter().enumerate() {
        let place = Place::of_frame(at as u64);
        responses.event(json.as_bytes(), place, &mut |framed| {
            let of_item = if framed.has_choices { "item: " } else { "" };
            seen.push(format!("{of_item}{:?}", framed.events));
        });
    }
    (seen, responses.counts)
}

fn body(json: &str) -> (Vec<String>, Counts) {
    let mut responses = Responses::default();
    let mut seen = Vec::new();
    let place = Place::of_body(json.len() as u64);
    responses.body(json.as_bytes(), place, &mut |framed| {
        seen.push(format!("{:?}", framed.events));
    });
    (seen, responses.counts)
}

#[test]
fn every_end_has_its_reason() {
    for (kind, status, why, reason) in [
        ("completed", "completed", "null", "Stop, raw: \"completed\""),
        (
            "incomplete",
            "incomplete",
            r#"{"reason":"max_output_tokens"}"#,
            "Length, raw: \"max_output_tokens\"",
        ),
        (
            "incomplete",
            "incomplete",
            r#"{"reason":"content_filter"}"#,
            "ContentFilter, raw: \"content_filter\"",
        ),
        (
            "incomplete",
            "incomplete",
            "null",
            "Other, raw: \"incomplete\"",
        ),
        ("failed", "failed", "null", "Error, raw: \"failed\""),
        (
            "cancelled",
            "cancelled",
            "null",
            "Abort, raw: \"cancelled\"",
        ),
    ] {
        let response = format!(r#"{{"status":"{status}","incomplete_details":{why}}}"#);
        let event = format!(r#"{{"type":"response.{kind}","response":{response}}}"#);
        let wanted = format!("[Finish {{ choice: 0, reason: {reason} }}");
        assert_eq!(read(&[&event]).0, [format!("{wanted}, Done]")]);
        assert_eq!(body(&response).0, [format!("{wanted}]")]);
    }
}

#[test]
fn a_response_that_goes_on_has_no_end() {
    let (seen, counts) = read(&[
        r#"{"type":"response.queued","response":{"id":"r","status":"queued"}}"#,
        r#"{"type":"response.in_progress","response":{"id":"r","status":"in_progress"}}"#,
    ]);
    assert_eq!(
        seen,
        ["[Id(\"r\"), Empty { choice: 0 }]", "[Empty { choice: 0 }]"]
    );
    assert_eq!(counts, Counts::default());
    let (seen, counts) = body(r#"{"status":"queued","output":[]}"#);
    assert_eq!(seen, ["[Empty { choice: 0 }]"]);
    assert_eq!(counts, Counts::default());
}

#[test]
fn what_repeats_the_deltas_is_no_text() {
    let (seen, _) = read(&[
        r#"{"type":"response.output_text.delta","output_index":0,"delta":"ab"}"#,
        r#"{"type":"response.output_text.delta","output_index":0,"delta":""}"#,
        r#"{"type":"response.output_text.done","output_index":0,"text":"ab"}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":[{"text":"ab"}]}}"#,
        r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"text":"ab"}]}]}}"#,
    ]);
    assert_eq!(
        seen.iter().filter(|event| event.contains("Text(")).count(),
        1
    );
    assert_eq!(seen[1..4], ["item: [Empty { choice: 0 }]"; 3]);
}

#[test]
fn tool_calls_are_counted_among_themselves() {
    let added = |index: u8, kind: &str| {
        format!(
            r#"{{"type":"response.output_item.added","output_index":{index},"item":{{"type":"{kind}","id":"i{index}","name":"f"}}}}"#
        )
    };
    let (seen, _) = read(&[
        &added(1, "function_call"),
        &added(2, "message"),
        &added(3, "mcp_call"),
        r#"{"type":"response.mcp_call_arguments.delta","output_index":3,"delta":"{}"}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":1,"delta":"x"}"#,
    ]);
    assert!(seen[0].contains("tool: 0, id: Some(\"i1\"), name: Some(\"f\")"));
    assert_eq!(seen[1], "item: [Role { choice: 0 }]");
    assert!(seen[2].contains("tool: 1, id: Some(\"i3\")"));
    assert!(seen[3].contains("tool: 1, text: \"{}\""));
    assert!(seen[4].contains("tool: 0, text: \"x\""));
}

#[test]
fn only_a_call_that_is_the_caller_s_ends_the_answer() {
    let end = r#"{"type":"response.completed","response":{"status":"completed"}}"#;
    let arguments =
        |kind: &str| format!(r#"{{"type":"response.{kind}.delta","output_index":0,"delta":"x"}}"#);
    for (kind, reason) in [
        ("function_call_arguments", "ToolCalls"),
        ("custom_tool_call_input", "ToolCalls"),
        ("mcp_call_arguments", "Stop"),
        ("output_text", "Stop"),
    ] {
        let (seen, _) = read(&[&arguments(kind), end]);
        assert!(
            seen[1].contains(&format!("reason: {reason}")),
            "{kind}: {seen:?}"
        );
    }
    for (kind, reason) in [("function_call", "ToolCalls"), ("mcp_call", "Stop")] {
        let item = format!(r#"{{"status":"completed","output":[{{"type":"{kind}","name":"f"}}]}}"#);
        assert!(
            body(&item).0[0].contains(&format!("reason: {reason}")),
            "{kind}"
        );
    }
}

#[test]
fn what_is_not_known_is_counted() {
    let (seen, counts) = read(&[
        r#"{"type":"response.audio.delta","delta":"AAAA"}"#,
        r#"{"type":"another"}"#,
        r#"{"choices":[]}"#,
        r#"{"type":"response.completed","response":3}"#,
        r#"{"type":"response.completed","response":{"status":"completed","usage":{}}}"#,
    ]);
    assert_eq!(seen[..4], ["[Unknown]"; 4]);
    assert!(seen[4].ends_with("Done]"));
    assert_eq!((counts.unknown, counts.malformed), (5, 0));
    assert_eq!(body("{}").0, ["[Unknown]"]);
    let (seen, counts) = body(r#"{"status":"completed","output":{"a":1}}"#);
    assert!(seen[0].contains("completed"));
    assert_eq!(counts.unknown, 1);
}
