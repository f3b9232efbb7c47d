//! Each check on a plan that has its fault and on one that has not.

use super::*;
use config::plan::{Agent, Commitment, Parallelism, Provisioned, Quantisation, Runtime, Warm};

/// The shipped tables and a plan to be altered.
struct Case {
    plan: Plan,
    prices: PriceBook,
    geometry: Geometry,
    today: Date,
    runs: Vec<Run>,
}

impl Case {
    fn of(file: &str) -> Self {
        let path = format!("{}/../config/{file}", env!("CARGO_MANIFEST_DIR"));
        Self {
            plan: config::load::<Plan>(path).unwrap().into_inner(),
            prices: PriceBook::shipped().unwrap(),
            geometry: Geometry::shipped().unwrap().into_inner(),
            today: "2026-12-04".parse().unwrap(),
            runs: Vec::new(),
        }
    }

    fn sound() -> Self {
        Self::of("plan-sound.yaml")
    }

    fn shipped() -> Self {
        Self::of("plan.yaml")
    }

    fn found(&self) -> Vec<Finding> {
        find(&Inputs {
            plan: &self.plan,
            prices: &self.prices,
            geometry: &self.geometry,
            today: self.today,
            runs: &self.runs,
        })
    }

    /// The only finding of this id.
    fn one(&self, id: &str) -> Finding {
        let mut of_id: Vec<Finding> = self
            .found()
            .into_iter()
            .filter(|one| one.id == id)
            .collect();
        assert_eq!(of_id.len(), 1, "{id} in {:?}", ids(&self.found()));
        of_id.remove(0)
    }

    fn lacks(&self, id: &str) {
        assert!(!ids(&self.found()).contains(&id), "{:?}", self.found());
    }
}

fn ids(found: &[Finding]) -> Vec<&'static str> {
    found.iter().map(|one| one.id).collect()
}

#[test]
fn a_sound_plan_has_no_finding() {
    assert_eq!(Case::sound().found(), []);
}

#[test]
fn the_shipped_plan_has_its_four_faults() {
    let case = Case::shipped();
    let fit = case.one("fit");
    assert_eq!(fit.severity, Severity::Error);
    assert!(
        fit.what
            .contains("llama-3.1-70b in awq-int4 does not fit 1 GPU"),
        "{}",
        fit.what
    );
    assert!(fit.what.contains("37.0 GiB for weights"), "{}", fit.what);
    let replicas = case.one("replicas");
    assert!(
        replicas.what.contains("4 × g5.2xlarge hold one replica"),
        "{}",
        replicas.what
    );
    assert!(
        replicas.what.contains("tensor 1 × pipeline 4"),
        "{}",
        replicas.what
    );
    let offered = case.one("offered");
    assert!(
        offered
            .what
            .contains("claude-3-5-sonnet` is no longer offered: calls fail since 2026-03-01"),
        "{}",
        offered.what
    );
    let stated = case.one("stated");
    assert_eq!(stated.severity, Severity::Warning);
    // 4 × 1.212 × 730 = 3,539.04; 4,800 ÷ 3,539.04 = 1.356.
    assert!(
        stated.what.contains("$4,800") && stated.what.contains("$3,539: 36 % more"),
        "{}",
        stated.what
    );
}

#[test]
fn errors_come_first_and_every_finding_has_a_remedy_and_one_line() {
    let found = Case::shipped().found();
    assert!(
        found.is_sorted_by_key(|one| one.severity),
        "{:?}",
        ids(&found)
    );
    for one in &found {
        assert!(
            !one.remedy.is_empty() && !one.what.contains('\n'),
            "{one:?}"
        );
        assert!(
            one.evidence
                .iter()
                .all(|e| !e.source.is_empty() && !e.says.is_empty()),
            "{one:?}"
        );
    }
    assert_eq!(found, Case::shipped().found());
}

#[test]
fn a_model_is_offered_until_its_end() {
    let mut case = Case::sound();
    case.plan.models.default = "claude-sonnet-4".to_owned();
    case.today = "2026-06-01".parse().unwrap();
    case.lacks("offered");
    case.today = "2026-08-01".parse().unwrap();
    assert_eq!(case.one("offered").severity, Severity::Warning);
    case.today = "2026-10-14".parse().unwrap();
    assert_eq!(case.one("offered").severity, Severity::Warning);
    case.today = "2026-10-15".parse().unwrap();
    let gone = case.one("offered");
    assert_eq!(gone.severity, Severity::Error);
    assert!(gone.remedy.contains("claude-sonnet-4-5"), "{}", gone.remedy);
    case.plan.models.default = "no-such".to_owned();
    assert!(case.one("offered").what.contains("not known"));
}

