//! Times and lengths are those of the file, and a bad line is named.

use super::*;
use std::io::Write as _;

fn file(text: &str, suffix: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(suffix).tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// Settings for `file`, with `more` of them in JSON.
fn settings(file: &tempfile::NamedTempFile, more: &str) -> config::scenario::Trace {
    let path = file.path().display();
    serde_json::from_str(&format!("{{\"file\": \"{path}\"{more}}}")).unwrap()
}

fn rows(text: &str, suffix: &str, more: &str) -> Vec<Row> {
    let file = file(text, suffix);
    let trace = Trace::open(&settings(&file, more)).unwrap();
    let rows: Vec<Row> = trace.rows().unwrap().map(Result::unwrap).collect();
    assert_eq!(trace.info.calls, rows.len() as u64);
    assert_eq!(trace.lasts, rows.last().unwrap().due);
    rows
}

fn due(rows: &[Row]) -> Vec<u64> {
    rows.iter().map(|row| row.due).collect()
}

const MOONCAKE: &str = r#"
{"timestamp": 1000, "input_length": 1100, "output_length": 5, "hash_ids": [0, 1, 2]}
{"timestamp": 1000, "input_length": 20, "output_length": 500}

{"timestamp": 1000.25, "input_length": 512, "output_length": 0, "hash_ids": [0], "type": "chat"}
{"timestamp": 4003, "input_length": 513, "output_length": 7, "hash_ids": [0, 9]}
"#;

#[test]
fn times_and_lengths_are_those_of_the_trace() {
    let all = rows(MOONCAKE, ".jsonl", "");
    assert_eq!(due(&all), [0, 0, 250_000, 3_003_000_000]);
    let lengths: Vec<(u32, u32)> = all.iter().map(|r| (r.input, r.output)).collect();
    assert_eq!(lengths, [(1100, 5), (20, 500), (512, 1), (513, 7)]);
    let blocks: Vec<(u32, i64)> = Trace::blocks(&all[0], 512).collect();
    assert_eq!(blocks, [(512, 0), (512, 1), (76, 2)]);
    assert_eq!(Trace::blocks(&all[1], 512).count(), 0);
    // Twice as fast, and only a window of it, whose own beginning is the replay's.
    assert_eq!(
        due(&rows(MOONCAKE, ".jsonl", r#", "speed": 2.0"#)),
        [0, 0, 125_000, 1_501_500_000]
    );
    let window = r#", "from": "100us", "duration": "4s", "time_unit": "ms""#;
    assert_eq!(
        due(&rows(MOONCAKE, ".jsonl", window)),
        [150_000, 3_002_900_000]
    );
    let seconds = "{\"timestamp\": 1, \"input_length\": 1, \"output_length\": 1}\n{\"timestamp\": 3, \"input_length\": 1, \"output_length\": 1}";
    assert_eq!(
        due(&rows(seconds, ".jsonl", r#", "time_unit": "s""#)),
        [0, 2_000_000_000]
    );
    let file = file(MOONCAKE, ".jsonl");
    let info = Trace::open(&settings(&file, "")).unwrap().info;
    assert_eq!(
        (info.input_tokens, info.output_tokens, info.empty),
        (2145, 513, 1)
    );
}

#[test]
fn an_azure_trace_is_read_to_its_hundred_nanoseconds() {
    let text = "\u{feff}TIMESTAMP,ContextTokens,GeneratedTokens\r\n\
                2023-11-16 23:59:59.6805900,374,44\r\n\
                2023-11-17 00:00:00.0000001,396,109\r\n\
                2023-11-17T00:00:01+00:00,10,1\r\n";
    let all = rows(text, ".csv", "");
    assert_eq!(due(&all), [0, 319_410_100, 1_319_410_000]);
    assert_eq!((all[1].input, all[1].output), (396, 109));
}

#[test]
fn a_bad_line_is_named_with_its_number_and_the_remedy() {
    let good = "{\"timestamp\": 5, \"input_length\": 600, \"output_length\": 1}\n";
    let head = "TIMESTAMP,ContextTokens,GeneratedTokens\n";
    for (text, suffix, line, said) in [
        (
            format!("{good}\n{{\"timestamp\": 6}}"),
            ".jsonl",
            3,
            "missing field `input_length`",
        ),
        (
            format!("{good}oops"),
            ".jsonl",
            2,
            "a line is an object with `timestamp`",
        ),
        (
            format!("{good}{}", good.replace('5', "4")),
            ".jsonl",
            2,
            "sort the trace by time",
        ),
        (good.replace("600", "0"), ".jsonl", 1, "a prompt has from 1"),
        (
            good.replace('}', ", \"hash_ids\": [1]}"),
            ".jsonl",
            1,
            "600 tokens are 2 blocks of 512; correct `block_tokens`",
        ),
        (
            good.replace('}', ", \"session_id\": \"a\"}"),
            ".jsonl",
            1,
            "no sessions and no texts",
        ),
        (
            format!("{head}2023-11-16 18:15:46,x,1\n"),
            ".csv",
            2,
            "`x` is no number of tokens",
        ),
        (
            format!("{head}2023-13-16 18:15:46,1,1\n"),
            ".csv",
            2,
            "is no time",
        ),
        (
            "TIMESTAMP,Tokens\n".to_owned(),
            ".csv",
            1,
            "no column `ContextTokens`",
        ),
    ] {
        let file = file(&text, suffix);
        let error = Trace::open(&settings(&file, "")).unwrap_err().to_string();
        let place = format!("{}:{line}: ", file.path().display());
        assert!(
            error.starts_with(&place) && error.contains(said),
            "{error}\nexpected {place}{said}"
        );
    }
    let at_once = file(&good.repeat(2), ".jsonl");
    let error = Trace::open(&settings(&at_once, ""))
        .unwrap_err()
        .to_string();
    assert!(error.contains("all due at once"), "{error}");
    let empty = file("\n", ".jsonl");
    let error = Trace::open(&settings(&empty, "")).unwrap_err().to_string();
    assert!(error.contains("no call to replay"), "{error}");
    let mut missing = settings(&empty, "");
    missing.file = "no/such.jsonl".into();
    let error = Trace::open(&missing).unwrap_err().to_string();
    assert!(error.starts_with("no/such.jsonl: "), "{error}");
}
