//! Decoding takes time in proportion to the bytes, however many events they are and however they are split. Alone
//! in its process, because it measures.

use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wire::{Decoder, Dialect, Limits, eventstream};

const KIND: Option<&str> = Some("application/vnd.amazon.eventstream");

/// A frame of InvokeModel's with this text in it.
fn frame(text: &str) -> Vec<u8> {
    let headers = [(":event-type", "chunk"), (":message-type", "event")];
    let native = format!(r#"{{"generation":"{text}","stop_reason":null}}"#);
    let payload = format!(r#"{{"bytes":"{}","p":"abc"}}"#, STANDARD.encode(native));
    eventstream::encode(&headers, payload.as_bytes())
}

/// The shortest of several rounds, in seconds.
fn quickest(stream: &[u8], piece: usize, frames: usize) -> f64 {
    let round = |_| {
        let begin = Instant::now();
        let mut seen = 0;
        let mut decoder = Decoder::new(Dialect::Invoke, KIND, Limits::default());
        for piece in stream.chunks(piece) {
            decoder.feed(piece, &mut |_| seen += 1);
        }
        assert_eq!((seen, decoder.malformed()), (frames, 0));
        begin.elapsed().as_secs_f64()
    };
    (0..5).map(round).fold(f64::INFINITY, f64::min)
}

#[test]
fn eight_times_as_many_frames_take_eight_times_as_long() {
    let (few, many) = (frame("x").repeat(10_000), frame("x").repeat(80_000));
    for piece in [97, 64 << 10, many.len()] {
        let (few, many) = (
            quickest(&few, piece, 10_000),
            quickest(&many, piece, 80_000),
        );
        // Who goes over all frames again with each needs 64 times as long.
        assert!(
            many < few * 24.0,
            "{many} s, an eighth {few} s, in pieces of {piece}"
        );
    }
}

#[test]
fn a_frame_eight_times_as_long_takes_eight_times_as_long() {
    let (short, long) = (frame(&"x".repeat(1 << 20)), frame(&"x".repeat(8 << 20)));
    let (short, long) = (quickest(&short, 512, 1), quickest(&long, 512, 1));
    assert!(long < short * 24.0, "{long} s, an eighth {short} s");
}
