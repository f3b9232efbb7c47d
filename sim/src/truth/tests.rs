use std::io::Write;

use super::*;

fn exchange(call: &str) -> ExchangeTruth {
    let mut truth = ExchangeTruth {
        role: Role::Gateway,
        call: Some(call.to_owned()),
        attempt: 1,
        outcome: Outcome::Complete,
        ..ExchangeTruth::default()
    };
    truth.set_read(Mark::RequestBody, 5);
    truth.set_written(Mark::End, Some(8), 9, u64::MAX);
    for end in [3, 7] {
        truth.push_token(TokenTruth {
            choice: 0,
            field: Field::Content,
            tool: 0,
            end_text_offset: end,
            read_at: (end > 3).then_some(6),
            write_begin: 7,
            write_end: 8,
        });
    }
    truth
}

#[test]
fn what_was_recorded_is_read_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("truth.ndjson");
    let log = Log::create(&path, Role::Gateway).unwrap();
    log.record(exchange("a"));
    log.record(exchange("b"));
    assert_eq!(
        log.close().unwrap(),
        Closed {
            exchanges: 2,
            dropped: 0
        }
    );
    assert_eq!(read(&path).unwrap(), [exchange("a"), exchange("b")]);
    log.record(exchange("late"));
    assert_eq!(log.dropped(), 1);
}

#[test]
fn a_cut_log_is_told_apart_from_a_whole_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("truth.ndjson");
    let log = Log::create(&path, Role::Engine).unwrap();
    log.record(exchange("a"));
    log.close().unwrap();
    let whole = std::fs::read_to_string(&path).unwrap();
    let without_footer = &whole[..whole.find("{\"closed\"").unwrap()];
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(without_footer.as_bytes()).unwrap();
    file.write_all(b"{\"role\":\"engi").unwrap();
    let cut = read_log(&path).unwrap();
    assert_eq!(
        (cut.exchanges.len(), cut.dropped, cut.torn),
        (1, None, true)
    );
    assert!(matches!(read(&path), Err(ReadError::Incomplete { .. })));
    file.write_all(b"\n{}\n").unwrap();
    assert!(matches!(
        read_log(&path),
        Err(ReadError::Line { line: 3, .. })
    ));
    std::fs::write(&path, "hello").unwrap();
    assert!(matches!(
        read_log(&path),
        Err(ReadError::NotATruthLog { .. })
    ));
}

#[test]
fn a_full_memory_log_drops_and_counts() {
    let log = Log::memory(2);
    for call in ["a", "b", "c"] {
        log.record(exchange(call));
    }
    assert_eq!((log.take().len(), log.dropped()), (2, 1));
}

#[test]
fn a_position_is_reached_by_the_first_event_that_covers_it() {
    let truth = exchange("a");
    let at = |offset| {
        truth
            .reached((0, Field::Content, 0), offset)
            .map(|token| token.end_text_offset)
    };
    assert_eq!(
        (at(1), at(3), at(4), at(8)),
        (Some(3), Some(3), Some(7), None)
    );
}

#[test]
fn a_log_that_cannot_be_created_names_the_path() {
    let Err(error) = Log::create(std::path::Path::new("/no/such/dir/t"), Role::Relay) else {
        panic!("created a file in a missing directory");
    };
    assert!(error.to_string().contains("/no/such/dir/t"));
}
