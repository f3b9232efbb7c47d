//! The self-built configurations: GPUs by need, and what is paid whatever the traffic.

use super::{Cost, Item, Steps};
use crate::course::Course;
use crate::inputs::View;
use crate::model::{Configuration, HOURS};

pub(super) fn items(of: Configuration, view: &View<'_>) -> Vec<Item> {
    let mut items = Vec::new();
    items.extend(gpus(of, view));
    let llm_d = of.llm_d().then_some(("llm-d", "llm-d-month"));
    let fixed = [
        ("eks", "eks-month"),
        ("gateway", "gateway-month"),
        ("langfuse", "langfuse-month"),
    ];
    items.extend(
        fixed
            .into_iter()
            .chain(llm_d)
            .filter_map(|(id, price)| fixed_item(id, price, view)),
    );
    items
}

/// What is paid every month, by the plan's named set.
fn fixed_item(id: &'static str, price: &str, view: &View<'_>) -> Option<Item> {
    let price_id = format!("{}.{price}", view.given.plan.fixed);
    let price = view.price(&price_id)?;
    Some(Item {
        id,
        formula: format!("${price} a month"),
        price_ids: vec![price_id],
        cost: Cost::Smooth(Course::fixed(price)),
    })
}

/// Instances for as many replicas as the peak needs, by the capacity that was measured. What a KV cache saves is in
/// that capacity, if the calls that measured it repeated their prompts; a semantic cache keeps calls from the engine.
fn gpus(of: Configuration, view: &View<'_>) -> Option<Item> {
    let (plan, traffic) = (view.given.plan, view.given.traffic);
    let purchase = plan.hardware.purchase.as_str();
    let price_id = format!("ec2.{}.{purchase}", plan.hardware.instance);
    let price = view.price(&price_id);
    let capacity = view.capacity(of);
    if capacity.is_none() {
        view.gap(format!(
            "what `{of}` serves within its objective is not measured: scenario 7 (`config/scenarios/7-break-even.yaml`) does"
        ));
    }
    let ((rate, capacity), price) = capacity.zip(price)?;
    let hit = match of.semantic_cache() {
        true => traffic.semantic_hit_share,
        false => 0.0,
    };
    let (hours, idle) = match plan.hardware.scale_to_zero {
        true => (HOURS * traffic.duty, 0.0),
        false => (HOURS, 1.0),
    };
    let replicas = f64::from(capacity.replicas.max(1));
    let machines = f64::from(plan.hardware.count) / replicas;
    let serves = rate / replicas / (traffic.burst_ratio * (1.0 - hit));
    Some(Item {
        id: "gpu",
        formula: format!(
            "replicas (one for each {serves} calls/s) × {machines} {} × {hours} h × ${price}",
            plan.hardware.instance
        ),
        price_ids: vec![price_id],
        cost: Cost::Steps(Steps {
            serves,
            machines,
            idle,
            each: Course::fixed(hours * price),
        }),
    })
}
