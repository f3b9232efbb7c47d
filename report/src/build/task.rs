//! What a chain adds to whole tasks of an agent.

use super::arm::{Calls, headline};
use super::row::{Block, row};
use crate::gather::Joined;
use crate::model::LegRow;
use crate::quantile::Rules;
use record::manifest::Drive;
use record::span::Span;
use std::collections::BTreeMap;

/// Added E2E of the tasks: the sum over the calls of each. `None` where no task has all of its legs.
pub(super) fn added(blocks: &[Calls<'_>], drive: &Drive, rules: &Rules) -> Option<LegRow> {
    let Drive::Agent { turns, .. } = drive else {
        return None;
    };
    let blocks: Vec<Block> = blocks
        .iter()
        .map(|calls| block(calls, usize::from(*turns)))
        .collect();
    let row = row("added E2E of a task", &blocks, rules);
    (row.samples > 0).then_some(row)
}

/// A task that failed, has fewer turns than it should have, or a call without a leg, may have been the
/// slowest: it is a lower bound, as it is in the other figures of tasks.
fn block(calls: &Calls<'_>, turns: usize) -> Block {
    let mut tasks: BTreeMap<(u32, u32), Vec<&Joined>> = BTreeMap::new();
    for joined in calls {
        if let Some((task, _)) = joined.client.task {
            let of = (joined.client.cell, task);
            tasks.entry(of).or_default().push(joined);
        }
    }
    let mut block = Block::default();
    for calls in tasks.values() {
        match sum(calls).filter(|_| calls.len() == turns) {
            Some(sum) => block.span(sum),
            None => block.censor(),
        }
    }
    block
}

/// What was added to all of them; `None` where one has no leg, or did not end well.
fn sum(calls: &[&Joined]) -> Option<Span> {
    let none = Span {
        value: 0,
        low: 0,
        high: 0,
    };
    calls.iter().try_fold(none, |sum, joined| {
        let whole = !joined.client.outcome.censored();
        let legs = headline(joined.taps.as_ref()?).filter(|_| whole)?;
        Some(sum.plus(legs.added_text.or(legs.added_end)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::tests::{legs, tapped};
    use record::client::{CallOutcome, ClientCall};

    /// Call `turn` of `task`, to which 10 ns are added.
    fn call(task: u32, turn: u16) -> Joined {
        let seq = u64::from(task) * 2 + u64::from(turn);
        Joined {
            client: ClientCall {
                task: Some((task, turn)),
                outcome: CallOutcome::Complete,
                ..ClientCall::unanswered(0, seq, 0, 0)
            },
            taps: Some(tapped(Some(legs(10)))),
        }
    }

    fn row_of(calls: &[Joined]) -> Option<LegRow> {
        let drive = Drive::Agent {
            turns: 2,
            concurrency: 1,
            whole: false,
        };
        let rules = Rules {
            loss: 1.0,
            ..Rules::default()
        };
        added(&[calls.iter().collect()], &drive, &rules)
    }

    #[test]
    fn a_task_that_is_cut_or_fails_or_has_no_leg_is_a_lower_bound() {
        let tasks = || (0..9).flat_map(|task| [call(task, 0), call(task, 1)]);
        let all: Vec<Joined> = tasks().collect();
        let row = row_of(&all).unwrap();
        assert_eq!((row.samples, row.p50.value()), (9, Some(20.0)));
        // Task 0 never came to its second turn, task 1 failed, task 2 has a call without a counterpart.
        let mut some: Vec<Joined> = tasks().filter(|j| j.client.seq != 1).collect();
        for joined in &mut some {
            match joined.client.seq {
                3 => joined.client.outcome = CallOutcome::TimedOut,
                4 => joined.taps = Some(tapped(None)),
                _ => {}
            }
        }
        let row = row_of(&some).unwrap();
        assert_eq!((row.samples, row.p50.value()), (6, Some(20.0)));
        // Were the three dropped, the median of what is left would be printed all the same.
        some.truncate(11);
        let row = row_of(&some).unwrap();
        assert_eq!(row.samples, 3);
        assert!(row.p50.value().is_none(), "{row:?}");
    }

    #[test]
    fn without_an_inner_tap_nothing_is_added_to_tasks() {
        let mut calls = vec![call(0, 0), call(0, 1)];
        calls.iter_mut().for_each(|joined| joined.taps = None);
        assert_eq!(row_of(&calls), None);
    }
}