#[test]
fn what_the_geometry_table_lacks_is_not_passed_over() {
    let mut case = Case::sound();
    case.plan.hardware.instance = "g9.huge".to_owned();
    let fit = case.one("fit");
    assert_eq!(
        (fit.severity, fit.at),
        (Severity::Error, "hardware.instance")
    );
    assert!(
        case.one("price-missing")
            .what
            .contains("ec2.g9.huge.on-demand")
    );
    let mut case = Case::sound();
    case.plan.models.self_hosted.geometry = "no-such".to_owned();
    assert_eq!(case.one("fit").at, "models.self_hosted.geometry");
}

#[test]
fn stages_on_several_machines_fit_and_are_warned_of() {
    let mut case = Case::shipped();
    case.plan.hardware.parallelism = Parallelism {
        tensor: 1,
        pipeline: 4,
    };
    case.lacks("fit");
    assert_eq!(case.one("pipeline").severity, Severity::Warning);
    assert_eq!(case.one("replicas").severity, Severity::Error);
    case.plan.hardware.count = 8;
    case.lacks("replicas");
}

#[test]
fn layers_are_not_shared_between_machines() {
    let mut case = Case::shipped();
    case.plan.hardware.parallelism = Parallelism {
        tensor: 4,
        pipeline: 1,
    };
    assert!(case.one("fit-network").what.contains("5 Gbit/s"));
    "g5.12xlarge".clone_into(&mut case.plan.hardware.instance);
    case.plan.hardware.count = 2;
    case.lacks("fit-network");
    case.lacks("fit");
    case.lacks("replicas");
    case.lacks("pipeline");
}

#[test]
fn a_context_that_the_cache_or_the_model_does_not_hold_is_an_error() {
    let mut case = Case::sound();
    case.plan.models.self_hosted.context_tokens = 65_536;
    assert!(case.one("fit").what.contains("the engine would not start"));
    "g6e.12xlarge".clone_into(&mut case.plan.hardware.instance);
    case.plan.models.self_hosted.context_tokens = 200_000;
    assert_eq!(case.one("context").severity, Severity::Error);
}

#[test]
fn a_replica_that_wants_more_machines_than_there_are_is_told() {
    let mut case = Case::shipped();
    case.plan.hardware.parallelism = Parallelism {
        tensor: 1,
        pipeline: 8,
    };
    assert!(case.one("fit-network").what.contains("wants 8 GPUs"));
}

#[test]
fn quotas_bound_rates_by_calls_and_by_tokens_with_their_burndown() {
    let mut case = Case::sound();
    // 60 calls a minute: one a second.
    case.plan.quotas.requests_per_minute = Some(60.0);
    let quota = case.one("quota");
    assert_eq!(quota.severity, Severity::Warning);
    assert!(
        quota.what.contains("1.00 calls a second") && quota.what.contains("5, 10, 30, 50, 100/s"),
        "{}",
        quota.what
    );
    // A call of Haiku counts 500 + 5 × 1000: 33,000 tokens are six calls.
    case.plan.quotas.requests_per_minute = None;
    case.plan.quotas.tokens_per_minute = Some(33_000.0);
    assert!(case.one("quota").what.contains("0.10 calls a second"));
    assert_eq!(case.one("quota").severity, Severity::Error);
    // A reservation of 10,000 is more than five times a thousand.
    case.plan.quotas.max_tokens = Some(10_000.0);
    case.plan.quotas.tokens_per_minute = Some(630_000.0);
    assert!(case.one("quota").what.contains("1.00 calls a second"));
    // Peaks of twice the mean leave half of it.
    case.plan.traffic.burst_ratio = 2.0;
    assert!(
        case.one("quota")
            .what
            .contains("0.50 calls a second, at peaks")
    );
    case.plan.quotas.tokens_per_minute = None;
    assert_eq!(case.one("quota").severity, Severity::Note);
    case.plan.provisioned = Some(Provisioned {
        model_units: 1,
        commitment: Commitment::None,
    });
    case.lacks("quota");
}

#[test]
fn an_import_is_held_against_what_it_accepts_and_against_the_engine() {
    let mut case = Case::sound();
    case.plan.models.self_hosted.quantisation = Quantisation::Fp8;
    assert_eq!(case.one("import-precision").severity, Severity::Warning);
    case.plan.models.imported = "llama-3.1-70b".to_owned();
    assert!(case.one("import-units").what.contains("AWS states 8"));
    assert_eq!(case.one("import-model").severity, Severity::Warning);
    case.geometry.import.weights_gb_max = 100.0;
    assert!(case.one("import").what.contains("141 GB"));
    case.plan.region = "eu-west-1".to_owned();
    assert!(case.one("import").what.contains("not offered in eu-west-1"));
    assert_eq!(case.one("price-region").severity, Severity::Error);
}

