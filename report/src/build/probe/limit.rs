//! What a limit let through.

use super::looks;
use crate::model::{LimitFinding, LimitVerdict};
use record::probe::{Fate, LimitCall, LimitRun, LimitUnit, Reason};

/// Money that is no difference: sums of many small amounts.
const NOTHING: f64 = 1e-9;

/// The finding of one drive. A gateway's window begins at the first send or later, so that what was decided
/// within one window's time after the first send was decided in that one.
pub(super) fn finding(run: &LimitRun) -> LimitFinding {
    let window = run.window.unwrap_or(u64::MAX);
    let decided = |call: &&LimitCall| call.head.unwrap_or(call.end) < window;
    let in_time: Vec<&LimitCall> = run.calls.iter().filter(decided).collect();
    let count = |is: &dyn Fn(Fate) -> bool| {
        let of = in_time.iter().filter(|call| is(call.answer.fate()));
        of.count() as u64
    };
    let this = |fate: Fate| matches!(fate, Fate::Refused(reason) if is_of(run.unit, reason));
    let admitted: Vec<&LimitCall> = in_time
        .iter()
        .filter(|call| call.answer.fate() == Fate::Admitted)
        .copied()
        .collect();
    let (used, without_usage) = used(run.unit, &admitted);
    let beyond = (used - run.limit).max(0.0);
    let beyond = if beyond > run.limit * NOTHING {
        beyond
    } else {
        0.0
    };
    let refusals = in_time.iter().filter(|c| this(c.answer.fate()));
    let first_refusal = refusals.clone().filter_map(|call| call.head).min();
    let after = |call: &&&LimitCall| first_refusal.is_some_and(|at| call.sent > at);
    let after_refusal = admitted.iter().filter(after).count() as u64;
    let retry = refusals.filter_map(|call| call.answer.retry_after);
    let mut found = LimitFinding {
        chain: run.chain.clone(),
        probe: run.probe.clone(),
        unit: run.unit,
        limit: run.limit,
        window: run.window,
        concurrency: run.concurrency,
        ended: run.ended,
        admitted: admitted.len() as u64,
        refused: count(&this),
        other: count(&|fate| matches!(fate, Fate::Refused(_)) && !this(fate)),
        unclear: count(&|fate| matches!(fate, Fate::Unclear | Fate::Failed)),
        late: (run.calls.len() - in_time.len()) as u64,
        used,
        without_usage,
        beyond,
        beyond_share: beyond / run.limit,
        calls_beyond: match run.unit {
            LimitUnit::Requests => beyond as u64,
            unit => sent_beyond(unit, run.limit, &admitted),
        },
        after_refusal,
        first_refusal,
        passed_again: passed_again(run),
        tried_again: !run.tries.is_empty(),
        retry_after: retry.fold(None, |range, seconds| {
            let (low, high) = range.unwrap_or((seconds, seconds));
            Some((low.min(seconds), high.max(seconds)))
        }),
        refusals: looks(
            in_time
                .iter()
                .map(|call| &call.answer)
                .filter(|answer| answer.fate() != Fate::Admitted),
        ),
        verdict: LimitVerdict::Held,
    };
    found.verdict = verdict(&found);
    found
}

/// Whether a refusal for `reason` is one of a limit of `unit`.
fn is_of(unit: LimitUnit, reason: Reason) -> bool {
    match unit {
        LimitUnit::Requests => matches!(reason, Reason::Requests | Reason::Rate),
        LimitUnit::Tokens => matches!(reason, Reason::Tokens | Reason::Rate),
        LimitUnit::Usd { .. } => reason == Reason::Budget,
    }
}

fn taken(unit: LimitUnit, call: &LimitCall) -> Option<f64> {
    match unit {
        LimitUnit::Requests => Some(1.0),
        _ => call
            .tokens
            .map(|(prompt, completion)| unit.of(prompt, completion)),
    }
}

/// What these calls used, and how many of them do not say.
fn used(unit: LimitUnit, admitted: &[&LimitCall]) -> (f64, u64) {
    let all = admitted.iter().map(|call| taken(unit, call));
    let silent = all.clone().filter(Option::is_none).count() as u64;
    (all.flatten().sum(), silent)
}

/// Calls that were sent after answers read to their end had used the limit up.
fn sent_beyond(unit: LimitUnit, limit: f64, admitted: &[&LimitCall]) -> u64 {
    let mut ends: Vec<(u64, f64)> = admitted
        .iter()
        .filter_map(|call| Some((call.end, taken(unit, call)?)))
        .collect();
    ends.sort_by_key(|(end, _)| *end);
    let mut sum = 0.0;
    let up = ends.into_iter().find_map(|(end, amount)| {
        sum += amount;
        (sum >= limit * (1.0 - NOTHING)).then_some(end)
    });
    up.map_or(0, |up| {
        admitted.iter().filter(|call| call.sent > up).count() as u64
    })
}

/// Between the last refusal's send, when the limit was still in force or about to be asked, and the head of
/// the call that passed.
fn passed_again(run: &LimitRun) -> Option<(u64, u64)> {
    let at = run
        .tries
        .iter()
        .position(|call| call.answer.fate() == Fate::Admitted)?;
    let passed = run.tries.get(at)?;
    let refused =
        |call: &&LimitCall| matches!(call.answer.fate(), Fate::Refused(_) | Fate::Unclear);
    let before = run.calls.iter().chain(&run.tries[..at]).filter(refused);
    let last = before.map(|call| call.sent).max()?;
    Some((last, passed.head.unwrap_or(passed.end)))
}

