//! Amazon event streams: any split gives the same events, of the bytes as they are and of frames around them;
//! and every frame that was written is read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use splits::Control;
use wire::Dialect;
use wire::eventstream::{FrameDecoder, MAX_FRAME_BYTES, encode};

const KINDS: [&str; 8] = [
    "messageStart",
    "contentBlockStart",
    "contentBlockDelta",
    "contentBlockStop",
    "messageStop",
    "metadata",
    "chunk",
    "",
];

/// Each line of `body` in a frame, whose type its first byte chooses.
fn framed(body: &[u8]) -> (Vec<u8>, usize) {
    let lines: Vec<&[u8]> = body.split(|byte| *byte == b'\n').collect();
    let frame = |line: &&[u8]| {
        let first = line.first().copied().unwrap_or(0);
        let message = if first & 8 == 0 { "event" } else { "exception" };
        let kind = KINDS[usize::from(first & 7)];
        let headers = [(":message-type", message), (":event-type", kind)];
        encode(&headers, line.get(1..).unwrap_or_default())
    };
    (lines.iter().flat_map(frame).collect(), lines.len())
}

fuzz_target!(|input: &[u8]| {
    let Some((control, body)) = Control::split_off(input) else {
        return;
    };
    let (frames, count) = framed(body);
    for bytes in [body, &frames] {
        splits::frames_agree(Dialect::Converse, control, bytes);
    }
    let mut found = 0;
    let mut decoder = FrameDecoder::new(MAX_FRAME_BYTES);
    decoder.feed(&frames, &mut |_| found += 1);
    assert_eq!((found, decoder.inside_frame()), (count, false));
});
