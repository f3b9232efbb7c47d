//! A report made by hand, and what else a decision needs.

use std::collections::BTreeMap;

use config::{Facts, Objectives, Plan, PriceBook, Workload};
use cost::{Capacity, Configuration};
use decide::{Answer, Cell, Decision, Given, Language};
use record::manifest::Drive;
use report::{Arm, Contrast, Difference, LegRow, Reading, Report, RunInfo, ServerSide, Strata};
use serde_json::{Value, json};

pub(crate) const MS: f64 = 1e6;

pub(crate) struct Rig {
    pub(crate) report: Report,
    pub(crate) against: Option<Report>,
    pub(crate) capacities: BTreeMap<Configuration, Capacity>,
    pub(crate) plan: Plan,
    pub(crate) objectives: Objectives,
    pub(crate) workload: Option<Workload>,
}

impl Rig {
    pub(crate) fn new() -> Self {
        let mut plan = Plan::shipped().unwrap().into_inner();
        plan.models.default = "claude-sonnet-4-5".to_owned();
        Self {
            report: Report::empty(),
            against: None,
            capacities: BTreeMap::new(),
            plan,
            objectives: Objectives::shipped().unwrap().into_inner(),
            workload: None,
        }
    }

    /// A valid run of a scenario against real components.
    pub(crate) fn run(mut self, name: &str, scenario: u8) -> Self {
        self.report.runs.push(run(name, scenario, true));
        self
    }

    pub(crate) fn arm(mut self, arm: Arm) -> Self {
        self.report.arms.push(arm);
        self
    }

    pub(crate) fn contrast(mut self, contrast: Contrast) -> Self {
        self.report.contrasts.push(contrast);
        self
    }

    pub(crate) fn workload(mut self, change: impl FnOnce(&mut Workload)) -> Self {
        let mut workload = Workload {
            rate: 10.0,
            repeated_prompt_share: 0.0,
            tenants: 1,
            tenant_governance: false,
            data_sovereignty: false,
            engine_control: false,
            newest_models: false,
            own_model: false,
        };
        change(&mut workload);
        self.workload = Some(workload);
        self
    }

    /// All stacks serve so much on the plan's machines.
    pub(crate) fn serve(mut self, rate: f64, measured: bool) -> Self {
        for of in Configuration::ALL.into_iter().filter(|of| of.self_built()) {
            let capacity = Capacity {
                rate,
                low: Some(rate * 0.95),
                high: Some(rate * 1.05),
                replicas: 1,
                simulated: false,
                measured,
                or_more: false,
                run: "seven".to_owned(),
            };
            self.capacities.insert(of, capacity);
        }
        self
    }

    pub(crate) fn decide(&self) -> Decision {
        self.decide_in(Language::En)
    }

    pub(crate) fn decide_in(&self, language: Language) -> Decision {
        let prices = PriceBook::shipped().unwrap();
        let facts = Facts::shipped().unwrap().into_inner();
        let mut plan = self.plan.clone();
        plan.rates.push(plan.traffic.rate);
        plan.rates
            .extend(self.workload.as_ref().map(|one| one.rate));
        plan.rates.sort_by(f64::total_cmp);
        plan.rates.dedup();
        let study = cost::study(&prices, &plan, &self.capacities, &plan.traffic, None);
        let given = Given {
            report: &self.report,
            against: self.against.as_ref(),
            study: &study,
            curves: &study,
            capacities: &self.capacities,
            plan: &self.plan,
            objectives: &self.objectives,
            facts: &facts,
            workload: self.workload.as_ref(),
        };
        decide::decide(given, language)
    }

    pub(crate) fn answer(&self, number: u8) -> Answer {
        let mut answers = self.decide().answers.into_iter();
        answers.find(|one| one.number == number).unwrap()
    }
}

pub(crate) fn cell<'a>(decision: &'a Decision, row: &str, of: Configuration) -> &'a Cell {
    let row = decision.table.iter().find(|one| one.id == row).unwrap();
    let at = Configuration::ALL
        .iter()
        .position(|one| *one == of)
        .unwrap();
    &row.cells[at]
}

fn made<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

