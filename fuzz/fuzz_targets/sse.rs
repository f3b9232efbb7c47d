//! Event stream framing: any split gives the same events, and a plain reading of the standard
//! gives the same data.
#![no_main]

use libfuzzer_sys::fuzz_target;
use splits::Control;
use wire::sse::SseDecoder;

fn frame(bound: usize, pieces: &[&[u8]]) -> Vec<String> {
    let mut decoder = SseDecoder::new(bound);
    let mut seen = Vec::new();
    for piece in pieces {
        decoder.feed(piece, &mut |event| seen.push(format!("{event:?}")));
    }
    decoder.finish(&mut |event| seen.push(format!("{event:?}")));
    seen.push(format!("{} {}", decoder.oversized(), decoder.consumed()));
    seen
}

/// The data of every event, by the standard's own steps on the whole stream at once.
fn plainly(body: &[u8]) -> Vec<Vec<u8>> {
    let body = body.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(body);
    let mut normal: Vec<u8> = Vec::new();
    for (at, &byte) in body.iter().enumerate() {
        match byte {
            b'\n' if at > 0 && body[at - 1] == b'\r' => {}
            b'\r' => normal.push(b'\n'),
            _ => normal.push(byte),
        }
    }
    let mut events = Vec::new();
    let mut data: Option<Vec<u8>> = None;
    for line in normal.split(|&byte| byte == b'\n') {
        if line.is_empty() {
            events.extend(data.take());
            continue;
        }
        let value = match line.strip_prefix(b"data") {
            Some(b"") => b"",
            Some([b':', b' ', value @ ..] | [b':', value @ ..]) => value,
            _ => continue,
        };
        match &mut data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => data = Some(value.to_vec()),
        }
    }
    events.extend(data);
    events
}

fuzz_target!(|input: &[u8]| {
    let Some((control, body)) = Control::split_off(input) else {
        return;
    };
    let whole = frame(control.bound(), &[body]);
    assert_eq!(frame(control.bound(), &control.pieces(body, 1)), whole);
    assert_eq!(frame(control.bound(), &control.pieces(body, 2)), whole);

    let mut data = Vec::new();
    let mut decoder = SseDecoder::default();
    let mut sink = |event: wire::sse::SseEvent<'_>| {
        if !event.comment {
            data.push(event.data.to_vec());
        }
    };
    decoder.feed(body, &mut sink);
    decoder.finish(&mut sink);
    assert_eq!(data, plainly(body));
});
