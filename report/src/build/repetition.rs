//! How much of its prompts a workload repeats, by the recipe that the load generator makes them by.

use crate::gather::Gathered;
use crate::model::Repetition;
use config::Scenario;
use config::scenario::Prompts;
use record::manifest::{Cell, Drive};
use record::token_probe::TokenProbe;

/// The repetition of `cells`; `None` where one of them has prompts that are not the scenario's own.
pub(super) fn repetition(run: &Gathered, cells: &[&Cell]) -> Option<Repetition> {
    let scenario = run.scenario.as_ref()?;
    let mut sum = Repetition::default();
    for cell in cells {
        let calls = run.usage_of(cell.id).calls;
        let lengths = Lengths::of(scenario, &run.manifest.token_probes, &cell.chain);
        let one = of_cell(scenario, lengths, &cell.drive, calls)?;
        sum.tokens += one.tokens;
        sum.prefix_tokens += one.prefix_tokens;
        sum.calls += one.calls;
        sum.equal_calls += one.equal_calls;
    }
    (sum.calls > 0).then_some(sum)
}

/// Tokens of a prompt's parts as they are sent, under the scenario's tokenizer.
#[derive(Clone, Copy)]
struct Lengths {
    system: u32,
    user: u32,
}

impl Lengths {
    /// Those that the usage probe found for the chain; what is asked for, where none was made.
    fn of(scenario: &Scenario, probes: &[TokenProbe], chain: &str) -> Self {
        let mut found = probes
            .iter()
            .filter(|probe| probe.counted.iter().any(|one| one.chain == chain));
        match found.next() {
            Some(probe) => Self {
                system: probe.system,
                user: probe.user,
            },
            None => Self {
                system: scenario.workload.system.as_ref().map_or(0, |s| s.tokens),
                user: scenario.workload.input_tokens,
            },
        }
    }
}

/// Of a cell of so many calls.
fn of_cell(scenario: &Scenario, lengths: Lengths, drive: &Drive, calls: u64) -> Option<Repetition> {
    let workload = &scenario.workload;
    let (systems, system) = match drive {
        Drive::Closed { .. }
        | Drive::Open { .. }
        | Drive::Capacity { .. }
        | Drive::Profile { .. }
        | Drive::Experiment { .. } => workload
            .system
            .as_ref()
            .map_or((0, 0), |system| (system.count, lengths.system)),
        // One each, as long as was asked for, and the secret in it beside.
        Drive::Tenant { tenant, .. } => {
            let members = &scenario.tenants.as_ref()?.members;
            let member = members.iter().find(|member| member.name == *tenant)?;
            (1, member.system_tokens)
        }
        Drive::Agent { .. } | Drive::Trace { .. } => return None,
    };
    let (user, system) = (u64::from(lengths.user), u64::from(system));
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

    fn scenario(workload: &str) -> Scenario {
        let text = format!(
            "name: s\nnumber: 1\nquestion: q\nworkload: {workload}\nclosed_loop: {{concurrency: [1], cell: {{calls: 1}}}}\n\
             blocks: 1\nwarmup: {{calls: 1}}\nseed: 1\n"
        );
        config::from_text::<Scenario>("s.yaml", &text)
            .unwrap()
            .into_inner()
    }

    fn of(workload: &str, calls: u64) -> Repetition {
        let scenario = scenario(workload);
        let lengths = Lengths::of(&scenario, &[], "c");
        of_cell(&scenario, lengths, &Drive::Closed { concurrency: 1 }, calls).unwrap()
    }

    #[test]
    fn lengths_that_the_usage_probe_found_are_those_that_are_sent() {
        let scenario =
            scenario("{input_tokens: 100, output_tokens: 16, system: {count: 3, tokens: 900}}");
        let probe = TokenProbe {
            reference: "c".to_owned(),
            asked: 1_000,
            system: 720,
            user: 80,
            template: 0.0,
            each: 1.25,
            counted: vec![record::token_probe::Counted {
                chain: "c".to_owned(),
                tokens: vec![1_000],
                deviation: Some(0.0),
            }],
        };
        let sent = |chain: &str| {
            let lengths = Lengths::of(&scenario, std::slice::from_ref(&probe), chain);
            let drive = Drive::Closed { concurrency: 1 };
            let all = of_cell(&scenario, lengths, &drive, 10).unwrap();
            (all.tokens, all.prefix_tokens)
        };
        assert_eq!(sent("c"), (8_000, 7 * 720));
        assert_eq!(sent("not probed"), (10_000, 7 * 900));
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
