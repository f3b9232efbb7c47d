//! The same answer in the shapes that servers and gateways give it. Other tools take different numbers from
//! them: see `docs/traps.md`.

use super::*;
use std::net::TcpStream;

/// Between two pieces that must not be of one instant.
const PAUSE: Duration = Duration::from_millis(60);
const MILLISECOND: u64 = 1_000_000;

const ROLE: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n";
const EMPTY: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\"}}]}\n\n";

/// One answer, each piece in a write of its own with a pause before it, as the client saw it.
fn answer_in(pieces: &[&str]) -> Told {
    let pieces: Vec<String> = pieces.iter().map(|piece| (*piece).to_owned()).collect();
    let server = Server::start(move |_, stream| {
        stream.write_all(HEAD.as_bytes()).unwrap();
        for piece in &pieces {
            std::thread::sleep(PAUSE);
            chunk(stream, piece).unwrap();
        }
        stream.write_all(b"0\r\n\r\n").is_ok()
    });
    of(&server)
}

fn of(server: &Server) -> Told {
    let lanes = Lanes::start(1).unwrap();
    one(
        &lanes,
        &client(server, &Timeouts::default(), Cut::default()),
        0,
    )
}

/// A delta with one string.
fn delta(member: &str, text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"{member}\":\"{text}\"}}}}]}}\n\n")
}

fn complete(told: &Told) {
    let call = &told.call;
    assert_eq!(
        (call.outcome, call.fault.as_deref()),
        (CallOutcome::Complete, None)
    );
}

#[test]
fn a_role_chunk_is_no_first_text_and_begins_no_gap() {
    let told = answer_in(&[ROLE, &token("a"), &token("b"), &tail(2)]);
    complete(&told);
    let (first, text) = (told.call.ttft_choice().unwrap(), told.call.ttft().unwrap());
    assert!(text >= first + 50 * MILLISECOND, "{first} {text}");
    assert_eq!(told.gaps.len(), 1);
}

#[test]
fn chunks_without_text_make_no_gap() {
    let told = answer_in(&[&token("a"), EMPTY, EMPTY, &token("b"), &tail(2)]);
    complete(&told);
    assert_eq!((told.call.text_events, told.gaps.len()), (2, 1));
    assert!(told.gaps[0] >= 150 * MILLISECOND, "{:?}", told.gaps);
}

#[test]
fn finish_usage_and_the_terminal_marker_are_no_text() {
    let told = answer_in(&[&token("a"), &token("b"), &tail(2)]);
    complete(&told);
    assert_eq!(told.call.usage_completion, Some(2));
    let (last, finish) = (told.call.last_text.unwrap(), told.call.finish.unwrap());
    assert!(finish >= last + 50 * MILLISECOND);
    // From the first text to the last one: what comes behind it is in no token's time.
    let span = last - told.call.first_text.unwrap();
    assert!((told.call.tpot().unwrap() - span as f64).abs() < 1.0);
}

#[test]
fn a_chunk_without_an_object_member_counts() {
    let with = token("b").replace("\"id\"", "\"object\":\"chat.completion.chunk\",\"id\"");
    let told = answer_in(&[&token("a"), &with, &tail(2)]);
    complete(&told);
    assert_eq!(told.call.text_events, 2);
}

#[test]
fn reasoning_is_text_under_either_name() {
    for member in ["reasoning_content", "reasoning"] {
        let told = answer_in(&[&delta(member, "hm"), &token("a"), &tail(2)]);
        complete(&told);
        assert_eq!((told.call.text_events, told.gaps.len()), (2, 1), "{member}");
        // What an agent says again is the answer alone.
        assert_eq!(told.text, "a");
    }
}

#[test]
fn an_answer_of_tool_calls_alone_has_a_first_text() {
    let call = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":null,\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}\n\n";
    let told = answer_in(&[ROLE, call, &tail(2)]);
    complete(&told);
    let first = told.call.ttft_choice().unwrap();
    assert!(told.call.ttft().unwrap() >= first + 50 * MILLISECOND);
    assert_eq!(told.tools.len(), 1);
}

#[test]
fn tokens_that_share_a_chunk_are_divided_by_the_servers_count() {
    let four = token("one two three four ");
    let told = answer_in(&[&four, &four, &four, &tail(12)]);
    complete(&told);
    assert_eq!((told.call.text_events, told.gaps.len()), (3, 2));
    let span: u64 = told.gaps.iter().sum();
    let tpot = told.call.tpot().unwrap();
    assert!((tpot * 11.0 - span as f64).abs() < 1.0, "{tpot} of {span}");
}

#[test]
fn an_event_split_over_reads_is_one_event_of_the_read_that_ends_it() {
    let (a, b) = (token("a"), token("b"));
    let (before, behind) = b.split_at(b.len() / 2);
    let told = answer_in(&[&a, before, behind, &tail(2)]);
    complete(&told);
    assert_eq!((told.call.text_events, told.gaps.len()), (2, 1));
    assert!(told.gaps[0] >= 110 * MILLISECOND, "{:?}", told.gaps);
}