fn verdict(found: &LimitFinding) -> LimitVerdict {
    if found.beyond > 0.0 {
        return LimitVerdict::Beyond;
    }
    if found.unclear > 0 && found.unclear >= found.refused {
        return match found.admitted {
            0 => LimitVerdict::Unusable,
            _ => LimitVerdict::Unclear,
        };
    }
    if found.admitted == 0 {
        return LimitVerdict::Unusable;
    }
    // Without its usage a call may have used any part of the limit.
    if found.without_usage > 0 {
        return LimitVerdict::Unclear;
    }
    let full = found.used >= found.limit * (1.0 - NOTHING);
    match (found.refused > 0, full) {
        (true, true) => LimitVerdict::Held,
        (true, false) => LimitVerdict::Early,
        (false, _) => LimitVerdict::NotReached,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::client::CallOutcome;
    use record::probe::{Answer, DriveEnd};

    fn call(sent: u64, error: Option<&str>) -> LimitCall {
        LimitCall {
            sent,
            head: Some(sent + 5),
            end: sent + 10,
            answer: Answer {
                status: Some(if error.is_some() { 429 } else { 200 }),
                outcome: CallOutcome::Complete,
                error: error.map(str::to_owned),
                limit_type: None,
                retry_after: error.map(|_| 2.0),
                finish: None,
            },
            tokens: error.is_none().then_some((60, 40)),
        }
    }

    fn run(unit: LimitUnit, limit: f64, calls: Vec<LimitCall>) -> LimitRun {
        LimitRun {
            chain: "c".to_owned(),
            probe: "p".to_owned(),
            unit,
            limit,
            window: Some(1_000),
            concurrency: 1,
            ended: DriveEnd::Refused,
            calls,
            tries: Vec::new(),
        }
    }

    /// `admitted` calls 20 apart, then three refusals.
    fn drive(admitted: u64, error: &str) -> Vec<LimitCall> {
        let passed = (0..admitted).map(|n| call(20 * n, None));
        let refused = (0..3).map(|n| call(20 * (admitted + n), Some(error)));
        passed.chain(refused).collect()
    }

    #[test]
    fn what_is_let_through_is_counted_exactly() {
        for (admitted, beyond, verdict) in [
            (10, 0, LimitVerdict::Held),
            (13, 3, LimitVerdict::Beyond),
            (7, 0, LimitVerdict::Early),
        ] {
            let found = finding(&run(
                LimitUnit::Requests,
                10.0,
                drive(admitted, "request_limited"),
            ));
            assert_eq!((found.calls_beyond, found.verdict), (beyond, verdict));
            assert_eq!((found.admitted, found.refused), (admitted, 3));
            assert_eq!(found.first_refusal, Some(20 * admitted + 5));
            assert_eq!(found.retry_after, Some((2.0, 2.0)));
        }
        let never = run(
            LimitUnit::Requests,
            10.0,
            drive(9, "request_limited")[..9].to_vec(),
        );
        assert_eq!(finding(&never).verdict, LimitVerdict::NotReached);
        // A refusal that is not known to be the limit's proves nothing, and says so.
        let unclear = finding(&run(LimitUnit::Requests, 10.0, drive(10, "busy")));
        assert_eq!((unclear.refused, unclear.unclear), (0, 3));
        assert_eq!(unclear.verdict, LimitVerdict::Unclear);
        let other = finding(&run(LimitUnit::Requests, 10.0, drive(4, "token_limited")));
        assert_eq!((other.other, other.verdict), (3, LimitVerdict::NotReached));
    }

    #[test]
    fn an_answer_after_the_window_is_in_no_figure() {
        let mut calls = drive(10, "request_limited");
        calls.push(call(996, None));
        let found = finding(&run(LimitUnit::Requests, 10.0, calls));
        assert_eq!((found.admitted, found.late, found.beyond), (10, 1, 0.0));
    }

    #[test]
    fn tokens_and_money_tell_the_amount_and_who_was_sent_too_late() {
        // 100 tokens each; the limit of 250 is used up when the third has ended, at 50.
        let found = finding(&run(LimitUnit::Tokens, 250.0, drive(5, "token_limited")));
        assert_eq!(
            (found.used, found.beyond, found.calls_beyond),
            (500.0, 250.0, 2)
        );
        assert!((found.beyond_share - 1.0).abs() < 1e-12);
        let usd = LimitUnit::Usd {
            per_million_in: 100.0,
            per_million_out: 200.0,
        };
        // 0.014 USD each.
        let found = finding(&run(usd, 0.028, drive(2, "budget_exceeded")));
        assert_eq!((found.calls_beyond, found.verdict), (0, LimitVerdict::Held));
        let mut calls = drive(2, "budget_exceeded");
        calls[1].tokens = None;
        let silent = finding(&run(usd, 0.028, calls));
        assert_eq!(
            (silent.without_usage, silent.verdict),
            (1, LimitVerdict::Unclear)
        );
    }

    #[test]
    fn when_it_passes_again_is_known_as_well_as_it_was_tried() {
        let mut run = run(LimitUnit::Requests, 2.0, drive(2, "request_limited"));
        assert_eq!(finding(&run).passed_again, None);
        run.tries = vec![
            call(700, Some("request_limited")),
            call(900, Some("request_limited")),
            call(1_100, None),
        ];
        assert_eq!(finding(&run).passed_again, Some((900, 1_105)));
        run.tries.pop();
        let found = finding(&run);
        assert_eq!((found.passed_again, found.tried_again), (None, true));
    }
}