#[test]
fn windows_without_calls_and_copies_without_traffic_are_told() {
    let mut case = Case::sound();
    // e^(−0.01 × 300) = 0.0498.
    case.plan.rates = vec![0.01, 1.0];
    assert!(case.one("import-pauses").what.contains("5.0 %"));
    case.plan.import.warm = Warm::Always;
    case.lacks("import-pauses");
    case.lacks("import-idle");
    case.plan.traffic.duty = 0.25;
    // 2 × 0.05718 × 60 × 730 = 5,008.97; three quarters of it.
    assert!(case.one("import-idle").what.contains("$3,757"));
}

#[test]
fn a_copy_of_seventy_billion_is_told_beside_the_machines() {
    // 8 × 0.05718 × 60 × 730 = 20,035.87; ÷ 3,539.04 = 5.7.
    let note = Case::shipped().one("import-cost");
    assert_eq!(note.severity, Severity::Note);
    assert!(
        note.what.contains("$20,036: 5.7 × the $3,539"),
        "{}",
        note.what
    );
}

#[test]
fn agents_are_held_against_the_quotas_of_their_platform() {
    let mut case = Case::sound();
    case.plan.agent = Some(Agent {
        runtime: Runtime::V2,
        session_seconds: 600,
        vcpu_share: 0.35,
        memory_gb: 2.0,
        tool_calls: 3,
    });
    case.lacks("agent-quota");
    case.plan.traffic.calls_per_task = 5.0;
    // 5,000 sessions of 600 s are 8.33 tasks a second, 41.7 calls.
    case.plan.quotas.runtime_sessions = Some(5000.0);
    let quota = case.one("agent-quota");
    assert!(
        quota
            .what
            .contains("`runtime_sessions` allows 41.7 model calls a second")
            && quota.what.contains("50, 100/s"),
        "{}",
        quota.what
    );
    // 400 new sessions a minute are 6.67 tasks a second: 33.3 calls.
    case.plan.quotas.runtime_new_sessions_per_minute = Some(400.0);
    assert!(case.one("agent-quota").what.contains("33.3 model calls"));
    case.lacks("agent-price");
}

#[test]
fn prices_that_are_old_or_assumed_are_listed() {
    let mut case = Case::sound();
    case.prices.set("ec2.g5.2xlarge.on-demand", 1.2).unwrap();
    let assumed = case.one("price-assumed");
    assert_eq!(assumed.severity, Severity::Note);
    assert!(
        assumed.evidence[0]
            .says
            .starts_with("ec2.g5.2xlarge.on-demand")
    );
    case.today = "2028-01-01".parse().unwrap();
    assert_eq!(case.one("price-old").severity, Severity::Warning);
}

#[test]
fn what_the_measurements_cost_is_held_against_the_budget() {
    let mut case = Case::sound();
    let run = |chain: &str, calls: f64| Run {
        scenario: "7".to_owned(),
        chain: chain.to_owned(),
        load: crate::campaign::Load {
            seconds: 86_400.0,
            calls,
            input_tokens: calls * 500.0,
            output_tokens: calls * 1000.0,
        },
    };
    case.runs = vec![
        run("baseline", 1e6),
        run("baseline-plus", 10.0),
        run("a1", 10.0),
    ];
    case.plan.benchmark.as_mut().unwrap().budget_usd = Some(1000.0);
    // Haiku: 500 M × 1 + 1000 M × 5 = 5,500; import: 1440 min × 2 × 0.05718 = 164.68;
    // machines: 4 × 1.212 × 72 h = 349.06.
    let cost = case.one("benchmark-cost");
    assert_eq!(cost.severity, Severity::Warning);
    assert!(
        cost.what
            .contains("about $6,014, and the budget is $1,000: $5,500 for tokens"),
        "{}",
        cost.what
    );
    assert!(
        cost.what.contains("$165 for the imported") && cost.what.contains("$349 for machines"),
        "{}",
        cost.what
    );
    case.plan.benchmark.as_mut().unwrap().budget_usd = None;
    assert_eq!(case.one("benchmark-cost").severity, Severity::Note);
    case.plan.benchmark.as_mut().unwrap().days = Some(2.0);
    assert!(case.one("benchmark-time").what.contains("3.0 days"));
    case.plan.benchmark.as_mut().unwrap().days = Some(3.0);
    case.lacks("benchmark-time");
}

#[test]
fn dollars_are_grouped() {
    for (amount, text) in [
        (0.4, "$0"),
        (999.6, "$1,000"),
        (20_035.87, "$20,036"),
        (1_234_567.0, "$1,234,567"),
        (-4.0, "-$4"),
    ] {
        assert_eq!(dollars(amount), text);
    }
}
