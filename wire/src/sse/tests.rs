use super::{SseDecoder, SseEvent};

/// What a test compares: an event without borrowed parts.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Owned {
    data: Vec<u8>,
    event: Option<String>,
    id: Option<String>,
    comment: bool,
    unterminated: bool,
    end: u64,
}

fn own(event: &SseEvent<'_>) -> Owned {
    Owned {
        data: event.data.to_vec(),
        event: event.event.map(str::to_owned),
        id: event.id.map(str::to_owned),
        comment: event.comment,
        unterminated: event.unterminated,
        end: event.end,
    }
}

fn decode_pieces(pieces: &[&[u8]], bound: usize) -> (Vec<Owned>, u64) {
    let mut decoder = SseDecoder::new(bound);
    let mut events = Vec::new();
    for piece in pieces {
        decoder.feed(piece, &mut |event| events.push(own(&event)));
    }
    decoder.finish(&mut |event| events.push(own(&event)));
    (events, decoder.oversized())
}

/// Decodes at once, byte by byte and at every single split, and requires the same of all.
fn decode_bounded(bytes: &[u8], bound: usize) -> (Vec<Owned>, u64) {
    let whole = decode_pieces(&[bytes], bound);
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(decode_pieces(&single, bound), whole, "byte by byte");
    for at in 0..=bytes.len() {
        let (left, right) = bytes.split_at(at);
        assert_eq!(decode_pieces(&[left, right], bound), whole, "split at {at}");
    }
    whole
}

fn decode(bytes: &[u8]) -> Vec<Owned> {
    decode_bounded(bytes, 1 << 20).0
}

fn data(bytes: &[u8]) -> Vec<String> {
    decode(bytes)
        .iter()
        .map(|event| String::from_utf8_lossy(&event.data).into_owned())
        .collect()
}

#[test]
fn every_line_ending_and_their_mixture_frame_alike() {
    for ending in ["\n", "\r", "\r\n"] {
        let bytes = "data: a~~data: b~data:c~~".replace('~', ending);
        assert_eq!(data(bytes.as_bytes()), ["a", "b\nc"], "{ending:?}");
    }
    assert_eq!(
        data(b"data: a\r\n\ndata: b\n\rdata: c\r\rdata: d\n\r\n"),
        ["a", "b", "c", "d"]
    );
}

#[test]
fn a_cr_ends_an_event_without_waiting_for_a_line_feed() {
    let mut decoder = SseDecoder::default();
    let mut ends = Vec::new();
    decoder.feed(b"data: a\r\n\r", &mut |event| ends.push(event.end));
    assert_eq!(ends, [10]);
    decoder.feed(b"\ndata: b\r\n\r\n", &mut |event| ends.push(event.end));
    assert_eq!(ends, [10, 21]);
}

#[test]
fn ends_are_body_offsets() {
    let ends: Vec<u64> = decode(b"\xEF\xBB\xBFdata: a\n\n: c\ndata: b\n\ndata: c")
        .iter()
        .map(|event| event.end)
        .collect();
    assert_eq!(ends, [12, 16, 25, 32]);
}

#[test]
fn a_byte_order_mark_counts_only_at_the_start() {
    assert_eq!(data(b"\xEF\xBB\xBFdata: a\n\n"), ["a"]);
    assert_eq!(data(b"data: a\n\n\xEF\xBB\xBFdata: b\n\n"), ["a"]);
    assert_eq!(data(b"\xEF\xBBdata: a\n\ndata: b\n\n"), ["b"]);
    assert_eq!(data(b"\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\n"), [""; 0]);
    assert_eq!(data(b"\xEF\xBB\xBF: c\n"), [""]);
}

#[test]
fn a_comment_is_reported_and_neither_ends_nor_spoils_an_event() {
    let events = decode(b": heartbeat\ndata: a\n: heartbeat\ndata: b\n\n:\n");
    let seen: Vec<_> = events
        .iter()
        .map(|event| (event.comment, &event.data[..]))
        .collect();
    assert_eq!(
        seen,
        [(true, &b""[..]), (true, b""), (false, b"a\nb"), (true, b"")]
    );
    assert!(events.iter().all(|event| !event.unterminated));
}

#[test]
fn one_space_after_the_colon_is_not_data() {
    assert_eq!(
        data(b"data:a\n\ndata: a\n\ndata:  a\n\ndata:\ta\n\n"),
        ["a", "a", " a", "\ta"]
    );
}

#[test]
fn data_without_a_colon_and_empty_data_are_events() {
    assert_eq!(data(b"data\n\ndata:\n\ndata\ndata\n\n"), ["", "", "\n"]);
}

