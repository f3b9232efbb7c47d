//! The managed configurations: tokens, windows of an imported model, guardrails, the agent's runtime.

use config::plan::{Commitment, Warm};

use super::{Cost, Item, Steps};
use crate::course::{Course, WINDOW};
use crate::inputs::View;
use crate::model::{Configuration, HOURS, SECONDS};

const MILLION: f64 = 1e6;
/// Characters of a text unit of a guardrail, at most.
const UNIT_CHARS: f64 = 1000.0;

pub(super) fn items(of: Configuration, view: &View<'_>) -> Vec<Item> {
    let mut items = Vec::new();
    match (of, &view.given.plan.provisioned) {
        (Configuration::BaselinePlus, _) => items.extend(import(view)),
        (_, Some(_)) => items.extend(provisioned(view)),
        (_, None) => items.extend(tokens(view)),
    }
    items.extend(guardrails(view));
    items.extend(agent(view));
    items
}

/// Calls of a month for each call a second: the month's seconds with traffic.
fn seconds(view: &View<'_>) -> f64 {
    SECONDS * view.given.traffic.duty
}

/// Input and output tokens, each of the input's kinds by its own price.
fn tokens(view: &View<'_>) -> Vec<Item> {
    let traffic = view.given.traffic;
    let model = &view.given.plan.models.default;
    let tier = view.given.plan.models.tier.prefix();
    let fresh = 1.0 - traffic.prompt_cache_share - traffic.cache_write_share;
    let kinds = [
        ("tokens-input", "input", traffic.input_tokens * fresh),
        (
            "tokens-cache-read",
            "cache-read",
            traffic.input_tokens * traffic.prompt_cache_share,
        ),
        (
            "tokens-cache-write",
            "cache-write-5m",
            traffic.input_tokens * traffic.cache_write_share,
        ),
        ("tokens-output", "output", traffic.output_tokens),
    ];
    let month = seconds(view);
    let wanted = kinds.into_iter().filter(|(_, _, count)| *count > 0.0);
    wanted
        .filter_map(|(id, kind, count)| {
            let price_id = format!("bedrock.{model}.{tier}{kind}");
            let price = view.price(&price_id)?;
            Some(Item {
                id,
                formula: format!("rate × {month} s × {count} tokens × ${price} ÷ 1,000,000"),
                price_ids: vec![price_id],
                cost: Cost::Smooth(Course::slope(month * count * price / MILLION)),
            })
        })
        .collect()
}

/// Model units by the hour, whatever the traffic. What a unit serves is published nowhere.
fn provisioned(view: &View<'_>) -> Option<Item> {
    let plan = view.given.plan;
    let bought = plan.provisioned.as_ref()?;
    let term = match bought.commitment {
        Commitment::None => "none",
        Commitment::OneMonth => "one-month",
        Commitment::SixMonths => "six-months",
    };
    let price_id = format!("bedrock.{}.provisioned-{term}", plan.models.default);
    let price = view.price(&price_id)?;
    let units = f64::from(bought.model_units);
    Some(Item {
        id: "provisioned",
        formula: format!("{units} model units × {HOURS} h × ${price}"),
        price_ids: vec![price_id],
        cost: Cost::Smooth(Course::fixed(units * HOURS * price)),
    })
}

