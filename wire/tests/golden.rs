//! Recorded and constructed bodies of real servers' shapes, each against the events written beside
//! it. `BLESS=1 cargo test -p wire --test golden` rewrites the expectations: read the difference.

#![expect(clippy::unwrap_used, reason = "a test fails loudly")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use wire::{Decoder, Dialect, Framed, Limits};

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

fn decode(path: &Path, piece: usize) -> String {
    let body = fs::read(path).unwrap();
    let content_type = match path.extension().unwrap().to_str() {
        Some("sse") => "text/event-stream; charset=utf-8",
        _ => "application/json",
    };
    let name = path.file_name().unwrap().to_str().unwrap();
    let dialect = if name.contains("completions") {
        Dialect::OpenAiCompletions
    } else {
        Dialect::OpenAiChat
    };
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
                .is_some_and(|kind| kind == "sse" || kind == "json")
        })
        .collect();
    paths.sort();
    paths
}

#[test]
fn every_fixture_gives_the_events_written_beside_it() {
    let paths = fixtures();
    assert!(paths.len() >= 10, "only {} fixtures found", paths.len());
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