#[test]
fn an_event_without_data_is_none_and_its_fields_do_not_leak() {
    let events = decode(b"event: x\nid: 1\n\ndata: a\n\n");
    assert_eq!(events.len(), 1);
    assert_eq!((&events[0].event, &events[0].id), (&None, &None));
}

#[test]
fn fields_are_known_by_their_exact_name() {
    let events = decode(b"event: e1\nevent: e2\nid: 7\nretry: 5\nData: x\n data: y\ndata: a\n\n");
    assert_eq!(events.len(), 1);
    assert_eq!(events[0].data, b"a");
    assert_eq!(events[0].event.as_deref(), Some("e2"));
    assert_eq!(events[0].id.as_deref(), Some("7"));
}

#[test]
fn an_id_with_a_nul_and_a_name_that_is_not_utf8_are_ignored() {
    let events = decode(b"id: a\0b\nevent: \xFF\ndata: a\n\n");
    assert_eq!((&events[0].event, &events[0].id), (&None, &None));
}

#[test]
fn what_the_end_leaves_open_is_unterminated() {
    for (bytes, unterminated) in [
        (&b"data: a\n\n"[..], false),
        (b"data: a\r\r", false),
        (b"data: a\n", true),
        (b"data: a", true),
        (b"data: a\r\n", true),
        (b"data: a\n: c\n", true),
        (b"data: a\nda", true),
    ] {
        let events = decode(bytes);
        let event = events
            .iter()
            .find(|event| !event.comment)
            .expect("an event");
        assert_eq!(event.unterminated, unterminated, "{bytes:?}");
        assert_eq!(event.data, b"a");
    }
    assert_eq!(
        decode(b": c")
            .iter()
            .filter(|event| event.unterminated)
            .count(),
        1
    );
    assert!(decode(b"").is_empty());
}

#[test]
fn characters_survive_a_split_inside() {
    assert_eq!(data("data: né→🦀\n\n".as_bytes()), ["né→🦀"]);
}

#[test]
fn an_event_at_the_bound_passes_and_one_beyond_is_dropped() {
    let (events, oversized) = decode_bounded(b"data: 4567\n\ndata: 45678\n\ndata: a\n\n", 10);
    assert_eq!(oversized, 1);
    let seen: Vec<&[u8]> = events.iter().map(|event| &event.data[..]).collect();
    assert_eq!(seen, [&b"4567"[..], b"a"]);
}

#[test]
fn the_bound_covers_all_lines_of_an_event_and_no_comment() {
    let (events, oversized) = decode_bounded(
        b": a long comment\ndata: a\n: another\ndata: b\ndata: c\n\ndata: d\n\n",
        14,
    );
    assert_eq!(oversized, 1);
    let seen: Vec<_> = events
        .iter()
        .map(|event| (event.comment, &event.data[..]))
        .collect();
    assert_eq!(seen, [(true, &b""[..]), (true, b""), (false, b"d")]);
}

#[test]
fn an_oversized_event_at_the_end_is_counted_once() {
    let (events, oversized) = decode_bounded(b"data: 0123456789\ndata: x", 8);
    assert_eq!((events.len(), oversized), (0, 1));
}

#[test]
fn four_mebibytes_pass_in_small_reads() {
    let text = "x".repeat((4 << 20) - 6);
    let stream = format!("data: {text}\n\ndata: b\n\n");
    let mut lengths = Vec::new();
    let mut decoder = SseDecoder::default();
    for piece in stream.as_bytes().chunks(1000) {
        decoder.feed(piece, &mut |event| lengths.push(event.data.len()));
    }
    assert_eq!(lengths, [text.len(), 1]);
    assert_eq!(
        (decoder.oversized(), decoder.consumed()),
        (0, stream.len() as u64)
    );
}

#[test]
fn memory_stays_bounded_and_is_given_back() {
    let mut decoder = SseDecoder::new(1 << 20);
    let block = vec![b'x'; 64 << 10];
    decoder.feed(b"data: ", &mut |_| {});
    for _ in 0..1000 {
        decoder.feed(&block, &mut |_| {});
        assert!(decoder.line.capacity() <= 4 << 20);
    }
    decoder.feed(b"\n\n", &mut |_| panic!("the event is oversized"));
    let held: usize = [&decoder.line, &decoder.data]
        .map(Vec::capacity)
        .iter()
        .sum();
    assert!(held <= 2 * super::RETAINED_BYTES, "{held} bytes still held");
    assert_eq!(decoder.oversized(), 1);
}