pub(crate) fn run(name: &str, scenario: u8, valid: bool) -> RunInfo {
    let check = json!({
        "name": "schedule-lag-p99", "measured": 1.0, "limit": 2.0, "unit": "ms", "at_least": false,
        "finding": if valid { "holds" } else { "fails" }, "detail": "",
    });
    RunInfo {
        name: name.to_owned(),
        path: name.into(),
        version: "0.1.0".to_owned(),
        started: "2026-12-01T08:09:10Z".to_owned(),
        host: made(json!({"name": "h", "cpu": null, "cpus": 2, "memory": null, "kernel": null})),
        shared_cpu: false,
        scenario: Some(made(json!({"number": scenario, "name": "s"}))),
        workload: made(
            json!({"input_tokens": 500, "output_tokens": 1000, "tokenizer": "o200k_base", "stream": true}),
        ),
        chains: Vec::new(),
        verdict: Some(made(json!({"checks": [check]}))),
        calibration: None,
        tool_filter: None,
        token_probes: Vec::new(),
        scrape_cpu: None,
        probes: None,
    }
}

pub(crate) fn value(value: f64) -> Reading {
    Reading::Value { value, few: false }
}

/// A row whose quantiles are so many milliseconds, its median within a tenth of that.
pub(crate) fn row(leg: &'static str, p50: f64, p95: f64) -> LegRow {
    LegRow {
        leg,
        calls: 1000,
        samples: 1000,
        p50: value(p50 * MS),
        p95: value(p95 * MS),
        p99: value(p95 * MS),
        mean: Some(p50 * MS),
        bounds: None,
        interval: Some((p50 * MS * 0.9, p50 * MS * 1.1)),
        floor: None,
        negative: 0,
    }
}

/// A thousand complete calls: TTFT 200 ms, 50 tokens a second of a stream.
pub(crate) fn arm(run: &str, chain: &str, drive: Drive) -> Arm {
    Arm {
        run: run.to_owned(),
        chain: chain.to_owned(),
        kind: if chain.starts_with("baseline") {
            "service"
        } else {
            "gateway"
        }
        .to_owned(),
        simulated: false,
        drive,
        label: String::new(),
        saturated: false,
        blocks: 4,
        strata: Strata {
            sent: 1000,
            unsent: Some(0),
            outcomes: vec![("complete".to_owned(), 1000)],
            ..Strata::default()
        },
        legs: Vec::new(),
        recovered: Vec::new(),
        ttft: row("TTFT", 200.0, 400.0),
        ttft_spread: vec![(0.1, 100.0 * MS), (0.5, 200.0 * MS), (0.95, 400.0 * MS)],
        ttft_intended: row("TTFT from intended send", 200.0, 400.0),
        e2e: row("E2E", 20_000.0, 22_000.0),
        tpot: row("TPOT", 20.0, 25.0),
        rate: Some(2.0),
        tokens_rate: Some(2000.0),
        goodput: None,
        cached_share: None,
        cached_stated: 0,
        leaked: None,
        merge_ratio: None,
        joined_percent: None,
        gateway_cpu: None,
        gateway_memory: None,
        claimed: None,
        task_added: None,
        agent: None,
        server: ServerSide::default(),
        prompt_tokens: None,
        sample: None,
    }
}

pub(crate) fn callers(concurrency: u32) -> Drive {
    Drive::Closed { concurrency }
}

/// How two chains differ in a median: nanoseconds, with an interval.
pub(crate) fn contrast(
    run: &str,
    (a, b): (&str, &str),
    figure: &'static str,
    difference: f64,
    interval: (f64, f64),
) -> Contrast {
    let one = |quantile| Difference {
        figure,
        quantile,
        a: Some(200.0 * MS),
        b: Some(200.0 * MS + difference),
        difference: Some(difference),
        interval: Some(interval),
        ratio: None,
        ratio_interval: None,
        calls: (1000, 1000),
        few: false,
        refused: None,
    };
    Contrast {
        run: run.to_owned(),
        a: a.to_owned(),
        b: b.to_owned(),
        simulated: false,
        saturated: false,
        drive: callers(50),
        label: String::new(),
        blocks: 8,
        differences: vec![one(0.5), one(0.95)],
        refused: None,
    }
}
