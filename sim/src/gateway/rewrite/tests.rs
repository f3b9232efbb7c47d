use super::*;

fn run(options: &GatewayOptions, events: &[&str]) -> (Vec<Parcel>, Seen) {
    let mut rewriter = Rewriter::new(options);
    let mut out = VecDeque::new();
    for (at, event) in (1..).zip(events) {
        rewriter.event(format!("{event}\n\n").into_bytes(), Some(at), &mut out);
    }
    rewriter.end(Some(99), &mut out);
    (out.into(), rewriter.reader.seen)
}

fn texts(parcels: &[Parcel]) -> Vec<String> {
    parcels
        .iter()
        .map(|parcel| String::from_utf8(parcel.bytes.clone()).unwrap())
        .collect()
}

const ROLE: &str =
    r#"data: {"id":"i","choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#;
const USAGE: &str =
    r#"data: {"id":"i","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;
const LAST: &str = r#"data: {"id":"i","choices":[{"index":0,"delta":{"content":"z"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#;

fn content(text: &str) -> String {
    format!(r#"data: {{"id":"i","choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#)
}

#[test]
fn passing_through_keeps_every_byte_and_knows_every_text() {
    let (a, b) = (content("é"), content("bc"));
    let events = [
        ROLE,
        ": ping",
        &a,
        &b,
        USAGE,
        "data: [DONE]",
        "data: {broken",
    ];
    let (parcels, seen) = run(&GatewayOptions::default(), &events);
    let raw: Vec<String> = events.iter().map(|event| format!("{event}\n\n")).collect();
    assert_eq!(texts(&parcels), raw);
    let ends: Vec<u64> = parcels
        .iter()
        .flat_map(|parcel| &parcel.tokens)
        .map(|token| token.end_text_offset)
        .collect();
    assert_eq!(ends, [2, 4]);
    assert_eq!(
        parcels[2].kind,
        Kind::Text {
            first: true,
            finish: false
        }
    );
    assert_eq!(seen.id.as_deref(), Some("i"));
    assert_eq!((seen.text_events, seen.done), (2, true));
}

#[test]
fn merging_keeps_the_position_of_every_upstream_event() {
    let options = GatewayOptions {
        merge: 2,
        ..GatewayOptions::default()
    };
    let (a, b, c) = (content("a"), content("b"), content("c"));
    let (parcels, _) = run(&options, &[ROLE, &a, &b, &c, LAST, "data: [DONE]"]);
    let bytes = texts(&parcels);
    assert!(bytes[1].contains(r#""content":"ab""#), "{}", bytes[1]);
    assert!(
        bytes[2].contains(r#""content":"c""#),
        "flushed by the finish"
    );
    assert!(bytes[3].contains(r#""content":"z""#));
    assert_eq!(parcels.len(), 5);
    assert_eq!(parcels[1].read_at, Some(3));
    let reads: Vec<_> = parcels[1]
        .tokens
        .iter()
        .map(|token| (token.end_text_offset, token.read_at))
        .collect();
    assert_eq!(reads, [(1, Some(2)), (2, Some(3))]);
}

#[test]
fn empty_chunks_go_and_usage_stays() {
    let options = GatewayOptions {
        drop_empty: true,
        ..GatewayOptions::default()
    };
    let a = content("a");
    let (parcels, _) = run(&options, &[ROLE, &content(""), &a, USAGE]);
    assert_eq!(
        texts(&parcels),
        [format!("{a}\n\n"), format!("{USAGE}\n\n")]
    );
}

#[test]
fn the_final_chunk_is_made_anew() {
    let options = GatewayOptions {
        synthesize_final: true,
        ..GatewayOptions::default()
    };
    let (parcels, _) = run(&options, &[LAST]);
    let marks: Vec<_> = parcels.iter().map(|parcel| parcel.marks.clone()).collect();
    assert_eq!(
        marks,
        [
            vec![],
            vec![Mark::Finish],
            vec![Mark::Usage],
            vec![Mark::Done]
        ]
    );
    let bytes = texts(&parcels);
    assert!(bytes[0].contains(r#""content":"z""#) && bytes[0].contains(r#""finish_reason":null"#));
    assert!(bytes[1].contains(r#""finish_reason":"stop""#) && !bytes[1].contains("usage"));
    assert!(bytes[2].contains(r#""choices":[]"#) && bytes[2].contains("usage"));
    assert_eq!(bytes[3], "data: [DONE]\n\n");
}

#[test]
fn reserialising_loses_comments_and_nothing_else() {
    let options = GatewayOptions {
        reserialize: true,
        ..GatewayOptions::default()
    };
    let (parcels, _) = run(&options, &[": ping", &content("a"), "data: [DONE]"]);
    let bytes = texts(&parcels);
    assert_eq!(bytes.len(), 2);
    let chunk: Value =
        serde_json::from_str(bytes[0].trim_start_matches("data: ").trim_end()).unwrap();
    assert_eq!(chunk["choices"][0]["delta"]["content"], "a");
    assert!(
        bytes[0].starts_with(r#"data: {"choices""#),
        "keys come in another order"
    );
}