#[test]
fn events_of_one_read_have_gaps_of_zero_and_the_mean_is_not_lowered() {
    let three = token("a").repeat(3);
    let told = answer_in(&[&token("a"), &three, &tail(4)]);
    complete(&told);
    assert_eq!(told.gaps[1..], [0, 0]);
    let longest = told.call.longest_gap.unwrap();
    assert_eq!(told.gaps[0], longest);
    assert!((told.call.tpot().unwrap() - longest as f64 / 3.0).abs() < 1.0);
}

#[test]
fn a_comment_alone_in_a_read_changes_nothing() {
    let told = answer_in(&[
        ": ping\n\n",
        &token("a"),
        ": ping\n\n",
        &token("b"),
        &tail(2),
    ]);
    complete(&told);
    assert_eq!((told.call.text_events, told.gaps.len()), (2, 1));
    assert!(told.gaps[0] >= 110 * MILLISECOND, "{:?}", told.gaps);
}

#[test]
fn carriage_returns_frame_events_also_in_pairs() {
    let crlf = |text: &str| text.replace('\n', "\r\n");
    let pair = crlf(&token("a").repeat(2));
    let told = answer_in(&[&crlf(&token("a")), &pair, &crlf(&tail(3))]);
    complete(&told);
    assert_eq!(told.call.text_events, 3);
}

#[test]
fn the_space_behind_data_may_be_missing_also_before_the_terminal_marker() {
    let bare = |text: &str| text.replace("data: ", "data:");
    let told = answer_in(&[&bare(&token("a")), &bare(&token("b")), &bare(&tail(2))]);
    complete(&told);
    assert_eq!(told.text, "ab");
}

#[test]
fn a_last_event_without_its_blank_line_is_read() {
    let told = answer_in(&[&token("a"), tail(1).trim_end()]);
    complete(&told);
    assert!(told.call.done.is_some());
}

#[test]
fn an_error_inside_a_stream_fails_the_call_whatever_its_code() {
    for code in ["null", "0", "\"429\""] {
        let error =
            format!("data: {{\"error\":{{\"message\":\"m\",\"type\":\"t\",\"code\":{code}}}}}\n\n");
        for pieces in [
            &[&*token("a"), &*error, &*tail(1)][..],
            &[&*error, "data: [DONE]\n\n"][..],
        ] {
            let call = answer_in(pieces).call;
            assert_eq!(call.outcome, CallOutcome::ErrorInStream, "{code}");
        }
    }
}

#[test]
fn a_polite_end_without_a_finish_reason_or_a_terminal_marker_is_truncated() {
    let finish = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    for pieces in [
        &[&*token("a")][..],
        &[&*token("a"), finish][..],
        &[&*token("a"), "data: [DONE]\n\n"][..],
    ] {
        assert_eq!(answer_in(pieces).call.outcome, CallOutcome::Truncated);
    }
}

#[test]
fn an_answer_without_text_is_no_success_and_has_no_first_text() {
    for end in [
        tail(0),
        tail(0).replace(
            ",\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":0,\"total_tokens\":9}",
            "",
        ),
    ] {
        let call = answer_in(&[ROLE, &end]).call;
        assert_eq!(call.outcome, CallOutcome::Truncated, "{end}");
        assert_eq!((call.ttft(), call.tpot()), (None, None));
    }
}

#[test]
fn a_reset_inside_the_body_is_truncated_and_keeps_what_came() {
    let server = Server::start(|_, stream: &mut TcpStream| {
        stream.write_all(HEAD.as_bytes()).unwrap();
        chunk(stream, &token("a")).unwrap();
        std::thread::sleep(PAUSE);
        // Closing without waiting for anything sends a reset.
        rustix::net::sockopt::set_socket_linger(&*stream, Some(Duration::ZERO)).unwrap();
        false
    });
    let call = of(&server).call;
    assert_eq!(call.outcome, CallOutcome::Truncated, "{:?}", call.fault);
    assert_eq!(call.text_events, 1);
    assert!(call.first_text.is_some() && call.finish.is_none());
}

#[test]
fn a_prompt_of_200_kilobytes_goes_out_whole_and_ten_thousand_events_come_in() {
    let events = 10_000;
    let server = Server::start(move |_, stream| {
        stream.write_all(HEAD.as_bytes()).unwrap();
        chunk(stream, &token("a").repeat(events)).unwrap();
        chunk(stream, &tail(10_000)).unwrap();
        stream.write_all(b"0\r\n\r\n").is_ok()
    });
    let lanes = Lanes::start(1).unwrap();
    let client = client(&server, &Timeouts::default(), Cut::default());
    let body = "x".repeat(200_000);
    let large = Ask {
        body: Bytes::from(body.clone()),
        ..ask(0)
    };
    let told = lanes
        .block_on(async move { client.call(0, large).await })
        .unwrap();
    complete(&told);
    assert_eq!(told.call.text_events, 10_000);
    assert_eq!(told.gaps.len(), events - 1);
    assert!(server.seen()[0].body == body);
}
