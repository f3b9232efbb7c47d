//! How much of its prompts a workload repeats, by the recipe that the load generator makes them by.

use crate::gather::Gathered;
use crate::model::Repetition;
use config::Scenario;
use config::scenario::Prompts;
use record::manifest::{Cell, Drive};

/// The repetition of `cells`; `None` where one of them has prompts that are not the scenario's own.
pub(super) fn repetition(run: &Gathered, cells: &[&Cell]) -> Option<Repetition> {
    let scenario = run.scenario.as_ref()?;
    let mut sum = Repetition::default();
    for cell in cells {
        let calls = run.usage_of(cell.id).calls;
        let one = of_cell(scenario, &cell.drive, calls)?;
        sum.tokens += one.tokens;
        sum.prefix_tokens += one.prefix_tokens;
        sum.calls += one.calls;
        sum.equal_calls += one.equal_calls;
    }
    (sum.calls > 0).then_some(sum)
}

/// Of a cell of so many calls.
fn of_cell(scenario: &Scenario, drive: &Drive, calls: u64) -> Option<Repetition> {
    let workload = &scenario.workload;
    let (systems, system) = match drive {
        Drive::Closed { .. }
        | Drive::Open { .. }
        | Drive::Capacity { .. }
        | Drive::Profile { .. }
        | Drive::Experiment { .. } => workload
            .system
            .as_ref()
            .map_or((0, 0), |system| (system.count, system.tokens)),
        // One each, and the secret in it beside.
        Drive::Tenant { tenant, .. } => {
            let members = &scenario.tenants.as_ref()?.members;
            let member = members.iter().find(|member| member.name == *tenant)?;
            (1, member.system_tokens)
        }
        Drive::Agent { .. } | Drive::Trace { .. } => return None,
    };
    let (user, system) = (u64::from(workload.input_tokens), u64::from(system));
    // Each text for the first time, in turn.
    let first = |texts: u64| texts.min(calls);
    let equal_calls = match workload.prompts {
        Prompts::Unique => 0,
        Prompts::Same => calls - first(u64::from(systems).max(1)),
    };
    let systems_again = calls - first(u64::from(systems));
    Some(Repetition {
        tokens: calls * (user + system),
        prefix_tokens: systems_again * system + equal_calls * user,
        calls,
        equal_calls,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(workload: &str, calls: u64) -> Repetition {
        let text = format!(
            "name: s\nnumber: 1\nquestion: q\nworkload: {workload}\nclosed_loop: {{concurrency: [1], cell: {{calls: 1}}}}\n\
             blocks: 1\nwarmup: {{calls: 1}}\nseed: 1\n"
        );
        let scenario = config::from_text::<Scenario>("s.yaml", &text).unwrap();
        of_cell(&scenario, &Drive::Closed { concurrency: 1 }, calls).unwrap()
    }

    #[test]
    fn what_came_before_is_counted_and_nothing_else() {
        let unique = of("{input_tokens: 100, output_tokens: 16}", 10);
        assert_eq!((unique.tokens, unique.prefix_tokens), (1_000, 0));
        assert_eq!((unique.calls, unique.equal_calls), (10, 0));
        let shared = "{input_tokens: 100, output_tokens: 16, system: {count: 3, tokens: 900}}";
        let some = of(shared, 10);
        assert_eq!((some.tokens, some.prefix_tokens), (10_000, 7 * 900));
        assert_eq!(of(shared, 2).prefix_tokens, 0, "each for the first time");
        let same = of("{input_tokens: 100, output_tokens: 16, prompts: same}", 10);
        assert_eq!((same.prefix_tokens, same.equal_calls), (900, 9));
        let both = of(
            "{input_tokens: 100, output_tokens: 16, prompts: same, system: {count: 3, tokens: 900}}",
            10,
        );
        assert_eq!((both.prefix_tokens, both.equal_calls), (7_000, 7));
    }
}
