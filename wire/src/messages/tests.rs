use super::*;

/// What every event says, and what was passed over.
fn read(events: &[&str]) -> (Vec<String>, Counts) {
    let mut messages = Messages::default();
    let mut seen = Vec::new();
    for (at, json) in events.iter().enumerate() {
        let place = Place::of_frame(at as u64);
        messages.event(json.as_bytes(), place, &mut |framed| {
            seen.push(format!("{:?}", framed.events));
        });
    }
    (seen, messages.counts)
}

#[test]
fn counts_of_the_prompt_outlast_later_events_that_leave_them_out() {
    let (seen, counts) = read(&[
        r#"{"type":"message_start","message":{"id":"m","usage":{"input_tokens":5,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,"output_tokens":1}}}"#,
        r#"{"type":"message_delta","delta":{},"usage":{"output_tokens":7}}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9,"input_tokens":6}}"#,
        r#"{"type":"message_delta","delta":{},"usage":[1]}"#,
    ]);
    for (event, prompt, completion) in [(0, 125, 1), (1, 125, 7), (2, 126, 9)] {
        let wanted = format!(
            "prompt_tokens: Some({prompt}), completion_tokens: Some({completion}), cached_tokens: Some(100)"
        );
        assert!(seen[event].contains(&wanted), "{}", seen[event]);
        assert!(seen[event].contains("cache_write_tokens: Some(20)"));
    }
    assert_eq!(
        (seen[3].as_str(), counts.unknown),
        ("[Empty { choice: 0 }]", 1)
    );
}

#[test]
fn every_reason_is_known() {
    for (raw, reason) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("tool_use", FinishReason::ToolCalls),
        ("refusal", FinishReason::ContentFilter),
        ("pause_turn", FinishReason::Other),
    ] {
        let json = format!(r#"{{"type":"message_delta","delta":{{"stop_reason":"{raw}"}}}}"#);
        assert_eq!(read(&[&json]).0, [format!("{:?}", [finish(raw)])]);
        assert_eq!(FinishReason::from_raw(raw), reason, "{raw}");
    }
}

#[test]
fn errors_of_other_servers_are_errors_and_the_rest_is_unknown() {
    let (seen, counts) = read(&[
        r#"{"error":{"message":"no","code":"429"}}"#,
        r#"{"error":"flat"}"#,
        r#"{"type":"one_of_next_year"}"#,
        r#"{"choices":[]}"#,
        "[]",
        "{",
    ]);
    assert!(seen[0].contains("message: \"no\", code: Some(\"429\")"));
    assert!(seen[1].contains("message: \"flat\""));
    assert_eq!(seen[2..], ["[Unknown]"; 3]);
    assert_eq!((counts.unknown, counts.malformed), (3, 1));
}

#[test]
fn another_id_is_counted_once_the_first_is_given() {
    let start = |id: &str| format!(r#"{{"type":"message_start","message":{{"id":"{id}"}}}}"#);
    let (seen, counts) = read(&[&start("a"), &start("a"), &start("b")]);
    assert!(seen[0].starts_with("[Id(\"a\"), Role"));
    assert_eq!(seen[1..], ["[Role { choice: 0 }]"; 2]);
    assert_eq!(counts.foreign_ids, 1);
}
