//! The rows of a run as Parquet tables. Instants are `CLOCK_MONOTONIC` nanoseconds.

use super::parquet::{Table, write_rows};
use super::{RunDir, RunDirError};
use crate::client::ClientCall;
use crate::exchange::Exchange;
use crate::stamp::Passage;

fn int(value: u64) -> Option<i64> {
    i64::try_from(value).ok()
}

type Instant = (&'static str, fn(&ClientCall) -> Option<u64>);

/// Writes `calls.parquet`.
///
/// # Errors
/// The file cannot be written.
pub fn write_calls(
    run: &RunDir,
    calls: impl Iterator<Item = ClientCall>,
) -> Result<(), RunDirError> {
    write_rows(&run.root().join("calls.parquet"), calls, of_calls)
}

fn of_calls(calls: &[ClientCall]) -> Table {
    let mut t = Table::default();
    let instants: [Instant; 9] = [
        ("intended_ns", |c| Some(c.intended)),
        ("started_ns", |c| Some(c.started)),
        ("sent_ns", |c| c.sent),
        ("head_ns", |c| c.head),
        ("first_choice_ns", |c| c.first_choice),
        ("first_text_ns", |c| c.first_text),
        ("last_text_ns", |c| c.last_text),
        ("done_ns", |c| c.done),
        ("end_ns", |c| Some(c.end)),
    ];
    t.int("cell", calls.iter().map(|c| Some(i64::from(c.cell))));
    t.int("seq", calls.iter().map(|c| int(c.seq)));
    t.int("task", calls.iter().map(|c| c.task.map(|t| i64::from(t.0))));
    t.int("turn", calls.iter().map(|c| c.task.map(|t| i64::from(t.1))));
    t.flag("cold", calls.iter().map(|c| c.cold));
    t.flag("warmup", calls.iter().map(|c| Some(c.warmup)));
    for (name, pick) in instants {
        t.int(name, calls.iter().map(|c| pick(c).and_then(int)));
    }
    t.int("ttft_ns", calls.iter().map(|c| c.ttft().and_then(int)));
    t.int(
        "ttft_intended_ns",
        calls.iter().map(|c| c.ttft_intended().and_then(int)),
    );
    t.int(
        "ttft_choice_ns",
        calls.iter().map(|c| c.ttft_choice().and_then(int)),
    );
    t.int("e2e_ns", calls.iter().map(|c| c.e2e().and_then(int)));
    t.float("tpot_ns", calls.iter().map(ClientCall::tpot));
    t.int("status", calls.iter().map(|c| c.status.map(i64::from)));
    t.text(
        "outcome",
        calls.iter().map(|c| Some(c.outcome.name().to_owned())),
    );
    t.text("fault", calls.iter().map(|c| c.fault.clone()));
    t.flag("reused", calls.iter().map(|c| Some(c.reused)));
    t.int(
        "prompt_tokens",
        calls.iter().map(|c| Some(i64::from(c.prompt_tokens))),
    );
    t.int(
        "usage_prompt_tokens",
        calls.iter().map(|c| c.usage_prompt.map(i64::from)),
    );
    t.int(
        "usage_cached_tokens",
        calls.iter().map(|c| c.usage_cached.map(i64::from)),
    );
    t.int(
        "usage_cache_write_tokens",
        calls.iter().map(|c| c.usage_cache_write.map(i64::from)),
    );
    t.int(
        "usage_completion_tokens",
        calls.iter().map(|c| c.usage_completion.map(i64::from)),
    );
    t.int(
        "text_events",
        calls.iter().map(|c| Some(i64::from(c.text_events))),
    );
    t.int(
        "longest_gap_ns",
        calls.iter().map(|c| c.longest_gap.and_then(int)),
    );
    t.text("response_id", calls.iter().map(|c| c.response_id.clone()));
    t.int(
        "claimed_overhead_ns",
        calls.iter().map(|c| c.claimed_overhead.and_then(int)),
    );
    t
}

/// Writes `exchanges.parquet`. Each mark is the arrival's best estimate, its earliest bound, and
/// when the bytes began to leave.
///
/// # Errors
/// The file cannot be written.
pub fn write_exchanges(
    run: &RunDir,
    all: impl Iterator<Item = Exchange>,
) -> Result<(), RunDirError> {
    write_rows(&run.root().join("exchanges.parquet"), all, of_exchanges)
}

fn of_exchanges(all: &[Exchange]) -> Table {
    let mut t = Table::default();
    t.text("id", all.iter().map(|e| Some(format!("{:016x}", e.id))));
    t.text("chain", all.iter().map(|e| Some(e.chain.to_string())));
    t.text("tap", all.iter().map(|e| Some(e.tap.to_string())));
    t.text("call", all.iter().map(|e| e.keys.call.clone()));
    t.text("request", all.iter().map(|e| e.keys.client.clone()));
    t.text(
        "upstream",
        all.iter()
            .map(|e| e.connection.upstream.as_ref().map(ToString::to_string)),
    );
    t.text(
        "client_class",
        all.iter()
            .map(|e| Some(e.connection.client_class.name().to_owned())),
    );
    t.text(
        "upstream_class",
        all.iter()
            .map(|e| Some(e.connection.upstream_class.name().to_owned())),
    );
    t.flag(
        "upstream_reused",
        all.iter().map(|e| e.connection.upstream_reused),
    );
    t.int(
        "connect_ns",
        all.iter().map(|e| e.connection.connect.and_then(int)),
    );
    t.int("status", all.iter().map(|e| e.status.map(i64::from)));
    t.text(
        "outcome",
        all.iter().map(|e| Some(e.outcome.name().to_owned())),
    );
    t.text("fault", all.iter().map(|e| e.fault.clone()));
    passages(&mut t, all);
    t.int("closed_ns", all.iter().map(|e| int(e.marks.closed)));
    t.int("request_bytes", all.iter().map(|e| int(e.request.bytes)));
    t.text(
        "request_hash",
        all.iter()
            .map(|e| e.request.body_hash.map(|h| format!("{h:016x}"))),
    );
    t.int("response_bytes", all.iter().map(|e| int(e.response_bytes)));
    t.int(
        "events",
        all.iter().map(|e| Some(i64::from(e.stream.counts.events))),
    );
    t.int(
        "text_events",
        all.iter()
            .map(|e| Some(i64::from(e.stream.counts.text_events))),
    );
    t.int(
        "joined_events",
        all.iter()
            .map(|e| Some(i64::from(e.pressure.joined_events))),
    );
    t.int(
        "client_blocked_ns",
        all.iter().map(|e| int(e.pressure.client_blocked)),
    );
    t.int(
        "upstream_blocked_ns",
        all.iter().map(|e| int(e.pressure.upstream_blocked)),
    );
    t.text(
        "response_id",
        all.iter().map(|e| e.stream.response_id.clone()),
    );
    t.text(
        "finish_reason",
        all.iter().map(|e| e.stream.finish_reason.clone()),
    );
    let usage = |pick: fn(&wire::Usage) -> Option<u64>| {
        all.iter()
            .map(move |e| e.stream.usage.as_ref().and_then(pick).and_then(int))
    };
    t.int("prompt_tokens", usage(|u| u.prompt_tokens));
    t.int("completion_tokens", usage(|u| u.completion_tokens));
    t.int("cached_tokens", usage(|u| u.cached_tokens));
    t.int("cache_write_tokens", usage(|u| u.cache_write_tokens));
    let server = |pick: fn(&wire::ServerFigures) -> Option<u64>| {
        all.iter()
            .map(move |e| e.stream.server.as_ref().and_then(pick).and_then(int))
    };
    t.int("server_latency_ms", server(|s| s.latency_ms));
    t.int("server_first_byte_ms", server(|s| s.first_byte_ms));
    let guardrail = || all.iter().map(|e| e.stream.guardrail);
    t.flag(
        "guardrail_intervened",
        guardrail().map(|found| Some(found?.intervened)),
    );
    t.int(
        "guardrail_latency_ms",
        guardrail().map(|found| int(found?.latency_ms?)),
    );
    t.text("rpc", all.iter().map(|e| e.request.rpc.clone()));
    t.text("tool", all.iter().map(|e| e.request.tool.clone()));
    t.int(
        "claimed_overhead_ns",
        all.iter().map(|e| e.claims.overhead.and_then(int)),
    );
    t
}

type Mark = (
    &'static str,
    &'static str,
    &'static str,
    fn(&Exchange) -> Option<Passage>,
);

fn passages(t: &mut Table, all: &[Exchange]) {
    let marks: [Mark; 8] = [
        ("head_in_ns", "head_in_earliest_ns", "head_out_ns", |e| {
            Some(e.marks.head)
        }),
        (
            "request_in_ns",
            "request_in_earliest_ns",
            "request_out_ns",
            |e| e.marks.request,
        ),
        (
            "response_head_in_ns",
            "response_head_in_earliest_ns",
            "response_head_out_ns",
            |e| e.marks.response_head,
        ),
        (
            "first_text_in_ns",
            "first_text_in_earliest_ns",
            "first_text_out_ns",
            |e| e.stream.marks.first_text,
        ),
        (
            "last_text_in_ns",
            "last_text_in_earliest_ns",
            "last_text_out_ns",
            |e| e.stream.marks.last_text,
        ),
        (
            "finish_in_ns",
            "finish_in_earliest_ns",
            "finish_out_ns",
            |e| e.stream.marks.finish,
        ),
        ("done_in_ns", "done_in_earliest_ns", "done_out_ns", |e| {
            e.stream.marks.done
        }),
        ("end_in_ns", "end_in_earliest_ns", "end_out_ns", |e| {
            e.marks.end
        }),
    ];
    for (came, earliest, left, pick) in marks {
        t.int(
            came,
            all.iter()
                .map(|e| pick(e).and_then(|p| int(p.arrival.latest()))),
        );
        t.int(
            earliest,
            all.iter()
                .map(|e| pick(e).and_then(|p| int(p.arrival.earliest()))),
        );
        t.int(
            left,
            all.iter()
                .map(|e| pick(e).and_then(|p| p.departure).and_then(|d| int(d.begin))),
        );
    }
}
