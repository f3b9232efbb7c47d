//! InvokeModel: any split gives the same events, of the body as it is and of its lines as native events in frames;
//! and every such line is given or counted.
#![no_main]

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use libfuzzer_sys::fuzz_target;
use splits::Control;
use wire::eventstream::encode;
use wire::{Decoder, Dialect, Limits};

/// Each line of `body` as the native event of a frame.
fn framed(body: &[u8]) -> (Vec<u8>, u64) {
    let lines: Vec<&[u8]> = body.split(|byte| *byte == b'\n').collect();
    let frame = |line: &&[u8]| {
        let payload = format!(r#"{{"bytes":"{}","p":"abc"}}"#, STANDARD.encode(line));
        let headers = [(":message-type", "event"), (":event-type", "chunk")];
        encode(&headers, payload.as_bytes())
    };
    (lines.iter().flat_map(frame).collect(), lines.len() as u64)
}

fuzz_target!(|input: &[u8]| {
    splits::decoder_agrees(Dialect::Invoke, input);
    let Some((control, body)) = Control::split_off(input) else {
        return;
    };
    let (frames, count) = framed(body);
    splits::frames_agree(Dialect::Invoke, control, &frames);
    let kind = Some("application/vnd.amazon.eventstream");
    let mut decoder = Decoder::new(Dialect::Invoke, kind, Limits::default());
    let mut given = 0;
    decoder.feed(&frames, &mut |_| given += 1);
    assert_eq!(given + decoder.malformed(), count);
});
