//! Calls that were due and never sent, since as many as may be were in flight: what they would have taken is
//! known only to be long.

use crate::gather::Joined;
use record::clock::Nanos;
use record::manifest::{Cell, Drive};

/// The calls of `cell` that were due and not sent, warm-up apart. Of an agent none is due before the one
/// before it has ended.
pub(crate) fn of_cell(cell: &Cell) -> u64 {
    let due = cell
        .scheduled
        .filter(|_| !matches!(cell.drive, Drive::Agent { .. }));
    due.map_or(0, |due| due.saturating_sub(cell.sent))
}

/// Those that were due from `from` on and before `to`, by the gaps in the numbers of the calls that were sent:
/// numbers are in the order in which calls are due. `None` where a gap lies across either border, or where the
/// gaps are not the calls that are missing.
pub(super) fn within(cell: &Cell, calls: &[Joined], (from, to): (Nanos, Nanos)) -> Option<u64> {
    let missing = of_cell(cell);
    if missing == 0 {
        return Some(0);
    }
    let mut sent: Vec<(u64, Nanos)> = calls
        .iter()
        .map(|j| (j.client.seq, j.client.intended))
        .collect();
    sent.sort_unstable();
    let end = (cell.scheduled?, cell.to);
    // The first number is 0: a course has no warm-up.
    let (mut number, mut since) = (0, cell.from);
    let (mut all, mut inside) = (0, 0);
    for (next, due) in sent.into_iter().chain([end]) {
        let gap = next.saturating_sub(number);
        let ends_before = due < to || (due <= to && (next, due) == end);
        let apart = due < from || since >= to;
        if gap > 0 && since >= from && ends_before {
            inside += gap;
        } else if gap > 0 && !apart {
            return None;
        }
        all += gap;
        (number, since) = (next + 1, due);
    }
    (all == missing).then_some(inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::client::ClientCall;

    /// A course of twenty calls, due each ten; those of `sent` were sent.
    fn course(sent: impl Iterator<Item = u64>) -> (Cell, Vec<Joined>) {
        let calls: Vec<Joined> = sent
            .map(|seq| Joined {
                client: ClientCall::unanswered(0, seq, seq * 10, seq * 10),
                taps: None,
            })
            .collect();
        let text = r#"{"id": 0, "chain": "c", "drive": {"kind": "profile", "phases": []}, "block": 0, "from": 0, "to": 200, "scheduled": 20, "sent": 0}"#;
        let mut cell: Cell = serde_json::from_str(text).unwrap();
        cell.sent = calls.len() as u64;
        (cell, calls)
    }

    fn phases(sent: impl Iterator<Item = u64>) -> [Option<u64>; 2] {
        let (cell, calls) = course(sent);
        [(0, 100), (100, 200)].map(|window| within(&cell, &calls, window))
    }

    #[test]
    fn a_gap_within_a_phase_is_of_that_phase() {
        assert_eq!(phases(0..20), [Some(0), Some(0)]);
        let gap = (0..20).filter(|n| !(12..15).contains(n));
        assert_eq!(phases(gap), [Some(0), Some(3)]);
        // At either end of the course.
        assert_eq!(phases(2..20), [Some(2), Some(0)]);
        assert_eq!(phases(0..17), [Some(0), Some(3)]);
    }

    #[test]
    fn a_gap_across_a_border_is_known_of_neither_phase() {
        let across = (0..20).filter(|n| !(9..11).contains(n));
        assert_eq!(phases(across), [None, None]);
    }

    #[test]
    fn a_gap_that_is_no_call_that_was_not_sent_tells_nothing() {
        let (mut cell, calls) = course((0..20).filter(|n| ![3, 15].contains(n)));
        // One was sent, and its record was lost.
        cell.sent += 1;
        assert_eq!(within(&cell, &calls, (0, 100)), None);
    }

    #[test]
    fn what_a_task_did_not_come_to_was_never_due() {
        let (mut cell, _) = course(0..17);
        assert_eq!(of_cell(&cell), 3);
        cell.drive = Drive::Agent {
            turns: 4,
            concurrency: 1,
            whole: false,
        };
        assert_eq!(of_cell(&cell), 0);
        (cell.drive, cell.scheduled) = (Drive::Closed { concurrency: 1 }, None);
        assert_eq!(of_cell(&cell), 0);
    }
}