/// Copies by the five-minute window, and storage.
fn import(view: &View<'_>) -> Vec<Item> {
    const MINUTE: &str = "import.cmu-minute";
    const STORAGE: &str = "import.cmu-month-storage";
    let (plan, traffic) = (view.given.plan, view.given.traffic);
    let cmus = f64::from(plan.import.cmus_per_copy);
    let mut items = Vec::new();
    if let Some(price) = view.price(MINUTE) {
        let window = WINDOW / 60.0 * cmus * price;
        let month = SECONDS / WINDOW * window;
        let (each, when) = match plan.import.warm {
            Warm::Always => (Course::fixed(month), "all windows".to_owned()),
            Warm::Windows => (
                Course {
                    window: month * traffic.duty,
                    ..Course::default()
                },
                format!(
                    "windows with a call, {} of the month × (1 − e^(−{WINDOW} × rate))",
                    traffic.duty
                ),
            ),
        };
        let (cost, copies) = match view.capacity(Configuration::BaselinePlus) {
            Some((rate, capacity)) => {
                let serves = rate / f64::from(capacity.replicas.max(1)) / traffic.burst_ratio;
                let steps = Steps {
                    serves,
                    machines: 1.0,
                    idle: 1.0,
                    each,
                };
                (
                    Cost::Steps(steps),
                    format!("a copy for each {serves} calls/s"),
                )
            }
            None => {
                let copies = plan.import.copies;
                (
                    Cost::Smooth(each * f64::from(copies)),
                    format!(
                        "{copies} copies as planned, whatever the rate: what one serves is not measured"
                    ),
                )
            }
        };
        items.push(Item {
            id: "import-windows",
            formula: format!(
                "{copies} × {when} × {cmus} CMUs × {} min × ${price}",
                WINDOW / 60.0
            ),
            price_ids: vec![MINUTE.to_owned()],
            cost,
        });
    }
    if let Some(price) = view.price(STORAGE) {
        items.push(Item {
            id: "import-storage",
            formula: format!("{cmus} CMUs × ${price}"),
            price_ids: vec![STORAGE.to_owned()],
            cost: Cost::Smooth(Course::fixed(cmus * price)),
        });
    }
    items
}

/// Each policy on prompt and answer, by units of up to a thousand characters.
fn guardrails(view: &View<'_>) -> Vec<Item> {
    let traffic = view.given.traffic;
    let units = |tokens: f64| super::whole(tokens * traffic.chars_per_token / UNIT_CHARS);
    let units = units(traffic.input_tokens) + units(traffic.output_tokens);
    let month = seconds(view);
    let policies = view.given.plan.guardrails.iter();
    policies
        .filter_map(|policy| {
            let price_id = format!("bedrock.guardrail.{}", policy.as_str());
            let price = view.price(&price_id)?;
            Some(Item {
                id: "guardrail",
                formula: format!("rate × {month} s × {units} text units × ${price} ÷ 1,000"),
                price_ids: vec![price_id],
                cost: Cost::Smooth(Course::slope(month * units * price / 1000.0)),
            })
        })
        .collect()
}

/// Sessions of AgentCore Runtime and tool calls of its Gateway, one session a task.
fn agent(view: &View<'_>) -> Vec<Item> {
    let Some(agent) = &view.given.plan.agent else {
        return Vec::new();
    };
    let tasks = seconds(view) / view.given.traffic.calls_per_task;
    let hours = f64::from(agent.session_seconds) / 3600.0;
    let runtime = agent.runtime.as_str();
    let kinds = [
        (
            "agent-cpu",
            format!("agentcore.runtime.{runtime}.vcpu-hour"),
            agent.vcpu_share * hours,
            "vCPU hours",
            1.0,
        ),
        (
            "agent-memory",
            format!("agentcore.runtime.{runtime}.gb-hour"),
            agent.memory_gb * hours,
            "GB hours",
            1.0,
        ),
        (
            "agent-tools",
            "agentcore.gateway.call".to_owned(),
            f64::from(agent.tool_calls),
            "tool calls",
            1000.0,
        ),
    ];
    let wanted = kinds.into_iter().filter(|kind| kind.2 > 0.0);
    wanted
        .filter_map(|(id, price_id, count, what, of)| {
            let price = view.price(&price_id)?;
            Some(Item {
                id,
                formula: format!("rate × {tasks} tasks × {count} {what} × ${price} ÷ {of}"),
                price_ids: vec![price_id],
                cost: Cost::Smooth(Course::slope(tasks * count * price / of)),
            })
        })
        .collect()
}
