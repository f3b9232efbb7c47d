//! Calls of an agent service's sessions: those that start one, and those that find it there, apart.

use super::row::{Block, row};
use crate::gather::Gathered;
use crate::model::LegRow;
use crate::quantile::Rules;
use record::client::ClientCall;
use record::manifest::Cell;

/// A name, which calls it is of, and the figure.
type Figure = (&'static str, bool, fn(&ClientCall) -> Option<u64>);

const FIGURES: [Figure; 4] = [
    ("TTFT, cold session", true, ClientCall::ttft),
    ("TTFT, warm session", false, ClientCall::ttft),
    ("E2E, cold session", true, ClientCall::e2e),
    ("E2E, warm session", false, ClientCall::e2e),
];

/// The rows of an arm; none where no call is of a session, and none of a figure that no call has: not every agent's
/// answer has text that can be read.
pub(super) fn rows(run: &Gathered, cells: &[&Cell], rules: &Rules) -> Vec<LegRow> {
    let figures = FIGURES.into_iter().filter_map(|(name, cold, pick)| {
        let blocks = cells.iter().map(|cell| {
            let calls = run.calls_of(cell.id).iter().map(|joined| &joined.client);
            block(calls.filter(|call| call.cold == Some(cold)), pick)
        });
        let blocks: Vec<(Block, bool)> = blocks.collect();
        let any = blocks.iter().any(|(_, any)| *any);
        let blocks: Vec<Block> = blocks.into_iter().map(|(block, _)| block).collect();
        any.then(|| row(name, &blocks, rules))
    });
    figures.collect()
}

/// The values of one block, and whether there are any.
fn block<'a>(
    calls: impl Iterator<Item = &'a ClientCall>,
    pick: fn(&ClientCall) -> Option<u64>,
) -> (Block, bool) {
    let (mut block, mut any) = (Block::default(), false);
    for call in calls {
        match pick(call).filter(|_| !call.outcome.censored()) {
            Some(value) => {
                block.value(value as f64);
                any = true;
            }
            None if call.outcome.censored() => block.censor(),
            None => {}
        }
    }
    (block, any)
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::client::CallOutcome;

    #[test]
    fn a_call_that_failed_is_a_lower_bound_and_one_without_text_has_no_first_token() {
        let call = |outcome, text| ClientCall {
            sent: Some(100),
            first_text: text,
            end: 900,
            outcome,
            cold: Some(true),
            ..ClientCall::unanswered(0, 0, 0, 0)
        };
        let calls = [
            call(CallOutcome::Complete, Some(400)),
            call(CallOutcome::Complete, None),
            call(CallOutcome::TimedOut, Some(400)),
        ];
        let rules = Rules::default();
        let (ttft, any) = block(calls.iter(), ClientCall::ttft);
        let ttft = row("TTFT", &[ttft], &rules);
        assert_eq!((any, ttft.samples), (true, 1));
        let (e2e, _) = block(calls.iter(), ClientCall::e2e);
        assert_eq!(row("E2E", &[e2e], &rules).samples, 2);
        assert!(!block(calls[1..].iter(), ClientCall::ttft).1);
    }
}
