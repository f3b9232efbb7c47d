//! Recorded and constructed bodies of real servers' shapes, each against the events written beside
//! it. `BLESS=1 cargo test -p wire --test golden` rewrites the expectations: read the difference.

#![expect(clippy::unwrap_used, reason = "a test fails loudly")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wire::{Decoder, Dialect, Framed, Limits, eventstream};

fn render(framed: &Framed<'_>, out: &mut String) {
    let choices = if framed.has_choices { " choices" } else { "" };
    let unterminated = if framed.unterminated {
        " unterminated"
    } else {
        ""
    };
    writeln!(out, "{}{choices}{unterminated}", framed.end).unwrap();
    for event in framed.events {
        writeln!(out, "    {event:?}").unwrap();
    }
}

/// The dialect that a fixture's name begins with.
fn dialect(name: &str) -> Dialect {
    let dialects = [
        ("agentcore", Dialect::AgentCore),
        ("converse", Dialect::Converse),
        ("invoke", Dialect::Invoke),
        ("mcp", Dialect::Mcp),
        ("messages", Dialect::AnthropicMessages),
        ("responses", Dialect::OpenAiResponses),
    ];
    let named = dialects.iter().find(|(prefix, _)| name.starts_with(prefix));
    match named {
        Some((_, dialect)) => *dialect,
        None if name.contains("completions") => Dialect::OpenAiCompletions,
        None => Dialect::OpenAiChat,
    }
}

/// A frame a line: the event's type and its JSON; of a `chunk` the native JSON, of an exception its type behind
/// a `!`. Padding is added as the service adds it.
fn frames(lines: &str) -> Vec<u8> {
    let frame = |line: &str| {
        let (kind, json) = line.split_once(' ').unwrap();
        let payload = match kind {
            "chunk" => format!(r#"{{"bytes":"{}","p":"abcdefgh"}}"#, STANDARD.encode(json)),
            _ => json.replacen('{', r#"{"p":"abcdefghijkl","#, 1),
        };
        let headers = match kind.strip_prefix('!') {
            Some(kind) => [(":exception-type", kind), (":message-type", "exception")],
            None => [(":event-type", kind), (":message-type", "event")],
        };
        eventstream::encode(&headers, payload.as_bytes())
    };
    lines.lines().flat_map(frame).collect()
}

fn decode(path: &Path, piece: usize) -> String {
    let mut body = fs::read(path).unwrap();
    let content_type = match path.extension().unwrap().to_str() {
        Some("sse") => "text/event-stream; charset=utf-8",
        Some("frames") => {
            body = frames(std::str::from_utf8(&body).unwrap());
            "application/vnd.amazon.eventstream"
        }
        _ => "application/json",
    };
    let dialect = dialect(path.file_name().unwrap().to_str().unwrap());
    let mut decoder = Decoder::new(dialect, Some(content_type), Limits::default());
    let mut out = String::new();
    for piece in body.chunks(piece) {
        decoder.feed(piece, &mut |framed| render(&framed, &mut out));
    }
    decoder.finish(&mut |framed| render(&framed, &mut out));
    writeln!(out, "{:?}", decoder.counts()).unwrap();
    out
}

fn fixtures() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|kind| kind == "sse" || kind == "json" || kind == "frames")
        })
        .collect();
    paths.sort();
    paths
}

#[test]
fn every_fixture_gives_the_events_written_beside_it() {
    let paths = fixtures();
    assert!(paths.len() >= 30, "only {} fixtures found", paths.len());
    for path in paths {
        let expected = PathBuf::from(format!("{}.events", path.display()));
        let seen = decode(&path, usize::MAX);
        if std::env::var_os("BLESS").is_some() {
            fs::write(&expected, &seen).unwrap();
        }
        let wanted = fs::read_to_string(&expected).unwrap_or_default();
        assert_eq!(seen, wanted, "{}", path.display());
        for piece in [1, 2, 7, 64] {
            assert_eq!(
                decode(&path, piece),
                wanted,
                "{} in pieces of {piece}",
                path.display()
            );
        }
    }
}
