use super::*;

/// A frame of a public capture of Bedrock (agentgateway's test data, `basic.bin`).
const GOLDEN: &str = "0000008700000052e38183330b3a6576656e742d7479706507000c6d65737361676553746172740d3a636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e0d3a6d6573736167652d747970650700056576656e747b2270223a226162636465666768696a222c22726f6c65223a22617373697374616e74227d7459264a";

fn golden() -> Vec<u8> {
    let digits: Vec<char> = GOLDEN.chars().collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// Payloads of the frames in `pieces` with the offsets at which they end, and the decoder.
fn read(pieces: &[&[u8]], bound: usize) -> (Vec<(Vec<u8>, u64)>, FrameDecoder) {
    let mut decoder = FrameDecoder::new(bound);
    let mut seen = Vec::new();
    for piece in pieces {
        decoder.feed(piece, &mut |frame| {
            seen.push((frame.payload.to_vec(), frame.end));
        });
    }
    (seen, decoder)
}

#[test]
fn a_captured_frame_is_read_and_written_byte_for_byte() {
    let bytes = golden();
    let mut seen = 0;
    FrameDecoder::new(MAX_FRAME_BYTES).feed(&bytes, &mut |frame| {
        seen += 1;
        assert_eq!(frame.header(":event-type"), Some("messageStart"));
        assert_eq!(frame.header(":message-type"), Some("event"));
        assert_eq!(frame.header("missing"), None);
        assert_eq!(frame.headers().count(), 3);
        assert_eq!(frame.payload, br#"{"p":"abcdefghij","role":"assistant"}"#);
        assert_eq!(frame.end, 135);
    });
    assert_eq!(seen, 1);
    let headers = [
        (":event-type", "messageStart"),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ];
    let payload = br#"{"p":"abcdefghij","role":"assistant"}"#;
    assert_eq!(encode(&headers, payload), bytes);
}

#[test]
fn every_split_in_two_gives_the_same_frames() {
    let stream = [golden(), encode(&[], b""), golden()].concat();
    let (whole, decoder) = read(&[&stream], MAX_FRAME_BYTES);
    assert_eq!(whole.len(), 3);
    assert!(!decoder.inside_frame());
    for at in 0..=stream.len() {
        let (before, behind) = stream.split_at(at);
        let (seen, decoder) = read(&[before, behind], MAX_FRAME_BYTES);
        assert_eq!(seen, whole, "split at {at}");
        assert_eq!(decoder.consumed(), stream.len() as u64);
    }
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(read(&bytes, MAX_FRAME_BYTES).0, whole);
}

#[test]
fn a_frame_with_a_wrong_sum_is_passed_over_and_the_next_is_read() {
    let mut stream = [golden(), golden()].concat();
    stream[100] ^= 1;
    for at in [0, 5, 50, 134, 135, 200] {
        let (before, behind) = stream.split_at(at);
        let (seen, decoder) = read(&[before, behind], MAX_FRAME_BYTES);
        assert_eq!((seen.len(), seen[0].1), (1, 270), "split at {at}");
        let malformed = Losses {
            malformed: 1,
            oversized: 0,
        };
        assert_eq!(decoder.losses(), malformed);
    }
}

#[test]
fn behind_a_prelude_that_cannot_be_believed_nothing_is_read() {
    // JSON where a frame should be, as an upstream that fails behind its head writes it; no bytes are waited for.
    for broken in [&b"{\"message\":\"no\"}"[..], &[0xFF; 64], &[0; 64]] {
        let stream = [&golden()[..], broken, &golden()].concat();
        for at in [0, 135, 140, 147, 160] {
            let (before, behind) = stream.split_at(at);
            let (seen, decoder) = read(&[before, behind], MAX_FRAME_BYTES);
            assert_eq!(seen.len(), 1, "{broken:?} split at {at}");
            assert_eq!(decoder.losses().malformed, 1);
            assert!(decoder.inside_frame() && decoder.partial.is_empty());
            assert_eq!(decoder.consumed(), stream.len() as u64);
        }
    }
}

#[test]
fn a_frame_beyond_the_bound_is_counted_and_not_kept() {
    let stream = [golden(), encode(&[], &[7; 4_000]), golden()].concat();
    let pieces: Vec<&[u8]> = stream.chunks(7).collect();
    for pieces in [vec![&stream[..]], pieces] {
        let (seen, decoder) = read(&pieces, 1_000);
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[1].1, stream.len() as u64);
        assert_eq!(decoder.losses().oversized, 1);
        assert!(decoder.partial.capacity() < 1_000 && !decoder.inside_frame());
    }
}

#[test]
fn a_stream_that_ends_inside_a_frame_says_so() {
    let stream = golden();
    for at in 1..stream.len() {
        assert!(read(&[&stream[..at]], MAX_FRAME_BYTES).1.inside_frame());
    }
}

#[test]
fn headers_of_every_type_are_read() {
    let mut headers = Vec::new();
    let mut add = |name: &str, kind: u8, value: &[u8]| {
        headers.push(u8::try_from(name.len()).unwrap());
        headers.extend_from_slice(name.as_bytes());
        headers.push(kind);
        headers.extend_from_slice(value);
    };
    add("yes", 0, &[]);
    add("no", 1, &[]);
    add("byte", 2, &[0xFE]);
    add("short", 3, &[0xFF, 0xFD]);
    add("int", 4, &[0, 0, 1, 0]);
    add("long", 5, &[0xFF; 8]);
    add("bytes", 6, &[0, 2, 9, 8]);
    add("text", 7, &[0, 2, b'h', b'i']);
    add("at", 8, &[0, 0, 0, 0, 0, 0, 0, 5]);
    add("uuid", 9, &[3; 16]);
    let all: Vec<(&str, Value<'_>)> = header::all(&headers).collect();
    assert_eq!(
        all,
        [
            ("yes", Value::Bool(true)),
            ("no", Value::Bool(false)),
            ("byte", Value::Integer(-2)),
            ("short", Value::Integer(-3)),
            ("int", Value::Integer(256)),
            ("long", Value::Integer(-1)),
            ("bytes", Value::Bytes(&[9, 8])),
            ("text", Value::String("hi")),
            ("at", Value::Timestamp(5)),
            ("uuid", Value::Uuid([3; 16])),
        ]
    );
    // One that is cut, or of a type that nobody knows, ends them.
    assert_eq!(header::all(&headers[..headers.len() - 1]).count(), 9);
    assert_eq!(header::all(&[1, b'x', 10]).count(), 0);
}

#[test]
fn a_large_frame_in_small_pieces_costs_no_more_than_a_few_copies() {
    let stream = encode(&[], &vec![7; 15 << 20]);
    let quickest = |round: &dyn Fn() -> usize| {
        let time = |_| {
            let begin = std::time::Instant::now();
            assert_eq!(round(), 1);
            begin.elapsed().as_secs_f64()
        };
        (0..3).map(time).fold(f64::INFINITY, f64::min)
    };
    let copied = quickest(&|| {
        let mut copy = Vec::new();
        for piece in stream.chunks(512) {
            copy.extend_from_slice(std::hint::black_box(piece));
        }
        usize::from(copy == stream)
    });
    let decoded = quickest(&|| {
        let mut frames = 0;
        let mut decoder = FrameDecoder::new(MAX_FRAME_BYTES);
        for piece in stream.chunks(512) {
            decoder.feed(piece, &mut |_| frames += 1);
        }
        frames
    });
    // Who copies all that is kept with each of the thirty thousand pieces needs ten thousand times as much.
    assert!(decoded < copied * 50.0, "{decoded} s, a copy {copied} s");
}
